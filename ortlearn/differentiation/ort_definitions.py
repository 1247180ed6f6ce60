"""Built-in rules as definitions for onnxruntime-training's C++ builder.

A definition is a fixed list of nodes, registered once per operator and process for a fixed number of inputs,
without access to attributes and shapes: rules that read these are not registered.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable
from typing import Any

from onnx import AttributeProto, NodeProto, TensorProto, helper, numpy_helper

from ..exceptions import GradientError
from ..graphs import TensorType, subgraphs
from .gradient_builder import GradientBuilder
from .registry import Rule, load_rules
from .rule_context import RuleNode

__all__ = ["check_registered", "fixed_nodes", "register_rule"]

#: Definitions registered in this process, by domain and operator; they cannot be removed.
_DEFINITIONS: dict[tuple[str, str], list[bytes]] = {}


class _NotFixed(Exception):
    """A rule whose nodes depend on the node that it differentiates."""


class _Probe(RuleNode):
    """A node whose attributes and shapes a rule must not read."""

    def attribute(self, name: str, default: Any = None) -> Any:
        raise _NotFixed(name)

    def constant(self, name: str) -> None:
        raise _NotFixed(name)

    def rank(self, name: str) -> int:
        raise _NotFixed(name)

    def shape(self, name: str):
        raise _NotFixed(name)

    def needs(self, index: int) -> bool:
        return True


def fixed_nodes(
    op_type: str, domain: str, n_inputs: int, n_outputs: int, opset: int
) -> tuple[list[NodeProto], list[TensorProto]] | None:
    """Return the nodes and constants of a rule, or None if they depend on the node."""
    rule = load_rules().find(domain, op_type)
    if not isinstance(rule, Rule):
        return None
    inputs = [f"I({index})" for index in range(n_inputs)]
    outputs = [f"O({index})" for index in range(n_outputs)]
    floats = {name: TensorType(TensorProto.FLOAT) for name in (*inputs, *outputs)}
    grads = {name: f"G{name}" for name in outputs}
    types = {**floats, **{name: TensorType(TensorProto.FLOAT) for name in grads.values()}}
    op = GradientBuilder(opset, types=types, existing_names=types)
    proto = helper.make_node(op_type, inputs, outputs, name="probe", domain=domain)
    try:
        results = _run(rule, op, _Probe(proto, op, grads, set(inputs)))
    except Exception:  # rules that read more than tensors may raise any error
        return None
    if any(len(node.output) > 1 or any(True for _ in subgraphs(node)) for node in op.nodes):
        # The builder may omit outputs of a node after the first, and does not support subgraphs.
        return None
    return _named(op.nodes, results), list(op.initializers)


def _run(rule: Rule, op: GradientBuilder, node: _Probe) -> list[str | None]:
    results = rule.function(op, node, node.GO(0))
    results = [results] if results is None or isinstance(results, str) else list(results)
    if len(results) != node.n_inputs or node.replacement is not None:
        raise _NotFixed(node.op_type)
    if rule.broadcast:
        results = [
            None if grad is None else op.unbroadcast(grad, node.I(index))
            for index, grad in enumerate(results)
        ]
    return results


def _named(nodes: list[NodeProto], results: list[str | None]) -> list[NodeProto]:
    named = list(nodes)
    for index, grad in enumerate(results):
        if grad is not None:
            named.append(helper.make_node("Identity", [grad], [f"GI({index})"]))
    return named


def register_rule(pybind: Any, node: NodeProto, opset: int) -> bool:
    """Register the rule of an operator with the C++ builder, and return False if this is impossible."""
    key = (node.domain, node.op_type)
    found = None if key in _DEFINITIONS else _fixed_nodes_of(node, opset)
    if found is None:
        return False
    nodes, constants = found
    if opset < 15 and any(t.data_type == TensorProto.FLOAT for t in constants):
        return False  # CastLike, which converts constants to the graph's type, requires opset 15
    definitions = [item for tensor in constants for item in _constant(pybind, tensor)]
    definitions += [_definition(pybind, item) for item in nodes]
    pybind.register_gradient_definition(f"{node.domain}::{node.op_type}", definitions)
    _DEFINITIONS[key] = _key(found)
    return True


def _fixed_nodes_of(node: NodeProto, opset: int):
    return fixed_nodes(node.op_type, node.domain, len(node.input), len(node.output), opset)


def _key(found: tuple[list[NodeProto], list[TensorProto]]) -> list[bytes]:
    return [item.SerializeToString(deterministic=True) for part in found for item in part]


def check_registered(nodes: Iterable[NodeProto], opset: int, reached: Container[str]) -> None:
    """Raise an error if a definition registered in this process does not fit a node."""
    for node in nodes:
        known = _DEFINITIONS.get((node.domain, node.op_type))
        if known is None:
            continue
        found = _fixed_nodes_of(node, opset)
        if found is None or _key(found) != known:
            raise GradientError(
                f"onnxruntime-training keeps one gradient of {node.op_type} per process, and that of this "
                f"process does not fit node {node.name!r} with {len(node.input)} inputs. Use "
                "gradient='rules', or a new process."
            )
        if node.input[0] not in reached:
            # it checks the first input to decide whether a node of the definition is needed
            raise GradientError(
                f"onnxruntime-training uses the built-in rule of {node.op_type} only if the gradient of the "
                f"first input is needed, unlike for node {node.name!r}. Use gradient='rules'."
            )


def _definition(pybind: Any, node: NodeProto) -> Any:
    if node.op_type == "Cast" and helper.get_node_attr_value(node, "to") == TensorProto.FLOAT:
        # The probe is float32; the graph may be float64.
        return _cast_like_input(pybind, node.input[0], node.output[0])
    definition = pybind.GradientNodeDefinition()
    definition.op_type, definition.domain = node.op_type, node.domain
    definition.inputs, definition.outputs = list(node.input), list(node.output)
    definition.attributes = [_attribute(pybind, attribute) for attribute in node.attribute]
    return definition


def _attribute(pybind: Any, attribute: AttributeProto) -> Any:
    value = helper.get_attribute_value(attribute)
    if isinstance(value, TensorProto):
        return _attribute_of(pybind, attribute.name, *_tensor(value), is_tensor=True)
    kinds = {AttributeProto.FLOAT: "float", AttributeProto.FLOATS: "float", AttributeProto.STRING: "string"}
    if isinstance(value, bytes):
        value = value.decode()
    value = list(value) if hasattr(value, "extend") else value
    return _attribute_of(pybind, attribute.name, value, kinds.get(attribute.type, "int"), is_tensor=False)


def _constant(pybind: Any, tensor: TensorProto) -> list[Any]:
    """Return a constant, of the type of the operator's input if it is a float."""
    definition = pybind.GradientNodeDefinition()
    definition.op_type, definition.domain = "Constant", ""
    value, dtype = _tensor(tensor)
    name = f"{tensor.name}_float32" if dtype == "float" else tensor.name
    definition.inputs, definition.outputs = [], [name]
    definition.attributes = [_attribute_of(pybind, "value", value, dtype, is_tensor=True)]
    if dtype != "float":
        return [definition]
    # The builder has no float64 constants.
    return [definition, _cast_like_input(pybind, name, tensor.name)]


def _cast_like_input(pybind: Any, name: str, output: str) -> Any:
    definition = pybind.GradientNodeDefinition()
    definition.op_type, definition.domain = "CastLike", ""
    definition.inputs, definition.outputs = [name, "I(0)"], [output]
    return definition


def _tensor(tensor: TensorProto) -> tuple[Any, str]:
    array = numpy_helper.to_array(tensor)
    dtype = {"f": "float", "i": "int", "b": "bool"}[array.dtype.kind]
    return array.tolist(), dtype


def _attribute_of(pybind: Any, name: str, value: Any, dtype: str, is_tensor: bool) -> Any:
    definition = pybind.GradientNodeAttributeDefinition()
    definition.name, definition.value_json = name, json.dumps(value)
    definition.dtype, definition.is_tensor = dtype, is_tensor
    return definition
