"""Choose the output to train where a file has several: columns, intermediate values, inputs passed on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import GraphProto

from ...exceptions import ConversionError
from ...graphs import node_inputs
from ...models.weight import Weight
from .graph_end import GraphEnd
from .links import raw_score

__all__ = ["computed_outputs", "probability_output"]


def computed_outputs(graph: GraphProto) -> list[str]:
    """Return the outputs of a graph that are neither constants nor inputs passed on; all where none is.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.onnx_files.scores.several_outputs import computed_outputs
    >>> computed_outputs(parser.parse_graph('''g (float[N] x, int64[N] id) => (float[N] y, int64[N] same)
    ...     { y = Neg (x) same = Identity (id) }'''))
    ['y']
    """
    constants = {tensor.name for tensor in graph.initializer}
    passed = {value.name for value in graph.input} - constants
    for node in graph.node:
        read = node_inputs(node)
        if read <= constants:
            constants.update(node.output)
        elif node.op_type == "Identity" and read <= passed:
            passed.update(node.output)
    names = [value.name for value in graph.output]
    return [name for name in names if name not in passed | constants] or names


def _last_outputs(end: GraphEnd, names: Sequence[str], weights: Mapping[str, Weight]) -> list[str]:
    """Return outputs without those that other ones are computed from through learned weights."""
    learned = {name for name, weight in weights.items() if weight.learned}
    later = {name: _through_weights(end, name, learned) for name in names}
    return [name for name in names if not any(later[name] & {other} for other in names)]


def _through_weights(end: GraphEnd, name: str, learned: set[str]) -> set[str]:
    """Return the tensors that are computed from a tensor through learned weights."""
    after, weighted = {name}, set[str]()
    for node in end.nodes:
        read = node_inputs(node)
        if read & weighted or (read & after and read & learned):
            weighted.update(node.output)
        elif read & after:
            after.update(node.output)
    return weighted


def probability_output(
    end: GraphEnd, floats: Sequence[str], n_classes: int | None, weights: Mapping[str, Weight]
) -> str:
    """Return the matrix of probabilities, or else of scores, of a classifier with several outputs of numbers.

    Raises
    ------
    ConversionError
        If several may be it.
    """
    known = list(dict.fromkeys(_matrix_of_columns(end, name, floats) or name for name in floats))
    widths = {n_classes, 1 if n_classes == 2 else n_classes}
    fitting = [name for name in known if n_classes is None or end.width(name) in widths] or known
    left = _last_outputs(end, fitting, weights)
    if len(left) > 1:
        left = [name for name in left if raw_score(end, name) is not None][:1]
    if not left:
        raise ConversionError(
            f"The classifier has several floating-point outputs, {list(floats)}, and none is a sigmoid or a "
            "softmax: keep one output of probabilities or scores besides the labels."
        )
    return left[0]


def _matrix_of_columns(end: GraphEnd, name: str, floats: Sequence[str]) -> str | None:
    """Return the matrix whose columns some outputs are; None for an output that is no such column."""
    column = _column(end, name)
    if column is None:
        return None
    matrix, width = column[0], end.width(column[0])
    given = {found[1] for found in (_column(end, other) for other in floats) if found and found[0] == matrix}
    return matrix if width is not None and given == set(range(width)) else None


def _column(end: GraphEnd, name: str) -> tuple[str, int] | None:
    node = end.producer(end.before(name, ("Reshape", "Squeeze", "Flatten")))
    return None if node is None else end.column_of(node)
