"""Builder of gradient graphs, used by gradient rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import helper

from ..graphs import make_value_info
from .types.dimensions import count, is_static, reduced_axes, same_shape, shape_template
from .types.typed_builder import TypedBuilder

__all__ = ["GradientBuilder"]

#: Largest number of classes for which one-hot rows are looked up in a table.
MOST_CLASSES = 64


class GradientBuilder(TypedBuilder):
    """A :class:`~ortlearn.graphs.GraphBuilder` with the helpers of gradient rules.

    Parameters are those of :class:`~ortlearn.differentiation.types.typed_builder.TypedBuilder`.

    Examples
    --------
    >>> from ortlearn.differentiation.gradient_builder import GradientBuilder
    >>> from ortlearn.graphs import TensorType
    >>> op = GradientBuilder(types={"g": TensorType(1, ("N", 3)), "bias": TensorType(1, (3,))})
    >>> op.unbroadcast("g", "bias")
    'ReduceSum_0'
    >>> [node.op_type for node in op.nodes]
    ['ReduceSum']
    """

    # shapes

    def shape_of(self, name: str) -> str:
        """Return the name of a tensor's shape, a constant if it is known."""
        shape = self.shape(name)
        if is_static(shape):
            return self.constant(np.array(shape, dtype=np.int64))
        return self.Shape(name)

    def dim(self, name: str, axis: int, scalar: bool = False) -> str:
        """Return the name of one dimension, as a tensor of shape (1,), or () for a scalar."""
        shape = self.shape(name)
        if shape is not None and isinstance(shape[axis], int):
            return self.constant(np.array(shape[axis] if scalar else [shape[axis]], dtype=np.int64))
        return self.Gather(self.Shape(name), np.array(axis if scalar else [axis], np.int64), axis=0)

    def size_along(self, name: str, axes: Sequence[int] | None, dtype: Any) -> str:
        """Return the number of elements of a tensor along axes, as a scalar of a floating-point type."""
        known = count(self.shape(name), axes)
        if known is not None:
            return self.constant(np.array(known, dtype=dtype))
        sizes = self.Shape(name)
        if axes is not None:
            sizes = self.Gather(sizes, list(axes), axis=0)
        return self.cast(self.reduce("ReduceProd", sizes, None, keepdims=0), dtype)

    def reshape(self, name: str, shape: Sequence) -> str:
        """Reshape to known dimensions, at most one of them unknown or named."""
        template = shape_template(tuple(shape))
        if template is None:
            raise ValueError(f"Reshape needs at most one unknown dimension, got {shape}.")
        return self.with_type(self.Reshape(name, template), name, shape)

    def reshape_to(self, name: str, shape: str) -> str:
        """Reshape to a shape given by name, in which zeros are lengths from opset 14 on."""
        return self.Reshape(name, shape, allowzero=1 if self.opset >= 14 else None)

    def reshape_like(self, name: str, like: str) -> str:
        """Reshape a tensor to the shape of another one."""
        shape = self.shape(like)
        if same_shape(self.shape(name), shape):
            return name
        template = shape_template(shape)
        if template is not None:
            result = self.Reshape(name, np.array(template, dtype=np.int64))
        elif self.opset >= 14:
            result = self.Reshape(name, self.shape_of(like), allowzero=1)
        else:
            # In this version zeros mean lengths to copy.
            return self.unless_empty([like], like, lambda op: op.Reshape(name, op.shape_of(like)))
        return self.with_type(result, name, shape) if shape is not None else result

    def expand_like(self, name: str, like: str) -> str:
        """Broadcast a tensor to the shape of another one."""
        if same_shape(self.shape(name), self.shape(like)):
            return name
        known, result = self.type(name), self.Expand(name, self.shape_of(like))
        return result if known is None else self.set_type(result, known.elem_type, self.shape(like))

    def fill_like(self, like: str, value: float = 0.0) -> str:
        """Return a tensor filled with one value, of the shape and type of another one."""
        dtype = self.dtype(like) or self.float_dtype
        filling = helper.make_tensor("value", helper.np_dtype_to_tensor_dtype(dtype), [1], [value])
        return self.with_type(self.ConstantOfShape(self.shape_of(like), value=filling), like)

    def constant_gradient(self, name: str, value: float = 0.0) -> str:
        """Return a gradient of a tensor, filled with one value."""
        known = self.gradient_type(name)
        dtype = self.float_dtype if known is None else helper.tensor_dtype_to_np_dtype(known.elem_type)
        return self.with_gradient_type(self.fill(self.shape_of(name), value, dtype), name)

    def fill(self, shape: str, value: float = 0.0, dtype: Any = None) -> str:
        """Return a tensor of a shape given by name, filled with one value."""
        elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype or self.float_dtype))
        filling = helper.make_tensor("value", elem_type, [1], [value])
        known = self.value(shape)
        name = self.ConstantOfShape(shape, value=filling)
        return self.set_type(name, elem_type, None if known is None else [int(dim) for dim in known])

    def unless_empty(self, names: Sequence[str], like: str, write: Callable[[GradientBuilder], str]) -> str:
        """Return the gradient that ``write`` writes, or zeros like ``like`` if a named tensor is empty."""
        sizes = self.Concat(*(self.Shape(name) for name in names), [1], axis=0)
        graphs = {}
        for side in ("then_branch", "else_branch"):
            builder = self.child({})
            value = write(builder) if side == "then_branch" else builder.constant_gradient(like)
            result = builder.Identity(value)  # outputs of a branch must be computed in it
            info = make_value_info(result, self.gradient_type(like))
            graphs[side] = helper.make_graph(builder.nodes, side, [], [info])
        some = self.Greater(self.reduce("ReduceMin", sizes, None, keepdims=0), 0)
        return self.with_gradient_type(self.If(some, **graphs), like)

    def transpose(self, name: str, perm: Sequence[int]) -> str:
        """Permute axes, unless the permutation is the identity."""
        perm = list(perm)
        if perm == sorted(perm):
            return name
        shape = self.shape(name)
        result = self.Transpose(name, perm=perm)
        return result if shape is None else self.with_type(result, name, [shape[axis] for axis in perm])

    def swap_last(self, name: str) -> str:
        """Swap the last two axes of a tensor of rank two or more."""
        rank = self.rank(name)
        if rank is None:
            return self.Einsum(name, equation="...ij->...ji")
        return self.transpose(name, [*range(rank - 2), rank - 1, rank - 2])

    def unsqueeze(self, name: str, axes: Sequence[int]) -> str:
        """Insert axes of length one; ``axes`` are positions in the result."""
        shape = self.shape(name)
        if not axes:
            return name
        result = self.Unsqueeze(name, list(axes))
        if shape is None:
            return result
        rank = len(shape) + len(axes)
        inserted = {axis % rank for axis in axes}
        rest = iter(shape)
        return self.with_type(result, name, [1 if axis in inserted else next(rest) for axis in range(rank)])

    def squeeze(self, name: str, axes: Sequence[int]) -> str:
        """Remove axes of length one."""
        shape = self.shape(name)
        if not axes:
            return name
        result = self.Squeeze(name, list(axes))
        if shape is None:
            return result
        removed = {axis % len(shape) for axis in axes}
        return self.with_type(result, name, [dim for axis, dim in enumerate(shape) if axis not in removed])

    # values

    def cast(self, name: str, dtype: Any) -> str:
        """Convert a tensor, unless it already has the type."""
        wanted = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return name if self.elem_type(name) == wanted else self.Cast(name, to=wanted)

    def cast_like(self, name: str, like: str) -> str:
        """Convert a tensor to the type of another one."""
        wanted = self.elem_type(like)
        if wanted is None:
            return self.CastLike(name, like)
        return name if self.elem_type(name) == wanted else self.Cast(name, to=wanted)

    def one_hot(self, indices: str, depth: str, axis: int, rank: int) -> str:
        """Return the one-hot encoding of indices along a new axis, as floats.

        ``rank`` is that of the indices.
        """
        # onnxruntime has no OneHot of float64, and its OneHot of no indices terminates the process.
        axis %= rank + 1
        known = self.value(depth)
        if known is not None and known.item() <= MOST_CLASSES and axis == rank == 1:
            return self.Gather(np.eye(known.item(), dtype=self.float_dtype), indices, axis=0)
        indices = self.cast(indices, np.int64)
        wrapped = self.Where(self.Less(indices, self.constant(0)), self.Add(indices, depth), indices)
        numbers = self.Range(np.array(0, np.int64), depth, np.array(1, np.int64))
        positions = self.Reshape(numbers, [-1, *[1] * (rank - axis)])
        return self.cast(self.Equal(self.unsqueeze(wrapped, [axis]), positions), self.float_dtype)

    def mask(self, condition: str, like: str) -> str:
        """Return a condition as ones and zeros of the type of another tensor."""
        return self.cast_like(condition, like)

    def square(self, name: str) -> str:
        """Multiply a tensor by itself."""
        return self.Mul(name, name)

    def product(self, left: str, right: str) -> str:
        """Multiply matrices; return zeros for empty sums, which onnxruntime may leave undefined."""
        result, shape = self.MatMul(left, right), self.shape(right)
        if shape is not None and isinstance(shape[-2], int) and shape[-2] > 0:
            return result
        return self.Where(self.Equal(self.dim(right, -2), 0), 0.0, result)

    # reductions

    def reduce(self, op_type: str, name: str, axes: Any, keepdims: int = 1) -> str:
        """Write a reduction, with axes as input or attribute according to the opset.

        Parameters
        ----------
        op_type : str
            Operator, such as ``"ReduceSum"``.
        name : str
            Tensor.
        axes : list of int, str or None
            Axes, name of a tensor of axes, or None for all; an empty list reduces nothing.
        keepdims : int, default=1
            Whether reduced axes are kept, with length one.

        Returns
        -------
        str
            Name of the result.
        """
        if isinstance(axes, list) and not axes:
            return name
        as_input = self.opset >= (13 if op_type == "ReduceSum" else 18)
        if axes is None:
            result = self.node(op_type, name, keepdims=keepdims)
        elif as_input:
            result = self.node(op_type, name, axes, keepdims=keepdims)
        else:
            result = self.node(op_type, name, axes=list(axes), keepdims=keepdims)
        shape = self.shape(name)
        if shape is None or isinstance(axes, str):
            return result
        reduced = set(range(len(shape))) if axes is None else {axis % len(shape) for axis in axes}
        kept = [
            1 if axis in reduced else dim for axis, dim in enumerate(shape) if keepdims or axis not in reduced
        ]
        return self.with_type(result, name, kept)

    def unbroadcast(self, grad: str, like: str) -> str:
        """Sum a gradient to the shape of the operand that was broadcast.

        The axes are constants if both shapes are known; dimensions with the same name count as equal.

        Parameters
        ----------
        grad : str
            Gradient, in the shape after the broadcast.
        like : str
            Operand.

        Returns
        -------
        str
            Gradient in the shape of the operand.
        """
        source, target = self.shape(grad), self.shape(like)
        axes = reduced_axes(source, target)
        if axes is None or source is None or target is None:
            return self._unbroadcast_dynamic(grad, like)
        if not axes:
            return grad
        missing = len(source) - len(target)
        if axes == list(range(missing)):
            return self.reduce("ReduceSum", grad, axes, keepdims=0)
        if missing == 0:
            return self.reduce("ReduceSum", grad, axes, keepdims=1)
        return self.reshape_like(self.reduce("ReduceSum", grad, axes, keepdims=0), like)

    def _unbroadcast_dynamic(self, grad: str, like: str) -> str:
        large, small = self.Shape(grad), self.Shape(like)
        missing = self.Sub(self.Shape(large), self.Shape(small))
        padded = self.Concat(self.fill(missing, 1, np.int64), small, axis=0)
        differs = self.Not(self.Equal(padded, large))
        axes = self.Reshape(self.NonZero(differs), [-1])
        # An additional axis, because onnxruntime sums an empty tensor along all axes if none is given.
        axes = self.Concat([0], self.Add(axes, 1), axis=0)
        summed = self.ReduceSum(self.Unsqueeze(grad, [0]), axes, keepdims=1)
        source, target = self.rank(grad), self.rank(like)
        if source is None or target is None:
            return self.reshape_like(summed, like)
        return self.with_type(self.Squeeze(summed, list(range(1 + source - target))), like)
