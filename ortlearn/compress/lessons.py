"""Samples, answers and labels for a student, and the training of each kind of student."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from ..estimators import OrtGradientOptimizer
from ..graphs import extract_model
from ..onnx_files.loading import is_onnx_source, load_onnx
from ..preprocessing.initial_fit import fit_clone, is_fitted
from ..quiet import quiet
from ..trainable.conversion import to_trainable
from ..trainable.from_estimator import write_weights
from .files import File, as_file
from .objectives import VALIDATION, ScoreGraph, Term, fit_answers, tempered
from .students import joined, more_samples, student_of_size
from .teachers import Teachers

__all__ = ["Answers", "Lesson"]

#: Epochs to wait for a lower loss of the samples that decide when a training ends; none is drawn from them.
PATIENCE = 20
#: Fewest samples that are drawn.
FEWEST = 5000
#: What a student learns: samples, answers, labels and weights of samples.
Taught = tuple[Any, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Answers:
    """Answers and labels of some samples, as columns, and answers for samples that are drawn."""

    own: np.ndarray
    labels: np.ndarray
    of: Callable[[Any], np.ndarray]
    alpha: float = 1.0  # weight of the answers in the loss, besides the labels
    weight: float = 1.0  # of drawn samples


@dataclass(frozen=True)
class Lesson:
    """Settings of the training of a student."""

    teachers: Teachers
    student: Any
    temperature: float
    extra: float
    options: Mapping[str, Any]
    hints: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_file(self) -> bool:
        """Whether the student is an ONNX file; texts are sizes unless they end in .onnx."""
        is_size = isinstance(self.student, str) and not self.student.endswith(".onnx")
        return is_onnx_source(self.student) and not is_size

    @property
    def solver(self) -> bool:
        """Whether scikit-learn fits the student: trees, and linear regression."""
        is_size = isinstance(self.student, str) and not self.is_file
        return is_size and self.student.startswith(
            ("trees", "linear") if self.teachers.classes is None else "trees"
        )

    def taught(self, X: Any, answers: Answers) -> tuple[Any, ModelProto, Any]:
        """Return the student, its file, and the function from X to the samples of the file."""
        seed, count = self.options["random_state"], _num_samples(X)
        indices, held = np.arange(count), np.arange(0)
        if not self.solver:
            indices, held = train_test_split(indices, test_size=VALIDATION, random_state=seed)
        parts = [(_safe_indexing(X, own), answers.own[own], answers.labels[own]) for own in (indices, held)]
        more = max(int(self.extra * len(indices)), FEWEST) if np.ndim(X) == 2 and self.extra else 0
        given, options = (*parts[0], np.ones(len(indices))), dict(self.options)
        longer = 1 if answers.weight else 1 + more / len(indices)  # as many updates without drawn samples
        options["max_iter"] = int(options["max_iter"] * longer)
        options["n_iter_no_change"] = int(PATIENCE * longer)
        if more and answers.weight:
            drawn = more_samples(given[0], more, check_random_state(seed))
            found = answers.of(drawn)
            given = (
                joined(given[0], drawn),
                np.vstack([given[1], found]),
                np.vstack([given[2], found]),
                np.r_[given[3], np.full(more, answers.weight)],
            )
        if self.solver:
            return self._solved(given, answers.alpha)
        validation = (*parts[1], np.ones(len(held)))
        if self.teachers.classes is None and not self.is_file:
            return self._regressor(given, validation, answers.alpha, options)
        return self._network(given, validation, answers.alpha, options)

    def model(self, X: Any) -> Any:
        """Return the student as an estimator."""
        if isinstance(self.student, str):
            seed = self.options["random_state"]
            return student_of_size(self.student, X, self.teachers.classes is not None, seed)
        if not isinstance(self.student, BaseEstimator):
            raise ValueError(
                f"student must be an estimator, an ONNX file or a size, not {type(self.student).__name__}."
            )
        return self.student

    def _start(self, X: Any, y: np.ndarray) -> Any:
        """Return the fitted student, as cheaply as its shapes can be had."""
        model = self.model(X)
        if is_fitted(model):
            return model
        seeds, classes = check_random_state(0), self.teachers.classes
        fitted = fit_clone(model, X, y, shapes_only=True, random_state=seeds, classes=classes)
        plain = {k: v for k, v in model.get_params().items() if isinstance(v, int | float | str | tuple)}
        return fitted.set_params(**plain)  # not those of a single iteration

    def _network(self, given: Taught, validation: Taught, alpha: float, options: dict[str, Any]) -> tuple:
        """Return a student whose graph is trained on soft labels, or an ONNX file on numbers."""
        X, classifies = given[0], self.teachers.classes is not None
        start = load_onnx(self.student) if self.is_file else self._start(X, self.teachers.labels(given[1]))
        forced = "classification" if self.is_file and classifies else None
        trainable = to_trainable(start, X=None if self.is_file else X, forced_task=forced)
        steps = trainable.entry.sklearn_steps
        graph, T = ScoreGraph.of(trainable), self.temperature if classifies else 1.0
        terms = [(i, term) for i, term in enumerate([Term(alpha, T), Term(1 - alpha)]) if term.weight > 0]
        hints = self._hints(start, X)

        def columns(taught: Taught) -> dict[str, Any]:
            """Return the samples of the graph with the columns of its label and weights."""
            soft = [tempered(taught[1], T) if classifies else taught[1], taught[2]]
            wanted = [graph.targets(soft[i]) for i, _ in terms]
            wanted += [hint(taught[0]) for _, _, hint in hints]
            samples = taught[0] if steps is None else steps.transform(taught[0])
            return {"X": samples, "labels": np.hstack(wanted), "sample_weight": taught[3]}

        names = {trainable.original_names[name]: name for name in trainable.trained}
        widths = [(own, width, 1.0) for own, width, _ in hints]
        loss = graph.with_loss(graph.model, [term for _, term in terms], widths, weighted=True)
        options |= {"weights": list(names), "validation": columns(validation)}
        found = fit_answers(loss, **columns(given), **options).trained_coef_
        if self.is_file:
            return None, trainable.with_weights({names[name]: found[name] for name in names}), lambda X: X
        return self._finished(write_weights(start, trainable, {name: found[name] for name in names}), X)

    def _hints(self, start: ModelProto, X: Any) -> list[tuple[str, int, Callable]]:
        """Return tensors of a student with their sizes, and functions of X that give those of the teacher."""
        found = []
        for own, other in self.hints.items():
            reader = File(extract_model(self.teachers.models[0].reader.model, [other]))

            def wanted(X: Any, reader: File = reader, other: str = other) -> np.ndarray:
                return reader.run(X)[other].reshape(_num_samples(X), -1)

            first = _safe_indexing(X, np.arange(1))
            sizes = File(extract_model(start, [own])).run(first)[own].size, wanted(first).shape[1]
            if sizes[0] != sizes[1]:
                raise ValueError(
                    f"hints: {own!r} has {sizes[0]} numbers per sample, and {other!r} of the teacher "
                    f"{sizes[1]}: choose tensors of equal size."
                )
            found.append((own, sizes[0], wanted))
        return found

    def _regressor(self, given: Taught, validation: Taught, alpha: float, options: dict[str, Any]) -> tuple:
        """Return a student trained on numbers."""
        y, y_val = (_numbers(taught, alpha) for taught in (given, validation))
        model = self._start(given[0], y)
        options |= {"early_stopping": True, "warm_start": model is self.student}
        trainer = OrtGradientOptimizer(model, **options)
        with quiet(ConvergenceWarning):
            trainer.fit(given[0], y, sample_weight=given[3], X_val=validation[0], y_val=y_val)
        return self._finished(trainer.to_sklearn(), given[0])

    def _solved(self, given: Taught, alpha: float) -> tuple:
        """Return a student that is fitted on numbers, or on each sample once per class, by its share."""
        X, _, _, weights = given
        classes = self.teachers.classes
        model = self.model(X)
        if classes is None:
            samples, y = X, _numbers(given, alpha)
        else:
            shares = alpha * given[1] + (1 - alpha) * given[2]
            numbers, columns = np.nonzero(shares > 1e-3)
            samples, y, weights = (
                _safe_indexing(X, numbers),
                classes[columns],
                (shares * weights[:, None])[numbers, columns],
            )
        return self._finished(model.fit(samples, y, **{f"{model.steps[-1][0]}__sample_weight": weights}), X)

    def _finished(self, model: Any, X: Any) -> tuple:
        """Return a fitted estimator with its file."""
        file, _ = as_file(model, _safe_indexing(X, np.arange(1)), fused=True)
        return model, file, lambda samples: as_file(model, samples)[1]


def _numbers(samples: Taught, alpha: float) -> np.ndarray:
    """Return the mean of answers and labels."""
    found = alpha * samples[1] + (1 - alpha) * samples[2]
    return np.asarray(found[:, 0] if found.shape[1] == 1 else found)
