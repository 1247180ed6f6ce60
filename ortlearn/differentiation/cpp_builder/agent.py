"""Forward and backward of a graph as two calls of onnxruntime-training's TrainingAgent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onnx import ModelProto

from .runtime import pybind
from .yield_graph import yield_graph

__all__ = ["Agent"]


class Agent:
    """A graph with a YieldOp, run in two parts.

    ``open_session`` must not reuse the memory of this graph: its second part would overwrite the outputs of
    the first.
    """

    def __init__(
        self,
        model: ModelProto,
        gradient: ModelProto,
        names: Sequence[str],
        open_session: Callable[..., Any],
        device: Any,
    ):
        training = yield_graph(model, gradient)
        self.models = {"training": training, "forward": model}
        self.session = open_session(training, reuse_memory=False)
        self.forward_session = open_session(model)
        self.feed_names = list(names)
        self.output_names = [value.name for value in model.graph.output]
        self.gradient_names = [value.name for value in training.graph.output]
        self._agent = pybind().TrainingAgent(
            self.session._sess,
            self.feed_names,
            [device] * len(self.output_names),
            self.gradient_names,
            [device] * len(self.gradient_names),
            0,
        )
        self._cache = pybind().OrtValueCache()

    def forward(self, feeds: Any, outputs: Any) -> Any:
        """Compute the outputs and return the state for ``backward``."""
        state = pybind().PartialGraphExecutionState()
        self._agent.run_forward(feeds, outputs, state, self._cache)
        return state

    def backward(self, gradients: Any, results: Any, state: Any) -> None:
        """Compute the gradients of inputs and weights from those of the outputs."""
        self._agent.run_backward(gradients, results, state)
