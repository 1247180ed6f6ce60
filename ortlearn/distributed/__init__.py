"""Training over the shards of some data: averages of trainings."""

from .averaging import average_arrays, average_trainers

__all__ = ["average_arrays", "average_trainers"]
