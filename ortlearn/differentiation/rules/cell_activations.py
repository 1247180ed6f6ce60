"""Activation functions of recurrent layers by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..gradient_builder import GradientBuilder
from ..rule_context import RuleNode

__all__ = ["Activation", "read_activations"]


def _sigmoid(op: GradientBuilder, s: str, alpha: float, beta: float) -> tuple[str, str]:
    y = op.Sigmoid(s)
    return y, op.Mul(y, op.Sub(1.0, y))


def _tanh(op: GradientBuilder, s: str, alpha: float, beta: float) -> tuple[str, str]:
    y = op.Tanh(s)
    return y, op.Sub(1.0, op.square(y))


def _relu(op: GradientBuilder, s: str, alpha: float, beta: float) -> tuple[str, str]:
    return op.Relu(s), op.mask(op.Greater(s, 0.0), s)


def _affine(op: GradientBuilder, s: str, alpha: float, beta: float) -> tuple[str, str]:
    return op.Add(op.Mul(s, alpha), beta), op.Expand(alpha, op.Shape(s))


def _leaky_relu(op: GradientBuilder, s: str, alpha: float, beta: float) -> tuple[str, str]:
    slope = op.Where(op.Greater(s, 0.0), 1.0, alpha)
    return op.Mul(s, slope), slope


def _thresholded_relu(op: GradientBuilder, s: str, alpha: float, beta: float) -> tuple[str, str]:
    slope = op.mask(op.Greater(s, alpha), s)
    return op.Mul(s, slope), slope


def _scaled_tanh(op: GradientBuilder, s: str, alpha: float, beta: float) -> tuple[str, str]:
    t = op.Tanh(op.Mul(s, beta))
    return op.Mul(t, alpha), op.Mul(op.Sub(1.0, op.square(t)), alpha * beta)


def _hard_sigmoid(op: GradientBuilder, s: str, alpha: float, beta: float) -> tuple[str, str]:
    line = op.Add(op.Mul(s, alpha), beta)
    inside = op.And(op.Greater(line, 0.0), op.Less(line, 1.0))
    return op.Min(op.Max(line, 0.0), 1.0), op.Where(inside, alpha, 0.0)


def _elu(op: GradientBuilder, s: str, alpha: float, beta: float) -> tuple[str, str]:
    positive = op.Greater(s, 0.0)
    bent = op.Mul(op.Exp(op.Min(s, 0.0)), alpha)
    return op.Where(positive, s, op.Sub(bent, alpha)), op.Where(positive, 1.0, bent)


def _softsign(op: GradientBuilder, s: str, alpha: float, beta: float) -> tuple[str, str]:
    size = op.Add(op.Abs(s), 1.0)
    return op.Div(s, size), op.Reciprocal(op.square(size))


def _softplus(op: GradientBuilder, s: str, alpha: float, beta: float) -> tuple[str, str]:
    return op.Softplus(s), op.Sigmoid(s)


#: Functions by name in lower case, with the number of their parameters, and their defaults. Parameters for
#: which onnxruntime and the specification of ONNX have different defaults must be given.
_FUNCTIONS: dict[str, tuple[Callable, int, tuple[float, ...]]] = {
    "affine": (_affine, 2, ()),
    "elu": (_elu, 1, (1.0,)),
    "hardsigmoid": (_hard_sigmoid, 2, (0.2, 0.5)),
    "leakyrelu": (_leaky_relu, 1, (0.01,)),
    "relu": (_relu, 0, ()),
    "scaledtanh": (_scaled_tanh, 2, ()),
    "sigmoid": (_sigmoid, 0, ()),
    "softplus": (_softplus, 0, ()),
    "softsign": (_softsign, 0, ()),
    "tanh": (_tanh, 0, ()),
    "thresholdedrelu": (_thresholded_relu, 1, ()),
}


class Activation(NamedTuple):
    """An activation with its parameters, and the bound of its argument, None without clipping."""

    function: Callable
    parameters: tuple[float | None, float | None]
    bound: float | None

    def __call__(self, op: GradientBuilder, s: str, clipped: bool = True) -> tuple[str, str]:
        """Write the value and the derivative at ``s``."""
        if self.bound is None or not clipped:
            return self.function(op, s, *self.parameters)
        value, slope = self.function(op, op.Max(op.Min(s, self.bound), -self.bound), *self.parameters)
        return value, op.Mul(slope, op.mask(op.LessOrEqual(op.Abs(s), self.bound), s))


def read_activations(node: RuleNode, defaults: list[str], directions: int) -> list[list[Activation]]:
    """Return the activations of every direction, in the order of the operator."""
    names = node.attribute("activations") or defaults * directions
    if len(names) != len(defaults) * directions:
        raise node.error(
            f"{directions} directions need {len(defaults) * directions} activations, not {names}"
        )
    alphas, betas = (iter(node.attribute(f"activation_{name}") or ()) for name in ("alpha", "beta"))
    found = [_read(node, _text(name), alphas, betas) for name in names]
    size = len(defaults)
    return [found[size * d : size * (d + 1)] for d in range(directions)]


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def _read(node: RuleNode, name: str, alphas: Iterator[float], betas: Iterator[float]) -> Activation:
    """Return an activation with the next of the given parameters."""
    if name.lower() not in _FUNCTIONS:
        raise node.error(f"its activation {name!r} is unknown; known are {', '.join(_FUNCTIONS)}")
    function, count, defaults = _FUNCTIONS[name.lower()]
    if node.op_type == "RNN":  # onnxruntime uses zeros as defaults
        defaults = ()
    fallback = (*defaults, None, None)[:count]
    given = [next(values, default) for values, default in zip((alphas, betas), fallback, strict=False)]
    if None in given:
        raise node.error(
            f"its activation {name!r} needs {' and '.join(('activation_alpha', 'activation_beta')[:count])}, "
            "because onnxruntime and the specification of ONNX have different defaults",
            limit="activations",
        )
    alpha, beta = [*given, None, None][:2]
    return Activation(function, (alpha, beta), node.attribute("clip"))
