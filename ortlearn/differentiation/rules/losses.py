"""Gradients of loss operators."""

from __future__ import annotations

from ..gradient_builder import GradientBuilder
from ..rule_context import Gradients, RuleNode
from ..rule_set import RuleSet

__all__ = ["RULES"]

RULES = RuleSet("losses")


@RULES.rule("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # l = -sum(w_c log_softmax(x)_c) with c the label, dx = w (softmax(x) - one hot of c) dl and
    # dw_c = -sum(log_softmax(x)_c dl), with dl / sum(w), and l less of the second, for the mean;
    # the log-probabilities, a second output, add dp - softmax(x) sum(dp)
    x, labels = node.I(0), node.I(1)
    total = weights_grad = None
    logs = node.O(1) or op.LogSoftmax(x, axis=1)
    shares = op.Exp(logs)
    if grad is not None:
        weights = _label_weights(op, node, x, labels)
        if node.attribute("reduction", "mean") == "mean":
            grad = op.Div(grad, op.reduce("ReduceSum", weights, None, keepdims=0))
        hot = _one_hot(op, node, x, labels)
        scale = op.unsqueeze(op.Mul(grad, weights), [1])
        total = op.Mul(op.Sub(shares, hot), scale)
        weights_grad = _class_weights_gradient(op, node, grad, hot, logs) if node.needs(2) else None
    if node.GO(1) is not None:
        summed = op.reduce("ReduceSum", node.GO(1), [1])
        part = op.Sub(node.GO(1), op.Mul(shares, summed))
        total = part if total is None else op.Add(total, part)
    return [total, None, weights_grad][: node.n_inputs]


def _class_weights_gradient(op: GradientBuilder, node: RuleNode, grad: str, hot: str, logs: str) -> str:
    """Return the gradient of the class weights; ``grad`` is that of the sum of the losses."""
    rank = node.rank(node.I(0))
    slopes = op.Neg(logs)
    if node.attribute("reduction", "mean") == "mean":
        slopes = op.Sub(slopes, node.O(0))
    elif node.attribute("reduction", "mean") == "none":
        grad = op.unsqueeze(grad, [1])
    slopes = op.Mul(op.Mul(hot, slopes), grad)
    _, counted = _safe_labels(op, node, node.I(1))
    if counted is not None:
        slopes = op.Mul(slopes, op.unsqueeze(op.mask(counted, node.I(0)), [1]))
    return op.reduce("ReduceSum", slopes, [axis for axis in range(rank) if axis != 1], keepdims=0)


def _safe_labels(op: GradientBuilder, node: RuleNode, labels: str) -> tuple[str, str | None]:
    """Return valid labels, and a mask of those not ignored, None if all count."""
    ignored = node.attribute("ignore_index")
    if ignored is None:
        return labels, None
    counted = op.Not(op.Equal(labels, op.cast_like(op.constant(int(ignored)), labels)))
    return op.Mul(labels, op.cast_like(counted, labels)), counted


def _label_weights(op: GradientBuilder, node: RuleNode, x: str, labels: str) -> str:
    """Return the weight of every label, in the shape of the labels."""
    safe, counted = _safe_labels(op, node, labels)
    if node.I(2):
        weights = op.Gather(node.I(2), safe, axis=0)
    else:
        weights = op.fill(op.shape_of(labels), 1.0)
    return weights if counted is None else op.Mul(weights, op.mask(counted, x))


def _one_hot(op: GradientBuilder, node: RuleNode, x: str, labels: str) -> str:
    safe, _ = _safe_labels(op, node, labels)
    return op.with_type(op.one_hot(safe, op.dim(x, 1, scalar=True), axis=1, rank=node.rank(x) - 1), x)
