"""Samples, directions and gradients of a function in the forms of its callers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from ..graphs import initializer_arrays
from .bare import BareFunction
from .graphs import FunctionGraphs
from .outputs import check_is_smooth
from .sources import Arrays, Source

__all__ = ["FLOATS", "FunctionArrays"]

FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)


class FunctionArrays:
    """Graphs of a function, and the checks of its arguments."""

    def __init__(self, source: Source, model: ModelProto, output: str):
        types = {item.name: item.known.elem_type for item in source.schema.inputs}
        floats = [name for name, kind in types.items() if kind in FLOATS]
        self._source, self._output = source, output
        reached = check_is_smooth(source, model, output, floats)
        self.graphs = FunctionGraphs(model, reached)
        self.bare = BareFunction(self.graphs)
        self._output_shape = self.graphs.output_shape
        self.dtype = source.schema.float_dtype
        self.input_names_ = list(self.graphs.inputs)
        self.classes_ = source.classes
        weights = list(source.parameters.values())
        self.parameters: Arrays = initializer_arrays(model, weights)

    def __repr__(self) -> str:
        return f"differentiable({self._source.name}, {self._output!r}, dtype={self.dtype})"

    @property
    def wraps_columns(self) -> bool:
        """Whether X is not one numeric matrix: columns of several types, or steps in scikit-learn."""
        return not self._source.takes_matrix or self._source.sklearn_steps is not None

    def column_of(self, output: Any, shape: tuple[int, ...] | None = None) -> int | None:
        """Return the column of one output.

        Parameters
        ----------
        output : int or str
            Column, or its class if classes are text; None for the only output.
        shape : tuple of int, default=None
            Shape of the output of a sample, by default that of the graph, which may be unknown.

        Returns
        -------
        int or None
            Column; None if there is only one output.

        Raises
        ------
        ValueError
            If there is no such output, or it is None and there are several.
        """
        index, shape = self._index(output), self._output_shape if shape is None else shape
        if index is None and shape not in (None, (), (1,)):
            text = shape[0] if shape is not None and len(shape) == 1 else f"the shape {shape} of"
            raise ValueError(f"Each sample has {text} outputs: choose one by output=0, 1, ...")
        if index is not None and shape is not None and not -shape[0] <= index < shape[0]:
            raise ValueError(f"output={output!r} is out of range: there are {shape[0]} outputs.")
        return index

    def _shape_of(self, X: Any) -> tuple[int, ...]:
        """Return the shape of the output of a sample, of the graph or of one evaluation."""
        if self._output_shape is None:
            self._output_shape = self.bare(X).shape[1:]
        return self._output_shape

    def read(self, X: Any) -> Any:
        """Validate X, and return it in the form of ``bare``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray or list of ndarray
            Array of type ``dtype``, or one for each input of the graph.
        """
        found = self._source.read(X)
        arrays = [found[name] for name in self.graphs.inputs]
        return arrays[0] if len(arrays) == 1 else arrays

    def _written(self, gradients: Any) -> Any:
        """Return gradients in the form of X."""
        if self._source.takes_matrix:
            return gradients
        parts = [gradients] if isinstance(gradients, np.ndarray) else gradients
        found = dict(zip(self.graphs.wrt, parts, strict=True))
        sizes = {
            name: part.reshape(len(part)) if part.shape[1:] == (1,) else part for name, part in found.items()
        }
        return {item.column: sizes.get(item.name) for item in self._source.schema.inputs}

    def _direction(self, v: Any, X: Any) -> Any:
        """Check a direction, and return it in the form of ``bare``."""
        if self._source.takes_matrix:
            return self._like(v, X, "v", "X")
        if not isinstance(v, Mapping):
            raise ValueError("v must be a dictionary of directions by column, as X has named columns.")
        inputs = dict(zip(self.graphs.inputs, X if isinstance(X, list) else [X], strict=True))
        columns = {item.name: item.column for item in self._source.schema.inputs}
        unknown = [key for key in v if key not in [columns[name] for name in self.graphs.wrt]]
        if unknown:
            raise ValueError(f"v: the columns {unknown} have no gradient, or are unknown.")
        return [
            self._like(np.reshape(v[columns[name]], inputs[name].shape), inputs[name], "v", "X")
            if columns[name] in v
            else np.zeros_like(inputs[name])
            for name in self.graphs.wrt
        ]

    def _like(self, values: Any, like: np.ndarray, name: str, other: str) -> np.ndarray:
        array = np.ascontiguousarray(np.asarray(values), dtype=like.dtype)
        if array.shape != like.shape:
            raise ValueError(
                f"{name} has the shape {array.shape}, but must have that of {other}, {like.shape}."
            )
        return array

    def _cotangent(self, u: Any, X: Any) -> np.ndarray:
        value = self.bare(X)
        if u is not None:
            return self._like(u, value, "u", "the output")
        if value.ndim > 1 and value.shape[1:] != (1,):
            raise ValueError(
                f"The output has the shape {value.shape}: pass u, a weight for each value, of this shape."
            )
        return np.ones_like(value)

    def _index(self, output: Any) -> int | None:
        """Return the column of an output, given by its number or class."""
        rank = self.graphs.rank
        if rank == 1:
            if output not in (None, 0) and output is not True:
                raise ValueError(f"output={output!r}: the function has one output per sample, use None.")
            return None
        classes = None if self.classes_ is None or isinstance(self.classes_, list) else list(self.classes_)
        if output is None:
            return None
        if classes is not None and isinstance(output, str) and output in classes:
            return classes.index(output)
        if isinstance(output, int | np.integer) and not isinstance(output, bool):
            return int(output)
        raise ValueError(
            f"output={output!r} must be the number of a column, or one of the classes {classes}."
        )
