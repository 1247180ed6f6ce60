"""Match tensors of a graph with patterns of operators."""

from collections.abc import Collection, Mapping
from typing import Any

from .view import GraphView

COMMUTATIVE = {"Add", "Equal", "Max", "Mul"}


class PatternView(GraphView):
    """A graph whose tensors are matched with patterns."""

    between: Collection[str] = ()  # operators to skip between two operators of a pattern

    def match(self, name: str, pattern: Any) -> dict[str, str] | None:
        """Return the tensors by their names in a pattern, None without a match."""
        # A pattern is a name, which matches any tensor but the same one if repeated; a number, which matches
        # a constant; or a tuple of operators, joined by |, and of patterns of their first inputs in any order
        # if the operators are commutative.
        return self._match(name, pattern, {})

    def match_any(self, name: str, patterns: Collection[Any]) -> dict[str, str] | None:
        """Return the tensors of the first pattern that matches, None without a match."""
        found = (self.match(name, pattern) for pattern in patterns)
        return next((tensors for tensors in found if tensors is not None), None)

    def _match(
        self, name: str, pattern: Any, found: Mapping[str, str], between: Collection[str] = ()
    ) -> dict[str, str] | None:
        if isinstance(pattern, str):
            name = self.origin(name)
            return {**found, pattern: name} if found.get(pattern, name) == name else None
        if not isinstance(pattern, tuple):
            return {**found} if self.is_constant(self.origin(name), pattern) else None
        op_types, *parts = pattern
        passing = {"Identity", *between}.difference(op_types.split("|"))
        node = self.producer(name, passing=passing)
        if node is None or node.op_type not in op_types.split("|"):
            return None
        orders = [node.input, node.input[::-1]] if node.op_type in COMMUTATIVE else [node.input]
        for inputs in orders:
            result: dict[str, str] | None = {**found}
            for part, operand in zip(parts, inputs, strict=False):
                result = None if result is None else self._match(operand, part, result, self.between)
            if result is not None:
                return result
        return None
