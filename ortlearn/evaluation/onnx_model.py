"""Predictions of ONNX files by onnxruntime."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from .. import onnx_files
from ..exceptions import ConversionError
from ..graphs import TensorType, copy_model, extract_model, value_types
from ..onnx_files.loading import INTERVALS, load_onnx
from ..onnx_files.scores.outputs import class_table
from ..onnx_files.scores.score_view import ScoreView
from ..preprocessing.column_reading import read_columns
from ..preprocessing.schema import InputSchema, graph_inputs, schema_of_graph
from ..runtime.devices import Device
from ..runtime.errors import runtime_errors
from ..runtime.sessions import make_session
from .data_files import Table
from .predictions import Model, Predictions, check_no_missing, check_numbers, select_columns

__all__ = ["OnnxModel", "are_probabilities", "with_column_names"]

FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)
#: Output and inputs of a graph that computes its own loss, by default.
OWN_LOSS = ("loss", "label", "sample_weight")
#: Largest deviation from one of the sum of the probabilities of a sample.
TOLERANCE = 1e-3
#: Entry of the metadata with the names of the columns of a matrix, as JSON.
COLUMNS = "feature_names"


class OnnxModel(Model):
    """ONNX file. It is a classifier if it has an output of labels (integers or text)."""

    kind = "ONNX"

    def __init__(self, source: Any, path: str, own_loss: tuple[str, str, str] = OWN_LOSS):
        self.source = source
        self.path = path
        self.model = _without_loss(load_onnx(source), *own_loss)
        self.types = value_types(self.model)
        self.outputs = [value.name for value in self.model.graph.output]
        own = ("prediction", "calibrated") if self.intervals else ()  # before those of the model inside
        self._ranked = sorted(self.outputs, key=lambda name: name not in own)
        labels = [name for name in self._ranked if name not in self._floats]
        self.label = labels[0] if labels else None
        self.task = "regression" if self.label is None else "classification"

    @property
    def _floats(self) -> list[str]:
        """Outputs of floating-point numbers."""
        return [name for name in self._ranked if self._type(name).elem_type in FLOATS]

    def _type(self, name: str) -> TensorType:
        return self.types.get(name, TensorType(TensorProto.FLOAT, None))

    @property
    def _groups(self) -> tuple[str, ...]:
        """Input of the groups of samples, if the file has intervals by group."""
        return ("group",) if self.intervals else ()

    @cached_property
    def schema(self) -> InputSchema:
        """The inputs."""
        inputs = graph_inputs(self.model, self.types, None)
        return schema_of_graph({name: known for name, known in inputs.items() if name not in self._groups})

    @cached_property
    def column_names(self) -> list[str] | None:  # type: ignore[override]
        """The inputs, if there are several; for a matrix the names in the metadata, if it has them."""
        if not self.schema.is_matrix:
            return [item.name for item in self.schema.inputs]
        return _names_in_metadata(self.model, self.schema.n_features)

    @cached_property
    def classes(self) -> np.ndarray | None:  # type: ignore[override]
        """Classes in the order of the probabilities, if the graph has them."""
        if self.label is None:
            return None
        try:
            model = onnx_files.open(self.model, trainable=True)
            found = class_table(ScoreView(model, value_types(model)), self.label)
        except ConversionError:
            return None
        return None if found is None else np.asarray(found)

    def features(self, table: Table) -> Any:
        """Return the columns by the names of the inputs, or all of them as a matrix."""
        frame, expected = table.features, self.schema.n_features
        if self.column_names is not None:
            frame = select_columns(table, self.column_names)
        if not self.schema.is_matrix:
            return frame
        if expected is not None and frame.shape[1] != expected:
            raise ValueError(
                f"{table.name} has {frame.shape[1]} columns of features, {self.path} takes {expected}: "
                f"leave out others with --drop. They are {list(frame.columns)}."
            )
        if not self.schema.is_number_matrix:
            return frame.to_numpy(object)
        check_numbers(table, frame)
        return frame.to_numpy(float, na_value=np.nan)

    @cached_property
    def intervals(self) -> dict[str, Any]:
        """Description of the outputs in the file of an interval or a set estimator."""
        texts = [entry.value for entry in self.model.metadata_props if entry.key == INTERVALS]
        try:
            found = json.loads(texts[0]) if texts else {}
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @runtime_errors()
    def outputs_of(self, table: Table) -> dict[str, Any]:
        """Return all outputs by name."""
        groups = next((value for value in self.model.graph.input if value.name in self._groups), None)
        if groups is not None and table.groups is None:
            raise ValueError(
                f"{self.path} has intervals by group: name the column of the groups with --group COLUMN."
            )
        columns = read_columns(self.features(table), self.schema)
        if groups is not None and table.groups is not None:
            is_text = groups.type.tensor_type.elem_type == TensorProto.STRING
            columns[groups.name] = table.groups if is_text else table.groups.astype(np.int64)
        found = dict(zip(self.outputs, self._session.run(self.outputs, columns), strict=True))
        if self.label is not None:  # a class hides that its scores are NaN
            self._check_scores(table, found)
        return found

    def _check_scores(self, table: Table, found: dict[str, Any]) -> None:
        """Raise an error if scores of samples with empty cells are NaN."""
        for name in self._floats:
            if len(found[name]) == len(table):
                check_no_missing(table, self, np.asarray(found[name]))

    def predict(self, table: Table) -> Predictions:
        """Return the predictions."""
        found = self.outputs_of(table)
        if self.label is None:  # others are checked before
            self._check_scores(table, found)
        return self.predictions_of(found, len(table))

    def predictions_of(self, found: dict[str, Any], n_samples: int) -> Predictions:
        """Return the predictions that outputs contain."""
        if self.label is None:
            return Predictions(_column(found[self._ranked[0]], n_samples, self.path))
        values = _column(found[self.label], n_samples, self.path)
        matrix = self._score_matrix([found[name] for name in self._floats], n_samples)
        if matrix is None or not are_probabilities(matrix):
            return Predictions(values, scores=matrix)
        return Predictions(values, np.hstack([1 - matrix, matrix]) if matrix.shape[1] == 1 else matrix)

    @cached_property
    def _session(self) -> Any:
        return make_session(self.model, Device("cpu"))

    def _score_matrix(self, outputs: list[np.ndarray], n_samples: int) -> np.ndarray | None:
        """Return the output with a column per class, preferably of probabilities; None if there is none.

        One column is enough for two classes. If each class has an output, these are the columns.
        """
        arrays = [
            array.reshape(n_samples, -1).astype(np.float64) for array in outputs if len(array) == n_samples
        ]
        n_classes = None if self.classes is None else len(self.classes)
        if len(arrays) > 1 and len(arrays) == n_classes and all(array.shape[1] == 1 for array in arrays):
            return np.hstack(arrays)
        widths = {1, 2} if n_classes == 2 else {n_classes}
        fitting = [array for array in arrays if n_classes is None or array.shape[1] in widths]
        return min(fitting, key=lambda array: not are_probabilities(array), default=None)


def with_column_names(model: ModelProto, names: list[str] | None) -> ModelProto:
    """Return a model with the names of the columns in the metadata, unless it has several inputs."""
    model = copy_model(model)
    if names is not None and len(model.graph.input) == 1:
        for entry in [entry for entry in model.metadata_props if entry.key == COLUMNS]:
            model.metadata_props.remove(entry)
        model.metadata_props.add(key=COLUMNS, value=json.dumps(names))
    return model


def _names_in_metadata(model: ModelProto, n_features: int | None) -> list[str] | None:
    """Return the names of the columns of a matrix; None if there are none that fit."""
    texts = [entry.value for entry in model.metadata_props if entry.key == COLUMNS]
    try:
        names = json.loads(texts[0]) if texts else None
    except ValueError:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    return names if n_features in (None, len(names)) else None


def _without_loss(model: ModelProto, loss: str, label: str, weight: str) -> ModelProto:
    """Return the part of a graph that predicts, without its own loss."""
    outputs = [value.name for value in model.graph.output]
    rest = [name for name in outputs if name != loss]
    if loss not in outputs or not rest or label not in {value.name for value in model.graph.input}:
        return model
    return extract_model(model, rest)


def _column(values: np.ndarray, n_samples: int, path: str) -> np.ndarray:
    """Return an output as one value per sample."""
    if values.size != n_samples:
        raise ValueError(
            f"{path} predicts an array of shape {values.shape} for {n_samples} samples: one value per sample "
            "is supported, and a classifier needs an output of labels."
        )
    return values.reshape(n_samples)


def are_probabilities(matrix: np.ndarray) -> bool:
    """Return whether the numbers of each sample are probabilities, and not decision values."""
    if not ((matrix >= 0) & (matrix <= 1 + TOLERANCE)).all():
        return False
    return matrix.shape[1] == 1 or bool(np.all(np.abs(matrix.sum(axis=1) - 1) < TOLERANCE))
