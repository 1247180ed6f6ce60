"""Training on data in shards: on a Dask cluster, or with another scheduler and averaged estimators."""

from .averaging import average_arrays, average_trainers
from .optimizer import DaskOrtGradientOptimizer

__all__ = ["DaskOrtGradientOptimizer", "average_arrays", "average_trainers"]
