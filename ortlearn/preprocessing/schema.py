"""Inputs of a model: one matrix, or columns by name."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from ..exceptions import ConversionError
from ..graphs import TensorType

X_NAME = "X"  # name of the input of a matrix
FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)
ELEM_TYPES = (
    *FLOATS,
    *(TensorProto.INT64, TensorProto.INT32, TensorProto.INT16, TensorProto.INT8, TensorProto.UINT8),
    *(TensorProto.BOOL, TensorProto.STRING),
)


@dataclass(frozen=True)
class Input:
    """An input of a graph, and the source of its values."""

    name: str
    known: TensorType  # type, samples first
    column: Hashable | None = None  # name, in a frame, or position, in an array; None for all of X
    position: int | None = None  # of the column in the X of the fit, if known

    @property
    def dtype(self) -> np.dtype:
        """NumPy type of the values, ``object`` for text."""
        return np.dtype(helper.tensor_dtype_to_np_dtype(self.known.elem_type))


@dataclass(frozen=True)
class InputSchema:
    """The inputs of a graph, at least one."""

    inputs: tuple[Input, ...]
    #: Values of columns whose encoder refuses others, by name or position.
    categories: Mapping[Hashable, frozenset] = field(default_factory=dict)
    n_features: int | None = None  # columns of X, including unused ones; None if unknown
    by_name: bool = False  # whether columns are found by name, in any order
    documents: frozenset[Hashable | None] = frozenset()  # columns of vectorizers, without missing texts

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
        """Whether one input takes all of X, which has no columns: images, sequences, token ids."""
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
    """Return the schema of a matrix, or of samples of a shape ``n_features``; dtype object is text."""
    elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    sizes = n_features if isinstance(n_features, tuple) else (n_features,)
    inputs = (Input(X_NAME, TensorType(elem_type, (None, *sizes))),)
    return InputSchema(inputs, n_features=sizes[0] if len(sizes) == 1 else None)


def graph_inputs(
    model: ModelProto, types: Mapping[str, TensorType], label: str | None, row_weight: str | None = None
) -> dict[str, TensorType]:
    """Return the types of the inputs of a graph that take X rather than labels and sample weights."""
    others = {label, row_weight, *(tensor.name for tensor in model.graph.initializer)}
    names = [value.name for value in model.graph.input if value.name not in others]
    if not names:
        raise ConversionError("The graph has no input for X: export the model with one.")
    for name in names:
        if name not in types or types[name].elem_type not in ELEM_TYPES:
            raise ConversionError(f"Input {name!r} of the graph must be a tensor of numbers or text.")
        if types[name].shape == ():
            raise ConversionError(
                f"Input {name!r} of the graph is a scalar, without a dimension for samples: make it a "
                "constant of the graph."
            )
    return {name: types[name] for name in names}


def schema_of_graph(types: Mapping[str, TensorType]) -> InputSchema:
    """Return the schema of a file: one input takes all of X, several take the columns of their names."""
    if len(types) == 1:
        ((name, known),) = types.items()
        width = None if known.shape is None or len(known.shape) > 2 else (*known.shape, 1)[1]
        return InputSchema((Input(name, known),), n_features=width if isinstance(width, int) else None)
    inputs = tuple(Input(name, known, name) for name, known in types.items())
    return InputSchema(inputs, by_name=True)
