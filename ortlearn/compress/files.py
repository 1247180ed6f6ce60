"""Models as ONNX files: how they are made, run on samples, scored and timed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from onnx import ModelProto
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing, assert_all_finite, check_consistent_length
from sklearn.utils.validation import _num_samples, check_is_fitted

from ..evaluation.metrics import Metrics, metrics_of
from ..evaluation.onnx_model import OnnxModel, are_probabilities
from ..evaluation.predictions import Predictions
from ..onnx_files.loading import is_onnx_source, load_onnx, read_onnx
from ..preprocessing.column_reading import read_columns
from ..preprocessing.estimator_checks import is_trainer
from ..preprocessing.missing import has_missing_operators
from ..runtime.deployment import deployed_session
from ..runtime.errors import runtime_errors
from ..targets.encoding import check_labels
from ..trainable.conversion import to_trainable

__all__ = [
    *("CHUNK", "PART", "File", "Samples", "answer_metrics", "as_file", "check_samples", "latencies"),
    *("class_numbers", "label_columns", "split_samples"),
]

#: Samples of one call: of those that are timed, and of the others, as intermediate tensors may be large.
CHUNK, PART = 1000, 100
#: Metrics of a report, the first one that of the gate.
SHOWN = ("accuracy", "r2", "log_loss", "rmse")
#: Rounds of calls whose median is the latency, and seconds after which three are enough.
ROUNDS, ENOUGH = 15, 0.5

Samples = tuple[Any, Any]


class File:
    """An ONNX model that runs on samples as they are given."""

    def __init__(self, model: ModelProto) -> None:
        self.model = model
        self.reader = OnnxModel(model, "the model")

    @property
    def classifies(self) -> bool:
        """Whether an output has labels."""
        return self.reader.label is not None

    @cached_property
    def session(self) -> Any:
        """Session with the optimizations of a deployed file."""
        return deployed_session(self.reader.model)

    def feeds(self, X: Any) -> dict[str, np.ndarray]:
        """Return an array for each input; infinity, and NaN that no operator takes, are errors."""
        found = read_columns(X, self.reader.schema)
        takes_gaps = has_missing_operators(self.model)
        for array in found.values():
            if array.dtype.kind == "f":
                assert_all_finite(array, allow_nan=takes_gaps, input_name="X")
        return found

    @runtime_errors()
    def run(self, X: Any, names: list[str] | None = None) -> dict[str, np.ndarray]:
        """Return outputs by name, computed in chunks."""
        feeds, names = self.feeds(X), self.reader.outputs if names is None else names
        count = len(next(iter(feeds.values())))
        parts = [
            self.session.run(names, {name: array[start : start + PART] for name, array in feeds.items()})
            for start in range(0, count, PART)
        ]
        found = {
            name: np.concatenate(arrays) for name, arrays in zip(names, zip(*parts, strict=True), strict=True)
        }
        for name, array in found.items():
            if array.dtype.kind == "f" and np.isnan(array).any():
                sample = np.flatnonzero(np.isnan(array).reshape(len(array), -1).any(axis=1))[0]
                raise ValueError(
                    f"The output {name!r} of the model is NaN for sample {sample} of X: fill or remove "
                    "values that are missing or very large."
                )
        return found

    def matrix(self, X: Any) -> np.ndarray:
        """Return probabilities or scores of the classes, or predicted numbers, of shape (n_samples, k)."""
        found, count = self.run(X), _num_samples(X)
        if self.classifies:
            predictions = self.reader.predictions_of(found, count)
            parts = (predictions.probabilities, predictions.scores)
            return next(part for part in (*parts, predictions.values) if part is not None).reshape(count, -1)
        return next(found[name] for name in self.reader.outputs).reshape(count, -1).astype(np.float64)

    def labels(self, X: Any) -> np.ndarray:
        """Return the predicted labels, the indices of the largest probabilities, or numbers."""
        if self.classifies:
            return np.asarray(self.predictions(X, None).values)
        found = self.matrix(X)
        return found.argmax(axis=1) if found.shape[1] > 1 and are_probabilities(found) else found

    def predictions(self, X: Any, y: Any) -> Predictions:
        """Return predictions; outputs of several numbers are scores if labels are class indices."""
        if self.classifies:
            return self.reader.predictions_of(self.run(X), _num_samples(X))
        matrix = self.matrix(X)
        if matrix.shape[1] > 1 and np.asarray(y).ndim == 1 and np.asarray(y).dtype.kind in "iub":
            return Predictions(matrix.argmax(axis=1), scores=matrix)
        return Predictions(matrix)

    def metrics(self, X: Any, y: Any) -> Metrics:
        """Return functions of sample weights by the name of the metric."""
        predictions = self.predictions(X, y)
        is_number = not self.classifies and predictions.scores is None
        return _shown(y, predictions, np.empty(0) if is_number else self.reader.classes)


def answer_metrics(answers: np.ndarray, y: Any, classes: np.ndarray | None) -> Metrics:
    """Return the metrics of probabilities, or of numbers if there are no classes."""
    if classes is None:
        return _shown(y, Predictions(answers), np.empty(0))
    return _shown(y, Predictions(classes[answers.argmax(axis=1)], answers), classes)


def _shown(y: Any, predictions: Predictions, classes: np.ndarray | None) -> Metrics:
    """Return the metrics that are shown; scores alone only rank, and ranks of each resample take long."""
    if classes is not None and classes.size:
        label_columns(y, classes)  # raises an error for other labels
    found = metrics_of(np.asarray(y), Predictions(predictions.values, predictions.probabilities), classes)
    return {name: found[name] for name in SHOWN if name in found}


def label_columns(y: Any, classes: np.ndarray | None) -> np.ndarray:
    """Return labels as columns of floats, one per class if there are classes."""
    found = np.asarray(y).reshape(len(y), -1)
    if classes is None:
        return found.astype(np.float64)
    columns = (found == classes).astype(np.float64)
    unknown = list(dict.fromkeys(found[~columns.any(axis=1)].ravel().tolist()))
    if unknown:
        known = f"its classes are {np.asarray(classes).tolist()[:12]}"
        raise ValueError(f"y has labels that are not classes of the model: {unknown[:12]}; {known}.")
    return columns


def as_file(model: Any, X: Any, fused: bool = False) -> tuple[ModelProto, Any]:
    """Return a model as an ONNX file in floats, and the samples that the file takes.

    Steps of a pipeline without an ONNX form stay in scikit-learn, and are applied to the samples.
    """
    if is_onnx_source(model):
        return read_onnx(model)[0], X
    if is_trainer(model):
        return model.get_trained_onnx(), X
    check_is_fitted(model)
    trainable = to_trainable(model, X=X)
    steps = trainable.entry.sklearn_steps
    file = trainable.with_weights(trainable.initial_weights(), fused=fused)
    return file, X if steps is None else steps.transform(X)


def check_samples(X: Any, y: Any, held_out: Any) -> None:
    """Raise a ValueError for no samples, for labels that are missing or not finite, and for other sizes."""
    parts = [("", X, y), *([(" of held_out", *held_out)] if isinstance(held_out, tuple) else [])]
    for name, samples, labels in parts:
        if _num_samples(samples) == 0:
            raise ValueError(
                f"X{name} has no samples: at least some are needed, to measure and to calibrate."
            )
        check_labels(labels, f"y{name}")
        check_consistent_length(samples, labels)


def class_numbers(model: Any, X: Any, y: Any, held_out: Any) -> tuple[Any, Any]:
    """Return y and held_out with class numbers for a file of scores without labels.

    Classes are in sorted order, as in a training; numbers below the number of scores are class numbers.
    """
    source = model.estimator if is_trainer(model) else model
    if y is None or np.ndim(y) != 1 or not is_onnx_source(source):
        return y, held_out
    file, labels, classes = File(load_onnx(source)), np.asarray(y), getattr(model, "classes_", None)
    if file.classifies:
        return y, held_out
    n_scores = file.matrix(_safe_indexing(X, np.arange(1))).shape[1]
    is_number = labels.dtype.kind in "iub" and 0 <= labels.min() and labels.max() < n_scores
    if n_scores == 1 or (classes is None and is_number):
        return y, held_out
    classes = np.unique(labels) if classes is None else classes
    if len(classes) != n_scores:
        raise ValueError(f"y has {len(classes)} classes, and the file {n_scores} scores: pass class numbers.")
    others = (held_out[0], _numbers(held_out[1], classes)) if isinstance(held_out, tuple) else held_out
    return _numbers(labels, classes), others


def _numbers(y: Any, classes: np.ndarray) -> np.ndarray:
    """Return labels as class numbers."""
    return label_columns(y, classes).argmax(axis=1)


def split_samples(X: Any, y: Any, held_out: Any, seed: int, *others: np.ndarray) -> tuple[Any, Any]:
    """Return samples to compress with, and those to measure with; a share of X is stratified by class.

    Both are X and y, followed by other arrays of the first ones, and of the second ones for a share.
    """
    if isinstance(held_out, tuple):
        return (X, y, *others), held_out
    if not 0 < held_out < 1:
        raise ValueError(f"held_out={held_out!r} must be a share between 0 and 1, or the tuple (X, y).")
    indices = np.arange(_num_samples(X))
    labels = None if y is None else np.asarray(y)
    by_class = labels is not None and labels.ndim == 1 and labels.dtype.kind in "iubOUS"
    options: dict[str, Any] = {"test_size": held_out, "random_state": seed}
    try:
        first, second = train_test_split(indices, stratify=labels if by_class else None, **options)
    except ValueError:  # a class with a single sample, or few samples
        first, second = train_test_split(indices, **options)
    arrays = (labels, *others)
    parts = [
        (_safe_indexing(X, part), *(None if array is None else array[part] for array in arrays))
        for part in (first, second)
    ]
    return parts[0], parts[1]


def latencies(files: Sequence[tuple[File, Any]], count: int) -> list[float]:
    """Return the median seconds of a call of each file with a number of its samples; calls take turns."""
    feeds = []
    for file, X in files:
        arrays = file.feeds(X)
        indices = np.arange(count)
        feeds.append({name: array[indices % len(array)] for name, array in arrays.items()})
    times, repeats, begin = list[list[float]](), max(1, 20 // count), time.perf_counter()
    while len(times) < ROUNDS and (len(times) < 3 or time.perf_counter() - begin < ENOUGH):
        times.append([])
        for (file, _), arrays in zip(files, feeds, strict=True):
            start = time.perf_counter()
            for _ in range(repeats):
                file.session.run(None, arrays)
            times[-1].append((time.perf_counter() - start) / repeats)
    return list(np.median(times, axis=0).tolist())
