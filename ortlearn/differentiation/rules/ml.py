"""Gradients of operators of the domain ai.onnx.ml, with respect to their input."""

from __future__ import annotations

import numpy as np

from ..gradient_builder import GradientBuilder
from ..rule_context import Gradients, RuleNode
from ..rule_set import RuleSet
from .gather_scatter import gather_gradient
from .normalization import norm_gradient

__all__ = ["RULES"]

RULES = RuleSet("ml")

_ML = "ai.onnx.ml"


@RULES.rule("ArrayFeatureExtractor", domain=_ML)
def array_feature_extractor(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = columns i of x, dx = dy added to columns i
    x, columns = node.I(0), node.I(1)
    flat = op.Reshape(columns, [-1])
    known = node.constant(columns)
    if known is not None:
        flat = op.constant(known.reshape(-1))
    if node.rank(x) == 1:
        grad = op.Reshape(grad, [-1])
    return gather_gradient(op, node, grad, -1, flat), None


@RULES.rule("Scaler", domain=_ML)
def scaler(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = (x - offset) scale, dx = scale dy
    x = node.I(0)
    scale = op.constant(np.array(node.attribute("scale"), dtype=op.float_dtype))
    return op.cast_like(op.with_type(op.Mul(grad, scale), grad), x)


@RULES.rule("Normalizer", domain=_ML)
def normalizer(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x / n with n the norm of a row, dx = (dy - n' sum(y dy)) / n with n' the slope of the norm
    x, norm = node.I(0), node.attribute("norm", "MAX")
    axes = [node.rank(x) - 1]
    grad = op.cast_like(grad, x)
    op.float_dtype = op.dtype(x) or op.float_dtype
    if norm == "MAX":
        return _max_norm_gradient(op, x, grad, axes)
    return norm_gradient(op, node, grad, axes, "ReduceL1" if norm == "L1" else "ReduceL2")


def _max_norm_gradient(op: GradientBuilder, x: str, grad: str, axes: list[int]) -> str:
    # y = x / n with n = max(x): dx = dy / n, minus sum(x dy) / n^2 where x is the largest; y = x where n = 0
    largest = op.reduce("ReduceMax", x, axes)
    usable = op.Not(op.Equal(largest, 0.0))
    norm = op.Where(usable, largest, 1.0)
    chosen = op.mask(op.And(op.Equal(x, largest), usable), x)
    ties = op.Max(op.reduce("ReduceSum", chosen, axes), 1.0)
    weighted = op.reduce("ReduceSum", op.with_type(op.Mul(x, grad), x), axes)
    correction = op.Mul(chosen, op.Div(op.Div(weighted, norm), ties))
    return op.Div(op.Sub(grad, correction), norm)


@RULES.rule("Imputer", domain=_ML)
def imputer(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x, or a constant where x is missing, dx = dy where x is there
    x = node.I(0)
    missing = node.attribute("replaced_value_float", 0.0)
    there = op.Not(op.IsNaN(x) if np.isnan(missing) else op.Equal(x, missing))
    return op.Mul(grad, op.mask(there, grad))
