"""Support vector machines and kernel ridge regression: weighted sums of kernels of samples."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from onnx import TensorProto
from scipy import linalg
from scipy.sparse import issparse

from ...graphs import GraphBuilder
from ..base import ModelDefinition
from ..capabilities import ReplacedModel, ShiftedScores
from ..constraints.signs import Positive
from ..forms import Form, Reshaped, Transposed, dense_form
from ..formulas import kernels
from ..formulas.coupling import coupled_probabilities, disagreement, least_disagreement, pair_table
from ..formulas.linear_systems import elem_type
from ..scores import Scores, classification, decisions, detection, regression
from ..writer import ModelWriter
from .multiclass import pair_decisions

KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")
#: Mean error of a fit to ones up to which it shifts predictions.
LARGEST_ERROR = 0.5
HYPER = "hyper-parameter of the kernel, fixed in fit"


def _kernel(op: ModelWriter, model: Any, x: str) -> str:
    """Append the kernel of samples and support vectors, from a matrix with all columns if precomputed."""
    if model.kernel not in KERNELS:
        raise op.fail(model, f"its kernel is a Python function: use one of {', '.join(KERNELS)}.")
    if not len(model.support_):
        raise op.fail(model, "it has no support vectors, as all labels are within epsilon: lower epsilon.")
    if model.kernel == "precomputed":
        return op.Gather(x, model.support_.astype(np.int64), axis=1)
    form = dense_form(model.support_vectors_)
    rows = op.parameter(model, "support_vectors_", form=form, role="weight")
    if model.kernel == "linear":
        return kernels.products(op, x, rows)
    gamma = op.parameter(model, "_gamma", role="scale", reason=HYPER)
    if model.kernel == "rbf":
        vectors = form.forward(np.asarray(model.support_vectors_)).astype(op.float_dtype)
        return kernels.radial(op, x, rows, gamma, kernels.remote_centre(vectors))
    coef0, degree = float(model.coef0), float(model.degree)
    return kernels.dot_product_kernel(op, kernels.products(op, x, rows), model.kernel, gamma, coef0, degree)


def dual_form(weights: np.ndarray) -> Form:
    """Return the form of dual coefficients, (n,) or (n, k), with a row for each output."""
    return Reshaped((1, -1)) if weights.ndim == 1 else Transposed()


def weighted_kernel(op: GraphBuilder, kernel: str, weights: str) -> str:
    """Return sums of kernels over support vectors, (n, k), in float64, as large terms cancel."""
    if op.float_dtype == np.float64:
        return op.Gemm(kernel, weights, transB=1)
    kernel, weights = (op.Cast(name, to=TensorProto.DOUBLE) for name in (kernel, weights))
    return op.Cast(op.Gemm(kernel, weights, transB=1), to=TensorProto.FLOAT)


def _sums(op: ModelWriter, model: Any, x: str) -> str:
    """Append ``K(x, support_vectors_) dual_coef_' + intercept_`` of shape (n, 1)."""
    kernel, weights, intercept = _terms(op, model, x)
    return op.Add(weighted_kernel(op, kernel, weights), intercept)


def _terms(op: ModelWriter, model: Any, x: str) -> tuple[str, str, str]:
    """Append the kernel; return it, the dual coefficients and the intercept."""
    kernel = _kernel(op, model, x)
    weights = op.parameter(model, "dual_coef_", form=dense_form(model.dual_coef_), role="weight")
    return kernel, weights, op.parameter(model, "intercept_", role="intercept")


