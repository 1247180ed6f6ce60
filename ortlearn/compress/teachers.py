"""Teachers: their answers, their files, and how close a student is to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ..comparison.measures import folds
from ..evaluation.bootstrap import Bootstrap
from ..evaluation.onnx_model import are_probabilities
from ..exceptions import OrtlearnError
from ..models.capabilities import Bags, capability_of
from ..onnx_files.loading import is_onnx_source, load_onnx
from ..preprocessing.estimator_checks import last_step
from ..preprocessing.initial_fit import after_steps
from .files import File, as_file, label_columns

__all__ = ["Teachers", "cross_fitted_answers", "member_answers", "unseen_by_members"]


class Teachers:
    """Teachers, whose answers are averaged."""

    def __init__(self, teachers: Sequence[Any], X: Any, y: Any = None) -> None:
        if not teachers:
            raise ValueError("teacher is an empty list: pass at least one model.")
        self.models = [File(load_onnx(one)) if is_onnx_source(one) else one for one in teachers]
        found = [self._classes_of(model, X, y) for model in self.models]
        if any(not np.array_equal(np.asarray(one), np.asarray(found[0])) for one in found):
            raise ValueError("The teachers have different classes, or are classifiers and regressors.")
        self.classes = found[0]

    @staticmethod
    def _classes_of(model: Any, X: Any, y: Any) -> np.ndarray | None:
        """Return the classes; indices for outputs without names, None for a regressor."""
        if isinstance(model, File):
            if model.classifies:
                return model.reader.classes
            found, labels = model.matrix(X), np.zeros((1, 2)) if y is None else np.asarray(y)
            is_score = labels.ndim == 1 and labels.dtype.kind in "iub"
            is_class = found.shape[1] > 1 and (is_score or are_probabilities(found))
            return np.arange(found.shape[1]) if is_class else None
        return np.asarray(model.classes_) if is_classifier(model) else None

    def answers(self, X: Any) -> np.ndarray:
        """Return mean probabilities, or predictions of shape (n_samples, k)."""
        return np.asarray(np.mean([self.of_model(model, X) for model in self.models], axis=0))

    def of_model(self, model: Any, X: Any) -> np.ndarray:
        """Return the answers of one model."""
        if isinstance(model, File):
            found = model.matrix(X)
            if self.classes is not None and not are_probabilities(found):
                found = expit(found) if found.shape[1] == 1 else softmax(found, axis=1)
            one = self.classes is not None and found.shape[1] == 1
            return np.hstack([1 - found, found]) if one else found
        if self.classes is None:
            return np.asarray(model.predict(X)).reshape(_num_samples(X), -1)
        if hasattr(model, "predict_proba"):
            return np.asarray(model.predict_proba(X))
        return label_columns(model.predict(X), self.classes)

    def unseen(self, X: Any, y: Any, n_folds: int, seed: int) -> tuple[np.ndarray, bool]:
        """Return answers for samples that a teacher was fitted on as if it had not seen them.

        Members of a bagged ensemble answer for samples that they were not fitted on; other estimators are
        fitted again on parts of the samples. The second result is False if some teacher is neither.
        """
        found, known = list[np.ndarray](), True
        for model in self.models:
            own = self._unseen(model, X, y, n_folds, seed)
            known = known and own is not None
            found.append(self.of_model(model, X) if own is None else own)
        return np.mean(found, axis=0), known

    def _unseen(self, model: Any, X: Any, y: Any, n_folds: int, seed: int) -> np.ndarray | None:
        if isinstance(model, File):
            return None
        found = _out_of_bag(model, X)
        if found is not None or y is None or n_folds < 2:
            return found

        def refitted(X: Any, y: Any) -> Any:
            own = clone(model).fit(X, y)
            return lambda X: self.of_model(own, X)

        return cross_fitted_answers(refitted, X, y, self.classes is not None, n_folds, seed)

    def labels(self, answers: np.ndarray) -> np.ndarray:
        """Return the predicted classes or numbers."""
        if self.classes is not None:
            return np.asarray(self.classes[answers.argmax(axis=1)])
        return answers[:, 0] if answers.shape[1] == 1 else answers

    def files(self, X: Any) -> list[tuple[File, Any]]:
        """Return the files of the teachers with the samples that they take; none without an ONNX form."""
        try:
            found = [as_file(m.model if isinstance(m, File) else m, X, fused=True) for m in self.models]
        except OrtlearnError:
            return []
        return [(File(file), samples) for file, samples in found]

    def fidelity(self, new: File, X: Any, answers: np.ndarray, seed: int) -> dict[str, Any]:
        """Return agreement and divergence, or R2, of a student's answers from those of the teacher."""
        labels = self.labels(answers)
        if self.classes is None:
            found = {"fidelity r2": new.metrics(X, labels)["r2"]}
        else:
            shares = self.of_model(new, X)
            agree = (np.asarray(self.classes)[shares.argmax(axis=1)] == labels).astype(float)
            p, q = (np.clip(part, 1e-7, None) for part in (answers, shares))
            kl = (answers * np.log(p / q)).sum(axis=1)
            found = {
                "agreement": lambda weights: float(weights @ agree / weights.sum()),
                "kl": lambda weights: float(weights @ kl / weights.sum()),
            }
        both = Bootstrap(seed=seed).compare(found, found, np.ones(len(labels)))
        return {name: part["new"] for name, part in both.items()}


