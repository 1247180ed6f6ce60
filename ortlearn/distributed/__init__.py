"""Training over the shards of some data: on a Dask cluster, or with the average of trainings elsewhere."""

from .averaging import average_arrays, average_trainers
from .optimizer import DaskOrtGradientOptimizer

__all__ = ["DaskOrtGradientOptimizer", "average_arrays", "average_trainers"]
