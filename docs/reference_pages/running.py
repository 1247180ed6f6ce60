"""Graphs of plugins, run by onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from onnx import ModelProto, helper

from ortlearn.graphs import GraphBuilder, TensorType, make_value_info
from ortlearn.runtime.devices import parse_device
from ortlearn.runtime.sessions import make_session

__all__ = ["run", "runner", "write_model"]


def write_model(
    write: Callable[[GraphBuilder], Mapping[str, str]],
    feeds: Mapping[str, np.ndarray],
    outputs: Mapping[str, tuple],
) -> ModelProto:
    """Return the graph of what a plugin writes.

    Parameters
    ----------
    write : callable
        Writes the nodes with a builder and returns tensors by the names of the outputs.
    feeds : mapping of str to ndarray
        Inputs; the first axis of a matrix or a vector is free where it has more than one row.
    outputs : mapping of str to tuple
        Shapes of the outputs, which are float32.

    Returns
    -------
    onnx.ModelProto
        Graph.
    """
    types = {
        name: TensorType(helper.np_dtype_to_tensor_dtype(array.dtype), _shape(array))
        for name, array in feeds.items()
    }
    op = GraphBuilder(dtype=np.float32, existing_names=[*types, *outputs], types=types)
    for name, tensor in write(op).items():
        op.node("Identity", tensor, outputs=[name])
    graph = helper.make_graph(
        op.nodes,
        "picture",
        [make_value_info(name, known) for name, known in types.items()],
        [make_value_info(name, TensorType(1, shape)) for name, shape in outputs.items()],
        op.initializers,
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in op.opsets.items()]
    opsets = opsets if "" in op.opsets else [*opsets, helper.make_opsetid("", op.opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _shape(array: np.ndarray) -> tuple:
    return ("N", *array.shape[1:]) if array.ndim and len(array) > 1 else array.shape


def runner(model: ModelProto) -> Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
    """Return a function from inputs to outputs by name, with a session of its own."""
    session = make_session(model, parse_device("cpu"))
    names = [output.name for output in session.get_outputs()]
    used = {value.name for value in session.get_inputs()}

    def call(feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        given = {name: array for name, array in feeds.items() if name in used}
        return dict(zip(names, session.run(names, given), strict=True))

    return call


def run(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Run a graph once."""
    return runner(model)(feeds)
