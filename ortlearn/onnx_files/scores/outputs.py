"""Find the outputs of labels and of probabilities, and the classes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto

from ...exceptions import ConversionError
from ...graphs import node_inputs
from ...graphs.nodes import needed_nodes
from ...models.parameters import Parameter
from ..weights import constant_tensors
from .links import raw_score
from .score_view import ScoreView


def computed_outputs(graph: GraphProto) -> list[str]:
    """Return the outputs that are neither constants nor inputs, all outputs if there are no others."""
    constants = constant_tensors(graph)
    passed = {value.name for value in graph.input} - constants
    for node in graph.node:
        if node.op_type == "Identity" and node_inputs(node) <= passed:
            passed.update(node.output)
    names = [value.name for value in graph.output]
    return [name for name in names if name not in passed | constants] or names


def chosen_outputs(model: ModelProto, name: str, learned: Collection[str]) -> list[str]:
    """Return an output of floats, and the outputs of labels that depend on the same learned weights."""
    computed = computed_outputs(model.graph)
    kinds = {value.name: value.type.tensor_type.elem_type for value in model.graph.output}
    floats = [other for other in computed if kinds[other] in (TensorProto.FLOAT, TensorProto.DOUBLE)]
    if name not in floats:
        raise ConversionError(
            f"output_name={name!r} is not a computed floating-point output: choose one of {floats}."
        )

    def weights_of(output: str) -> set[str]:
        nodes = needed_nodes(model.graph.node, [output])
        return set(learned) & set().union(*map(node_inputs, nodes))

    allowed = weights_of(name)
    return [name, *(other for other in computed if other not in floats and weights_of(other) <= allowed)]


def split_outputs(view: ScoreView) -> tuple[list[str], list[str]]:
    """Return the computed floating-point outputs, at least one, and the other outputs."""
    computed = view.chosen or computed_outputs(view.graph)
    floats = [name for name in computed if view.is_float(name)]
    if not floats:
        raise ConversionError(f"None of the outputs {view.outputs} is a floating-point tensor: export one.")
    return floats, [name for name in computed if name not in floats]


def probability_output(
    view: ScoreView, floats: Sequence[str], n_classes: int | None, weights: Mapping[str, Parameter]
) -> str:
    """Return the output of probabilities, or of scores."""
    # Columns that are separate outputs are replaced by their matrix. Outputs are excluded if their width is
    # not the number of classes, or if other outputs depend on them through learned weights.
    if len(floats) == 1:
        return floats[0]
    columns = [view.column_of(view.origin(name, ("Reshape", "Squeeze", "Flatten"))) for name in floats]
    matrices = [name if column is None else column[0] for name, column in zip(floats, columns, strict=True)]
    for index, matrix in enumerate(matrices):
        indices = {column[1] for column in columns if column is not None and column[0] == matrix}
        if indices != set(range(view.width(matrix) or 0)):
            matrices[index] = floats[index]
    known = list(dict.fromkeys(matrices))
    widths = {n_classes, 1 if n_classes == 2 else n_classes}
    fitting = [name for name in known if n_classes is None or view.width(name) in widths] or known
    learned = {name for name, weight in weights.items() if weight.learned}
    left = [name for name in fitting if _through_weights(view, name, learned).isdisjoint(fitting)]
    if len(left) > 1:
        left = [name for name in left if raw_score(view, name) is not None]
    if not left:
        raise ConversionError(
            f"The classifier has several floating-point outputs, {list(floats)}, and not exactly one is a "
            "sigmoid or a softmax: choose one by output_name."
        )
    return left[0]


def _through_weights(view: ScoreView, name: str, learned: set[str]) -> set[str]:
    """Return the tensors that depend on a tensor through learned weights."""
    after, weighted = {name}, set[str]()
    for node in view.nodes:
        read = node_inputs(node)
        if read & weighted or (read & after and read & learned):
            weighted.update(node.output)
        elif read & after:
            after.update(node.output)
    return weighted


def class_table(view: ScoreView, label: str) -> np.ndarray | None:
    """Return the classes of an output of labels, None without."""
    # Nodes before ArgMax are not searched, since they may compute the labels of members.
    nodes = [node for node in view.nodes if node.op_type not in ("ArgMax", "ArgMin")]
    for node in reversed(needed_nodes(nodes, [label])):
        if node.op_type in ("ArrayFeatureExtractor", "Gather"):
            table = view.constant(view.origin(node.input[0], ("Cast", "Reshape", "Unsqueeze")))
            if table is not None and table.dtype.kind != "f":
                texts = [c.decode() if isinstance(c, bytes) else c for c in np.ravel(table)]
                return np.asarray(texts) if table.dtype.kind == "O" else np.ravel(table)
    return None
