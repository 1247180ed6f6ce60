"""Numeric transformers: power transforms, polynomials, norms, bins, functions."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import special

from ...graphs import GraphBuilder
from ..base import ModelDefinition, Route
from ..columns import Columns
from ..constraints.signs import Positive
from ..formulas.kernels import unit_rows
from ..registry import definition_of
from ..scores import Scores, transformation
from ..writer import ModelWriter

SMALL = 0.05  # largest |z| for which (e^z - 1) / z is a power series, as the difference loses digits
DIVISORS = (2.0, 3.0, 4.0, 5.0)  # of the series 1 + z / 2 (1 + z / 3 (1 + ...))


class PowerTransformerDefinition(ModelDefinition):
    """PowerTransformer, in a formula that is differentiable in all powers."""

    # Box-Cox is (x^p - 1) / p = u f(p u), u = log x, f(z) = (e^z - 1) / z, 1 at z = 0. Yeo-Johnson is
    # s u f(q u), u = log(1 + |x|), s the sign of x, and q = p for positive x, 2 - p for negative x (Yeo and
    # Johnson, "A new family of power transformations to improve normality or symmetry", Biometrika 87, 2000;
    # Box and Cox, "An analysis of transformations", Journal of the Royal Statistical Society B 26, 1964).
    keeps_missing = True

    def covers(self, model: Any) -> bool:
        return bool(np.isfinite(model.lambdas_).all())

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        power = op.parameter(model, "lambdas_", role="scale")
        if model.method == "box-cox":
            logarithm = op.Log(x)
            result = op.Mul(logarithm, _exprel(op, op.Mul(power, logarithm)))
        else:
            positive = op.ones_where(op.GreaterOrEqual(x, 0.0))
            sign = op.Sub(op.Mul(positive, 2.0), 1.0)
            logarithm = op.Log(op.Add(op.Mul(sign, x), 1.0))
            exponent = op.Add(op.Mul(sign, power), op.Mul(op.Sub(1.0, positive), 2.0))
            result = op.Mul(op.Mul(sign, logarithm), _exprel(op, op.Mul(exponent, logarithm)))
        if model.standardize:
            result = op.Sub(result, op.parameter(model, "_scaler.mean_", role="intercept"))
            scale = op.parameter(model, "_scaler.scale_", role="scale", constraint=Positive())
            result = op.Div(result, scale)
        return transformation(op, result, len(model.lambdas_))

    def write_inverse(self, op: ModelWriter, model: Any, y: str) -> str:
        if model.standardize:
            y = definition_of(model._scaler).write_inverse(op, model._scaler, y)
        return inverse_power(op, model, y)

    def finish(self, model: Any) -> None:
        if model.standardize:
            model._scaler.var_ = model._scaler.scale_**2


def _exprel(op: ModelWriter, z: str) -> str:
    """Append ``(e^z - 1) / z`` as a quotient or a series, each computed from valid values only."""
    is_small = op.ones_where(op.Less(op.Abs(z), SMALL))
    is_large = op.Sub(1.0, is_small)
    large = op.Add(op.Mul(z, is_large), is_small)  # 1 for small z
    quotient = op.Div(op.Sub(op.Exp(large), 1.0), large)
    small = op.Mul(z, is_small)
    series = op.constant(1.0)
    for divisor in reversed(DIVISORS):
        series = op.Add(op.Mul(series, op.Div(small, divisor)), 1.0)
    return op.Add(op.Mul(quotient, is_large), op.Mul(series, is_small))


class PolynomialFeaturesDefinition(ModelDefinition):
    """PolynomialFeatures: products of columns."""

    exact = True
    untrained = "it has no parameters"

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        powers = model.powers_
        by_degree = np.split(powers, np.flatnonzero(np.diff(powers.sum(axis=1))) + 1)
        return transformation(op, op.joined([_products(op, x, p) for p in by_degree]), len(powers))


def _products(op: ModelWriter, x: str, powers: np.ndarray) -> str:
    """Append the products of columns of one degree."""
    if not powers.any():
        return op.Add(op.Mul(op.Gather(x, [0], axis=1), 0.0), 1.0)
    factors = np.array([np.repeat(np.arange(len(row)), row) for row in powers])
    result = op.columns(x, factors[:, 0], powers.shape[1])
    for column in factors.T[1:]:
        result = op.Mul(result, op.columns(x, column, powers.shape[1]))
    return result


class NormalizerDefinition(ModelDefinition):
    """Normalizer: samples divided by their norms, except zeros."""

    untrained = "it has no parameters"

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        return transformation(op, unit_rows(op, x, model.norm), model.n_features_in_)


class BinarizerDefinition(ModelDefinition):
    """Binarizer: 1 for values above the threshold, otherwise 0."""

    exact = True
    untrained = "its output is the index of a bin, a step function without a gradient"
    continuous = False

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        above = op.ones_where(op.Greater(x, float(model.threshold)))
        return transformation(op, above, model.n_features_in_)


class KBinsDiscretizerDefinition(ModelDefinition):
    """KBinsDiscretizer: the index of the bin of each value, or its one-hot encoding."""

    exact = True
    untrained = "its output is the index of a bin, a step function without a gradient"
    continuous = False

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        inner = [np.asarray(edges[1:-1], dtype=np.float64) for edges in model.bin_edges_]
        table = np.full((len(inner), max(1, *map(len, inner))), np.inf, dtype=op.float_dtype)
        for row, edges in zip(table, inner, strict=True):
            row[: len(edges)] = edges
        reached = op.ones_where(op.GreaterOrEqual(op.Unsqueeze(x, [2]), table[None]))
        bins = op.ReduceSum(reached, [2], keepdims=0)
        if model.encode == "ordinal":
            return transformation(op, bins, len(inner))
        columns = np.repeat(np.arange(len(inner)), model.n_bins_)
        indices = np.concatenate([np.arange(count) for count in model.n_bins_]).astype(op.float_dtype)
        equal = op.Equal(op.Gather(bins, columns, axis=1), indices)
        return transformation(op, op.ones_where(equal), len(columns))


def _arcsinh(op: GraphBuilder, x: str) -> str:
    # arcsinh |x| = log(|x| + sqrt(x^2 + 1)), and it is odd
    size = op.Abs(x)
    return op.Mul(op.Sign(x), op.Log(op.Add(size, op.Sqrt(op.Add(op.Mul(size, size), 1.0)))))


#: Writers of NumPy functions. Cos and Asinh are not used, as onnxruntime only has float32 kernels.
FUNCTIONS: dict[Callable | None, Callable[[GraphBuilder, str], str]] = {
    None: lambda op, x: x,
    np.absolute: lambda op, x: op.Abs(x),
    np.arcsinh: _arcsinh,
    np.arctanh: lambda op, x: op.Mul(op.Log(op.Div(op.Add(x, 1.0), op.Sub(1.0, x))), 0.5),
    np.cos: lambda op, x: op.Sin(op.Add(x, float(np.pi / 2))),
    np.exp: lambda op, x: op.Exp(x),
    np.expm1: lambda op, x: op.Sub(op.Exp(x), 1.0),
    np.log: lambda op, x: op.Log(x),
    np.log10: lambda op, x: op.Div(op.Log(x), float(np.log(10.0))),
    np.log1p: lambda op, x: op.Log(op.Add(x, 1.0)),
    np.log2: lambda op, x: op.Div(op.Log(x), float(np.log(2.0))),
    np.negative: lambda op, x: op.Neg(x),
    np.reciprocal: lambda op, x: op.Reciprocal(x),
    np.sign: lambda op, x: op.Sign(x),
    np.sin: lambda op, x: op.Sin(x),
    np.sinh: lambda op, x: op.Mul(op.Sub(op.Exp(x), op.Exp(op.Neg(x))), 0.5),
    np.sqrt: lambda op, x: op.Sqrt(x),
    np.square: lambda op, x: op.Mul(x, x),
    np.tanh: lambda op, x: op.Tanh(x),
    special.expit: lambda op, x: op.Sigmoid(x),
}


def is_known_function(function: Callable | None) -> bool:
    """Return whether a function of an array can be written as ONNX; None is the identity."""
    try:
        return function in FUNCTIONS
    except TypeError:  # unhashable
        return False


def _shape_of_samples(model: Any) -> tuple[int, ...]:
    """Return the shape of a sample after ``numpy.reshape``; empty for any other function."""
    options = dict(model.kw_args or {})
    shape = options.pop("shape", options.pop("newshape", 0))  # newshape before numpy 2.1
    if model.func is not np.reshape or options or not isinstance(shape, tuple | list):
        return ()
    return tuple(shape[1:]) if shape[:1] in ((-1,), [-1]) and min(shape[1:], default=0) > 0 else ()


class FunctionTransformerDefinition(ModelDefinition):
    """FunctionTransformer with a NumPy function that can be written as ONNX."""

    takes_columns = True
    untrained = "it has no parameters"

    def routes(self, model: Any, columns: Sequence[int]) -> Iterator[Route]:
        if model.func is None:
            yield Route(None, columns)

    def covers(self, model: Any) -> bool:
        return bool(_shape_of_samples(model)) or not model.kw_args and is_known_function(model.func)

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        shape = _shape_of_samples(model)
        if shape:
            reshaped = op.Reshape(op.matrix(x, type(model).__name__), [-1, *shape])
            return transformation(op, op.set_type(reshaped, op.elem_type, (None, *shape)), shape[-1])
        if model.func is None and isinstance(x, Columns):
            return transformation(op, x, len(x.tensors))
        result = FUNCTIONS[model.func](op, op.matrix(x, type(model).__name__))
        return transformation(op, result, model.n_features_in_)

    def write_inverse(self, op: ModelWriter, model: Any, y: str) -> str:
        if model.inv_kw_args or not is_known_function(model.inverse_func):
            known = sorted(function.__name__ for function in FUNCTIONS if function is not None)
            raise op.fail(model, f"its inverse function is not supported: use one of {known}.")
        return FUNCTIONS[model.inverse_func](op, y)


def inverse_power(op: ModelWriter, model: Any, y: str) -> str:
    """Append the inverse of a PowerTransformer without its scaler (Yeo and Johnson, 2000, equation 2.1)."""
    powers = np.asarray(model.lambdas_, dtype=np.float64)
    if model.method == "box-cox":
        return op.Exp(_exponent(op, y, powers))
    # one of both is exp(0)
    positive = op.Exp(_exponent(op, op.Max(y, 0.0), powers))
    negative = op.Exp(_exponent(op, op.Max(op.Neg(y), 0.0), 2 - powers))
    return op.Sub(positive, negative)


def _exponent(op: ModelWriter, y: str, powers: np.ndarray) -> str:
    """Append ``log(1 + p y) / p`` with the power p of each column; y if p is zero."""
    is_zero = np.abs(powers) < np.spacing(1.0)
    if is_zero.all():
        return y
    factor, divisor = np.where(is_zero, 0, powers), np.where(is_zero, 1, powers)
    product = op.Add(op.Mul(y, factor.astype(op.float_dtype)), 1.0)
    result = op.Div(op.Log(product), divisor.astype(op.float_dtype))
    return op.Add(result, op.Mul(y, is_zero.astype(op.float_dtype))) if is_zero.any() else result
