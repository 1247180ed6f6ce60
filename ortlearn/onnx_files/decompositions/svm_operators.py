"""SVMRegressor and SVMClassifier: kernels with support vectors, sums, votes and probabilities."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ...models.coupling import coupled_probabilities, disagreement
from ...models.kernels import polynomial, products, radial, remote_centre, sigmoid
from ...models.support_vectors import pair_scores, pair_votes, weighted_kernel
from .common import Fused
from .links import apply_link

__all__ = ["svm_classifier", "svm_regressor"]

#: Values of the attribute ``kernel_type``.
KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


def _kernel_matrix(fused: Fused, vectors: np.ndarray) -> str:
    """Return the kernel of every sample with every support vector, of shape (n, n_vectors), float32.

    ``support_vectors``, and ``gamma`` and ``coef0`` if the kernel has them, are initializers of their own.
    """
    op, kind = fused.op, fused.text("kernel_type", "LINEAR")
    gamma, coef0, degree = [*fused.attribute("kernel_params", []), 0.0, 0.0, 0.0][:3]
    rows, weights = fused.float_input(), fused.weight("support_vectors", vectors)
    if kind == "LINEAR":
        return products(op, rows, weights)
    factor = _number(fused, "gamma", gamma)
    if kind == "RBF":
        return radial(op, rows, weights, factor, remote_centre(vectors))
    added = _number(fused, "coef0", coef0)
    if kind == "SIGMOID":
        return sigmoid(op, rows, weights, factor, added)
    return polynomial(op, rows, weights, factor, added, float(degree))


def _number(fused: Fused, stem: str, value: float) -> str:
    return fused.weight(stem, np.array([value], dtype=np.float32))


def _float_array(fused: Fused, name: str) -> np.ndarray:
    """Return an attribute of floats as a float32 vector, empty where there is none."""
    return np.asarray(fused.attribute(name, []), dtype=np.float32).ravel()


def svm_regressor(fused: Fused) -> bool:
    """Write a support vector regression, or a novelty detection, as plain operators.

    ``f(x) = sum_m a_m k(x, s_m) + b``: dual coefficients a, support vectors s, intercept b (the
    attribute ``rho``); without support vectors ``f(x) = a.x + b``. With ``one_class`` the output is 1
    where f is positive, else -1.
    """
    count = int(fused.attribute("n_supports", 0))
    coefficients, rho = _float_array(fused, "coefficients"), _float_array(fused, "rho")
    vectors = _float_array(fused, "support_vectors")
    known = fused.text("kernel_type", "LINEAR") in KERNELS
    if not known or fused.text("post_transform", "NONE") != "NONE" or not coefficients.size or not rho.size:
        return False
    if count and (vectors.size % count or coefficients.size != count):
        return False
    op = fused.op
    if count:
        kernel = _kernel_matrix(fused, vectors.reshape(count, -1))
        weight = fused.weight("dual_coef", coefficients.reshape(1, -1))
        product = weighted_kernel(op, kernel, weight)
    else:
        product = op.MatMul(fused.float_input(), fused.weight("coef", coefficients.reshape(-1, 1)))
    intercept = fused.weight("intercept", rho[:1])
    output = fused.node.output[0]
    if not fused.attribute("one_class", 0):
        fused.write("Add", product, intercept, output=output)
        return True
    inside = op.Greater(op.Add(product, intercept), 0.0)
    fused.write("Where", inside, op.constant(1.0), op.constant(-1.0), output=output)
    return True


LINKS = {"NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"}


def svm_classifier(fused: Fused) -> bool:
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
        return _write_linear_scores(fused, classes, link)
    if not _is_consistent(fused, counts, len(classes)):
        return False
    calibrated = _float_array(fused, "prob_a").size > 0
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
    """Return whether the attributes have consistent sizes."""
    pairs, total = n_classes * (n_classes - 1) // 2, sum(counts)
    sizes = {name: _float_array(fused, name).size for name in ("prob_a", "prob_b")}
    return (
        len(counts) == n_classes
        and _float_array(fused, "support_vectors").size % total == 0
        and _float_array(fused, "coefficients").size >= (n_classes - 1) * total
        and _float_array(fused, "rho").size >= pairs
        and sizes["prob_a"] == sizes["prob_b"]
        and (sizes["prob_a"] == 0 or sizes["prob_a"] >= pairs)
    )


def _kernel(fused: Fused, total: int) -> str:
    return _kernel_matrix(fused, _float_array(fused, "support_vectors").reshape(total, -1))


def _binary_score(fused: Fused, total: int) -> str:
    """Return the score of the second class, of shape (n, 1)."""
    kernel = _kernel(fused, total)
    weights = fused.weight("dual_coef", -_float_array(fused, "coefficients")[:total].reshape(1, -1))
    product = weighted_kernel(fused.op, kernel, weights)
    return fused.op.Add(product, fused.weight("intercept", -_float_array(fused, "rho")[:1]))


def _pair_scores(fused: Fused, counts: list[int]) -> str:
    """Return the scores of the pairs, of shape (n, pairs)."""
    total, others = sum(counts), len(counts) - 1
    kernel = _kernel(fused, total)
    coefficients = _float_array(fused, "coefficients")[: others * total].reshape(-1, total)
    weights = fused.weight("dual_coef", coefficients)
    rho = _float_array(fused, "rho")[: len(counts) * others // 2]
    return pair_scores(fused.op, kernel, weights, fused.weight("intercept", rho), counts)


def _probabilities(fused: Fused, first: str, n_classes: int) -> str:
    """Return the probabilities of the classes, from calibrated scores of the pairs."""
    op, pairs = fused.op, n_classes * (n_classes - 1) // 2
    slopes = op.Mul(first, fused.weight("prob_a", _float_array(fused, "prob_a")[:pairs]))
    logits = op.Add(slopes, fused.weight("prob_b", _float_array(fused, "prob_b")[:pairs]))
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
    fused.write("Concat", *columns, output=fused.scores_name(), axis=1)


def _write_binary_label(fused: Fused, classes: np.ndarray, score: str) -> None:
    label, op = fused.node.output[0], fused.op
    if label:
        second = op.Not(op.Less(op.Squeeze(score, [1]), 0.0))
        index = op.Cast(second, to=TensorProto.INT64)
        fused.write("Gather", op.constant(classes), index, output=label, axis=0)


def _write_label(fused: Fused, classes: np.ndarray, first: str) -> None:
    """Write the class with most votes."""
    label, op = fused.node.output[0], fused.op
    if label:
        best = op.ArgMax(pair_votes(op, first, len(classes)), axis=1, keepdims=0)
        fused.write("Gather", op.constant(classes), best, output=label, axis=0)


def _write_linear_scores(fused: Fused, classes: np.ndarray, link: str) -> bool:
    """Write ``x.a_c + b`` for each class c, the same b for all, and the label.

    Of two classes the second also wins where the larger score is positive (at least 1/2 where no
    coefficient is negative), as onnxruntime decides; otherwise the largest score does.
    """
    coefficients, rho = _float_array(fused, "coefficients"), _float_array(fused, "rho")
    if not coefficients.size or coefficients.size % len(classes) or not rho.size:
        return False
    op = fused.op
    weight = fused.weight("coef", coefficients.reshape(len(classes), -1).T)
    raw = op.Add(op.MatMul(fused.float_input(), weight), fused.weight("intercept", rho[:1]))
    apply_link(op, link, raw, fused.scores_name())
    if fused.node.output[0]:
        _write_linear_label(fused, classes, raw, bool((coefficients >= 0).all()))
    return True


def _write_linear_label(fused: Fused, classes: np.ndarray, raw: str, all_positive: bool) -> None:
    op = fused.op
    best = op.ArgMax(raw, axis=1, keepdims=0)
    if len(classes) == 2 and not fused.attribute("prob_a", None):
        above = op.GreaterOrEqual(raw, 0.5) if all_positive else op.Greater(raw, 0.0)
        count = op.ReduceSum(op.Cast(above, to=TensorProto.INT64), [1], keepdims=0)
        best = op.Where(op.Greater(count, 0), 1, best)
    fused.write("Gather", op.constant(classes), best, axis=0)
