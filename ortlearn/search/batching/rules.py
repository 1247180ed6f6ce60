"""Batching rules by operator: ``rule(scope, node)`` writes the batched form of a node."""

from . import elementwise, indexing, loops, products, reductions, shapes

__all__ = ["RULES"]

#: Rules by domain and operator.
RULES = {
    key: rule
    for part in (elementwise, indexing, loops, products, reductions, shapes)
    for key, rule in part.RULES.items()
}
