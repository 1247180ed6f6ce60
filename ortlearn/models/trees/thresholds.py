"""Thresholds of splits in the type of the samples, and definitions of trees that round samples to float32."""

from typing import Any

import numpy as np

from ..base import ModelDefinition

#: Largest rounding errors of the steps before a tree, relative to the largest threshold of a column.
ROUNDING = {np.dtype(np.float32): 2.0**-19, np.dtype(np.float64): 2.0**-46}


class ComparesInFloat32(ModelDefinition):
    """Base class of definitions of trees that round samples to float32 before they compare them."""

    def needs_float64(self, model: Any, computed: bool) -> bool:
        return computed


def rounded_down(thresholds: np.ndarray) -> np.ndarray:
    """Return the largest float32 up to each threshold: float32 samples fall on the same side."""
    with np.errstate(over="ignore"):  # beyond float32 is infinite
        rounded = thresholds.astype(np.float32)
        return np.where(rounded > thresholds, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def raised(thresholds: np.ndarray, features: np.ndarray, is_leaf: np.ndarray) -> np.ndarray:
    """Return thresholds above samples that are equal to them but for the rounding errors of steps before."""
    # thresholds of histogram boosting are values of training samples; errors are relative to the largest ones
    sizes = np.where(np.isfinite(thresholds), np.abs(thresholds), 0)
    largest = np.zeros(int(features.max(initial=0)) + 1, thresholds.dtype)
    np.maximum.at(largest, features[~is_leaf], sizes[~is_leaf])
    slack = ROUNDING[thresholds.dtype] * largest[np.maximum(features, 0)]
    return thresholds + slack.astype(thresholds.dtype)
