"""Engines for forward and backward as two calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from onnx import ModelProto

from ...differentiation import STRAIGHT_THROUGH, build_gradient
from ...differentiation.backends import gradient_of_outputs
from ...differentiation.split import split_gradient_model
from ...graphs import make_inputs_of
from ...graphs.nodes import all_nodes
from ...runtime.calls import BoundCall, run_vectors
from ...runtime.devices import Device, ort_device, ort_vector
from ...runtime.sessions import make_session, session_options

if TYPE_CHECKING:
    from ...differentiation.cpp_builder import Agent

__all__ = ["Engine", "SplitEngine", "make_engine"]

#: Operators whose output shapes depend on values.
DYNAMIC_SHAPE_OPERATORS = {"Compress", "Loop", "NonMaxSuppression", "NonZero", "Unique"}


class SplitEngine:
    """Forward and backward as two graphs, from ortlearn's gradient rules; runs on any onnxruntime.

    Saved tensors are outputs of the first graph and inputs of the second. If a caller passes the same vectors
    again, these tensors are reused, unless their shapes depend on values.
    """

    MAX_PLANS = 32

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
        self._fetch_names = [value.name for value in forward.graph.output]
        self.has_dynamic_shapes = any(
            node.op_type in DYNAMIC_SHAPE_OPERATORS for node in all_nodes(forward.graph)
        )
        self._tensors_on, self._device = device, ort_device(device)
        self._plans: dict[tuple[int, int], _Plan] = {}
        self._backward_names = [value.name for value in backward.graph.input]
        others = [n for n in self._backward_names if n not in self._fetch_names and n not in self.feed_names]
        self.gradients = {name: self._gradient_position(name) for name in others}

    def _gradient_position(self, name: str) -> int:
        for index, output in enumerate(self.output_names):
            rest = name.removeprefix(output)
            if rest != name and rest and not rest.replace("_grad", ""):
                return index
        raise AssertionError(name)

    def forward(self, feeds: Any, outputs: Any) -> Any:
        """Compute the outputs and return the state for ``backward``."""
        plan = self._plans.get((id(feeds), id(outputs)))
        if plan is None or plan.waiting:
            plan = self._new_plan(feeds, outputs)
        plan.waiting = True
        if plan.run is not None:
            plan.run()
        elif len(outputs):
            call = self._bound(feeds, outputs)
            call()
            plan.fetches = [*outputs, *call.new_outputs().values()]
        else:
            run_vectors(self.session, self.feed_names, feeds, self._fetch_names, plan.fetches, self._device)
            for value in list(plan.fetches)[: len(self.output_names)]:
                outputs.push_back(value)
        return plan

    def _bound(self, feeds: Any, fetches: Any) -> BoundCall:
        """Return the forward call that writes to some of the tensors, and allocates the other ones."""
        values = dict(zip(self.feed_names, feeds, strict=True))
        results = dict(zip(self._fetch_names, fetches, strict=False))
        return BoundCall(self.session, values, results, self._tensors_on)

    def _new_plan(self, feeds: Any, outputs: Any) -> _Plan:
        """Return the tensors of a pair of calls; cached if the caller provides the outputs."""
        fetches = ort_vector([], [])
        plan = _Plan(feeds, outputs, fetches)
        if len(outputs) and not self.has_dynamic_shapes:
            trial = ort_vector([], [])
            run_vectors(self.session, self.feed_names, feeds, self._fetch_names, trial, self._device)
            for value in [*outputs, *list(trial)[len(self.output_names) :]]:
                fetches.push_back(value)
            plan.run = self._bound(feeds, fetches).function
            if len(self._plans) >= self.MAX_PLANS and (id(feeds), id(outputs)) not in self._plans:
                self._plans.clear()
            self._plans[id(feeds), id(outputs)] = plan
        return plan

    def backward(self, gradients: Any, results: Any, state: _Plan) -> None:
        """Compute the gradients of weights and inputs from those of the outputs."""
        session, names, outputs = self.backward_session, self._backward_names, self.gradient_names
        run = state.backward_runs.get((id(gradients), id(results)))
        if run is None:
            values = {name: gradients[index] for name, index in self.gradients.items()}
            values |= zip(self.feed_names, state.feeds, strict=True)
            values |= zip(self._fetch_names, state.fetches, strict=True)
            if state.run is not None and len(results):
                run = BoundCall(session, values, dict(zip(outputs, results, strict=True))).function
                state.keep(gradients, results, run, self.MAX_PLANS)
        if run is not None:
            run()
        else:
            feeds = ort_vector([values[name] for name in names], [self._device] * len(names))
            run_vectors(session, names, feeds, outputs, results, self._device)
        state.waiting = False


class _Plan:
    """The tensors of a forward call, and bound calls if the caller provides the outputs."""

    def __init__(self, feeds: Any, outputs: Any, fetches: Any):
        self.feeds = feeds  # kept alive, since the key of a plan is the id of its vectors
        self.outputs = outputs
        self.fetches = fetches
        self.run: Callable[[], None] | None = None
        self.waiting = False  # for backward, which still needs the saved tensors
        self.vectors: list[tuple[Any, Any]] = []
        self.backward_runs: dict[tuple[int, int], Callable[[], None]] = {}

    def keep(self, gradients: Any, results: Any, run: Callable[[], None], limit: int) -> None:
        """Cache the bound call for two vectors of backward, which are kept alive since their ids are keys."""
        if len(self.vectors) >= limit:
            self.vectors.clear()
            self.backward_runs.clear()
        self.vectors.append((gradients, results))
        self.backward_runs[id(gradients), id(results)] = run


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
