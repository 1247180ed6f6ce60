"""Checks of standard operators for faults that terminate the process in onnxruntime."""

from collections.abc import Callable, Mapping

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto

from ..exceptions import ConversionError, limit_address
from ..graphs import TensorType, subgraphs
from ..graphs.external_tensors import tensor_array
from ..graphs.nodes import all_nodes, attribute, attributes_of
from ..runtime.onnxruntime_module import is_before


class _TypedNode:
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
        """Return the known shapes of inputs."""
        known = [self._types.get(self.node.input[index]) for index in indices if index < self.n_in]
        return [item.shape for item in known if item is not None and item.shape is not None]

    def ranks(self, *indices: int) -> set[int]:
        return {len(shape) for shape in self.shapes(*indices)}

    def has_empty(self, *indices: int) -> bool:
        return any(0 in shape for shape in self.shapes(*indices))

    def value(self, index: int) -> np.ndarray:
        """Return the value of a constant input, one for other inputs."""
        name = self.node.input[index] if index < self.n_in else ""
        return tensor_array(self._constants[name]) if name in self._constants else np.ones(1)

    def has_subgraphs(self, *counts: tuple[int, int]) -> bool:
        """Return whether the subgraphs have given numbers of inputs and outputs."""
        return [(len(graph.input), len(graph.output)) for graph in subgraphs(self.node)] == list(counts)


