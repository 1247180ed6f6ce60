"""Transforms of graphs: each takes ONNX graphs and returns one, so that they compose.

``gradient(gradient(g))`` is the product of the Hessian and a vector, ``directional(g)`` the derivative along
a direction, ``batched(gradient(g, wrt=weights), size)`` the gradients of single samples, and
``batched([g1, g2])`` an ensemble as one graph.
"""

from .batches import batched
from .batching import NotBatchable
from .reverse import directional, gradient

__all__ = ["NotBatchable", "batched", "directional", "gradient"]
