"""Training samples in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

__all__ = ["Data"]


class Data:
    """Training samples, C-contiguous and in the types of the graph.

    ``features``, the results of the part of the graph that was computed before the training, replace X.
    ``members`` are weights of the members of an ensemble, of shape (n, n_members); None for equal weights.
    """

    def __init__(
        self,
        X: Any,
        y: np.ndarray,
        sample_weight: np.ndarray | None = None,
        features: dict[str, Any] | None = None,
        members: np.ndarray | None = None,
    ):
        self.X = X
        self.y = y
        self.sample_weight = sample_weight
        self.features = features
        self.members = members

    def take(self, samples: np.ndarray) -> Data:
        """Return some of the samples."""
        weights = None if self.sample_weight is None else self.sample_weight[samples]
        features = self.features and {name: array[samples] for name, array in self.features.items()}
        members = None if self.members is None else self.members[samples]
        return Data(self.X[samples], self.y[samples], weights, features, members)

    @property
    def is_sparse(self) -> bool:
        """Whether features are sparse."""
        return any(map(issparse, (self.features or {"": self.X}).values()))

    @property
    def weight_per_sample(self) -> np.ndarray | None:
        """Weights of the samples, averaged over positions."""
        weights = self.sample_weight
        return weights if weights is None or weights.ndim == 1 else weights.mean(axis=1, dtype=np.float64)

    @property
    def total_weight(self) -> float:
        """Sum of the weights of the samples, or their number."""
        weights = self.weight_per_sample
        return float(len(self) if weights is None else weights.sum(dtype=np.float64))

    def __len__(self) -> int:
        return self.X.shape[0]
