"""Factorizations into matrices without negative numbers."""

from functools import partial
from typing import Any

import numpy as np

from ..graphs import GraphBuilder
from ..losses import RowObjective
from .base import ModelDefinition
from .constraints.signs import NotNegative
from .kernels import products
from .linear_systems import LARGEST
from .loops import iterate
from .objectives import Objective, elastic
from .scores import Scores
from .writer import ModelWriter

#: Below it, scikit-learn takes a divisor for zero.
EPSILON = float(np.finfo(np.float32).eps)
#: Names of the graphs of an iteration.
PASS, UPDATE = "factorization_pass", "factorization_update"
#: Iterations between two looks at the error.
LOOK = 10


class FactorizationDefinition(ModelDefinition):
    """NMF: the codes w, without negative numbers, that a fixed number of samples has by its iteration.

    It stops once all samples together change little: to do what it does is to stop where it stops, and the
    codes of a sample depend, within the tolerance, on those it is transformed with. The objective is the
    divergence of a sample x from ``w H`` with the penalty of w, at the codes that the iteration gives; the
    penalty is that of the components H (Lee and Seung, "Algorithms for non-negative matrix factorization",
    NIPS 2001; Févotte and Idier, "Algorithms for nonnegative matrix factorization with the beta-divergence",
    Neural Computation 23, 2011).
    """

    def covers(self, model: Any) -> bool:
        by_coordinates = model.solver == "cd"
        return not by_coordinates or (not model.shuffle and len(model.components_) <= LARGEST)

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        alpha = model.alpha_W if model.alpha_H == "same" else model.alpha_H
        penalty = elastic(alpha * model.l1_ratio, 0.5 * alpha * (1 - model.l1_ratio))
        return Objective(RowObjective(), penalty)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        components = op.parameter(model, "components_", role="weight", constraint=NotNegative())
        codes = op.Reshape(self.codes(op, model, x, components), [-1, len(model.components_)])
        loss = _divergences(op, model, x, op.MatMul(codes, components))
        l1, l2 = _penalties(model)
        if l1:
            loss = op.Add(loss, op.Mul(op.ReduceSum(codes, [1], keepdims=1), l1))
        if l2:
            loss = op.Add(loss, op.Mul(op.ReduceSum(op.Mul(codes, codes), [1], keepdims=1), l2 / 2))
        return Scores("unsupervised", loss, 1, transformed=codes)

    def codes(self, op: ModelWriter, model: Any, x: str, components: str) -> str:
        """Append the codes of all samples, of shape (n, n_components)."""
        if model.solver == "mu":
            return self.multiplied(op, model, x, components, int(model.max_iter), _look_at_error)
        size, (l1, l2) = len(model.components_), _penalties(model)
        gram = op.Add(products(op, components, components), (l2 * np.eye(size)).astype(op.float_dtype))
        correlations = op.Sub(products(op, x, components), l1)
        zero = op.constant(np.zeros((), dtype=op.float_dtype))
        start = [(op.Mul(correlations, 0.0), (op.elem_type, [None, size])), (zero, (op.elem_type, []))]
        step = partial(_pass, gram, correlations, size, float(model.tol))
        return iterate(op, PASS, int(model.max_iter), start, step)[0]

    def multiplied(
        self, op: ModelWriter, model: Any, x: str, components: str, max_iter: int, look: Any
    ) -> str:
        """Append the codes after multiplicative updates, from a start that is the same for all entries."""
        size = len(model.components_)
        level = op.Sqrt(op.Div(op.ReduceMean(x, keepdims=0), float(size)))
        ones = op.Add(op.Mul(op.ReduceSum(x, [1], keepdims=1), 0.0), np.ones((1, size), op.float_dtype))
        first = op.Mul(ones, level)
        error = _total_error(op, model, x, op.MatMul(first, components))
        step = partial(_update, model, x, components, error, look)
        start = [(first, (op.elem_type, [None, size])), (error, (op.elem_type, []))]
        return iterate(op, UPDATE, max_iter, start, step)[0]


class MiniBatchFactorizationDefinition(FactorizationDefinition):
    """MiniBatchNMF: multiplicative updates until the codes change little, compared with their size."""

    def covers(self, model: Any) -> bool:
        return True

    def codes(self, op: ModelWriter, model: Any, x: str, components: str) -> str:
        return self.multiplied(op, model, x, components, int(model._transform_max_iter), _look_at_change)


def _beta(model: Any) -> float:
    named = {"frobenius": 2.0, "kullback-leibler": 1.0, "itakura-saito": 0.0}
    return named[model.beta_loss] if isinstance(model.beta_loss, str) else float(model.beta_loss)


def _penalties(model: Any) -> tuple[float, float]:
    """Return the factors of the absolute values and of half the squares of codes."""
    strength = model.components_.shape[1] * model.alpha_W
    return float(strength * model.l1_ratio), float(strength * (1 - model.l1_ratio))


