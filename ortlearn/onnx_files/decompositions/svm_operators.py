"""Decompositions of SVMRegressor and SVMClassifier."""

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from ...graphs import GraphBuilder, replace_nodes
from ...models.formulas.coupling import STEP, coupled_probabilities, disagreement, least_disagreement
from ...models.formulas.kernels import dot_product_kernel, products, radial, remote_centre
from ...models.predictors.support_vectors import pair_scores, pair_votes, weighted_kernel
from .common import LINKS, Fused

KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")  # values of the attribute ``kernel_type``


def _kernel(fused: Fused, count: int) -> str:
    """Append the kernel between samples and support vectors, of shape (n, count)."""
    op, kind = fused.op, fused.text("kernel_type", "LINEAR", KERNELS)
    gamma, coef0, degree = [*fused.floats("kernel_params", 0, 3), *np.zeros(3, dtype=np.float32)][:3]
    vectors = fused.matrix("support_vectors", count)
    rows, weights = fused.float_input(), fused.weight("support_vectors", vectors)
    if kind == "LINEAR":
        return products(op, rows, weights)
    factor = fused.weight("gamma", np.array([gamma]))
    if kind == "RBF":
        return radial(op, rows, weights, factor, remote_centre(vectors))
    added = fused.weight("coef0", np.array([coef0]))
    return dot_product_kernel(op, products(op, rows, weights), kind.lower(), factor, added, float(degree))


def svm_regressor(fused: Fused) -> bool:
    """Decompose a support vector regressor, or a novelty detector if ``one_class``."""
    # f(x) = sum_m a_m k(x, s_m) + b, dual coefficients a, support vectors s, intercept b (rho); without
    # support vectors f(x) = a.x + b
    op, count, rho = fused.op, int(fused.attribute("n_supports", 0)), fused.floats("rho", 1)
    fused.text("post_transform", "NONE", ["NONE"])
    if count:
        kernel = _kernel(fused, count)
        weight = fused.weight("dual_coef", fused.floats("coefficients", count).reshape(1, -1))
        score = op.Add(weighted_kernel(op, kernel, weight), fused.weight("intercept", rho))
    else:
        score = fused.linear(fused.matrix("coefficients", 1), rho)
    if fused.attribute("one_class", 0):
        score = op.Where(op.Greater(score, 0.0), op.constant(1.0), op.constant(-1.0))
    return fused.set_output(score)


def svm_classifier(fused: Fused) -> bool:
    """Decompose a support vector classifier."""
    # For classes i < j, s_ij(x) = sum_m a_m k(x, v_m) + b_ij over the support vectors v_m of both is a vote
    # for i if positive, otherwise for j; the first class with most votes wins. Two classes have the score
    # -s_01, with scikit-learn's dual_coef_ and intercept_. With prob_a and prob_b, the probability of j is
    # sigmoid(prob_a s_ij + prob_b) (Platt, "Probabilistic outputs for support vector machines", 1999), and
    # class probabilities follow by coupling.
    op, classes = fused.op, fused.classes()
    n_classes, n_pairs = len(classes), len(classes) * (len(classes) - 1) // 2
    link = fused.text("post_transform", "NONE", LINKS.keys() - {"PROBIT"})
    counts = fused.integers("vectors_per_class", 0, n_classes).tolist()
    total = sum(counts)
    if n_classes < 2 or min(counts, default=0) < 0:
        raise ValueError("vectors_per_class has a negative value, or there is one class")
    if not total:
        return _write_linear_scores(fused, classes, link)
    slopes, sign = fused.floats("prob_a", 0, n_pairs), -1 if n_classes == 2 else 1
    offsets, rho = fused.floats("prob_b", slopes.size), sign * fused.floats("rho", n_pairs)
    kernel = _kernel(fused, total)
    coefficients = sign * fused.floats("coefficients", (n_classes - 1) * total).reshape(-1, total)
    weights, intercept = fused.weight("dual_coef", coefficients), fused.weight("intercept", rho)
    if n_classes == 2:
        score = op.Add(weighted_kernel(op, kernel, weights), intercept)
        pairs = op.Neg(score)
        if fused.node.output[0]:
            second = op.Not(op.Less(op.Squeeze(score, [1]), 0.0))
            fused.set_class(classes, op.Cast(second, to=TensorProto.INT64))
    else:
        pairs = pair_scores(op, kernel, weights, intercept, counts)
        fused.set_label(classes, pair_votes(op, pairs, n_classes))
    if slopes.size:
        logits = op.Add(op.Mul(pairs, fused.weight("prob_a", slopes)), fused.weight("prob_b", offsets))
        matrix = disagreement(op, op.Sub(1.0, op.Sigmoid(logits)), n_classes)
        pairs = coupled_probabilities(op, matrix, n_classes)
    elif n_classes == 2:  # as in onnxruntime: the first class is the positive one
        if link == "LOGISTIC":
            score, pairs = op.Sigmoid(score), op.Sigmoid(pairs)
        elif link != "NONE":
            score = op.Sub(1.0, pairs)
        return fused.set_scores(op.Concat(score, pairs, axis=1))
    return fused.set_scores(pairs, link)


def _write_linear_scores(fused: Fused, classes: np.ndarray, link: str) -> bool:
    """Append the scores ``x.a_c + b`` for each class c, with a common b, and the label."""
    # as in onnxruntime, the second of two classes also wins if the larger score is positive, or at least 1/2
    # if no coefficient is negative
    op, n_classes = fused.op, len(classes)
    coefficients = fused.matrix("coefficients", n_classes)
    rho = fused.floats("rho", 1, n_classes, n_classes * (n_classes - 1) // 2)[:1]
    raw = fused.linear(coefficients, rho)
    if fused.node.output[0]:
        best = op.ArgMax(raw, axis=1, keepdims=0)
        if n_classes == 2 and not fused.attribute("prob_a"):
            above = op.GreaterOrEqual(raw, 0.5) if (coefficients >= 0).all() else op.Greater(raw, 0.0)
            count = op.ReduceSum(op.Cast(above, to=TensorProto.INT64), [1], keepdims=0)
            best = op.Where(op.Greater(count, 0), 1, best)
        fused.set_class(classes, best)
    return fused.set_scores(raw, link)


def exact_couplings(model: ModelProto) -> ModelProto:
    """Return a graph with the exact minimum of couplings instead of their iterative approximation."""
    return replace_nodes(model, {("", "Loop"): _write_minimum})


def _write_minimum(node: NodeProto, op: GraphBuilder) -> bool | str:
    body = node.attribute[0].g
    if body.name != STEP:
        return False
    matrix = next(inner.input[0] for inner in body.node if inner.op_type == "MatMul")
    known = body.input[2].type.tensor_type
    dtype = helper.tensor_dtype_to_np_dtype(known.elem_type)
    return least_disagreement(op, matrix, known.shape.dim[1].dim_value, dtype)
