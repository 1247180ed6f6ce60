"""Calls of the graphs of a function on arrays, without validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import ModelProto

from ..runtime.checked_sessions import open_session
from ..runtime.devices import Device
from ..runtime.errors import runtime_errors
from ..runtime.forks import PerProcess
from .graphs import FunctionGraphs

__all__ = ["BareFunction"]


class BareFunction:
    """The methods of a function on arrays of its type, without validation.

    Every array is C-contiguous and of the type ``dtype`` of the function. X, directions and gradients are one
    array each, of the only input, or lists of arrays in the order of the inputs.
    """

    def __init__(self, graphs: FunctionGraphs, n_jobs: int | None = None):
        self.graphs, self.n_jobs = graphs, n_jobs
        self._single = len(graphs.inputs) == 1
        self._calls = PerProcess()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_calls": PerProcess()}

    def call(
        self, key: Any, build: Callable[[], ModelProto]
    ) -> Callable[[list[np.ndarray]], list[np.ndarray]]:
        """Return the function that runs a graph on the values of its inputs, opened once."""
        calls = self._calls.values
        if key not in calls:
            with runtime_errors():
                session = open_session(build(), Device("cpu"), self.n_jobs)
            calls[key] = _function(session)
        return calls[key]

    def _inputs(self, X: Any) -> list[np.ndarray]:
        return [X] if self._single else list(X)

    def _directions(self, v: Any) -> list[np.ndarray]:
        return [v] if isinstance(v, np.ndarray) else list(v)

    def _gradients(self, found: list[np.ndarray]) -> Any:
        return found[0] if self._single else found

    def __call__(self, X: Any) -> np.ndarray:
        """Return the output."""
        return self.call("value", lambda: self.graphs.value)(self._inputs(X))[0]

    def value_and_gradient(self, X: Any, index: int | None = None) -> tuple[np.ndarray, Any]:
        """Return the output, and the gradient of the sum of its values, or of a column."""
        found = self.call(("gradient", index), lambda: self.graphs.selected(index))(self._inputs(X))
        return found[0], self._gradients(found[1:])

    def gradient(self, X: Any, index: int | None = None) -> Any:
        """Return the gradient of the output of each sample, or of its output ``index``."""
        return self.value_and_gradient(X, index)[1]

    def vjp(self, X: Any, u: np.ndarray) -> Any:
        """Return the gradient of the product of the output and u."""
        return self._gradients(self.call("vjp", lambda: self.graphs.vjp)([*self._inputs(X), u]))

    def jvp(self, X: Any, v: Any) -> np.ndarray:
        """Return the derivative of the output along v."""
        return self.call("jvp", lambda: self.graphs.jvp)([*self._inputs(X), *self._directions(v)])[0]

    def hessian_vector(self, X: Any, v: Any, u: np.ndarray) -> Any:
        """Return the derivative along v of the gradient of the product of the output and u."""
        run = self.call("hessian_vector", lambda: self.graphs.hessian_vector)
        return self._gradients(run([*self._inputs(X), u, *self._directions(v)]))


def _function(session: Any) -> Callable[[list[np.ndarray]], list[np.ndarray]]:
    names = [value.name for value in session.get_inputs()]
    outputs, run = [value.name for value in session.get_outputs()], session._sess.run

    def compute(values: list[np.ndarray]) -> list[np.ndarray]:
        try:
            return run(outputs, dict(zip(names, values, strict=True)), None)
        except Exception:
            with runtime_errors():
                raise

    return compute
