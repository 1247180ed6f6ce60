"""Kernels of support vector machines as plain operators, the support vectors as a weight."""

from __future__ import annotations

import numpy as np

from ...models.kernels import polynomial, products, radial, remote_centre, sigmoid
from .common import Fused

__all__ = ["KERNELS", "float_array", "kernel_matrix"]

#: Values of the attribute ``kernel_type``.
KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


def kernel_matrix(fused: Fused, vectors: np.ndarray) -> str:
    """Return the kernel of every row with every support vector.

    Parameters
    ----------
    fused : Fused
        Node with the attributes ``kernel_type``, one of :data:`KERNELS`, and ``kernel_params``.
    vectors : ndarray of shape (n_vectors, n_features)
        Support vectors, float32.

    Returns
    -------
    str
        Tensor of shape (rows, n_vectors), float32. ``support_vectors``, and ``gamma`` and ``coef0``
        where the kernel has them, are initializers of their own.
    """
    op, kind = fused.op, fused.text("kernel_type", "LINEAR")
    gamma, coef0, degree = [*fused.attribute("kernel_params", []), 0.0, 0.0, 0.0][:3]
    rows, weights = fused.float_input(), fused.weight("support_vectors", vectors)
    if kind == "LINEAR":
        return products(op, rows, weights)
    factor = _number(fused, "gamma", gamma)
    if kind == "RBF":
        return radial(op, rows, weights, factor, remote_centre(vectors))
    added = _number(fused, "coef0", coef0)
    if kind == "SIGMOID":
        return sigmoid(op, rows, weights, factor, added)
    return polynomial(op, rows, weights, factor, added, float(degree))


def _number(fused: Fused, stem: str, value: float) -> str:
    return fused.weight(stem, np.array([value], dtype=np.float32))


def float_array(fused: Fused, name: str) -> np.ndarray:
    """Return an attribute of floats as a float32 vector, empty where there is none."""
    return np.asarray(fused.attribute(name, []), dtype=np.float32).ravel()
