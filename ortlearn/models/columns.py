"""Samples in a graph: a numeric matrix, or columns of several types."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from ..exceptions import ConversionError, limit_address
from ..graphs import GraphBuilder
from ..losses.expressions import softplus
from .fusion import FusedForm

#: Lower bound of probabilities in a logarithm: it bounds the loss of a sample, and the gradient at a
#: probability of zero (as of a leaf or a vote) is zero instead of infinite.
LOWEST = 1e-5


@dataclass(frozen=True)
class Columns:
    """Columns of several types: floats, integers or text."""

    tensors: tuple[str | None, ...]  # of shape (n, 1), for each column; None for unused columns


class SampleWriter(GraphBuilder):
    """Graph builder that selects and concatenates columns of samples."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._matrices: dict[tuple[Columns, np.dtype], str] = {}
        #: Type of samples, which may be wider than that of parameters, ``float_dtype``.
        self.sample_dtype = self.float_dtype
        self.fused: dict[str, FusedForm] = {}  # operators for inference, each by a tensor that it computes

    @property
    def elem_type(self) -> int:
        """ONNX element type of floats, a member of onnx.TensorProto."""
        return helper.np_dtype_to_tensor_dtype(self.float_dtype)

    def columns(self, x: Any, positions: Iterable[int], n_columns: int | None = None) -> Any:
        """Return columns by position; the matrix itself if all ``n_columns`` are selected in order."""
        wanted = [int(position) for position in positions]
        if isinstance(x, Columns):
            known = dict(enumerate(x.tensors))  # unused columns at the end are left out
            return Columns(tuple(known.get(position) for position in wanted))
        if wanted == list(range(n_columns or -1)):
            return x
        kind, found = self.type(x), self.Gather(x, wanted, axis=1)
        if kind is None and self.sample_dtype != self.float_dtype:
            return found
        return self.set_type(found, kind.elem_type if kind else self.elem_type, (None, len(wanted)))

    def column(self, x: str | Columns, position: int) -> str:
        """Return a column without changing its type, of shape (n, 1)."""
        if isinstance(x, Columns):
            tensor = x.tensors[position]
            assert tensor is not None
            return tensor
        return self.Gather(x, [position], axis=1)

    def has_text(self, x: str | Columns) -> bool:
        """Return whether any column of samples is text."""
        types = [self.type(name) for name in (x.tensors if isinstance(x, Columns) else [x]) if name]
        return any(known is not None and known.elem_type == TensorProto.STRING for known in types)

    def matrix(self, x: str | Columns, name: str = "The model") -> str:
        """Return samples as a numeric matrix; raise an error that names the estimator if X has text."""
        if not isinstance(x, Columns):
            return x
        key, elem_type = (x, self.sample_dtype), helper.np_dtype_to_tensor_dtype(self.sample_dtype)
        if key not in self._matrices:
            if self.has_text(x):
                raise ConversionError(
                    f"{name} requires numeric input, but X has text: convert it by X.astype(float) if it "
                    f"represents numbers, or encode it, as in make_pipeline(OneHotEncoder(), {name}(...))."
                )
            tensors = []
            for column in (self.column(x, i) for i in range(len(x.tensors))):
                known = self.type(column)
                is_number = known is None or known.elem_type == elem_type
                tensors.append(column if is_number else self.Cast(column, to=elem_type))
            self._matrices[key] = self.joined(tensors)
        return self._matrices[key]

    def as_samples(self, tensors: Sequence[str]) -> list[str]:
        """Return tensors in the type of parameters in that of samples."""
        if self.sample_dtype == self.float_dtype:
            return list(tensors)
        elem_type = helper.np_dtype_to_tensor_dtype(self.sample_dtype)
        return [self.Cast(tensor, to=elem_type) for tensor in tensors]

    def joined(self, columns: Sequence[str]) -> str:
        """Return matrices concatenated along axis 1."""
        return columns[0] if len(columns) == 1 else self.Concat(*columns, axis=1)

    def look_up(self, tensor: str, keys: Sequence[Any], values: Sequence[int], default: int = 0) -> str:
        """Return the value of each key (text or int64) in a tensor, whose type must be known."""
        options: Any = {"keys_strings" if isinstance(keys[0], str) else "keys_int64s": list(keys)}
        options |= {"values_int64s": list(values), "default_int64": default}
        return self.node("LabelEncoder", tensor, domain="ai.onnx.ml", **options)

    def ones_where(self, condition: str) -> str:
        """Return a condition as 1 and 0."""
        return self.Cast(condition, to=self.elem_type)

    def one_hot(self, indices: str, count: int) -> str:
        """Return the one-hot encoding of indices of shape (n,)."""
        return self.ones_where(self.Equal(self.Reshape(indices, [-1, 1]), np.arange(count, dtype=np.int64)))

    def binary_probabilities(self, second: str) -> str:
        """Return the probabilities of two classes from that of the second, of shape (n, 1)."""
        return self.Concat(self.Sub(1.0, second), second, axis=1)

    def difference(self, matrix: str) -> str:
        """Return the difference of two columns, second minus first, of shape (n, 1)."""
        first, second = (self.Gather(matrix, [column], axis=1) for column in (0, 1))
        return self.Sub(second, first)

    def normalized(self, shares: str, default: float = 0.0, axis: int = 1) -> str:
        """Return rows divided by their sums; ``default`` for rows of zeros."""
        total = self.ReduceSum(shares, [axis], keepdims=1)
        is_zero = self.Equal(total, 0.0)
        result = self.Div(shares, self.Where(is_zero, 1.0, total))
        return self.Where(is_zero, default, result) if default else result

    def log_sigmoids(self, score: str) -> str:
        """Return the logarithms of the sigmoids of scores."""
        return self.Neg(softplus(self, self.Neg(score)))

    def log_probabilities(self, shares: str, lowest: float = LOWEST) -> str:
        """Return the logarithms of probabilities, clipped at ``lowest``."""
        return self.Log(self.Max(shares, lowest))

    def repeated_row(self, x: str | Columns, row: str) -> str:
        """Return a row repeated for each sample, of shape (n, k)."""
        column = next(name for name in x.tensors if name) if isinstance(x, Columns) else self.column(x, 0)
        known = self.type(column)
        elem_type = self.elem_type if known is None else known.elem_type
        if elem_type == TensorProto.STRING:
            zeros = self.look_up(column, [""], [0])
        elif elem_type == TensorProto.INT64:
            zeros = self.Mul(column, 0)
        else:  # NaN times zero is NaN
            zeros = self.Mul(self.Cast(self.IsNaN(column), to=TensorProto.INT64), 0)
        return self.Add(self.Cast(zeros, to=self.elem_type), row)

    def fail(self, estimator: Any, reason: str, limit: str = "unsupported-parameters") -> ConversionError:
        """Return the error for an estimator that cannot be written as ONNX; the reason names a remedy."""
        message = f"{type(estimator).__name__} cannot be written as ONNX: {reason}"
        return ConversionError(message + limit_address(limit))
