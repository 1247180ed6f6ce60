"""An estimator converted in the very way of another one of the same structure, to compare the weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from onnx import ModelProto
from sklearn.pipeline import Pipeline

from ...exceptions import ConversionError, WriteBackError
from ...graphs import initializer_arrays
from ..constraints.ties import tie_parameters
from ..fallbacks.fallback import flat_steps
from ..fallbacks.two_types import convert_in_two_types
from ..preparation.unwrapping import unwrap
from ..sklearn_converter import sklearn_to_onnx
from ..trainable_model import TrainableModel

__all__ = ["Reconverted", "core_of", "reconvert"]

#: Operator and position of what reads an initializer first.
Use = tuple[int, int]


@dataclass(frozen=True)
class Reconverted:
    """A graph of an estimator, before it has a head and constraints.

    Attributes
    ----------
    model : onnx.ModelProto
        Graph.
    estimator : estimator
        What it was converted from: without wrappers, and without steps that stay in scikit-learn.
    """

    model: ModelProto
    estimator: Any

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """Initializers by name."""
        return initializer_arrays(self.model)

    @property
    def operators(self) -> list[str]:
        """Kinds of the nodes."""
        return [node.op_type for node in self.model.graph.node]

    @cached_property
    def uses(self) -> list[tuple[Use, str]]:
        """Where initializers are read, and their names."""
        return [
            ((number, position), name)
            for number, node in enumerate(self.model.graph.node)
            for position, name in enumerate(node.input)
            if name in self.arrays
        ]

    def at(self, use: Use) -> np.ndarray | None:
        """Return the initializer that is read somewhere, None where none is."""
        number, position = use
        return self.arrays.get(self.model.graph.node[number].input[position])

    def counterparts(self, name: str, other: Reconverted) -> list[np.ndarray]:
        """Return what another graph has in the place of an initializer; nothing where graphs differ.

        There may be several: equal initializers are stored once.
        """
        if other.operators != self.operators:
            return []
        found = [other.at(use) for use, own in self.uses if own == name]
        distinct = {id(array): array for array in found}.values()
        shape = self.arrays[name].shape
        return [array for array in distinct if array is not None and array.shape == shape]


def core_of(source: Any, trainable: TrainableModel) -> Any:
    """Return the part of an estimator that a trainable model was converted from.

    Parameters
    ----------
    source : estimator
        Estimator, or a copy of it.
    trainable : TrainableModel
        What the conversion came to.

    Returns
    -------
    estimator
        The estimator without wrappers, and without steps that stay in scikit-learn.
    """
    core = unwrap(source).estimator
    if trainable.front is None:
        return core
    return Pipeline(flat_steps(core)[len(trainable.front.steps) :])


def reconvert(source: Any, trainable: TrainableModel) -> Reconverted:
    """Convert an estimator as a trainable model was converted.

    Parameters
    ----------
    source : estimator
        Estimator that the trainable model comes from, or a copy of it with other numbers.
    trainable : TrainableModel
        What the first conversion came to: inputs, and which steps stay in scikit-learn.

    Returns
    -------
    Reconverted
        Graph, its initializers under the names they came with.

    Raises
    ------
    WriteBackError
        If it does not convert.
    """
    core = core_of(source, trainable)
    head = trainable.head
    schema = trainable.schema.renamed(trainable.reserved_names)
    dtype = schema.float_dtype if head is None else head.dtype
    try:
        if schema.float_dtype != dtype and isinstance(core, Pipeline):
            graph = convert_in_two_types(Pipeline(flat_steps(core)), schema)
        else:
            graph = sklearn_to_onnx(core, schema, dtype)
        model, _ = tie_parameters(graph, core)
    except ConversionError as error:
        raise WriteBackError(
            f"{trainable.origin} does not convert once its weights are written: {error}"
        ) from error
    return Reconverted(model, core)
