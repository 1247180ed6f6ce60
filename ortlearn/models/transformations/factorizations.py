"""Non-negative matrix factorization and latent Dirichlet allocation."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from onnx import TensorProto
from scipy.special import psi

from ...graphs import GraphBuilder
from ...losses import RowObjective
from ..base import ModelDefinition, Objective
from ..constraints.signs import NotNegative, Positive
from ..formulas.kernels import products
from ..formulas.linear_systems import LARGEST, elem_type, in_double, iterate
from ..formulas.special_functions import digamma
from ..objectives import elastic
from ..scores import Scores, transformation
from ..writer import ModelWriter

EPSILON = float(np.finfo(np.float32).eps)  # scikit-learn's lower bound of divisors
#: Names of loop bodies.
PASS, UPDATE, TOPICS = "factorization_pass", "factorization_update", "topics_step"
ERROR_PERIOD = 10  # number of iterations between two computations of the error
NAMED_BETA = {"frobenius": 2.0, "kullback-leibler": 1.0, "itakura-saito": 0.0}


@dataclass(frozen=True)
class _Factorization:
    """Samples x, components H and settings of a factorization."""

    model: Any
    x: str
    components: str

    @property
    def beta(self) -> float:
        """Exponent of the divergence."""
        loss = self.model.beta_loss
        return NAMED_BETA[loss] if isinstance(loss, str) else float(loss)

    @property
    def penalties(self) -> tuple[float, float]:
        """Factors of the absolute values and of half the squares of codes."""
        strength, ratio = self.model.components_.shape[1] * self.model.alpha_W, self.model.l1_ratio
        return float(strength * ratio), float(strength * (1 - ratio))

    def divergences(self, op: GraphBuilder, approximation: str) -> str:
        """Append the beta-divergences of samples, of shape (n, 1)."""
        beta, x = self.beta, self.x
        if beta == 2:
            residual = op.Sub(x, approximation)
            return op.Mul(op.ReduceSum(op.Mul(residual, residual), [1], keepdims=1), 0.5)
        positive = op.Greater(x, EPSILON)
        values, close = op.Where(positive, x, 1.0), op.Where(positive, op.Max(approximation, EPSILON), 1.0)
        if beta == 0:
            ratio = op.Div(values, close)
            return op.ReduceSum(op.Sub(op.Sub(ratio, op.Log(ratio)), 1.0), [1], keepdims=1)
        present = op.Where(positive, x, 0.0)
        if beta == 1:
            terms = op.Sub(op.Mul(present, op.Log(op.Div(values, close))), present)
            return op.ReduceSum(op.Add(terms, approximation), [1], keepdims=1)
        terms = op.Sub(op.Pow(present, beta), op.Mul(op.Mul(present, op.Pow(close, beta - 1)), beta))
        terms = op.Add(terms, op.Mul(op.Pow(approximation, beta), beta - 1))
        return op.Mul(op.ReduceSum(terms, [1], keepdims=1), 1 / (beta * (beta - 1)))

    def error(self, op: GraphBuilder, codes: str) -> str:
        """Append the square root of twice the total divergence."""
        total = op.ReduceSum(self.divergences(op, op.MatMul(codes, self.components)), keepdims=0)
        return op.Sqrt(op.Mul(op.Max(total, 0.0), 2.0))

    def updated(self, op: GraphBuilder, codes: str) -> str:
        """Append ``w_k (sum_j x_j (wH)_j^(beta - 2) H_kj / sum_j (wH)_j^(beta - 1) H_kj)^gamma``."""
        beta, (l1, l2) = self.beta, self.penalties
        approximation = op.MatMul(codes, self.components)
        ratio = _power(op, op.Max(approximation, EPSILON) if beta < 2 else approximation, beta - 2)
        weights = _power(op, op.Max(approximation, EPSILON) if beta < 1 else approximation, beta - 1)
        numerator = products(op, op.Mul(self.x, ratio) if ratio else self.x, self.components)
        weights = weights or op.Add(op.Mul(self.x, 0.0), 1.0)
        denominator = products(op, weights, self.components)
        denominator = op.Add(denominator, l1) if l1 else denominator
        denominator = op.Add(denominator, op.Mul(codes, l2)) if l2 else denominator
        denominator = op.Where(op.Equal(denominator, 0.0), EPSILON, denominator)
        gamma = 1 / (2 - beta) if beta < 1 else 1 / (beta - 1) if beta > 2 else 1.0
        return op.Mul(codes, _power(op, op.Div(numerator, denominator), gamma))

    def until_error(
        self, first: str, op: GraphBuilder, number: str, codes: str, error: str
    ) -> tuple[str, str, str]:
        """Append an update until the error stops decreasing; return whether to continue, codes and error."""
        result, tol = self.updated(op, codes), float(self.model.tol)
        if self.beta < 1:
            result = op.Where(op.Less(result, float(np.finfo(np.float64).eps)), 0.0, result)
        if not tol:
            return op.constant(np.array(True)), result, error
        checks = op.Equal(op.Mod(number, np.array(ERROR_PERIOD)), np.array(ERROR_PERIOD - 1))
        found = self.error(op, result)
        stops = op.And(checks, op.Less(op.Div(op.Sub(error, found), first), tol))
        return op.Not(stops), result, op.Where(checks, found, error)

    def until_change(
        self, first: str, op: GraphBuilder, number: str, codes: str, error: str
    ) -> tuple[str, str, str]:
        """Append an update until the codes converge; return whether to continue, codes and error."""
        result = self.updated(op, codes)
        if not self.model.tol:
            return op.constant(np.array(True)), result, error
        moved = op.Sub(result, codes)
        change, size = (op.Sqrt(op.ReduceSum(op.Mul(a, a), keepdims=0)) for a in (moved, result))
        return op.Greater(op.Div(change, size), float(self.model.tol)), result, error


class FactorizationDefinition(ModelDefinition):
    """NMF: codes w by the iteration of scikit-learn, trained on the divergence of x from ``w H``."""

    # As in scikit-learn, iterations stop for all samples at once, so that codes depend on the other samples
    # within the tolerance. The penalty on w is part of the loss (Lee and Seung, "Algorithms for non-negative
    # matrix factorization", NIPS 2001; Févotte and Idier, "Algorithms for nonnegative matrix factorization
    # with the beta-divergence", Neural Computation 23, 2011).

    def covers(self, model: Any) -> bool:
        return model.solver != "cd" or (not model.shuffle and len(model.components_) <= LARGEST)

    def objective(self, model: Any, total_weight: float) -> Objective:
        alpha = model.alpha_W if model.alpha_H == "same" else model.alpha_H
        penalty = elastic(alpha * model.l1_ratio, 0.5 * alpha * (1 - model.l1_ratio))
        return Objective(RowObjective(), penalty)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        components = op.parameter(model, "components_", role="weight", constraint=NotNegative())
        parts = _Factorization(model, x, components)
        codes = op.Reshape(self.codes(op, parts), [-1, len(model.components_)])
        loss = parts.divergences(op, op.MatMul(codes, components))
        l1, l2 = parts.penalties
        if l1:
            loss = op.Add(loss, op.Mul(op.ReduceSum(codes, [1], keepdims=1), l1))
        if l2:
            loss = op.Add(loss, op.Mul(op.ReduceSum(op.Mul(codes, codes), [1], keepdims=1), l2 / 2))
        return Scores("unsupervised", loss, 1, transformed=codes)

    def codes(self, op: ModelWriter, parts: _Factorization) -> str:
        """Append the codes of all samples, of shape (n, n_components)."""
        model, components = parts.model, parts.components
        if model.solver == "mu":
            return _multiplicative(op, parts, int(model.max_iter), parts.until_error)
        size, (l1, l2) = len(model.components_), parts.penalties
        gram = op.Add(products(op, components, components), (l2 * np.eye(size)).astype(op.float_dtype))
        correlations = op.Sub(products(op, parts.x, components), l1)
        zero = op.constant(np.zeros((), dtype=op.float_dtype))
        start = [(op.Mul(correlations, 0.0), (op.elem_type, [None, size])), (zero, (op.elem_type, []))]
        step = partial(_descent_sweep, gram, correlations, size, float(model.tol))
        return iterate(op, PASS, int(model.max_iter), start, step)[0]


class MiniBatchFactorizationDefinition(FactorizationDefinition):
    """MiniBatchNMF: multiplicative updates until the codes converge."""

    def covers(self, model: Any) -> bool:
        return True

    def codes(self, op: ModelWriter, parts: _Factorization) -> str:
        return _multiplicative(op, parts, int(parts.model._transform_max_iter), parts.until_change)


def _multiplicative(op: ModelWriter, parts: _Factorization, max_iter: int, step: Callable[..., Any]) -> str:
    """Append the codes after multiplicative updates from constant codes."""
    size, x = len(parts.model.components_), parts.x
    level = op.Sqrt(op.Div(op.ReduceMean(x, keepdims=0), float(size)))
    ones = op.Add(op.Mul(op.ReduceSum(x, [1], keepdims=1), 0.0), np.ones((1, size), op.float_dtype))
    first = op.Mul(ones, level)
    error = parts.error(op, first)
    start = [(first, (op.elem_type, [None, size])), (error, (op.elem_type, []))]
    return iterate(op, UPDATE, max_iter, start, partial(step, error))[0]


def _descent_sweep(
    gram: str, correlations: str, size: int, tol: float, op: GraphBuilder, number: str, codes: str, first: str
) -> tuple[str, str, str]:
    """Append a sweep of coordinate descent (Cichocki and Phan, IEICE Transactions E92-A, 2009)."""
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


def _power(op: GraphBuilder, values: str, exponent: float) -> str:
    """Append a power; return an empty name if the exponent is 0."""
    if exponent == 0:
        return ""
    return values if exponent == 1 else op.Reciprocal(values) if exponent == -1 else op.Pow(values, exponent)


class TopicsDefinition(ModelDefinition):
    """LatentDirichletAllocation: topic proportions of documents, without an objective."""

    # With counts x and B = exp(digamma(components_) - digamma(sum of a topic)), parameters g of a document
    # become doc_topic_prior_ + t * (x / (t B)) B', t = exp(digamma(g) - digamma(sum g)) (Hoffman, Blei and
    # Bach, "Online learning for latent Dirichlet allocation", NIPS 2010, algorithm 2). The bound on the
    # likelihood is not a sum over documents.

    def has_own_score(self, model: Any) -> bool:
        return True

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        size = len(model.components_)
        counts = op.parameter(model, "components_", role="weight", constraint=Positive())
        # in float64, as the first steps amplify rounding errors if topics are similar
        with in_double(op, x, counts) as (x, counts):
            words = _expectation(op, counts)
            sums = op.ReduceSum(x, [1], keepdims=1)
            first = op.Add(op.Mul(sums, 0.0), np.ones((1, size)))
            active = op.GreaterOrEqual(sums, 0.0)
            start = [(first, (TensorProto.DOUBLE, [None, size])), (active, (TensorProto.BOOL, [None, 1]))]
            step = partial(_topics_step, model, x, words)
            found = iterate(op, TOPICS, int(model.max_doc_update_iter), start, step)[0]
            topics = op.Reshape(found, [-1, size])
            shares = op.Div(topics, op.ReduceSum(topics, [1], keepdims=1))
        return transformation(op, op.Cast(shares, to=op.elem_type), size)

    def finish(self, model: Any) -> None:
        counts = model.components_
        model.exp_dirichlet_component_ = np.exp(psi(counts) - psi(counts.sum(axis=1, keepdims=True)))


def _expectation(op: GraphBuilder, parameters: str) -> str:
    """Append ``exp(E[log p])`` of Dirichlet distributions, one for each row of parameters."""
    total = digamma(op, op.ReduceSum(parameters, [1], keepdims=1))
    return op.Exp(op.Sub(digamma(op, parameters), total))


def _topics_step(
    model: Any, x: str, words: str, op: GraphBuilder, number: str, topics: str, active: str
) -> tuple[str, str, str]:
    """Append an iteration for documents that have not converged."""
    shares = _expectation(op, topics)
    expected = op.Add(op.MatMul(shares, words), float(np.finfo(op.float_dtype).eps))
    found = op.Mul(shares, products(op, op.Div(x, expected), words))
    found = op.Add(found, float(model.doc_topic_prior_))
    change = op.ReduceMean(op.Abs(op.Sub(found, topics)), [1], keepdims=1)
    still_active = op.And(active, op.GreaterOrEqual(change, float(model.mean_change_tol)))
    any_active = op.ReduceMax(op.Cast(still_active, to=elem_type(op)), keepdims=0)
    return op.Greater(any_active, 0.5), op.Where(active, found, topics), still_active
