"""Gradients by onnxruntime-training's C++ builders, in float32 and float64."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, TypeVar

from onnx import ModelProto, NodeProto, TensorProto, load_from_string

from ..exceptions import GradientError, MissingRuntimeError
from ..graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    extract_model,
    graph_names,
    make_value_info,
    name_nodes,
    opset_versions,
    prune,
    value_types,
)
from ..graphs.editing import with_fields
from .ort_definitions import check_registered, register_rule
from .ort_graphs import (
    add_zero_gradients,
    explicit_permutations,
    names_with_gradient,
)
from .ort_limits import check_supported
from .ort_rewrites import rewrite_for_ort
from .ort_rewrites.gradient_path import gradient_nodes

Built = TypeVar("Built")

__all__ = [
    "build_module_graphs",
    "execution_state",
    "is_available",
    "loss_gradient",
    "module_config",
    "training_agent",
    "value_cache",
]

_NO_RULE = re.compile(r"gradient builder has not been registered: (\S+) for node (\S*)")
#: Error codes and positions in C++ sources, before the message.
_PLACE = re.compile(r"^.*(?:\] : \d+ : [A-Z_]+ : |/onnxruntime_src/.*?\) (?:const )?)")


def _pybind() -> ModuleType:
    try:
        from onnxruntime.capi import _pybind_state
    except ImportError as error:
        raise MissingRuntimeError(
            "No onnxruntime is installed. Install one of the extras: pip install 'ortlearn[training]' for "
            "onnxruntime-training (CPU), 'ortlearn[training-gpu]' for its CUDA build."
        ) from error
    if not hasattr(_pybind_state, "GradientGraphBuilder"):
        raise MissingRuntimeError(
            "The installed onnxruntime has no gradient builder. Install onnxruntime-training: "
            "pip install 'ortlearn[training]' (Python 3.10 to 3.12) in place of onnxruntime."
        )
    return _pybind_state


def is_available() -> bool:
    """Return whether the installed onnxruntime can build gradients."""
    try:
        _pybind()
    except MissingRuntimeError:
        return False
    return True


def loss_gradient(
    model: ModelProto, loss: str, weights: Sequence[str], keep_outputs: bool = False
) -> ModelProto:
    """Return the graph of a loss and of its gradient with respect to weights."""
    _pybind()
    given = model
    model = rewrite_for_ort(model, [loss], weights)
    check_supported(model, [loss], weights)
    kept = [value.name for value in model.graph.output] if keep_outputs else [loss]
    types = value_types(model)
    part = explicit_permutations(name_nodes(extract_model(model, kept)), types)
    reached = names_with_gradient(part, [loss], weights, types)
    gradient = _gradient_of_reached(part, loss, reached, types) if reached else part
    gradient = add_zero_gradients(gradient, [name for name in weights if name not in reached], types)
    declared = value_types(given, infer=False)
    outputs = [make_value_info(name, declared.get(name)) for name in kept]
    outputs += [make_value_info(f"{name}_grad", declared.get(name)) for name in weights]
    inputs = [value for value in given.graph.input if value.name not in _initializers(given)]
    return prune(name_nodes(with_fields(gradient, input=inputs, output=outputs)))


def _initializers(model: ModelProto) -> set[str]:
    return {tensor.name for tensor in model.graph.initializer}


def _gradient_of_reached(
    model: ModelProto, loss: str, weights: Sequence[str], types: dict[str, TensorType]
) -> ModelProto:
    pybind = _pybind()
    target, prepared = _float32_loss(model, loss, types)
    options = pybind.SessionOptions()
    options.log_severity_level = 3

    def build() -> ModelProto:
        builder = pybind.GradientGraphBuilder(
            prepared.SerializeToString(), {target}, set(weights), target, options
        )
        builder.build()
        return load_from_string(builder.get_model())

    return _with_built_in_rules(build, prepared, gradient_nodes(prepared, [target], weights, types), weights)


def _float32_loss(model: ModelProto, loss: str, types: dict[str, TensorType]) -> tuple[str, ModelProto]:
    """Return the graph with a float32 loss: the C++ builder starts every gradient with a float32 value."""
    if types[loss].elem_type == TensorProto.FLOAT:
        return loss, model
    op = GraphBuilder(opset_versions(model)[""], existing_names=graph_names(model.graph))
    target = op.Cast(loss, to=TensorProto.FLOAT)
    output = make_value_info(target, TensorType(TensorProto.FLOAT, types[loss].shape))
    return target, append_nodes(model, op, outputs=[output])


def module_config(weights: Sequence[str], input_gradients: Sequence[str] = ()) -> Any:
    """Return the configuration of a training graph."""
    pybind = _pybind()
    config = pybind.OrtModuleGraphBuilderConfiguration()
    config.loglevel = pybind.Severity.ERROR  # no warnings about tensors without a gradient
    config.initializer_names = list(weights)
    config.initializer_names_to_train = list(weights)
    config.input_names_require_grad = list(input_gradients)
    config.build_gradient_graph = True
    return config


def training_agent(session: Any, device: Any, n_forward: int, output_names: Sequence[str]) -> Any:
    """Return the agent that runs a training graph in two parts."""
    inputs = [value.name for value in session.get_inputs()]
    return _pybind().TrainingAgent(
        session._sess, inputs, [device] * n_forward, list(output_names), [device] * len(output_names), 0
    )


def execution_state() -> Any:
    """Return the state that a forward call passes to its backward call."""
    return _pybind().PartialGraphExecutionState()


def value_cache() -> Any:
    """Return an empty cache of tensors."""
    return _pybind().OrtValueCache()


def build_module_graphs(
    model: ModelProto, weights: Sequence[str], input_gradients: Sequence[str], config: Any = None
) -> tuple[ModelProto, ModelProto, Any]:
    """Return the training graph (forward, YieldOp, backward), the forward graph and their description."""
    pybind = _pybind()
    outputs = [value.name for value in model.graph.output]
    model = rewrite_for_ort(model, outputs, [*weights, *input_gradients])
    check_supported(model, outputs, [*weights, *input_gradients])
    types = value_types(model)
    model = explicit_permutations(name_nodes(model), types)
    if config is None:
        config = module_config(weights, input_gradients)

    def build() -> Any:
        builder = pybind.OrtModuleGraphBuilder()
        builder.initialize(model.SerializeToString(), config)
        builder.build(pybind.TrainingGraphTransformerConfiguration())
        return builder

    wrt = [*weights, *input_gradients]
    builder = _with_built_in_rules(build, model, gradient_nodes(model, outputs, wrt, types), wrt)
    training = name_nodes(load_from_string(builder.get_gradient_model()))
    forward = name_nodes(load_from_string(builder.get_forward_model()))
    return training, forward, builder.get_graph_info()


def _with_built_in_rules(
    build: Callable[[], Built], model: ModelProto, nodes: Sequence[NodeProto], wrt: Sequence[str]
) -> Built:
    """Build a gradient, and register a built-in rule whenever an operator has no gradient."""
    opset = opset_versions(model)[""]
    reached = set(wrt).union(*(node.output for node in nodes))
    while True:
        check_registered(nodes, opset, reached)
        try:
            return build()
        except (RuntimeError, IndexError, ValueError) as error:  # thrown by C++
            found = _NO_RULE.search(str(error))
            node = next((n for n in nodes if found and n.op_type == found[1]), None)
            if node is None or not register_rule(_pybind(), node, opset):
                raise _explained(error, model) from error


def _explained(error: Exception, model: ModelProto) -> GradientError:
    found = _NO_RULE.search(str(error))
    twice = [node for node in model.graph.node if len(set(node.input)) < len(node.input)]
    if found is None and twice and "Duplicate definition" in str(error):
        nodes = ", ".join(f"{node.op_type} (node {node.name!r})" for node in twice)
        return GradientError(
            f"onnxruntime-training cannot differentiate a tensor that only one node reads, twice: {nodes}. "
            "Use gradient='rules'."
        )
    if found is None:
        text = _PLACE.sub("", str(error).splitlines()[0])
        return GradientError(f"onnxruntime-training could not differentiate the graph: {text}")
    operator, name = found.groups()
    names = [name] if name else [node.name for node in model.graph.node if node.op_type == operator]
    return GradientError(
        f"Operator {operator} (node {', '.join(map(repr, names))}) has no gradient in onnxruntime-training. "
        "Leave the weights before it out of weights_to_train, or rewrite the model without it."
    )
