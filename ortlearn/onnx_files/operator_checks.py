"""Checks of standard operators for invalid forms with which onnxruntime stops the process."""

from collections.abc import Callable, Mapping

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto

from ..exceptions import ConversionError
from ..graphs import TensorType, subgraphs
from ..graphs.external_tensors import tensor_array
from ..graphs.nodes import all_nodes, attribute, attributes_of


class _Form:
    """A node with the types and constant values of its inputs."""

    def __init__(
        self, node: NodeProto, types: Mapping[str, TensorType], constants: Mapping[str, TensorProto]
    ):
        self.node, self._types, self._constants = node, types, constants
        self.n_in, self.n_out = len(node.input), len(node.output)
        self.get = attributes_of(node).get

    def dtype(self, index: int) -> str:
        known = self._types.get(self.node.input[index])
        return TensorProto.DataType.Name(known.elem_type) if known else ""

    def shapes(self, *indices: int) -> list[tuple]:
        """Return the known shapes of some inputs."""
        known = [self._types.get(self.node.input[index]) for index in indices if index < self.n_in]
        return [own.shape for own in known if own is not None and own.shape is not None]

    def ranks(self, *indices: int) -> set[int]:
        return {len(shape) for shape in self.shapes(*indices)}

    def has_empty(self, *indices: int) -> bool:
        return any(0 in shape for shape in self.shapes(*indices))

    def value(self, index: int) -> np.ndarray:
        """Return the value of a constant input, a one for any other."""
        name = self.node.input[index] if index < self.n_in else ""
        return tensor_array(self._constants[name]) if name in self._constants else np.ones(1)

    def fits_bodies(self, *numbers: tuple[int, int]) -> bool:
        """Return whether the subgraphs have given numbers of inputs and outputs."""
        bodies = subgraphs(self.node)
        return [(len(graph.input), len(graph.output)) for graph in bodies] == list(numbers)


def _has_bad_window(form: _Form) -> bool:
    """Return whether the attributes of a convolution or pooling do not fit its spatial axes."""
    names = ("kernel_shape", "strides", "dilations", "pads", "output_padding", "output_shape")
    lists = {name: form.get(name) for name in names}
    is_pooling = "Pool" in form.node.op_type
    ranks = form.ranks(0) if is_pooling else form.ranks(0, 3 if form.node.op_type == "QLinearConv" else 1)
    lengths = {len(v) // (2 if k == "pads" else 1) for k, v in lists.items() if v} | {r - 2 for r in ranks}
    positive = [v for k in ("kernel_shape", "strides", "dilations") for v in lists[k] or ()]
    return len(lengths) > 1 or min(lengths | {1}) < 1 or min([*positive, form.get("group", 1)]) < 1


def _has_bad_scan(form: _Form) -> bool:
    n_scanned = form.get("num_scan_inputs", 0)
    fits = form.fits_bodies((form.n_in, form.n_out))
    return not fits or not 0 < n_scanned <= form.n_in <= form.n_out + n_scanned


def _has_bad_equation(form: _Form) -> bool:
    equation = form.get("equation", b"")
    return equation != equation.lower() and b"->" not in equation


def _has_bad_batches(form: _Form) -> bool:
    return not 0 <= form.get("batch_dims", 0) < min(form.ranks(0, 1), default=99)


_REDUCED = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"
_REDUCTIONS = " ".join(f"Reduce{name}" for name in _REDUCED.split())
_LOSSES = "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss"
_WINDOWS = "Conv ConvInteger ConvTranspose QLinearConv AveragePool LpPool MaxPool"
_OTHERS = "GroupNormalization InstanceNormalization LpNormalization DFT SplitToSequence STFT Unique"
_BODIES = "whose subgraphs have other numbers of inputs or outputs"
_EMPTY = "of an empty tensor"

#: Operators, predicates of their faults, and messages.
_FAULTS: list[tuple[str, Callable[[_Form], bool], str]] = [
    ("If", lambda f: not f.fits_bodies((0, f.n_out), (0, f.n_out)), _BODIES),
    ("Loop", lambda f: not 2 <= f.n_in <= f.n_out + 2 or not f.fits_bodies((f.n_in, f.n_out + 1)), _BODIES),
    ("Scan", _has_bad_scan, _BODIES),
    (_REDUCTIONS, lambda f: not f.ranks(1) <= {1}, "whose axes are no vector"),
    (_REDUCTIONS, lambda f: f.has_empty(0), _EMPTY),
    (f"{_WINDOWS} {_LOSSES} {_OTHERS}", lambda f: f.has_empty(*range(f.n_in)), _EMPTY),
    (_WINDOWS, _has_bad_window, "whose kernel, strides, dilations, pads or group do not fit its input"),
    ("GroupNormalization", lambda f: f.get("num_groups", 1) < 1, "whose num_groups is not positive"),
    ("RandomNormal RandomNormalLike", lambda f: not f.get("scale", 1) > 0, "whose scale is not positive"),
    ("RandomUniform RandomUniformLike", lambda f: not f.get("low", 0) <= f.get("high", 1), "with high < low"),
    ("Einsum", _has_bad_equation, "with capital letters and no '->'"),
    ("GatherND", _has_bad_batches, "whose batch_dims do not fit its inputs"),
    ("Div Mod", lambda f: "INT" in f.dtype(0) and not np.all(f.value(1)), "of integers by zero"),
    ("SplitToSequence", lambda f: bool(np.any(f.value(1) < 1)), "whose parts have no positive sizes"),
    ("CumSum", lambda f: f.value(1).size != 1, "whose axis is not one number"),
    ("GRU LSTM RNN", lambda f: not f.ranks(0, 1, 2) <= {3}, "whose inputs do not have three dimensions"),
    ("GRU LSTM RNN", lambda f: f.has_empty(0, 1, 2), _EMPTY),
    (_LOSSES, lambda f: min(f.ranks(0), default=2) < 2, "of scores without classes"),
]


def check_operators(model: ModelProto, types: Mapping[str, TensorType], label: str) -> None:
    """Raise a ConversionError for nodes with which onnx or onnxruntime would stop the process."""
    nodes, constants = list(all_nodes(model.graph)), {t.name: t for t in model.graph.initializer}
    for node in nodes:
        tensor = attribute(node, "value") if node.op_type == "Constant" and node.output else None
        constants.update({} if tensor is None else {node.output[0]: tensor})
    for node in nodes:
        if node.domain not in ("", "ai.onnx"):
            continue
        for is_fault, reason in [fault[1:] for fault in _FAULTS if node.op_type in fault[0].split()]:
            if is_fault(_Form(node, types, constants)):
                raise ConversionError(
                    f"{label} hold a {node.op_type} (node {node.name!r}) {reason}: onnxruntime cannot run it."
                )
