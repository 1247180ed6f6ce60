"""Engines for forward and backward as two calls."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from onnx import ModelProto

from ...differentiation import STRAIGHT_THROUGH, build_gradient
from ...differentiation.backends import gradient_of_outputs
from ...differentiation.split import split_gradient_model
from ...graphs import make_inputs_of
from ...graphs.nodes import all_nodes
from ...runtime.calls import BoundCall, saved_tensors
from ...runtime.devices import Device, ort_device
from ...runtime.sessions import make_session, session_options

if TYPE_CHECKING:
    from ...differentiation.cpp_builder import Agent

__all__ = ["Engine", "SplitEngine", "make_engine"]

#: Operators whose output shapes depend on values.
DYNAMIC_SHAPE_OPERATORS = {"Compress", "Loop", "NonMaxSuppression", "NonZero", "Unique"}


class SplitEngine:
    """Forward and backward as two graphs, from ortlearn's gradient rules; runs on any onnxruntime.

    Saved tensors are outputs of the first graph and inputs of the second. If a caller passes the same vectors
    again, these tensors are reused, unless their shapes depend on values: binding them takes ten times as
    long as a pair of calls of a small graph.
    """

    #: Number of vectors, and of pairs of vectors of backward, whose bound calls are kept.
    MAX_KEPT = 32

    def __init__(
        self,
        model: ModelProto,
        inputs: list[str],
        weights: list[str],
        wrt: list[str],
        device: Device,
        arguments: dict[str, Any],
        straight_through: bool = False,
    ):
        self.output_names = [value.name for value in model.graph.output]
        graph = make_inputs_of(model, weights)
        forward, backward, _ = split_gradient_model(
            graph, [*wrt, *weights], straight_through=straight_through
        )
        self.models = {"training": forward, "forward": graph, "backward": backward}
        # First the graph with the fewest external initializers: their values stay in the shared options, and
        # newer versions of onnxruntime reject values of others.
        self.backward_session = make_session(backward, device, **arguments)
        self.session = make_session(forward, device, **arguments)
        self.forward_session = make_session(graph, device, **arguments)
        self.feed_names = [*inputs, *weights]
        self.gradient_names = [value.name for value in backward.graph.output]
        self.has_dynamic_shapes = any(
            node.op_type in DYNAMIC_SHAPE_OPERATORS for node in all_nodes(forward.graph)
        )
        self.device = device
        known = {*self.feed_names, *(value.name for value in forward.graph.output)}
        others = [value.name for value in backward.graph.input if value.name not in known]
        self.gradients = {name: self._gradient_position(name) for name in others}
        self._kept_pair = lru_cache(self.MAX_KEPT)(partial(_Pair, self))
        self._kept_backward = lru_cache(self.MAX_KEPT)(lambda *given: _Pair.backward(*given).function)

    def _gradient_position(self, name: str) -> int:
        for index, output in enumerate(self.output_names):
            rest = name.removeprefix(output)
            if rest != name and rest and not rest.replace("_grad", ""):
                return index
        raise AssertionError(name)

    def forward(self, feeds: Any, outputs: Any) -> _Pair:
        """Compute the outputs and return the state for ``backward``."""
        pair = self._kept_pair(feeds, outputs) if len(outputs) else _Pair(self, feeds, outputs)
        if pair.waits:
            pair = _Pair(self, feeds, outputs)
        pair.run()
        pair.waits = True
        if not len(outputs):
            for name in self.output_names:
                outputs.push_back(pair.values[name])
        return pair

    def backward(self, gradients: Any, results: Any, pair: _Pair) -> None:
        """Compute the gradients of weights and inputs from those of the outputs."""
        if pair.is_static and len(results):
            self._kept_backward(pair, gradients, results)()
        else:
            call = pair.backward(gradients, results)
            call()
            for value in call.new_outputs().values():
                results.push_back(value)
        pair.waits = False


class _Pair:
    """Forward and backward over one dictionary of tensors; the caller computes the loss between them."""

    def __init__(self, engine: SplitEngine, feeds: Any, outputs: Any):
        self._engine = engine
        self.waits = False  # for backward, which still needs the saved tensors
        self.is_static = len(outputs) > 0 and not engine.has_dynamic_shapes
        self.values = _named(engine.feed_names, feeds) | _named(engine.output_names, outputs)
        if self.is_static:
            self.values |= saved_tensors(engine.session, self.values, engine.device)
        self._call = BoundCall(engine.session, self.values, device=engine.device)
        #: Computes the outputs, and the tensors that backward reads.
        self.run = self._call.function if self.is_static else self._run

    def _run(self) -> None:
        self._call()
        self.values |= self._call.new_outputs()

    def backward(self, gradients: Any, results: Any) -> BoundCall:
        """Return the call of backward on vectors of gradients."""
        engine, values = self._engine, self.values
        values = values | {name: gradients[index] for name, index in engine.gradients.items()}
        targets = _named(engine.gradient_names, results)
        return BoundCall(engine.backward_session, values, targets, engine.device)


def _named(names: list[str], vector: Any) -> dict[str, Any]:
    """Return the tensors of a vector by name, if it has any; its iterator takes 40 us to end."""
    return {name: vector[index] for index, name in enumerate(names[: len(vector)])}


Engine: TypeAlias = "Agent | SplitEngine"


def make_engine(
    gradient: str,
    model: ModelProto,
    inputs: list[str],
    weights: list[str],
    wrt: list[str],
    device: Device,
    arguments: dict[str, Any],
) -> Engine:
    """Return the engine of a gradient backend."""

    def split() -> Engine:
        return SplitEngine(model, inputs, weights, wrt, device, arguments, gradient == STRAIGHT_THROUGH)

    def agent() -> Engine:
        from ...differentiation.cpp_builder import Agent

        graph = make_inputs_of(model, weights)
        found = gradient_of_outputs(graph, [*wrt, *weights], gradient, keep_outputs=True)
        return Agent(graph, found, [*inputs, *weights], open_session, ort_device(device))

    def open_session(graph: ModelProto, reuse_memory: bool = True) -> Any:
        options = arguments.get("options") or session_options()
        kept = options.enable_mem_reuse, options.enable_mem_pattern
        if not reuse_memory:
            options.enable_mem_reuse = options.enable_mem_pattern = False
        try:
            return make_session(graph, device, **{**arguments, "options": options})
        finally:
            options.enable_mem_reuse, options.enable_mem_pattern = kept

    return build_gradient(gradient, split, agent)
