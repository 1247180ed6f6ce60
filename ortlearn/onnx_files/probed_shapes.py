"""Find unknown shapes, and the chosen branches of If operators, by running a model on random samples."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, TensorShapeProto, ValueInfoProto

from .. import graphs
from ..differentiation.random_feed import random_feed
from ..differentiation.types.inference import infer_types
from ..graphs.editing import renamed_node, with_fields
from ..graphs.nodes import needed_nodes
from ..graphs.view import GraphView
from .simplify import is_choice, with_chosen_branches

#: Runs a graph on arrays by the name of their inputs, and returns its first output.
Run = Callable[[ModelProto, dict[str, np.ndarray]], np.ndarray]
#: Values of the inputs in one run, in several, or random ones.
Feeds = Mapping[str, np.ndarray] | Sequence[Mapping[str, np.ndarray]] | str

RANDOM = "random"
PROBES = ((1, 4), (2, 6), (3, 9))  # number of samples, and size of other dynamic dimensions, in each run
SHAPE_OPERATORS = ("Shape", "Size")  # operators that read shapes only


def with_probed_shapes(model: ModelProto, run: Run, feeds: Feeds = RANDOM) -> ModelProto:
    """Return an equivalent model with known ranks of tensors, if runs on random samples succeed."""
    # A tensor of unknown rank is reshaped to its dimensions. Random samples have several sizes: dimensions
    # that are equal in all runs are fixed, and an If whose condition depends on shapes only, and is the same
    # in all runs, is replaced by its branch.
    probes = _Probes(run, model, feeds)
    if not all(map(_has_shape, model.graph.input)):
        if probes.given is None:
            return model  # random samples need the ranks of the inputs
        model = _with_input_ranks(model, probes.given)
    choices = [node.input[0] for node in model.graph.node if is_choice(node)]
    conditions = [name for name in choices if _depends_on_shapes(name, model)]
    if conditions and probes.given is None:
        found = probes.of(model, conditions, values=True)
        known = {n: bool(runs[0][0]) for n, runs in found.items() if len({*map(tuple, runs)}) == 1}
        model = with_chosen_branches(model, known)
    unknown = _unknown(model)
    if not unknown:
        return model
    shapes = probes.of(model, unknown)
    while unknown and unknown[0] in shapes:
        template = _template(shapes.pop(unknown[0]), probes.given is None)
        if template is not None:
            model = _reshaped(model, unknown[0], template)
        unknown = [name for name in _unknown(model) if name in shapes]
    return model


def _with_input_ranks(model: ModelProto, given: Sequence[Mapping[str, np.ndarray]]) -> ModelProto:
    """Return a model whose inputs without a declared shape have the ranks of given values."""
    model = graphs.copy_model(model)
    for value in model.graph.input:
        ranks = {np.ndim(feed[value.name]) for feed in given if value.name in feed}
        if len(ranks) == 1 and not _has_shape(value):
            value.type.tensor_type.shape.dim.extend(TensorShapeProto.Dimension() for _ in range(*ranks))
    return model


def _has_shape(value: ValueInfoProto) -> bool:
    return not value.type.HasField("tensor_type") or value.type.tensor_type.HasField("shape")


def _depends_on_shapes(name: str, model: ModelProto) -> bool:
    """Return whether a tensor depends on shapes only."""
    inputs = {value.name for value in model.graph.input}
    nodes = needed_nodes([node for node in model.graph.node if node.op_type not in SHAPE_OPERATORS], [name])
    is_random = any(node.op_type.startswith("Random") for node in nodes)
    return not is_random and inputs.isdisjoint({name}.union(*map(graphs.node_inputs, nodes)))


def _unknown(model: ModelProto) -> list[str]:
    """Return the tensors of unknown rank in graph order, except sequences."""
    inferred = infer_types(model)
    types, graph = graphs.value_types(inferred, infer=False), inferred.graph
    kinds = {v.name: v.type.WhichOneof("value") for v in (*graph.input, *graph.value_info, *graph.output)}
    names = [name for node in model.graph.node for name in node.output if name]
    tensors = [name for name in names if kinds.get(name) in (None, "tensor_type")]
    return [name for name in tensors if name not in types or types[name].shape is None]


class _Probes:
    """Runs of a model with given feeds, or with random samples."""

    def __init__(self, run: Run, model: ModelProto, feeds: Feeds):
        if isinstance(feeds, str) and feeds != RANDOM:
            raise ValueError(f"feeds={feeds!r} must be arrays by the names of inputs, {RANDOM!r} or None.")
        self.run, self.model = run, model
        self.given = (
            None if isinstance(feeds, str) else [feeds] if isinstance(feeds, Mapping) else list(feeds)
        )

    def of(
        self, model: ModelProto, names: Sequence[str], values: bool = False
    ) -> dict[str, list[np.ndarray]]:
        """Return the shapes of tensors, or their values as integers, in each run; empty if a run fails."""
        graph = _shape_graph(model, names, values)
        try:
            return self._results(graph, names)
        except Exception:  # the model may reject random samples; its own errors are raised in training
            if self.given is not None:
                raise
            return {}

    def _results(self, graph: ModelProto, names: Sequence[str]) -> dict[str, list[np.ndarray]]:
        feeds = self.given
        if feeds is None:
            feeds = [random_feed(self.model, *sizes, random_state=i) for i, sizes in enumerate(PROBES)]
        found: dict[str, list[np.ndarray]] = {name: [] for name in names}
        for feed in feeds:
            left = self.run(graph, dict(feed))
            for name in names:
                end = 1 + int(left[0])
                found[name].append(left[1:end])
                left = left[end:]
        return found


def _shape_graph(model: ModelProto, names: Sequence[str], values: bool) -> ModelProto:
    """Return a graph of the shapes of tensors, or of their values as integers, each after its length."""
    op = graphs.GraphBuilder(existing_names=graphs.graph_names(model.graph))
    parts = []
    for name in names:
        part = op.Reshape(op.Cast(name, to=TensorProto.INT64), [-1]) if values else op.Shape(name)
        parts.extend([op.Shape(part), part])
    result = op.Concat(*parts, axis=0)
    output = graphs.make_value_info(result, graphs.TensorType(TensorProto.INT64, (None,)))
    return graphs.extract_model(graphs.append_nodes(model, op, outputs=[output]), [result])


def _template(shapes: Sequence[np.ndarray], fixes: bool) -> list[int] | None:
    """Return the target of a Reshape: constant dimensions, and zeros for others; None if ranks differ."""
    if len({len(shape) for shape in shapes}) > 1:
        return None
    return [int(sizes[0]) if fixes and len({*sizes}) == 1 else 0 for sizes in zip(*shapes, strict=True)]


def _reshaped(model: ModelProto, name: str, template: Sequence[int]) -> ModelProto:
    """Return a model with a tensor reshaped."""
    graph = GraphView(model, types={})
    raw = graph.op.unique(f"{name}_of_unknown_rank")

    def rule(node: NodeProto) -> bool:
        if name in node.output:
            graph.op.nodes.append(renamed_node(node, {name: raw}))
            graph.op.Reshape(raw, list(template), outputs=[name])
        return name in node.output

    graph.rewrite(rule)
    return with_fields(graph.to_model(), value_info=())
