"""Outcomes of gradients by the C++ builder, in processes that may be killed."""

from __future__ import annotations

import mmap
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from ortlearn.differentiation import DerivativeOptions, gradient_of_loss, onnx_derivative
from ortlearn.exceptions import GradientError
from ortlearn.graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    copy_model,
    graph_names,
    make_value_info,
    opset_versions,
    value_types,
)
from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session
from ortlearn.training.steps.forward_backward import OrtGradientForwardBackward
from tests.differentiation.evaluation import run_onnxruntime

__all__ = ["USES", "Case", "Outcome", "in_children", "outcome_of"]

#: Tolerance relative to the largest element of a gradient, by its type.
TOLERANCE = {"float32": 2e-3, "float64": 1e-9}
#: Seconds after which a case counts as killed.
LIMIT = 10
FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)
#: Whether the C++ builder runs, written by the process that may be killed.
_AT_WORK = mmap.mmap(-1, 1)


class Case(NamedTuple):
    """A model with inputs, the inputs to differentiate, and whether the built-in rules are compared."""

    model: ModelProto
    feeds: dict[str, np.ndarray]
    wrt: list[str]
    compared: bool = True


class Outcome(NamedTuple):
    """Outcome of a case (right, refused, wrong, failed, skipped or killed) and details."""

    kind: str
    details: str = ""


def in_children(names: Sequence[str], outcome: Callable[[str], Outcome]) -> Iterator[tuple[str, Outcome]]:
    """Yield the outcome of each name, computed in a process that is replaced whenever it is killed."""
    position = 0
    while position < len(names):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _work(names[position:], outcome, writing)
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as lines:
            for line in lines:
                kind, _, details = line.rstrip("\n").partition("\t")
                yield names[position], Outcome(kind, details)
                position += 1
        status = os.waitpid(child, 0)[1]
        if position < len(names):
            killer = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status}"
            yield names[position], Outcome("killed" if _AT_WORK[0] else "skipped", killer)
            position += 1


def _work(names: Sequence[str], outcome: Callable[[str], Outcome], writing: int) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    for name in names:
        signal.alarm(LIMIT)
        try:
            kind, details = outcome(name)
        except BaseException as error:
            kind, details = "failed", f"{type(error).__name__}: {error}"
        os.write(writing, f"{kind}\t{' '.join(details.split())[:400]}\n".encode())
    os._exit(0)


def outcome_of(case: Case, use: str) -> Outcome:
    """Return the outcome of a use of the C++ builder, compared with the built-in rules.

    Models that onnxruntime does not run, or that terminate the process without a gradient, are skipped.
    """
    _AT_WORK[0] = 0
    expected = None
    try:
        run_onnxruntime(case.model, case.feeds)
        expected = USES[use](case, "rules") if case.compared else None
    except GradientError:
        pass  # no comparison, but the process must survive
    except Exception as error:
        return Outcome("skipped", f"{type(error).__name__}: {error}")
    _AT_WORK[0] = 1
    try:
        found = USES[use](case, "ort")
    except GradientError as error:
        return Outcome("refused", str(error))
    return Outcome("right", "not compared") if expected is None else _compared(found, expected)


def _compared(found: list[np.ndarray], expected: list[np.ndarray]) -> Outcome:
    for got, right in zip(found, expected, strict=True):
        if got.shape != right.shape:
            return Outcome("wrong", f"shape {got.shape} instead of {right.shape}")
        finite = right[np.isfinite(right)]
        scale = max(1.0, np.abs(finite).max()) if finite.size else 1.0
        rtol = TOLERANCE[right.dtype.name]
        if not np.allclose(got, right, rtol=rtol, atol=rtol * scale, equal_nan=True):
            return Outcome("wrong", f"{got.ravel()[:6]} instead of {right.ravel()[:6]}")
    return Outcome("right")


