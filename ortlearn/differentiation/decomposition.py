"""Gradient rules of operators that are decomposed into simpler ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from onnx import NodeProto

from ..graphs.nodes import copy_node
from .expand import add_types
from .gradient_builder import GradientBuilder
from .rule_context import RuleNode

__all__ = ["by_decomposition"]


def by_decomposition(write: Callable[[GradientBuilder, RuleNode], Any]) -> Callable:
    """Return the gradient rule of an operator from its decomposition into simpler operators.

    The simpler operators replace the node in the forward graph, so that nothing is computed twice.

    Parameters
    ----------
    write : callable
        ``write(op, node)`` writes the operator with the builder ``op`` and returns the name of its
        output, or a list of names, with "" or None for an output that it does not write.

    Returns
    -------
    callable
        Rule.

    Examples
    --------
    >>> from ortlearn.differentiation.decomposition import by_decomposition
    >>> from ortlearn.differentiation.registry import gradient_rule, temporary_rules
    >>> with temporary_rules():
    ...     @gradient_rule("Cube", domain="mine")
    ...     @by_decomposition
    ...     def cube(op, node):
    ...         # y = x^3
    ...         return op.Pow(node.input_name(0), 3.0)
    """

    @wraps(write)
    def rule(op: GradientBuilder, node: RuleNode, grad: str | None) -> list[str | None]:
        body = decompose(op, node, write)
        grads = {node.output_name(i): node.GO(i) for i in range(node.n_outputs)}
        seeds = {name: found for name, found in grads.items() if found}
        wanted = [node.input_name(i) for i in range(node.n_inputs) if node.needs(i)]
        assert node.backpropagate is not None
        found = node.backpropagate(op, body, seeds, wanted)
        node.decomposition = body
        # If one tensor is several inputs, the first of them gets the gradient of all.
        return [found.pop(node.input_name(i), None) for i in range(node.n_inputs)]

    return rule


def decompose(op: GradientBuilder, node: RuleNode, write: Callable) -> list[NodeProto]:
    """Return nodes that compute the outputs of a node, and add their types to the builder."""
    inner = op.child({})
    dtypes = [op.dtype(node.input_name(i)) for i in range(node.n_inputs) if node.input_name(i)]
    inner.float_dtype = next((np.dtype(d) for d in dtypes if d is not None and d.kind == "f"), op.float_dtype)
    found = write(inner, node)
    results = [found] if isinstance(found, str) else list(found)
    results += [""] * (node.n_outputs - len(results))
    names = list(node.proto.output)
    for i, (name, result) in enumerate(zip(names, results, strict=False)):
        if result and name:
            inner.node("Identity", result, outputs=[name])
            names[i] = op.unique("unused")
        elif node.GO(i):
            raise node.error(f"its output {i} ({name!r}) is not computed by its gradient rule")
    # The operator itself computes the remaining outputs.
    left = set(filter(None, node.proto.output)) & set(names)
    rest = [copy_node(node.proto, outputs=names)] if left else []
    for name in {name for made in inner.nodes for name in made.output}:
        known = inner.type(name)
        if known is not None and op.type(name) is None:
            op.set_type(name, *known)
    add_types(op, inner.nodes)
    return [*rest, *inner.nodes]
