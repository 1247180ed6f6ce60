"""Inputs of a model: one matrix, or columns of several kinds by name."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from ..exceptions import ConversionError
from ..graphs import TensorType

#: Name of the input that takes all columns of a matrix.
X_NAME = "X"
FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)
ELEM_TYPES = (
    *FLOATS,
    *(TensorProto.INT64, TensorProto.INT32, TensorProto.INT16, TensorProto.INT8, TensorProto.UINT8),
    *(TensorProto.BOOL, TensorProto.STRING),
)


@dataclass(frozen=True)
class Input:
    """An input of a graph, and where its values come from."""

    name: str
    #: Its type; the first dimension is the samples.
    known: TensorType
    #: Name (of a frame) or position (of an array) of the column it takes; None for all of X.
    column: Hashable | None = None
    #: Position of that column in the X the model was fitted on, where it is known.
    position: int | None = None

    @property
    def dtype(self) -> np.dtype:
        """numpy's type of the values; ``object`` for text."""
        return np.dtype(helper.tensor_dtype_to_np_dtype(self.known.elem_type))


@dataclass(frozen=True)
class InputSchema:
    """The inputs of a graph, at least one."""

    inputs: tuple[Input, ...]
    #: Values that a column may have, by its name or position, where an encoder refuses others.
    categories: Mapping[Hashable, frozenset] = field(default_factory=dict)
    #: Number of columns of X, those that no input takes included; None where it is unknown.
    n_features: int | None = None
    #: Whether columns are found by name, in whatever order they come.
    by_name: bool = False
    #: Columns that a vectorizer reads, None for all of X: none of its texts may be missing.
    documents: frozenset[Hashable | None] = frozenset()

    @property
    def is_matrix(self) -> bool:
        """Whether one input takes all columns."""
        return len(self.inputs) == 1 and self.inputs[0].column is None

    @property
    def is_number_matrix(self) -> bool:
        """Whether one input takes all columns, as floating-point numbers."""
        return self.is_matrix and self.inputs[0].known.elem_type in FLOATS and not self.is_array

    @property
    def is_array(self) -> bool:
        """Whether one input takes all of X, which has no columns: images, sequences, numbers of words."""
        if not self.is_matrix:
            return False
        shape, is_text = self.inputs[0].known.shape, self.inputs[0].known.elem_type == TensorProto.STRING
        numbers_of_any_length = self.inputs[0].known.elem_type not in FLOATS and self.n_features is None
        return shape is not None and (len(shape) > 2 or (numbers_of_any_length and not is_text))

    @property
    def float_dtype(self) -> np.dtype:
        """Type of the floating-point inputs: float64 if one is, float32 otherwise."""
        doubles = any(item.known.elem_type == TensorProto.DOUBLE for item in self.inputs)
        return np.dtype(np.float64 if doubles else np.float32)

    def input_of_column(self) -> dict[int, str] | None:
        """Return the name of the input that takes each column of X; None where one input takes them all."""
        if self.is_matrix:
            return None
        return {item.position: item.name for item in self.inputs if item.position is not None}

    def types(self) -> dict[str, TensorType]:
        """Return the type of each input by its name."""
        return {item.name: item.known for item in self.inputs}


def matrix_schema(n_features: int | tuple[int, ...] | None, dtype: Any = np.float32) -> InputSchema:
    """Return the schema of a model that takes one matrix, as ``X``; ``dtype`` is ``object`` for text.

    ``n_features`` is the shape of a sample where X has more dimensions than two.
    """
    elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    sizes = n_features if isinstance(n_features, tuple) else (n_features,)
    inputs = (Input(X_NAME, TensorType(elem_type, (None, *sizes))),)
    return InputSchema(inputs, n_features=sizes[0] if len(sizes) == 1 else None)


def graph_inputs(
    model: ModelProto, types: Mapping[str, TensorType], label: str | None, row_weight: str | None = None
) -> dict[str, TensorType]:
    """Return the types of the inputs of a graph that take X, in the graph's order.

    ``label`` and ``row_weight`` are the inputs that take the labels and the weights of the samples, where it
    has any. A ConversionError says that no input takes X, or that one is no tensor of numbers or text.
    """
    others = {label, row_weight, *(tensor.name for tensor in model.graph.initializer)}
    names = [value.name for value in model.graph.input if value.name not in others]
    if not names:
        raise ConversionError("The graph has no input that takes X.")
    for name in names:
        if name not in types or types[name].elem_type not in ELEM_TYPES:
            raise ConversionError(f"Input {name!r} of the graph must be a tensor of numbers or text.")
        if types[name].shape == ():
            raise ConversionError(
                f"Input {name!r} of the graph is a single number: X has samples, so that its inputs must "
                "have a first dimension for them. Make this input a constant of the graph."
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
