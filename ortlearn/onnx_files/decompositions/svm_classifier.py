"""ai.onnx.ml.SVMClassifier -> kernel, one score for each pair of classes, votes and probabilities."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ...models.coupling import coupled_probabilities, disagreement, pair_table
from ...models.support_vectors import pair_scores, weighted_kernel
from .common import Fused
from .links import apply_link
from .svm_kernels import KERNELS, float_array, kernel_matrix
from .svm_linear import write_linear_scores

__all__ = ["decompose"]

LINKS = {"NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"}


def decompose(fused: Fused) -> bool:
    """Write a support vector classification as plain operators.

    For classes i < j ``s_ij(x) = sum_m a_m k(x, v_m) + b_ij`` over the support vectors v_m of both, and
    the class with most votes wins, the first of equals: i has the vote of a pair where s_ij > 0, else j.
    Two classes have one score, that of the second one, ``-s_01``: its dual coefficients and its intercept
    are scikit-learn's ``dual_coef_`` and ``intercept_``. With ``prob_a`` and ``prob_b`` the probability
    of j against i is ``sigmoid(prob_a s_ij + prob_b)`` (Platt, "Probabilistic outputs for support vector
    machines", 1999) and those of the classes follow by coupling.
    """
    classes = fused.classes()
    counts = [int(count) for count in fused.attribute("vectors_per_class", [])]
    link = fused.text("post_transform", "NONE")
    if link not in LINKS or len(classes) < 2 or fused.text("kernel_type", "LINEAR") not in KERNELS:
        return False
    if not sum(counts):
        return write_linear_scores(fused, classes, link)
    if not _is_consistent(fused, counts, len(classes)):
        return False
    calibrated = float_array(fused, "prob_a").size > 0
    if len(classes) == 2:
        score = _binary_score(fused, sum(counts))
        first = fused.op.Neg(score)
        _write_binary_label(fused, classes, score)
    else:
        first = _pair_scores(fused, counts)
        _write_label(fused, classes, first)
    if calibrated:
        _write(fused, _probabilities(fused, first, len(classes)), link)
    elif len(classes) == 2:
        _write_binary(fused, score, first, link)
    else:
        _write(fused, first, link)
    return True


def _is_consistent(fused: Fused, counts: list[int], n_classes: int) -> bool:
    """Tell whether the attributes have the sizes that belong together."""
    pairs, total = n_classes * (n_classes - 1) // 2, sum(counts)
    sizes = {name: float_array(fused, name).size for name in ("prob_a", "prob_b")}
    return (
        len(counts) == n_classes
        and float_array(fused, "support_vectors").size % total == 0
        and float_array(fused, "coefficients").size >= (n_classes - 1) * total
        and float_array(fused, "rho").size >= pairs
        and sizes["prob_a"] == sizes["prob_b"]
        and (sizes["prob_a"] == 0 or sizes["prob_a"] >= pairs)
    )


def _kernel(fused: Fused, total: int) -> str:
    return kernel_matrix(fused, float_array(fused, "support_vectors").reshape(total, -1))


def _binary_score(fused: Fused, total: int) -> str:
    """Return the score of the second class, of shape (rows, 1)."""
    kernel = _kernel(fused, total)
    weights = fused.weight("dual_coef", -float_array(fused, "coefficients")[:total].reshape(1, -1))
    product = weighted_kernel(fused.op, kernel, weights)
    return fused.op.Add(product, fused.weight("intercept", -float_array(fused, "rho")[:1]))


def _pair_scores(fused: Fused, counts: list[int]) -> str:
    """Return the scores of the pairs, of shape (rows, pairs)."""
    total, others = sum(counts), len(counts) - 1
    kernel = _kernel(fused, total)
    coefficients = float_array(fused, "coefficients")[: others * total].reshape(-1, total)
    weights = fused.weight("dual_coef", coefficients)
    rho = float_array(fused, "rho")[: len(counts) * others // 2]
    return pair_scores(fused.op, kernel, weights, fused.weight("intercept", rho), counts)


def _probabilities(fused: Fused, first: str, n_classes: int) -> str:
    """Return the probabilities of the classes, from calibrated scores of the pairs."""
    op, pairs = fused.op, n_classes * (n_classes - 1) // 2
    slopes = op.Mul(first, fused.weight("prob_a", float_array(fused, "prob_a")[:pairs]))
    logits = op.Add(slopes, fused.weight("prob_b", float_array(fused, "prob_b")[:pairs]))
    matrix = disagreement(op, op.Sub(1.0, op.Sigmoid(logits)), n_classes)
    return coupled_probabilities(op, matrix, n_classes)


def _write(fused: Fused, scores: str, link: str) -> None:
    apply_link(fused.op, link, scores, fused.scores_name())


def _write_binary(fused: Fused, score: str, first: str, link: str) -> None:
    """Write both columns of a single score, as onnxruntime has them: the first class is the positive one."""
    op = fused.op
    if link == "NONE":
        columns = (score, first)
    elif link == "LOGISTIC":
        columns = (op.Sigmoid(score), op.Sigmoid(first))
    else:
        columns = (op.Sub(1.0, first), first)
    fused.write("Concat", *columns, outputs=[fused.scores_name()], axis=1)


def _write_binary_label(fused: Fused, classes: np.ndarray, score: str) -> None:
    label, op = fused.node.output[0], fused.op
    if label:
        second = op.Not(op.Less(op.Squeeze(score, [1]), 0.0))
        index = op.Cast(second, to=TensorProto.INT64)
        fused.write("Gather", op.constant(classes), index, outputs=[label], axis=0)


def _write_label(fused: Fused, classes: np.ndarray, first: str) -> None:
    """Write the class with most votes; votes won less votes lost say as much as votes won."""
    label, op = fused.node.output[0], fused.op
    if label:
        wins = op.Cast(op.Greater(first, 0.0), to=TensorProto.INT32)
        signs = op.Sub(op.Add(wins, wins), np.array(1, dtype=np.int32))
        balance = op.MatMul(signs, pair_table(len(classes)))
        best = op.ArgMax(balance, axis=1, keepdims=0)
        fused.write("Gather", op.constant(classes), best, outputs=[label], axis=0)
