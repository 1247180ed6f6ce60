"""Gradients with respect to weights, summed or for each sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto

from ..exceptions import GradientError
from ..graphs.editing import copy_model
from ..transforms import NotBatchable, batched
from .bare import BareFunction

__all__ = ["ParameterGradients"]

#: Number of samples of a batched graph of gradients of single samples.
CHUNK = 32


class ParameterGradients:
    """Gradients of a function with respect to its weights."""

    def __init__(self, bare: BareFunction, names: list[str]):
        self._bare, self._names = bare, names
        self._size: int | None = CHUNK

    def __call__(self, X: Any, u: np.ndarray, per_sample: bool) -> dict[str, np.ndarray]:
        """Return the gradients of the sum of output times u."""
        if not self._names:
            raise GradientError("The model has no learned weights.")
        inputs = self._bare._inputs(X)
        if not per_sample:
            found = self._bare.call("parameters", lambda: self._bare.graphs.of_parameters(self._names))
            return dict(zip(self._names, found([*inputs, u]), strict=True))
        parts = self._by_sample([*inputs, u])
        return {
            name: np.concatenate(own) for name, own in zip(self._names, zip(*parts, strict=True), strict=True)
        }

    def _by_sample(self, arrays: list[np.ndarray]) -> list[list[np.ndarray]]:
        """Return gradients of chunks of samples, by one batched graph if all operators have a rule."""
        n_samples = len(arrays[0])
        if self._size is not None and n_samples > 1:
            try:
                run = self._bare.call("parameters of samples", self._batched)
                return [self._chunk(run, arrays, start) for start in range(0, n_samples, CHUNK)]
            except NotBatchable:
                self._size = None
        run = self._bare.call("parameters of one", lambda: _with_one_sample(self._graph()))
        return [
            [part[None] for part in run([array[i : i + 1] for array in arrays])] for i in range(n_samples)
        ]

    def _graph(self) -> ModelProto:
        return self._bare.graphs.of_parameters(self._names)

    def _batched(self) -> ModelProto:
        return batched(_with_one_sample(self._graph()), CHUNK)

    @staticmethod
    def _chunk(run: Any, arrays: list[np.ndarray], start: int) -> list[np.ndarray]:
        """Return the gradients of the samples of a chunk, which is padded with its last sample."""
        count = min(CHUNK, len(arrays[0]) - start)
        indices = np.minimum(np.arange(CHUNK), count - 1) + start
        found = run([np.ascontiguousarray(array[indices][:, None]) for array in arrays])
        return [part[:count] for part in found]


def _with_one_sample(model: ModelProto) -> ModelProto:
    """Return a graph whose inputs have one sample, so that shapes are known."""
    model = copy_model(model)
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        if dims:
            dims[0].Clear()
            dims[0].dim_value = 1
    for value in (*model.graph.output, *model.graph.value_info):
        value.type.tensor_type.ClearField("shape")
    return model