def _pass(
    gram: str, correlations: str, size: int, tol: float, op: GraphBuilder, number: str, codes: str, first: str
) -> tuple[str, str, str]:
    """Append a pass over the coordinates of the codes, the last one once slopes are small beside the first.

    Cichocki and Phan, "Fast local algorithms for large scale nonnegative matrix and tensor factorizations",
    IEICE Transactions on Fundamentals 92, 2009. A coordinate without curvature stays where it is.
    """
    slopes = op.Sub(op.MatMul(codes, gram), correlations)
    steps: list[tuple[str, str, str]] = []
    for i in range(size):
        row = op.Gather(gram, [i], axis=0)
        curvature = op.Gather(row, [i], axis=1)
        flat = op.LessOrEqual(curvature, 0.0)
        before, slope = (op.Gather(name, [i], axis=1) for name in (codes, slopes))
        after = op.Relu(op.Sub(before, op.Div(slope, op.Where(flat, 1.0, curvature))))
        after = op.Where(flat, before, after)
        slopes = op.Add(slopes, op.Mul(op.Sub(after, before), row))
        steps.append((before, after, slope))
    before, after, slopes = (op.Concat(*columns, axis=1) for columns in zip(*steps, strict=True))
    projected = op.Where(op.Equal(before, 0.0), op.Min(slopes, 0.0), slopes)
    violation = op.ReduceSum(op.Abs(projected), keepdims=0)
    first = op.Where(op.Equal(number, np.array(0)), violation, first)
    return op.Greater(violation, op.Mul(first, tol)), after, first


def _update(
    model: Any,
    x: str,
    components: str,
    first_error: str,
    look: Any,
    op: GraphBuilder,
    number: str,
    codes: str,
    error: str,
) -> tuple[str, ...]:
    """Append ``w_k *= (sum_j x_j (wH)_j^(beta - 2) H_kj / sum_j (wH)_j^(beta - 1) H_kj)^gamma``."""
    beta, (l1, l2) = _beta(model), _penalties(model)
    approximation = op.MatMul(codes, components)
    ratio = _power(op, op.Max(approximation, EPSILON) if beta < 2 else approximation, beta - 2)
    weights = _power(op, op.Max(approximation, EPSILON) if beta < 1 else approximation, beta - 1)
    numerator = products(op, op.Mul(x, ratio) if ratio else x, components)
    weights = weights or op.Add(op.Mul(x, 0.0), 1.0)
    denominator = products(op, weights, components)
    if l1:
        denominator = op.Add(denominator, l1)
    if l2:
        denominator = op.Add(denominator, op.Mul(codes, l2))
    denominator = op.Where(op.Equal(denominator, 0.0), EPSILON, denominator)
    gamma = 1 / (2 - beta) if beta < 1 else 1 / (beta - 1) if beta > 2 else 1.0
    result = op.Mul(codes, _power(op, op.Div(numerator, denominator), gamma))
    return look(op, model, x, components, first_error, number, codes, result, error)


def _power(op: GraphBuilder, values: str, exponent: float) -> str:
    """Append a power, of which nothing is written where the exponent is zero."""
    if exponent == 0:
        return ""
    return values if exponent == 1 else op.Reciprocal(values) if exponent == -1 else op.Pow(values, exponent)


def _look_at_error(
    op: GraphBuilder,
    model: Any,
    x: str,
    components: str,
    first_error: str,
    number: str,
    codes: str,
    result: str,
    error: str,
) -> tuple[str, str, str]:
    """Return whether the error has fallen since the last look, the codes, and the error at the last look."""
    if _beta(model) < 1:
        result = op.Where(op.Less(result, float(np.finfo(np.float64).eps)), 0.0, result)
    if not model.tol:
        return op.constant(np.array(True)), result, error
    looks = op.Equal(op.Mod(number, np.array(LOOK)), np.array(LOOK - 1))
    found = _total_error(op, model, x, op.MatMul(result, components))
    stops = op.And(looks, op.Less(op.Div(op.Sub(error, found), first_error), float(model.tol)))
    return op.Not(stops), result, op.Where(looks, found, error)


def _look_at_change(
    op: GraphBuilder,
    model: Any,
    x: str,
    components: str,
    first_error: str,
    number: str,
    codes: str,
    result: str,
    error: str,
) -> tuple[str, str, str]:
    """Return whether the codes still change, the codes, and the error as it was."""
    if not model.tol:
        return op.constant(np.array(True)), result, error
    moved = op.Sub(result, codes)
    change, size = (op.Sqrt(op.ReduceSum(op.Mul(own, own), keepdims=0)) for own in (moved, result))
    return op.Greater(op.Div(change, size), float(model.tol)), result, error


def _total_error(op: GraphBuilder, model: Any, x: str, approximation: str) -> str:
    total = op.ReduceSum(_divergences(op, model, x, approximation), keepdims=0)
    return op.Sqrt(op.Mul(op.Max(total, 0.0), 2.0))


def _divergences(op: GraphBuilder, model: Any, x: str, approximation: str) -> str:
    """Append the beta-divergence of each sample from its approximation, of shape (n, 1).

    Features of zero count by their approximation alone.
    """
    beta = _beta(model)
    if beta == 2:
        missed = op.Sub(x, approximation)
        return op.Mul(op.ReduceSum(op.Mul(missed, missed), [1], keepdims=1), 0.5)
    known = op.Greater(x, EPSILON)
    given, near = op.Where(known, x, 1.0), op.Where(known, op.Max(approximation, EPSILON), 1.0)
    if beta == 0:
        ratio = op.Div(given, near)
        return op.ReduceSum(op.Sub(op.Sub(ratio, op.Log(ratio)), 1.0), [1], keepdims=1)
    present = op.Where(known, x, 0.0)
    if beta == 1:
        terms = op.Sub(op.Mul(present, op.Log(op.Div(given, near))), present)
        return op.ReduceSum(op.Add(terms, approximation), [1], keepdims=1)
    terms = op.Sub(op.Pow(present, beta), op.Mul(op.Mul(present, op.Pow(near, beta - 1)), beta))
    terms = op.Add(terms, op.Mul(op.Pow(approximation, beta), beta - 1))
    return op.Mul(op.ReduceSum(terms, [1], keepdims=1), 1 / (beta * (beta - 1)))