def _session(model: ModelProto, backend: str, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    names = {value.name for value in model.graph.input}
    feeds = {name: value for name, value in feeds.items() if name in names}
    if backend == "rules":
        return run_onnxruntime(model, feeds)
    return make_session(model, Device("cpu")).run(None, feeds)


def _loss(case: Case, backend: str) -> list[np.ndarray]:
    """Gradient of a loss that depends on every output, in an InferenceSession."""
    return _session(gradient_of_loss(_with_loss(case.model), "loss", case.wrt, backend), backend, case.feeds)


def _derivative(case: Case, backend: str) -> list[np.ndarray]:
    """Gradient of the outputs by onnx_derivative, in an InferenceSession."""
    options = DerivativeOptions.KeepOutputs | DerivativeOptions.FillGrad
    model = onnx_derivative(_floats_only(case.model), [], case.wrt, options, backend=backend)
    return _session(model, backend, case.feeds)


def _agent(case: Case, backend: str) -> list[np.ndarray]:
    """Forward and backward graphs of the estimators, with a factor for every input."""
    return _forward_backward(*_with_factors(case), case.feeds, backend)


def _forward_backward(model: ModelProto, weights: list[str], feeds: dict, backend: str) -> list[np.ndarray]:
    inputs = [value.name for value in model.graph.input]
    values = {
        tensor.name: feeds.get(tensor.name, np.array(1.5, helper.tensor_dtype_to_np_dtype(tensor.data_type)))
        for tensor in model.graph.initializer
    }
    function = OrtGradientForwardBackward(model, weights, gradient=backend).new_instance()
    tensors = [*(feeds[name] for name in inputs), *(np.asarray(values[name]) for name in weights)]
    outputs = [value.numpy() for value in function.forward(tensors, training=True)]
    gradients = function.backward(
        [np.cos(np.arange(y.size)).reshape(y.shape).astype(y.dtype) for y in outputs]
    )
    return [*outputs, *(gradient.numpy() for gradient in gradients)]


def _loop(case: Case, backend: str) -> list[np.ndarray]:
    """Gradient of a loss in a Loop of one iteration, whose body declares no shapes, as in an epoch."""
    model = gradient_of_loss(_with_loss(case.model), "loss", case.wrt, backend)
    if backend == "rules":
        return _session(model, backend, case.feeds)
    names, graph = [value.name for value in model.graph.output], model.graph
    infos = [helper.make_tensor_value_info(n, TensorProto.BOOL, []) for n in ("go_on", "going_on")]
    turn = helper.make_tensor_value_info("turn", TensorProto.INT64, [])
    outputs = [
        helper.make_tensor_value_info(v.name, v.type.tensor_type.elem_type, None) for v in graph.output
    ]
    nodes = [helper.make_node("Identity", ["go_on"], ["going_on"]), *graph.node]
    body = helper.make_graph(nodes, "body", [turn, infos[0]], [infos[1], *outputs], graph.initializer)
    once = helper.make_tensor("once", TensorProto.INT64, [], [1])
    axis = helper.make_tensor("first", TensorProto.INT64, [1], [0])
    loop = helper.make_node("Loop", ["once", ""], [f"all_{name}" for name in names], body=body)
    last = [helper.make_node("Squeeze", [f"all_{name}", "first"], [f"one_{name}"]) for name in names]
    for value in outputs:
        value.name = f"one_{value.name}"
    whole = helper.make_graph([loop, *last], "loop", graph.input, outputs, [once, axis])
    model = helper.make_model(whole, opset_imports=model.opset_import, ir_version=model.ir_version)
    return _session(model, backend, case.feeds)


#: Uses of the C++ builder.
USES = {"loss": _loss, "derivative": _derivative, "loop": _loop, "agent": _agent}


def _floats_only(model: ModelProto) -> ModelProto:
    """Return the model without outputs that have no gradient."""
    types, model = value_types(model), copy_model(model)
    for value in list(model.graph.output):
        if types[value.name].elem_type not in FLOATS:
            model.graph.output.remove(value)
    return model


def _with_loss(model: ModelProto) -> ModelProto:
    op = GraphBuilder(opset_versions(model)[""], existing_names=graph_names(model.graph))
    values = _floats_only(model).graph.output
    types = value_types(model)
    terms = [op.Tanh(value.name) for value in values]
    terms = [
        term if types[value.name].shape == () else op.ReduceSum(term, keepdims=0)
        for term, value in zip(terms, values, strict=True)
    ]
    loss = terms[0]
    for term in terms[1:]:
        loss = op.Add(loss, term)
    op.Identity(loss, outputs=["loss"])
    kind = values[0].type.tensor_type.elem_type
    return append_nodes(model, op, outputs=[make_value_info("loss", TensorType(kind, ()))])


def _with_factors(case: Case) -> tuple[ModelProto, list[str]]:
    """Return the model with a scalar weight that multiplies each input."""
    model = _floats_only(case.model)
    weights = [f"w{index:02d}" for index in range(len(case.wrt))]
    scaled = {name: f"scaled_{name}" for name in case.wrt}
    nodes = [
        helper.make_node("Mul", [name, weight], [scaled[name]])
        for name, weight in zip(case.wrt, weights, strict=True)
    ]
    for node in model.graph.node:
        copied = NodeProto.FromString(node.SerializeToString())
        copied.input[:] = [scaled.get(name, name) for name in node.input]
        nodes.append(copied)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    for name, weight in zip(case.wrt, weights, strict=True):
        kind = helper.np_dtype_to_tensor_dtype(case.feeds[name].dtype)
        model.graph.initializer.append(helper.make_tensor(weight, kind, [], [1.0]))
    return model, weights
