"""Teachers: their answers, their files, and how close a student is to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import _num_samples

from ..evaluation.bootstrap import Bootstrap
from ..exceptions import OrtlearnError
from ..onnx_files.loading import is_onnx_source, load_onnx
from .files import File, as_file
from .objectives import tempered

__all__ = ["Teachers"]


class Teachers:
    """Teachers, whose answers are averaged."""

    def __init__(self, teachers: Sequence[Any], X: Any) -> None:
        if not teachers:
            raise ValueError("teacher is an empty list: pass at least one model.")
        self.models = [File(load_onnx(one)) if is_onnx_source(one) else one for one in teachers]
        found = [self._classes_of(model, X) for model in self.models]
        if any(not np.array_equal(np.asarray(one), np.asarray(found[0])) for one in found):
            raise ValueError("The teachers have different classes, or are classifiers and regressors.")
        self.classes = found[0]

    @staticmethod
    def _classes_of(model: Any, X: Any) -> np.ndarray | None:
        """Return the classes; indices for an output of probabilities, None for a regressor."""
        if isinstance(model, File):
            if model.classifies:
                return model.reader.classes
            found = model.matrix(X)
            is_share = (
                found.shape[1] > 1 and found.min() >= 0 and np.allclose(found.sum(axis=1), 1, atol=1e-3)
            )
            return np.arange(found.shape[1]) if is_share else None
        return np.asarray(model.classes_) if is_classifier(model) else None

    def answers(self, X: Any) -> np.ndarray:
        """Return mean probabilities, or predictions of shape (n_samples, k)."""
        return np.asarray(np.mean([self._answers(model, X) for model in self.models], axis=0))

    def _answers(self, model: Any, X: Any) -> np.ndarray:
        if isinstance(model, File):
            found = model.matrix(X)
            if self.classes is not None and not np.allclose(found.sum(axis=1), 1, atol=1e-3):
                return tempered(np.exp(found - found.max(axis=1, keepdims=True)), 1.0)
            return found
        if self.classes is None:
            return np.asarray(model.predict(X)).reshape(_num_samples(X), -1)
        if hasattr(model, "predict_proba"):
            return np.asarray(model.predict_proba(X))
        return (np.asarray(model.predict(X))[:, None] == self.classes).astype(np.float64)

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
            own = new.matrix(X)
            shares = np.hstack([1 - own, own]) if own.shape[1] == 1 else own
            agree = (np.asarray(self.classes)[shares.argmax(axis=1)] == labels).astype(float)
            p, q = (np.clip(part, 1e-7, None) for part in (answers, shares))
            kl = (answers * np.log(p / q)).sum(axis=1)
            found = {
                "agreement": lambda weights: float(weights @ agree / weights.sum()),
                "kl": lambda weights: float(weights @ kl / weights.sum()),
            }
        both = Bootstrap(seed=seed).compare(found, found, np.ones(len(labels)))
        return {name: part["new"] for name, part in both.items()}
