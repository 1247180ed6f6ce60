"""Elements of a picture of a graph: inputs, weights, operators, outputs, and arrows between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from onnx import ModelProto, helper

from .nodes import node_inputs

__all__ = ["Arrow", "Element", "graph_elements"]


@dataclass(frozen=True)
class Element:
    """Input, weight, operator or output in a picture; ``detail`` is its type and shape."""

    key: str
    kind: str
    name: str
    detail: str = ""


class Arrow(NamedTuple):
    """Arrow between two elements, with the name of the tensor if both are operators."""

    source: str
    target: str
    name: str = ""


def graph_elements(model: ModelProto) -> tuple[list[Element], list[Arrow]]:
    """Return the elements of a picture of a graph."""
    graph = model.graph
    elements = [
        *(Element(f"tensor_{i}", "input", value.name, _type(value)) for i, value in enumerate(graph.input)),
        *(
            Element(f"tensor_{len(graph.input) + i}", "weight", tensor.name, _shape(tensor))
            for i, tensor in enumerate(graph.initializer)
        ),
    ]
    known = {element.name: element.key for element in elements}
    arrows = []
    for index, node in enumerate(graph.node):
        key = f"node_{index}"
        elements.append(Element(key, "operator", f"{node.domain}.{node.op_type}".lstrip(".")))
        for name in sorted(node_inputs(node) & known.keys(), key=lambda name: known[name]):
            arrows.append(Arrow(known[name], key, name if known[name].startswith("node_") else ""))
        known.update({name: key for name in node.output if name})
    for index, value in enumerate(graph.output):
        elements.append(Element(f"output_{index}", "output", value.name, _type(value)))
        if value.name in known:
            arrows.append(Arrow(known[value.name], f"output_{index}"))
    return elements, arrows


def _type(value: Any) -> str:
    tensor = value.type.tensor_type
    if not tensor.elem_type:
        return ""
    dims = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in tensor.shape.dim]
    return f"{helper.tensor_dtype_to_np_dtype(tensor.elem_type)}[{', '.join(dims)}]"


def _shape(tensor: Any) -> str:
    return f"[{'x'.join(map(str, tensor.dims)) or 'scalar'}]"