def cross_fitted_answers(
    fit: Callable, X: Any, y: Any, classifies: bool, n_folds: int, seed: int
) -> np.ndarray | None:
    """Return answers for each part of the samples of a model fitted on the others.

    None if a class has fewer samples than there are parts.
    """
    labels = np.asarray(y)
    if len(labels) < n_folds or (classifies and np.unique(labels, return_counts=True)[1].min() < n_folds):
        return None
    parts = folds(
        labels if classifies else None, len(labels), np.random.RandomState(seed), n_folds, len(labels)
    )
    found, order = [], []
    for indices, others in parts:
        found.append(fit(_safe_indexing(X, indices), labels[indices])(_safe_indexing(X, others)))
        order.append(others)
    return np.concatenate(found)[np.argsort(np.concatenate(order))]


def unseen_by_members(model: Any, X: Any) -> np.ndarray | None:
    """Return whether each member of a bagged ensemble has not seen a sample; None if that is not known."""
    last = last_step(model)
    bags = None if last is None else capability_of(last, Bags)
    if bags is None:
        return None
    try:
        drawn = bags.drawn(last, np.asarray(after_steps(model, X), dtype=np.float32))
    except (TypeError, ValueError):  # columns that are not numbers
        return None
    return None if drawn is None else ~drawn


def _out_of_bag(model: Any, X: Any) -> np.ndarray | None:
    """Return means over the members that have not seen a sample; None if that is not known."""
    unseen = unseen_by_members(model, X)
    if unseen is None:
        return None
    weights = np.where(unseen.any(axis=1, keepdims=True), unseen, 1.0)
    weights /= weights.sum(axis=1, keepdims=True)
    answers = member_answers(last_step(model), np.asarray(after_steps(model, X), dtype=np.float64))
    return np.asarray(sum(own[:, None] * found for own, found in zip(weights.T, answers, strict=True)))


def member_answers(ensemble: Any, samples: np.ndarray) -> Iterator[np.ndarray]:
    """Yield probabilities of all classes, or predictions, of each member of a bagged ensemble."""
    columns = getattr(ensemble, "estimators_features_", None)
    for number, member in enumerate(ensemble.estimators_):
        own = samples if columns is None else samples[:, columns[number]]
        if not is_classifier(ensemble):
            yield np.asarray(member.predict(own)).reshape(len(own), -1)
            continue
        found = np.zeros((len(own), len(ensemble.classes_)))
        found[:, np.asarray(member.classes_).astype(int)] = member.predict_proba(own)
        yield found
