"""Trees, forests and boosting: splits are fixed, and the values of leaves are parameters."""

from .nodes import Nodes, leaf_numbers, leaf_sums
from .thresholds import ComparesInFloat32

__all__ = ["ComparesInFloat32", "Nodes", "leaf_numbers", "leaf_sums"]
