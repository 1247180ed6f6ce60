"""Schemas of inputs: a matrix, or an input for each column, from a graph or from samples."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper
from scipy.sparse import issparse

from ..exceptions import ConversionError
from ..graphs import TensorType
from .columns import as_columns, check_has_columns, column_keys, column_kind, column_values, is_frame
from .readers import Reader, first_readers, selected_names

X_NAME = "X"  # name of the input of a matrix
FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)
ELEM_TYPES = (
    *FLOATS,
    *(TensorProto.INT64, TensorProto.INT32, TensorProto.INT16, TensorProto.INT8, TensorProto.UINT8),
    *(TensorProto.BOOL, TensorProto.STRING),
)


@dataclass(frozen=True)
class Input:
    """An input of a graph, and its columns of X."""

    name: str
    known: TensorType  # samples first
    column: Hashable | None = None  # name in a frame, or position in an array; None for all columns
    position: int | None = None  # position of the column in X of the fit, if known

    @property
    def dtype(self) -> np.dtype:
        """NumPy type, ``object`` for text."""
        return np.dtype(helper.tensor_dtype_to_np_dtype(self.known.elem_type))


@dataclass(frozen=True)
class InputSchema:
    """One or more inputs of a graph."""

    inputs: tuple[Input, ...]
    #: Accepted categories, by name or position of columns whose encoder or model rejects unknown ones.
    categories: Mapping[Hashable, frozenset] = field(default_factory=dict)
    n_features: int | None = None  # columns of X, including unused ones; None if unknown
    by_name: bool = False  # whether columns are found by name, in any order
    documents: frozenset[Hashable | None] = frozenset()  # columns of vectorizers, which reject missing values
    whole: frozenset[Hashable] = frozenset()  # columns whose values are truncated to categories

    @property
    def is_matrix(self) -> bool:
        """Whether one input takes all columns."""
        return len(self.inputs) == 1 and self.inputs[0].column is None

    @property
    def is_number_matrix(self) -> bool:
        """Whether one input takes all columns as floating-point numbers."""
        return self.is_matrix and self.inputs[0].known.elem_type in FLOATS and not self.is_array

    @property
    def is_array(self) -> bool:
        """Whether one input takes all of X, which has no columns, such as images or token ids."""
        if not self.is_matrix:
            return False
        shape, is_text = self.inputs[0].known.shape, self.inputs[0].known.elem_type == TensorProto.STRING
        numbers_of_any_length = self.inputs[0].known.elem_type not in FLOATS and self.n_features is None
        return shape is not None and (len(shape) > 2 or (numbers_of_any_length and not is_text))

    @property
    def float_dtype(self) -> np.dtype:
        """Type of the floating-point inputs, float64 if any, float32 otherwise."""
        doubles = any(item.known.elem_type == TensorProto.DOUBLE for item in self.inputs)
        return np.dtype(np.float64 if doubles else np.float32)

    def input_of_column(self) -> dict[int, str] | None:
        """Return the name of the input of each column of X; None if one input takes them all."""
        if self.is_matrix:
            return None
        return {item.position: item.name for item in self.inputs if item.position is not None}

    def types(self) -> dict[str, TensorType]:
        """Return the type of each input by its name."""
        return {item.name: item.known for item in self.inputs}


def matrix_schema(n_features: int | tuple[int, ...] | None, dtype: Any = np.float32) -> InputSchema:
    """Return the schema of a matrix, or of samples of shape ``n_features``; dtype object is for text."""
    elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    sizes = n_features if isinstance(n_features, tuple) else (n_features,)
    inputs = (Input(X_NAME, TensorType(elem_type, (None, *sizes))),)
    return InputSchema(inputs, n_features=sizes[0] if len(sizes) == 1 else None)


def graph_inputs(
    model: ModelProto, types: Mapping[str, TensorType], label: str | None, sample_weight: str | None = None
) -> dict[str, TensorType]:
    """Return the types of the inputs of a graph, except those for labels and sample weights."""
    others = {label, sample_weight, *(tensor.name for tensor in model.graph.initializer)}
    names = [value.name for value in model.graph.input if value.name not in others]
    if not names:
        raise ConversionError("The graph has no input for X: export the model with an input.")
    for name in names:
        if name not in types or types[name].elem_type not in ELEM_TYPES:
            raise ConversionError(f"Input {name!r} of the graph must be a tensor of numbers or text.")
        if types[name].shape == ():
            raise ConversionError(
                f"Input {name!r} of the graph is a scalar, without a dimension for samples: replace it by a "
                "constant."
            )
    return {name: types[name] for name in names}


def schema_of_graph(types: Mapping[str, TensorType]) -> InputSchema:
    """Return the schema of a graph: a single input takes all of X, several inputs take columns by name."""
    if len(types) == 1:
        ((name, known),) = types.items()
        width = None if known.shape is None or len(known.shape) > 2 else (*known.shape, 1)[1]
        return InputSchema((Input(name, known),), n_features=width if isinstance(width, int) else None)
    inputs = tuple(Input(name, known, name) for name, known in types.items())
    return InputSchema(inputs, by_name=True)


#: Largest integers up to which float32 and float64 are exact.
EXACT = {np.dtype(np.float32): 2**24, np.dtype(np.float64): 2**53}


def input_schema(X: Any, estimator: Any, dtype: Any = np.float32) -> InputSchema:
    """Return the schema of a fitted estimator for given samples."""
    # Numbers are one matrix. There is an input for each column that the estimator reads if columns contain
    # text, or categories too large for the float type, or are selected by name.
    dtype = np.dtype(dtype)
    if issparse(X):
        _check_count(X.shape[1], estimator)
        return matrix_schema(X.shape[1], dtype)
    X = as_columns(X)
    if not is_frame(X) and X.ndim > 2:  # images
        return matrix_schema(X.shape[1:], dtype)
    if not is_frame(X) and X.ndim == 1 and X.dtype.kind in "OUT":  # documents
        texts = Input("X", TensorType(TensorProto.STRING, (None, 1)))
        vectorized = any(reader.vectorizes for reader in first_readers(estimator, [0]))
        return InputSchema((texts,), n_features=1, documents=frozenset([None] if vectorized else []))
    names_of_fit = selected_names(estimator) if is_frame(X) else None
    by_name = names_of_fit is not None
    keys = column_keys(X) if names_of_fit is None else names_of_fit
    _check_count(len(keys), estimator)
    readers = list(first_readers(estimator, range(len(keys))))
    if by_name:
        check_has_columns(X, sorted({keys[reader.position] for reader in readers}, key=str))
    categories = _categories(readers, keys)
    whole = frozenset(keys[reader.position] for reader in readers if hasattr(reader.step, "n_categories_"))
    if not by_name and _are_numbers(X, keys, readers, dtype):
        by_position: dict[Hashable, frozenset] = {keys.index(k): v for k, v in categories.items()}
        found = matrix_schema(len(keys), dtype)
        return replace(found, categories=by_position, whole=frozenset(map(keys.index, whole)))
    if not is_frame(X) and X.dtype.kind in "UT":
        return matrix_schema(len(keys), object)
    documents = frozenset(keys[reader.position] for reader in readers if reader.vectorizes)
    inputs = _inputs_of_columns(X, keys, readers, dtype)
    return InputSchema(inputs, categories, len(keys), by_name, documents, whole)


def _inputs_of_columns(
    X: Any, keys: list[Hashable], readers: list[Reader], dtype: np.dtype
) -> tuple[Input, ...]:
    """Return an input for each column that is read, with the name of the column if it has one."""
    inputs: dict[str, Input] = {}
    for number, position in enumerate(sorted({reader.position for reader in readers})):
        key = keys[position]
        name = key if is_frame(X) and isinstance(key, str) and key else f"X{number if is_frame(X) else key}"
        while name in inputs:
            name = f"{name}_"
        column_readers = [reader for reader in readers if reader.position == position]
        known = TensorType(_elem_type(column_values(X, key), key, column_readers, dtype), (None, 1))
        inputs[name] = Input(name, known, key, position)
    return tuple(inputs.values())


def _check_count(n_columns: int, estimator: Any) -> None:
    expected = getattr(estimator, "n_features_in_", 0) or n_columns  # 0 for CatBoost after pickle
    if n_columns != expected:
        raise ValueError(
            f"X has {n_columns} features, but the model to train is expecting {expected} features as input."
        )


def _are_numbers(X: Any, keys: list[Hashable], readers: list[Reader], dtype: np.dtype) -> bool:
    """Return whether all columns are numbers, with categories that are exact in the float type."""
    if not is_frame(X) and X.dtype.kind == "f":
        return True
    coded = {reader.position for reader in readers if reader.encodes}
    for position, key in enumerate(keys):
        values = column_values(X, key)
        kind = column_kind(values)
        if kind not in ("float", "integer", "bool"):
            return False
        if position in coded and kind == "integer" and np.abs(values).max(initial=0) > EXACT[dtype]:
            return False
    return True


def _elem_type(values: np.ndarray, key: Hashable, readers: Iterable[Reader], dtype: np.dtype) -> int:
    """Return the type of the input of a column."""
    kind = column_kind(values)
    if kind == "text":
        return TensorProto.STRING
    if kind == "other":
        raise ConversionError(
            f"Column {key!r} of X has values other than numbers or text, which ONNX does not support: "
            "convert or drop it."
        )
    if kind != "float" and all(reader.encodes and not reader.imputed for reader in readers):
        return TensorProto.INT64
    return helper.np_dtype_to_tensor_dtype(dtype)


def _categories(readers: Iterable[Reader], keys: list[Hashable]) -> dict[Hashable, frozenset]:
    """Return the accepted categories of columns whose encoder or model rejects unknown ones."""
    known: dict[Hashable, frozenset] = {}
    for reader in readers:
        if reader.encodes and getattr(reader.step, "handle_unknown", None) == "error":
            values = frozenset(np.asarray(reader.step.categories_[reader.index]).tolist())
            values |= {None} if reader.imputed else set()
        elif hasattr(reader.step, "n_categories_"):  # CategoricalNB
            values = frozenset(range(reader.step.n_categories_[reader.index]))
        else:
            continue
        key = keys[reader.position]
        known[key] = known.get(key, values) & values
    return known
