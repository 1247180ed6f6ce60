"""Operators, and their forms, for which the C++ builder is right; all others are refused.

Each was compared with the rules in every use, with known, named and unknown sizes, in float32 and float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto

from ...graphs import TensorType
from ...graphs.nodes import attribute

__all__ = ["OPERATORS", "Form", "Site"]

#: Dimensions of a tensor; None for one without number and name.
Shape = tuple[int | str | None, ...]


class Site(NamedTuple):
    """A node on a gradient path, with the types and constant values of its tensors."""

    node: NodeProto
    types: Mapping[str, TensorType]
    #: Tensors that depend on a differentiated one, and those that the path reads.
    reached: set[str]
    read: set[str]
    value: Callable[[str], np.ndarray | None]

    def input(self, index: int) -> str:
        """Return the name of an input, empty if it is omitted."""
        return self.node.input[index] if len(self.node.input) > index else ""

    def shape(self, name: str) -> Shape | None:
        """Return the shape of a tensor without inferred names, or None if its rank is unknown."""
        shape = self.types[name].shape if name in self.types else None
        return shape and tuple(None if str(dim).startswith("unk__") else dim for dim in shape)

    def attribute(self, name: str, default: Any) -> Any:
        """Return an attribute of the node."""
        return attribute(self.node, name, default)


Check = Callable[[Site], "str | None"]


class Form(NamedTuple):
    """A required form of an operator: ``check`` returns the violation, or None."""

    check: Check | None = None
    #: Whether its gradient is right in float64: some have no kernel, that of a mean is scaled by a float32.
    float64: bool = True
    #: Whether the gradient of a scalar is a scalar.
    scalars: bool = True


def _broadcast(one: Shape | None, other: Shape | None) -> str | None:
    """Return a fault if a name hides which axes of two shapes are broadcast: its axis may have length one.

    The lengths of axes without name and number are compared at run time.
    """
    pairs = zip(reversed(one or ()), reversed(other or ()), strict=False)
    right = all(a == b or not {1, None}.isdisjoint((a, b)) for a, b in pairs)
    return None if right else f"it is not known which axes are broadcast of the shapes {one} and {other}"


def _elementwise(site: Site) -> str | None:
    if len(site.node.input) != 2:
        return "it does not have two operands"
    return _broadcast(*map(site.shape, site.node.input))


def _expand(site: Site) -> str | None:
    return _broadcast(site.shape(site.input(0)), site.shape(site.node.output[0]))


def _gemm(site: Site) -> str | None:
    third = site.input(2)
    return _broadcast(site.shape(third), site.shape(site.node.output[0])) if third else None


def _matmul(site: Site) -> str | None:
    left, right = map(site.shape, site.node.input)
    if left is None or right is None or min(len(left), len(right)) < 2:
        return "an operand is a vector, or of unknown rank"
    if len(left) == len(right) == 2:
        return None
    if site.types[site.input(0)].elem_type == TensorProto.DOUBLE:
        return "it has more than two axes in float64"
    return _broadcast(left[:-2], right[:-2])


def _clip(site: Site) -> str | None:
    return "a bound has a gradient" if site.reached.intersection(site.node.input[1:]) else None


def _where(site: Site) -> str | None:
    result = site.shape(site.node.output[0])
    same = all(site.shape(name) == result for name in site.node.input[1:] if name in site.reached)
    return None if same and result is not None and None not in result else "an operand is broadcast"


def _pow(site: Site) -> str | None:
    base, exponent = site.node.input
    shape, power = site.shape(base), site.value(exponent)
    if power is None or not np.all(power) or site.types[exponent].elem_type != site.types[base].elem_type:
        return "its exponent is not a constant of the type of its base, other than zero"
    same = shape is not None and None not in shape and shape == site.shape(site.node.output[0])
    return None if same else "its base is broadcast"


def _mean(site: Site) -> str | None:
    # of an empty tensor the kernel divides by the size of the result, and terminates the process
    whole = (
        not site.input(1) and not site.attribute("axes", ()) and not site.attribute("noop_with_empty_axes", 0)
    )
    return None if whole else _not_empty(site)


def _sum(site: Site) -> str | None:
    return "it keeps all axes" if site.attribute("noop_with_empty_axes", 0) else None


def _keeps_axes(site: Site) -> str | None:
    return _sum(site) if site.attribute("keepdims", 1) else "its keepdims is 0"


def _not_empty(site: Site) -> str | None:
    shape = site.shape(site.input(0))
    if shape is not None and all(isinstance(dim, int) and dim > 0 for dim in shape):
        return None
    return "it may be empty, which terminates the process: its sizes are not all known"


def _slice(site: Site) -> str | None:
    steps = site.value(site.input(4)) if site.input(4) else np.ones(1)
    return None if steps is not None and (steps > 0).all() else "its steps are negative or not constant"


def _split(site: Site) -> str | None:
    return None if site.read.issuperset(site.node.output) else "one of its outputs is not used"


def _transpose(site: Site) -> str | None:
    has_order = site.attribute("perm", None) is not None or site.shape(site.input(0)) is not None
    return None if has_order else "its rank is unknown"


def _gelu(site: Site) -> str | None:
    return None if site.attribute("approximate", b"none") == b"none" else "it is the approximation by tanh"


def _cross_entropy(site: Site) -> str | None:
    if len(site.node.output) < 2 or not site.node.output[1]:
        return "the builder reads its second output, which is omitted"
    if site.node.output[1] in site.read:
        return "its second output has a gradient"
    return "its class weights have a gradient" if site.input(2) in site.reached else None


#: Form of each operator of the standard domain.
OPERATORS: dict[str, Form] = {
    **dict.fromkeys(
        "Abs Cast Exp Flatten Gather GatherElements Identity Log Neg Reciprocal Reshape Sigmoid Squeeze Tanh "
        "Unsqueeze".split(),
        Form(),
    ),
    **dict.fromkeys(["LeakyRelu", "Relu", "Sin", "Concat"], Form(float64=False)),
    **dict.fromkeys(["Sqrt", "Tile", "Trilu"], Form(scalars=False)),
    **dict.fromkeys(["Cos", "Erf"], Form(float64=False, scalars=False)),
    **dict.fromkeys(["Add", "Div", "Max", "Min", "Mul", "Sub"], Form(_elementwise)),
    **dict.fromkeys(["LogSoftmax", "Softmax"], Form(_not_empty, float64=False, scalars=False)),
    "Clip": Form(_clip),
    "Expand": Form(_expand),
    "Gelu": Form(_gelu, float64=False, scalars=False),
    "Gemm": Form(_gemm),
    "MatMul": Form(_matmul),
    "Pow": Form(_pow, scalars=False),
    "ReduceLogSumExp": Form(_keeps_axes, scalars=False),
    "ReduceMean": Form(_mean, float64=False, scalars=False),
    "ReduceSum": Form(_sum, scalars=False),
    "Slice": Form(_slice, scalars=False),
    "SoftmaxCrossEntropyLoss": Form(_cross_entropy),
    "Split": Form(_split, scalars=False),
    "Transpose": Form(_transpose, scalars=False),
    "Where": Form(_where, scalars=False),
}
