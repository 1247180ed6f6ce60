"""Functions of JAX, which call ONNX Runtime on the host."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from .bridge import one_matrix
from .function import DifferentiableFunction

__all__ = ["to_jax"]


def to_jax(function: DifferentiableFunction) -> Callable[[Any], Any]:
    """Return a function of JAX arrays, for ``jit``, ``grad``, ``vmap`` and ``jax.numpy``.

    It calls ONNX Runtime on the host, and its derivative is a ``jax.custom_vjp``. It can be differentiated
    twice in reverse mode (``jax.jacrev(jax.grad(g))``), but not in forward mode, as ``jax.hessian`` does.

    Parameters
    ----------
    function : DifferentiableFunction
        Function of one numeric matrix.

    Returns
    -------
    callable
        Function of an array of shape (..., n_features) that returns the outputs of all samples, of shape
        (...) or (..., n_outputs), in the type of the array.

    Raises
    ------
    ImportError
        If JAX is not installed.
    ValueError
        If X is not one numeric matrix.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.functions import differentiable, to_jax
    >>> f = to_jax(differentiable(Ridge().fit([[0.0], [1.0]], [0.0, 1.0])))  # doctest: +SKIP
    >>> jax.grad(lambda x: f(x) ** 2)(jax.numpy.array([0.5]))  # doctest: +SKIP
    """
    try:
        import jax
    except ImportError as error:
        raise ImportError("to_jax requires JAX: pip install 'ortlearn[jax]'.") from error
    bare, dtype, on_host = one_matrix(function), function.dtype, _host_calls(jax)

    @lru_cache
    def shape_of(n_features: int) -> tuple[int, ...]:
        return bare(np.zeros((1, n_features), dtype=dtype)).shape[1:]

    def call(run: Callable[..., np.ndarray], tail: tuple[int, ...], x: Any, *others: tuple[Any, int]) -> Any:
        """Call a function of samples; ``others`` are arrays with their number of axes for a sample."""
        ranks = [1, *(rank for _, rank in others)]
        result = jax.ShapeDtypeStruct((*x.shape[:-1], *tail), x.dtype)

        def compute(*values: Any) -> np.ndarray:
            arrays = list(map(np.asarray, values))
            leads = [array.shape[: array.ndim - rank] for array, rank in zip(arrays, ranks, strict=True)]
            lead = leads[0] if len(set(leads)) == 1 else np.broadcast_shapes(*leads)
            samples = (_samples(array, lead, rank, dtype) for array, rank in zip(arrays, ranks, strict=True))
            return run(*samples).reshape((*lead, *tail)).astype(result.dtype, copy=False)

        return on_host(compute, result, [x, *(array for array, _ in others)])

    @jax.custom_vjp
    def value(x: Any) -> Any:
        return call(bare, shape_of(x.shape[-1]), x)

    @jax.custom_vjp
    def product(x: Any, u: Any) -> Any:
        rank = u.ndim - x.ndim + 1
        return call(bare.vjp, x.shape[-1:], x, (u, rank))

    def backward(x: Any, u: Any) -> tuple[Any]:
        return (product(x, u),)

    def second(residuals: Any, v: Any) -> tuple[Any, Any]:
        x, u = residuals
        rank = u.ndim - x.ndim + 1
        hessian = call(bare.hessian_vector, x.shape[-1:], x, (v, 1), (u, rank))
        return hessian, call(bare.jvp, u.shape[u.ndim - rank :], x, (v, 1))

    value.defvjp(lambda x: (value(x), x), backward)
    product.defvjp(lambda x, u: (product(x, u), (x, u)), second)

    def checked(x: Any) -> Any:
        x = jax.numpy.asarray(x)
        return value(x if jax.numpy.issubdtype(x.dtype, jax.numpy.floating) else x.astype(float))

    return checked


def _host_calls(jax: Any) -> Callable[..., Any]:
    """Return the function that calls Python in a computation, the fastest one that JAX has."""
    options: Any = {"vmap_method": "expand_dims"}
    try:
        from jax.experimental.buffer_callback import buffer_callback
    except ImportError:
        buffer_callback = None
    if buffer_callback is None or jax.default_backend() != "cpu":
        return lambda compute, result, arrays: jax.pure_callback(compute, result, *arrays, **options)

    def in_place(compute: Callable[..., np.ndarray], result: Any, arrays: list[Any]) -> Any:
        # takes 3 us; pure_callback takes 40 us and 20 us per argument, since it makes JAX arrays
        def write(context: Any, out: Any, *buffers: Any) -> None:
            np.asarray(out)[...] = compute(*buffers)

        return buffer_callback(write, result, **options)(*arrays)

    return in_place


def _samples(value: np.ndarray, lead: tuple[int, ...], rank: int, dtype: np.dtype) -> np.ndarray:
    """Return values of samples with leading axes, broadcast to ``lead``, as one batch."""
    tail = value.shape[value.ndim - rank :]
    if value.shape != (*lead, *tail):
        value = np.broadcast_to(value, (*lead, *tail))
    return np.ascontiguousarray(value.reshape(-1, *tail), dtype=dtype)
