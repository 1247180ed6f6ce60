"""Samples of models with several inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["Columns"]


class Columns:
    """Samples of models with several inputs: arrays of equal length by input; ``shape`` is (n_samples,)."""

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        self.arrays = dict(arrays)
        self.shape = (len(next(iter(self.arrays.values()))),)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, samples: Any) -> Columns:
        return Columns({name: array[samples] for name, array in self.arrays.items()})

    def feeds(self, names: list[str]) -> dict[str, np.ndarray]:
        """Return the arrays of some inputs, without copies."""
        return {name: self.arrays[name] for name in names}
