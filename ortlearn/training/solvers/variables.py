"""The weights of a task as the vector of a solver, and its coordinates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...data.samples import Data
from ...exceptions import PluginError
from ..graphs.first_layers import Moments
from ..graphs.rescaling import last_weights
from ..optimisations.table_rows import TableRows
from ..steps.base_step import BaseStep
from .coordinates import Coordinates
from .gradient_step import GradientStep, left_penalty
from .whitening import Whitening

__all__ = ["Variables"]

Weights = Mapping[str, np.ndarray]


class Variables:
    """The weights of a step as one vector in float64, for trainings on some samples.

    The vector leaves out the rows of tables that the samples do not look up, such as the values of leaves
    that they do not reach: these rows have no gradient, and stay as they are. Rows with a penalty are left
    out if weights are ``pulled``.

    ``data`` are the samples, or the first ones if the moments of all features are ``measured``. ``spread`` is
    the standard deviation of the labels, if scores have their scale.
    """

    def __init__(
        self,
        step: BaseStep,
        weights: Weights,
        data: Data,
        spread: float = 1.0,
        measured: Mapping[str, Moments] | None = None,
        pulled: bool = False,
    ):
        self.task = task = step.task
        self.step = step = step.selected(data, [], weights)
        self._rows = TableRows.of(task, data, weights, pulled) if measured is None else TableRows({}, {})
        self._data, self._spread = self._rows.data(task, data, weights), spread
        self._sizes = {name: array.shape for name, array in weights.items()}
        self._shapes = {name: array.shape for name, array in self._rows.of_weights(weights).items()}
        ends = [0, *itertools.accumulate(math.prod(self._shapes[name]) for name in self._names)]
        self._slices = dict(zip(self._names, map(slice, ends, ends[1:]), strict=True))
        if self._rows.rows:
            self.step = type(step)(self._rows.task(task), step.device, step.n_jobs)
        #: Coordinates that standardise the features.
        self.coordinates = Coordinates(task, self._data, self._shapes, measured=measured)
        #: Variables of linear models, in which features are uncorrelated, too; else the coordinates.
        self.whitening = Whitening()
        loss = task.objective.loss  # minima of degenerate ones are useless: steps need not reach them
        plain = self.lower is None and self.absolute is None and left_penalty(task).smooth
        if plain and not (loss and loss.degenerate) and self._is_linear():
            self.whitening = Whitening.of(task, self._data, self.coordinates, measured)

    def _is_linear(self) -> bool:
        """Return whether all weights are those of layers that multiply features."""
        layers = [scale.layer for scale in self.coordinates.scales]
        return {own for layer in layers for own in (layer.weight, layer.intercept)} >= set(self._names)

    def start(self, weights: Weights) -> None:
        """Bind the samples to the step."""
        self.step.start(self._data, [], self._rows.of_weights(weights))

    @property
    def has_kinks(self) -> bool:
        """Whether the objective, without absolute values of weights, is not differentiable everywhere."""
        loss = self.task.objective.loss
        return not left_penalty(self.task).smooth or (loss is not None and loss.kinks)

    @property
    def lower(self) -> np.ndarray | None:
        """Lower bounds of the vector, or None."""
        not_negative = self.task.update.not_negative
        if not not_negative:
            return None
        return self._per_element([0.0 if name in not_negative else -np.inf for name in self._names])

    @property
    def absolute(self) -> np.ndarray | None:
        """Factors of the absolute values of weights, which :meth:`evaluate` omits; None if there are none."""
        penalty = self.task.objective.penalty
        factors = [
            sum(part.absolute_factor for part in penalty.parts_for(is_intercept, name))
            for name, is_intercept in self.task.graph.intercepts.items()
        ]
        return self._per_element(factors) if any(factors) else None

    @property
    def anchor(self) -> np.ndarray:
        """Centers of the absolute values: zero, or the initial weights; not both for one weight."""
        found = {}
        for name, is_intercept in self.task.graph.intercepts.items():
            parts = self.task.objective.penalty.parts_for(is_intercept, name)
            anchors = [part.anchor for part in parts if part.absolute_factor]
            if len({anchor is None for anchor in anchors}) > 1:
                raise PluginError(
                    f"The penalties of weight {name!r} have absolute values around zero and around its "
                    "initial value, which a solver cannot combine. Use one of them."
                )
            zero = np.zeros(self._sizes[name])
            found[name] = zero if not anchors or anchors[0] is None else anchors[0]
        return self.pack(found)

    def norm_curvature(self, vector: np.ndarray, width: float) -> np.ndarray:
        """Return the curvature of the norms of rows with kinks rounded by a width, for each element."""
        found = np.zeros(len(vector))
        for name, is_intercept in self.task.graph.intercepts.items():
            parts = self.task.objective.penalty.parts_for(is_intercept, name)
            factor, own = sum(part.norm_factor(self._shapes[name]) for part in parts), self._slices[name]
            if factor:
                rows = vector[own].reshape(self._shapes[name][0], -1)
                norms = np.sqrt(np.sum(rows**2, axis=1) + width**2)
                found[own] = np.repeat(factor / norms, rows.shape[1])
        return found

    @property
    def units(self) -> np.ndarray:
        """Unit of each element: the scale of the labels for weights of the last layer, else 1."""
        last = last_weights(self.task)
        return self._per_element([self._spread if name in last else 1.0 for name in self._names])

    @property
    def intercepts(self) -> np.ndarray:
        """Whether each element belongs to an intercept."""
        return self._per_element(list(self.task.graph.intercepts.values()))

    @property
    def _names(self) -> list[str]:
        return self.task.graph.weights

    def _per_element(self, values: list[Any]) -> np.ndarray:
        """Return a value per weight, repeated for its elements."""
        return np.repeat(values, [math.prod(self._shapes[name]) for name in self._names])

    def pack(self, weights: Weights) -> np.ndarray:
        """Return the vector of weights, in the order of the task."""
        arrays = self._rows.of_weights(weights)
        return np.concatenate([np.ravel(arrays[name]) for name in self._names], dtype=np.float64)

    def unpack(self, vector: np.ndarray, weights: Weights) -> dict[str, np.ndarray]:
        """Return the weights of a vector, in the type of the graph; other rows of tables are those given."""
        return self._rows.whole(self._parts(vector), weights)

    def standardised(self, weights: Weights) -> dict[str, np.ndarray]:
        """Return weights for the given features, from weights for standardised features."""
        return self.unpack(self.coordinates.weights(self.pack(weights)), weights)

    def evaluate(self, vector: np.ndarray, width: float = 0.0) -> tuple[float, np.ndarray]:
        """Return the objective of all samples and its gradient.

        Absolute values of weights are omitted; other kinks are rounded if ``width`` is positive.
        """
        if isinstance(self.step, GradientStep):
            return self.step.evaluate_vector(vector, width)
        return self.step.evaluate(self._parts(vector), width)

    def _parts(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        """Return the weights of a vector, with the rows of tables that it has."""
        with np.errstate(over="ignore"):  # an overflow makes the objective non-finite, too
            vector = vector.astype(self.task.graph.dtype)
        return {name: vector[part].reshape(self._shapes[name]) for name, part in self._slices.items()}
