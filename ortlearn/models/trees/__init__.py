"""Trees, forests and boosting: fixed splits that lead to leaves, whose values are parameters."""

from .nodes import Nodes, leaf_numbers, leaf_sums

__all__ = ["Nodes", "leaf_numbers", "leaf_sums"]
