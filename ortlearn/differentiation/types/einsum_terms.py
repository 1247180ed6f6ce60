"""Equations of Einsum: labels and broadcast operands."""

from __future__ import annotations

import string
from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, helper, numpy_helper

from ...graphs.nodes import attribute
from .dimensions import Shape

__all__ = ["operand_labels", "squeeze_operands"]


def operand_labels(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return the labels of every operand and of the result, with an ellipsis replaced by labels."""
    equation = equation.replace(" ", "")
    left, arrow, output = equation.partition("->")
    terms = left.split(",")
    free = [label for label in string.ascii_letters if label not in equation]
    counts = [
        rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True) if "..." in term
    ]
    hidden = "".join(free[: max(counts, default=0)])
    if not arrow:
        labels = "".join(terms).replace("...", "")
        output = "..." + "".join(sorted(label for label in set(labels) if labels.count(label) == 1))
    spelled = [
        term.replace("...", hidden[len(hidden) - (rank - len(term) + 3) :])
        for term, rank in zip(terms, ranks, strict=True)
    ]
    return spelled, output.replace("...", hidden)


def squeeze_operands(node: NodeProto, shapes: Sequence[Shape | None]) -> list[NodeProto]:
    """Return nodes of an equal Einsum without broadcast axes of length one; no nodes without such axes.

    onnx infers the length of the first operand for such an axis, even if it is one, and requires that an
    ellipsis represents the same number of axes in each operand, which onnxruntime does not.
    """
    if any(shape is None for shape in shapes):
        return []
    known = [shape for shape in shapes if shape is not None]
    equation = attribute(node, "equation").decode()
    terms, output = operand_labels(equation, [len(shape) for shape in known])
    pairs = [(term, shape) for term, shape in zip(terms, known, strict=True) if len(term) == len(shape)]
    longer = {label for term, shape in pairs for label, dim in zip(term, shape, strict=True) if dim != 1}
    nodes, inputs, kept = [], list(node.input), list(terms)
    for index, (term, shape) in enumerate(pairs):
        axes = [i for i, dim in enumerate(shape) if dim == 1 and term[i] in longer]
        if axes:
            name = f"{node.output[0]}_operand{index}"
            tensor = numpy_helper.from_array(np.array(axes, np.int64))
            nodes.append(helper.make_node("Constant", [], [f"{name}_axes"], value=tensor))
            nodes.append(helper.make_node("Squeeze", [inputs[index], f"{name}_axes"], [name]))
            inputs[index] = name
            kept[index] = "".join(label for i, label in enumerate(term) if i not in axes)
    hidden = {
        len(term) - len(raw)
        for term, raw in zip(terms, equation.replace(" ", "").split("->")[0].split(","), strict=True)
        if "..." in raw
    }
    if not nodes and len(hidden) < 2:
        return []
    text = ",".join(kept) + "->" + output
    return [*nodes, helper.make_node("Einsum", inputs, node.output, name=node.name, equation=text)]
