"""Batching rules by operator: ``rule(scope, node)`` writes the batched form of a node."""

from . import elementwise, indexing, loops, products, reductions, shapes

__all__ = ["RULES"]

RULES = {
    key: rule
    for part in (elementwise, indexing, loops, products, reductions, shapes)
    for key, rule in part.RULES.items()
}
