"""Trees, forests and boosting: splits are fixed, and the values of leaves are parameters."""

from .nodes import Nodes, leaf_numbers, leaf_sums

__all__ = ["Nodes", "leaf_numbers", "leaf_sums"]