def pair_scores(op: GraphBuilder, kernel: str, weights: str, intercept: str, counts: Sequence[int]) -> str:
    """Return the scores of pairs of classes, of shape (n, n_pairs), above zero for the first class."""
    # Weights (n_classes - 1, n_vectors) have a row for each other class. The products of the support vectors
    # of each class, ``counts`` of them, with these rows are columns, of which each pair adds two.
    n_classes = len(counts)
    present = np.flatnonzero(counts)
    sizes = np.asarray(counts, dtype=np.int64)[present]
    parts = [op.Split(name, sizes, axis=1, n_outputs=len(sizes)) for name in (kernel, weights)]
    columns, blocks = ([own] if isinstance(own, str) else own for own in parts)
    sides = [weighted_kernel(op, *pair) for pair in zip(columns, blocks, strict=True)]
    table = np.zeros((n_classes, n_classes - 1, n_classes * (n_classes - 1) // 2), dtype=np.int32)
    for number, (i, j) in enumerate(combinations(range(n_classes), 2)):
        table[i, j - 1, number] = table[j, i, number] = 1  # row j - 1 of class i and row i of class j
    # a constant of integers, cast: products with floats are recognised as weights
    both = op.Cast(table[present].reshape(len(present) * (n_classes - 1), -1), to=elem_type(op))
    return op.Add(op.MatMul(op.Concat(*sides, axis=1), both), intercept)


class _SupportVectorDefinition(ModelDefinition):
    """Estimators with private arrays for libsvm, which depend on public attributes."""

    def finish(self, model: Any) -> None:
        # libsvm has the opposite sign for two classes
        sign = -1 if len(getattr(model, "classes_", ())) == 2 else 1
        if model._sparse and not issparse(model.support_vectors_):
            model.support_vectors_ = type(model._dual_coef_)(model.support_vectors_)
        if model._sparse and not issparse(model.dual_coef_):
            # with explicit zeros, which libsvm expects
            rows, columns = model.dual_coef_.shape
            indices = np.tile(np.arange(columns, dtype=np.int32), rows)
            indptr = np.arange(0, rows * columns + 1, columns, dtype=np.int32)
            parts = (model.dual_coef_.ravel(), indices, indptr)
            model.dual_coef_ = type(model._dual_coef_)(parts, (rows, columns))
        model._intercept_ = sign * np.asarray(model.intercept_)
        model._dual_coef_ = sign * model.dual_coef_
        if hasattr(model, "offset_"):
            model.offset_ = -model._intercept_


class SupportVectorRegressorDefinition(_SupportVectorDefinition):
    """SVR and NuSVR."""

    capabilities = ReplacedModel(), ShiftedScores(attribute="intercept_")
    not_in_objective = ("C", "epsilon", "nu")

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        return regression(op, _sums(op, model, x))


class SupportVectorDetectorDefinition(_SupportVectorDefinition):
    """OneClassSVM: inliers have positive decisions."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        return detection(op, _sums(op, model, x), zero_is_inlier=False)


class LinearDetectorDefinition(ModelDefinition):
    """SGDOneClassSVM: inliers have nonnegative decisions."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        coef = op.parameter(model, "coef_", form=Transposed(), role="weight")
        score = op.Sub(op.MatMul(x, coef), op.parameter(model, "offset_", role="intercept"))
        return detection(op, score)


class SupportVectorClassifierDefinition(_SupportVectorDefinition):
    """SVC and NuSVC: one score for two classes, votes of pairs for more."""

    capabilities = (ReplacedModel(),)
    not_in_objective = ("C", "nu")

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        # Logits or log-probabilities of calibrated models are trained, otherwise the score of two classes, or
        # the sums of the pairwise scores of each class, with which scikit-learn breaks ties.
        if len(model.classes_) == 2:
            return self._binary(op, model, x)
        counts = [int(count) for count in model.n_support_]
        pairs = pair_scores(op, *_terms(op, model, x), counts)
        n_classes, by_class = len(counts), model.decision_function_shape == "ovr"
        confident, sums = pair_decisions(op, op.Less(pairs, 0.0), op.Neg(pairs), n_classes)
        votes = confident if model.break_ties and by_class else pair_votes(op, pairs, n_classes)
        score, probabilities = sums, None
        if len(model._probA):
            matrix = disagreement(op, op.Sub(1.0, op.Sigmoid(_calibrated(op, model, pairs))), n_classes)
            probabilities = coupled_probabilities(op, matrix, n_classes)
            score = op.log_probabilities(least_disagreement(op, matrix, n_classes))
        outputs = {"probabilities": probabilities, "decision": confident if by_class else pairs}
        return classification(op, score, "softmax", votes, model.classes_, **outputs)

    def _binary(self, op: ModelWriter, model: Any, x: str) -> Scores:
        """Append the outputs of two classes from the score of the second."""
        decision = _sums(op, model, x)
        scores = decisions(op, decision, model.classes_, zero_is_second=True, decision=decision)
        if not len(model._probA):
            return scores
        score = _calibrated(op, model, op.Neg(decision))
        matrix = disagreement(op, op.Sub(1.0, op.Sigmoid(score)), 2)
        return replace(scores, score=score, probabilities=coupled_probabilities(op, matrix, 2))


def _calibrated(op: ModelWriter, model: Any, first: str) -> str:
    """Return the logits of the second class of each pair (Platt, "Probabilistic outputs", 1999)."""
    slopes = op.parameter(model, "_probA", role="scale", constraint=Positive(-1))
    return op.Add(op.Mul(first, slopes), op.parameter(model, "_probB", role="intercept"))


def pair_votes(op: GraphBuilder, pairs: str, n_classes: int) -> str:
    """Return votes won minus votes lost of each class, of pairs whose first class wins above zero."""
    wins = op.Cast(op.Greater(pairs, 0.0), to=TensorProto.INT32)
    signs = op.Sub(op.Add(wins, wins), np.array(1, dtype=np.int32))
    return op.MatMul(signs, pair_table(n_classes))


def _fit_of_ones(model: Any) -> np.ndarray | None:
    """Return the dual coefficients of a fit to ones, as a fit is linear in the labels; None if it is bad."""
    kernel = np.asarray(model._get_kernel(model.X_fit_), dtype=np.float64)
    ones, regularised = np.ones(len(kernel)), kernel + np.mean(model.alpha) * np.eye(len(kernel))
    try:  # as fast as the fit itself
        found = linalg.solve(regularised, ones, assume_a="pos")
    except linalg.LinAlgError:
        found = linalg.lstsq(regularised, ones)[0]
    return found if np.abs(kernel @ found - ones).mean() < LARGEST_ERROR else None


class KernelRidgeDefinition(kernels.KernelDefinition):
    """KernelRidge: ``K(x, X_fit_) dual_coef_``, without the penalty in the norm of the function space."""

    capabilities = ReplacedModel(), ShiftedScores(_fit_of_ones, "dual_coef_")
    not_in_objective = ("alpha",)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        gamma = kernels.default_gamma(model.kernel, model.gamma, model.n_features_in_)
        kernel = kernels.fitted_kernel(op, model, x, "X_fit_", gamma, model.coef0, model.degree)
        weights = op.parameter(model, "dual_coef_", form=dual_form(model.dual_coef_), role="weight")
        n_outputs = model.dual_coef_.size // len(model.dual_coef_)
        return regression(op, weighted_kernel(op, kernel, weights), n_outputs)

    def shape_predictions(self, model: Any, n_dimensions: int) -> None:
        model.dual_coef_ = model.dual_coef_.reshape((-1, 1)[:n_dimensions])