def _has_bad_window(node: _TypedNode) -> bool:
    """Return whether the attributes of a convolution or pooling contradict its spatial axes."""
    names = ("kernel_shape", "strides", "dilations", "pads", "output_padding", "output_shape")
    lists = {name: node.get(name) for name in names}
    is_pooling = "Pool" in node.node.op_type
    ranks = node.ranks(0) if is_pooling else node.ranks(0, 3 if node.node.op_type == "QLinearConv" else 1)
    lengths = {len(v) // (2 if k == "pads" else 1) for k, v in lists.items() if v} | {r - 2 for r in ranks}
    positive = [v for k in ("kernel_shape", "strides", "dilations") for v in lists[k] or ()]
    return len(lengths) > 1 or min(lengths | {1}) < 1 or min([*positive, node.get("group", 1)]) < 1


def _has_bad_scan(node: _TypedNode) -> bool:
    n_scanned = node.get("num_scan_inputs", 0)
    is_valid = node.has_subgraphs((node.n_in, node.n_out))
    return not is_valid or not 0 < n_scanned <= node.n_in <= node.n_out + n_scanned


def _has_bad_equation(node: _TypedNode) -> bool:
    equation = node.get("equation", b"")
    return equation != equation.lower() and b"->" not in equation


def _has_few_parameters(node: _TypedNode) -> bool:
    """Return whether an RNN of two directions has parameters of the activation of one."""
    lists = [node.get(f"activation_{name}") or () for name in ("alpha", "beta")]
    return node.get("direction") == b"bidirectional" and any(len(values) == 1 for values in lists)


def _has_bad_batches(node: _TypedNode) -> bool:
    return not 0 <= node.get("batch_dims", 0) < min(node.ranks(0, 1), default=99)


_REDUCED = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"
_REDUCTIONS = " ".join(f"Reduce{name}" for name in _REDUCED.split())
_LOSSES = "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss"
_WINDOWS = "Conv ConvInteger ConvTranspose QLinearConv AveragePool LpPool MaxPool"
_OTHERS = "GroupNormalization InstanceNormalization LpNormalization DFT SplitToSequence STFT Unique"
_BODIES = "whose subgraphs have wrong numbers of inputs or outputs"
_EMPTY = "of an empty tensor"

#: Operators, predicates of faults, and their descriptions.
_FAULTS: list[tuple[str, Callable[[_TypedNode], bool], str]] = [
    ("If", lambda f: not f.has_subgraphs((0, f.n_out), (0, f.n_out)), _BODIES),
    ("Loop", lambda f: not 2 <= f.n_in <= f.n_out + 2 or not f.has_subgraphs((f.n_in, f.n_out + 1)), _BODIES),
    ("Scan", _has_bad_scan, _BODIES),
    (_REDUCTIONS, lambda f: not f.ranks(1) <= {1}, "whose axes are not a vector"),
    (_REDUCTIONS, lambda f: f.has_empty(0), _EMPTY),
    (f"{_WINDOWS} {_LOSSES} {_OTHERS}", lambda f: f.has_empty(*range(f.n_in)), _EMPTY),
    (_WINDOWS, _has_bad_window, "whose kernel, strides, dilations, pads or group are invalid for its input"),
    ("GroupNormalization", lambda f: f.get("num_groups", 1) < 1, "whose num_groups is not positive"),
    ("RandomNormal RandomNormalLike", lambda f: not f.get("scale", 1) > 0, "whose scale is not positive"),
    ("RandomUniform RandomUniformLike", lambda f: not f.get("low", 0) <= f.get("high", 1), "with high < low"),
    ("Einsum", _has_bad_equation, "with uppercase letters but without '->'"),
    ("GatherND", _has_bad_batches, "whose batch_dims are invalid for its inputs"),
    ("Div Mod", lambda f: "INT" in f.dtype(0) and not np.all(f.value(1)), "of integers by zero"),
    ("SplitToSequence", lambda f: bool(np.any(f.value(1) < 1)), "whose sizes are not positive"),
    ("CumSum", lambda f: f.value(1).size != 1, "whose axis is not a scalar"),
    ("GRU LSTM RNN", lambda f: not f.ranks(0, 1, 2) <= {3}, "whose inputs do not have three dimensions"),
    ("GRU LSTM RNN", lambda f: f.has_empty(0, 1, 2), _EMPTY),
    ("RNN", _has_few_parameters, "with activation_alpha or activation_beta for one of two directions"),
    (_LOSSES, lambda f: min(f.ranks(0), default=2) < 2, "of scores without classes"),
]


def _has_misread_mask(node: _TypedNode) -> bool:
    """Return whether a MultiHeadAttention has a mask of keys, and not as many queries as keys.

    onnxruntime before 1.20 then reads the mask at wrong positions.
    """
    names = [*node.node.input, *[""] * 5]
    if not names[4] or names[0] == names[1] or not is_before(1, 20):
        return False
    lengths = [shape[-2] for shape in node.shapes(0, 1) if len(shape) > 2]
    return len(lengths) < 2 or lengths[0] is None or lengths[0] != lengths[1] or bool("".join(names[6:8]))


def check_operators(model: ModelProto, types: Mapping[str, TensorType], label: str) -> None:
    """Raise a ConversionError for nodes that would terminate the process in onnx or onnxruntime."""
    nodes, constants = list(all_nodes(model.graph)), {t.name: t for t in model.graph.initializer}
    for node in nodes:
        tensor = attribute(node, "value") if node.op_type == "Constant" and node.output else None
        constants.update({} if tensor is None else {node.output[0]: tensor})
    for node in nodes:
        is_attention = (node.domain, node.op_type) == ("com.microsoft", "MultiHeadAttention")
        if types and is_attention and _has_misread_mask(_TypedNode(node, types, constants)):
            raise ConversionError(
                f"{label} have a {node.op_type} (node {node.name!r}) with a mask of keys, whose numbers of "
                "queries and keys differ or are unknown. onnxruntime before 1.20 computes it "
                "wrongly: install the newest onnxruntime instead, or give both axes the same size or name "
                f"in the model.{limit_address('masks-of-keys')}"
            )
        if node.domain not in ("", "ai.onnx"):
            continue
        for is_fault, reason in [fault[1:] for fault in _FAULTS if node.op_type in fault[0].split()]:
            if is_fault(_TypedNode(node, types, constants)):
                raise ConversionError(
                    f"{label} have a {node.op_type} (node {node.name!r}) {reason}, which "
                    "onnxruntime cannot run: correct the model."
                )
