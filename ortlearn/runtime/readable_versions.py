"""Opsets and IR versions that the installed onnx and onnxruntime read, and operators without a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import onnx
from onnx import NodeProto, TensorProto, defs, helper

from ..exceptions import MissingRuntimeError
from ..graphs import TensorType, make_value_info
from ..graphs.nodes import copy_node, subgraphs
from .onnxruntime_module import runtime, runtime_failures

__all__ = ["FLOOR_IR", "FLOOR_OPSET", "has_kernel", "newest_ir_version", "newest_opset", "runtime_name"]

#: Newest opset and IR version of onnxruntime 1.19.2, the oldest supported one and the last with training.
FLOOR_OPSET, FLOOR_IR = 21, 10
_NEG = helper.make_node("Neg", ["x"], ["y"])


def runtime_name() -> str:
    """Return the name and version of the installed onnxruntime."""
    try:
        return f"onnxruntime {runtime().__version__}"
    except MissingRuntimeError:
        return "onnxruntime"


@lru_cache(maxsize=1)
def newest_opset() -> int:
    """Return the newest opset that the installed onnx defines and onnxruntime reads.

    Without an onnxruntime, it is that of the oldest supported one.
    """
    newer = range(defs.onnx_opset_version(), FLOOR_OPSET, -1)
    return next((opset for opset in newer if not _failure(_model(_NEG, opset))), FLOOR_OPSET)


@lru_cache(maxsize=1)
def newest_ir_version() -> int:
    """Return the newest IR version that the installed onnx defines and onnxruntime reads."""
    newer = range(onnx.IR_VERSION, FLOOR_IR, -1)
    return next((ir for ir in newer if not _failure(_model(_NEG, FLOOR_OPSET, ir))), FLOOR_IR)


def has_kernel(node: NodeProto, types: Mapping[str, TensorType], opset: int) -> bool:
    """Return whether onnxruntime runs a node of a standard operator at an opset on the CPU.

    Only operators newer than ``FLOOR_OPSET`` are tried, each with the types of its inputs; those with
    subgraphs, or with inputs of unknown types, are assumed to run.
    """
    known = defs.has(node.op_type, max_inclusive_version=opset)
    if not known or defs.get_schema(node.op_type, opset).since_version <= FLOOR_OPSET or any(subgraphs(node)):
        return True
    if not all(name in types for name in node.input if name):
        return True
    names = {name: f"x{i}" for i, name in enumerate(dict.fromkeys(node.input)) if name}
    inputs = [names.get(name, "") for name in node.input]
    alone = copy_node(node, inputs, [f"y{i}" for i, _ in enumerate(node.output)])
    alone.name = ""  # equal nodes are tried once
    kinds = {new: TensorType(types[name].elem_type) for name, new in names.items()}
    return _failure(_model(alone, opset, types=kinds)) != "NotImplemented"


def _model(
    node: NodeProto, opset: int, ir_version: int = FLOOR_IR, types: Mapping[str, TensorType] | None = None
) -> bytes:
    """Return a serialized model of one node."""
    types = types or {"x": TensorType(TensorProto.FLOAT)}
    inputs = [make_value_info(name, known) for name, known in types.items()]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    graph = helper.make_graph([node], "node", inputs, outputs)
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version).SerializeToString()


@lru_cache(maxsize=1024)
def _failure(content: bytes) -> str:
    """Return the class of the error of a session of a model, or an empty string."""
    try:
        ort = runtime()
    except MissingRuntimeError:
        return "MissingRuntimeError"
    options = ort.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    try:
        ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except runtime_failures() as error:
        return type(error).__name__
    return ""
