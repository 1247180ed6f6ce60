"""Variables of a solver in which the features of linear models are uncorrelated."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from ...data.samples import Data
from ..graphs.first_layers import MOST_FEATURES, Moments, covariance
from ..graphs.task import TrainingTask
from .coordinates import Coordinates, Scale

__all__ = ["Whitening"]

#: Smallest variance that is added to each standardised feature, so that equal features have an inverse; in
#: float32 it is larger, since P enlarges rounding errors of gradients by its inverse.
RIDGE = 1e-6


class _Block(NamedTuple):
    """Layers that read the same features."""

    positions: np.ndarray  # of their weights in the vector, (n_layers, n_features, n_outputs)
    factor: np.ndarray  # P, of shape (n_features, n_features)
    inverse: np.ndarray


class Whitening:
    """A change of variables ``U = P V`` of coordinates U, where ``P @ P.T`` is the inverse of correlations.

    In V, least squares have the same curvature in all directions (Nocedal, J. and Wright, S. J., "Numerical
    Optimization", 2nd ed., 2006, section 5.1). The correlations are those of some samples: they change the
    steps of a solver, not its solution.
    """

    def __init__(self, blocks: list[_Block] | None = None) -> None:
        self._blocks = blocks or []

    @classmethod
    def of(
        cls,
        task: TrainingTask,
        data: Data,
        coordinates: Coordinates,
        measured: Mapping[str, Moments] | None = None,
    ) -> Whitening:
        """Return the change for layers with few features; without any, variables are the coordinates."""
        columns, alike = task.inputs(data), dict[Hashable, list[Scale]]()
        for scale in coordinates.scales:
            key = scale.layer.features, scale.shape, scale.mean.tobytes(), scale.spread.tobytes()
            alike.setdefault(key, []).append(scale)
        blocks, ridge = [], max(RIDGE, float(np.sqrt(np.finfo(task.graph.dtype).eps)))
        for scales in alike.values():
            name, mean = scales[0].layer.features, scales[0].mean
            if not 1 < len(mean) <= MOST_FEATURES:
                continue
            if measured is not None:
                known = measured[name].covariance(centred=scales[0].intercept is not None)
            else:
                known = covariance(columns[name], data.weight_per_sample, mean)
            blocks += [] if known is None else _blocks(known, scales, ridge)
        return cls(blocks)

    def coordinates(self, point: np.ndarray) -> np.ndarray:
        """Return the coordinates U of variables V."""
        return self._product(point, [block.factor for block in self._blocks])

    def point(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the variables V of coordinates U."""
        return self._product(coordinates, [block.inverse for block in self._blocks])

    def gradient(self, slopes: np.ndarray) -> np.ndarray:
        """Return the gradient with respect to V, given that with respect to U."""
        return self._product(slopes, [block.factor.T for block in self._blocks])

    def _product(self, vector: np.ndarray, matrices: list[np.ndarray]) -> np.ndarray:
        """Return the products of matrices and the weights of blocks."""
        found = np.array(vector) if matrices else vector
        for block, matrix in zip(self._blocks, matrices, strict=True):
            found[block.positions] = matrix @ vector[block.positions]
        return found


def _blocks(covariances: np.ndarray, scales: list[Scale], ridge: float) -> list[_Block]:
    """Return the block of layers that read the same features; none if their correlations are not finite."""
    matrix = covariances / scales[0].spread / scales[0].spread[:, np.newaxis]
    matrix = matrix.astype(np.float32).astype(np.float64)  # equal for weights and for repeated samples
    np.fill_diagonal(matrix, 1 + ridge)  # scales include the curvature of the penalty
    try:
        lower = cholesky(matrix, lower=True)
    except (LinAlgError, ValueError):
        return []
    factor = solve_triangular(lower, np.eye(len(lower)), lower=True).T
    positions = np.stack([np.r_[own.weight].reshape(own.shape) for own in scales])
    return [_Block(positions, factor, lower.T)]
