"""Checks of standard operators: forms of them with which onnxruntime stops the whole process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from ..exceptions import ConversionError
from ..graphs import TensorType
from ..graphs.nodes import all_nodes, attribute, attributes_of

__all__ = ["check_operators"]

INTEGERS = {
    *(TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64),
    *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
}


class _Form:
    """A node with what is known of its inputs."""

    def __init__(
        self, node: NodeProto, types: Mapping[str, TensorType], constants: Mapping[str, TensorProto]
    ):
        self.node = node
        self._types = types
        self._constants = constants
        self._attributes = attributes_of(node)

    def attribute(self, name: str, default: Any = None) -> Any:
        return self._attributes.get(name, default)

    def type(self, index: int) -> TensorType | None:
        return self._types.get(self.node.input[index]) if index < len(self.node.input) else None

    def shape(self, index: int) -> tuple | None:
        known = self.type(index)
        return None if known is None else known.shape

    def value(self, index: int) -> np.ndarray | None:
        name = self.node.input[index] if index < len(self.node.input) else ""
        return numpy_helper.to_array(self._constants[name]) if name in self._constants else None


def check_operators(model: ModelProto, types: Mapping[str, TensorType], label: str) -> None:
    """Raise a ConversionError for nodes with which onnxruntime would stop the process.

    The message names node and reason. Functions of the model are inlined. ``label`` says what the model was
    read from, in the plural.
    """
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in all_nodes(model.graph):
        if node.op_type == "Constant" and node.output:
            tensor = attribute(node, "value")
            constants.update({} if tensor is None else {node.output[0]: tensor})
    for node in all_nodes(model.graph):
        check = _CHECKS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        reason = None if check is None else check(_Form(node, types, constants))
        if reason:
            raise ConversionError(
                f"{label} hold a {node.op_type} (node {node.name!r}) {reason}: onnxruntime cannot run it."
            )


def _empty(form: _Form) -> str | None:
    return "of an empty tensor" if 0 in (form.shape(0) or ()) else None


def _reduction(form: _Form) -> str | None:
    axes = form.shape(1)
    return "whose axes are no vector" if axes is not None and len(axes) != 1 else _empty(form)


def _window(form: _Form) -> str | None:
    """Check a convolution: ranks of its inputs, and lengths of its lists."""
    kernel = form.shape(3 if form.node.op_type == "QLinearConv" else 1)
    known = [shape for shape in (form.shape(0), kernel) if shape is not None]
    ranks = {len(shape) for shape in known}
    if len(ranks) > 1 or any(rank < 3 for rank in ranks):
        return "whose input and kernel do not have the same three or more dimensions"
    if any(0 in shape for shape in known):
        return "of an empty tensor"
    return _window_lists(form, ranks)


def _pooling(form: _Form) -> str | None:
    shape = form.shape(0)
    if shape is not None and len(shape) < 3:
        return "whose input has less than three dimensions"
    return _empty(form) or _window_lists(form, set() if shape is None else {len(shape)})


def _window_lists(form: _Form, ranks: set[int]) -> str | None:
    names = ("kernel_shape", "strides", "dilations", "pads", "output_padding", "output_shape")
    lists = {name: form.attribute(name) for name in names}
    lengths = {len(v) // (2 if k == "pads" else 1) for k, v in lists.items() if v} | {r - 2 for r in ranks}
    if len(lengths) > 1:
        return "whose kernel_shape, strides, dilations and pads have other lengths than the dimensions"
    positive = [v for k in ("kernel_shape", "strides", "dilations") for v in lists[k] or ()]
    if any(value < 1 for value in positive) or form.attribute("group", 1) < 1:
        return "whose kernel_shape, strides, dilations or group are not positive"
    return None


def _groups(form: _Form) -> str | None:
    return "whose num_groups is not positive" if form.attribute("num_groups", 1) < 1 else _empty(form)


def _normal(form: _Form) -> str | None:
    return None if form.attribute("scale", 1.0) > 0 else "whose scale is not positive"


def _uniform(form: _Form) -> str | None:
    fits = form.attribute("low", 0.0) <= form.attribute("high", 1.0)
    return None if fits else "whose high is below its low"


def _einsum(form: _Form) -> str | None:
    equation = form.attribute("equation", b"").decode(errors="replace")
    upper = any(letter.isupper() for letter in equation)
    return "with capital letters and no '->'" if upper and "->" not in equation else None


def _gather_nd(form: _Form) -> str | None:
    n_batch, shapes = form.attribute("batch_dims", 0), [form.shape(0), form.shape(1)]
    fits = all(n_batch < len(shape) for shape in shapes if shape is not None)
    return None if n_batch >= 0 and fits else "whose batch_dims do not fit its inputs"


def _division(form: _Form) -> str | None:
    known, divisor = form.type(0), form.value(1)
    if known is None or known.elem_type not in INTEGERS or divisor is None:
        return None
    return "of integers by zero" if not np.all(divisor) else None


def _splitting(form: _Form) -> str | None:
    sizes = form.value(1)
    if sizes is not None and np.any(sizes < 1):
        return "whose parts have no positive sizes"
    return _empty(form)


def _cumulative(form: _Form) -> str | None:
    axis = form.value(1)
    return "whose axis is not one number" if axis is not None and axis.size != 1 else None


def _recurrent(form: _Form) -> str | None:
    shapes = [shape for shape in map(form.shape, range(3)) if shape is not None]
    fits = all(len(shape) == 3 and 0 not in shape for shape in shapes)
    return None if fits else "whose inputs do not have three dimensions that are not empty"


def _cross_entropy(form: _Form) -> str | None:
    scores = form.shape(0)
    return "of scores without classes" if scores is not None and len(scores) < 2 else _empty(form)


_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
_CHECKS: dict[str, Callable[[_Form], str | None]] = {
    **dict.fromkeys((f"Reduce{name}" for name in _REDUCTIONS), _reduction),
    **dict.fromkeys(("Conv", "ConvInteger", "ConvTranspose", "QLinearConv"), _window),
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), _pooling),
    **dict.fromkeys(("DFT", "InstanceNormalization", "LpNormalization", "STFT", "Unique"), _empty),
    **dict.fromkeys(("RandomNormal", "RandomNormalLike"), _normal),
    **dict.fromkeys(("RandomUniform", "RandomUniformLike"), _uniform),
    **dict.fromkeys(("Div", "Mod"), _division),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _recurrent),
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), _cross_entropy),
    "CumSum": _cumulative,
    "Einsum": _einsum,
    "GatherND": _gather_nd,
    "GroupNormalization": _groups,
    "SplitToSequence": _splitting,
}
