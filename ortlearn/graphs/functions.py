"""Functions that a model defines."""

from __future__ import annotations

from onnx import FunctionProto, GraphProto, ModelProto, defs, inliner

from .editing import copy_model
from .nodes import all_nodes
from .queries import opset_versions

__all__ = ["called_functions", "inline_functions"]


def inline_functions(model: ModelProto) -> ModelProto:
    """Return the model with calls of its functions replaced by their bodies.

    A function with the domain and the name of a standard operator is ignored: ONNX does not define which
    of the two a node means, and onnxruntime computes the operator.
    """
    if not model.functions:
        return model
    kept = _own_functions(model)
    result = copy_model(model)
    del result.functions[:]
    result.functions.extend(kept)
    _write_defaults(result)
    return inliner.inline_local_functions(result)


def _write_defaults(model: ModelProto) -> None:
    """Add default attributes of functions to the nodes that call them, because the inliner ignores them."""
    functions = {_key(function): function for function in model.functions}
    for part in (model.graph, *model.functions):
        for node in all_nodes(part):
            function = functions.get((node.domain, node.op_type, node.overload))
            if function is not None:
                given = {item.name for item in node.attribute}
                node.attribute.extend(item for item in function.attribute_proto if item.name not in given)


def called_functions(model: ModelProto) -> list[FunctionProto]:
    """Return the functions that the nodes of a model call, in order; functions must not be recursive."""
    own = {_key(function): function for function in _own_functions(model)}
    found: set[tuple[str, str, str]] = set()
    left: list[GraphProto | FunctionProto] = [model.graph]
    for part in left:
        keys = {(node.domain, node.op_type, node.overload) for node in all_nodes(part)}
        new = keys.intersection(own) - found
        found |= new
        left += [own[key] for key in new]
    return [function for key, function in own.items() if key in found]


def _key(function: FunctionProto) -> tuple[str, str, str]:
    """Return the domain, name and overload of a function."""
    return function.domain, function.name, function.overload


def _own_functions(model: ModelProto) -> list[FunctionProto]:
    versions = opset_versions(model)
    return [
        function for function in model.functions if not _is_standard(function.domain, function.name, versions)
    ]


def _is_standard(domain: str, name: str, versions: dict[str, int]) -> bool:
    domain = "" if domain == "ai.onnx" else domain
    return domain in versions and defs.has(name, max_inclusive_version=versions[domain], domain=domain)
