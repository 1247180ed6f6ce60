"""Functions of torch, which call ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .bridge import one_matrix
from .function import DifferentiableFunction

__all__ = ["to_torch"]


def to_torch(function: DifferentiableFunction) -> Callable[[Any], Any]:
    """Return a function of torch tensors, differentiable by ``torch.autograd``, twice where the graph is.

    Tensors on the CPU of the type of the function are read without a copy. Those on other devices are copied
    to the CPU, and results to their device.

    Parameters
    ----------
    function : DifferentiableFunction
        Function of one numeric matrix.

    Returns
    -------
    callable
        Function of a tensor of shape (..., n_features) that returns the outputs of all samples, of shape
        (...) or (..., n_outputs), in the type and on the device of the tensor.

    Raises
    ------
    ImportError
        If torch is not installed.
    ValueError
        If X is not one numeric matrix.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.functions import differentiable, to_torch
    >>> f = to_torch(differentiable(Ridge().fit([[0.0], [1.0]], [0.0, 1.0])))  # doctest: +SKIP
    >>> x = torch.tensor([[0.5]], requires_grad=True)  # doctest: +SKIP
    >>> f(x).sum().backward()  # doctest: +SKIP
    """
    try:
        import torch
    except ImportError as error:
        raise ImportError("to_torch requires torch: pip install 'ortlearn[torch]'.") from error
    bare, dtype = one_matrix(function), function.dtype

    def samples(tensor: Any) -> np.ndarray:
        return np.ascontiguousarray(tensor.detach().cpu().numpy(), dtype=dtype)

    def tensor(array: np.ndarray, like: Any) -> Any:
        return torch.from_numpy(array).to(device=like.device, dtype=like.dtype)

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, u: Any) -> Any:
            ctx.save_for_backward(x, u)
            return tensor(bare.vjp(samples(x), samples(u)), x)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, v: Any) -> Any:
            x, u = ctx.saved_tensors
            needs_x, needs_u = ctx.needs_input_grad
            hessian = tensor(bare.hessian_vector(samples(x), samples(v), samples(u)), x) if needs_x else None
            return hessian, tensor(bare.jvp(samples(x), samples(v)), u) if needs_u else None

    class Value(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return tensor(bare(samples(x)), x)

        @staticmethod
        def backward(ctx: Any, u: Any) -> Any:
            return Product.apply(*ctx.saved_tensors, u)

    def call(x: Any) -> Any:
        x = torch.as_tensor(x)
        x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
        if x.ndim == 2:
            return Value.apply(x)
        found = Value.apply(x.reshape(-1, x.shape[-1]))
        return found.reshape((*x.shape[:-1], *found.shape[1:]))

    return call
