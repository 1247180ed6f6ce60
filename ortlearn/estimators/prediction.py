"""What a trained estimator does: predictions, scores, losses, and its graphs as files."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
from onnx import ModelProto
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_consistent_length, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..conversion import is_onnx_source
from ..training import Device
from ..training.base_step import BaseStep
from .inference import Inference
from .problem import Problem

__all__ = ["PredictionMixin"]


def _is_classifier(self) -> bool:
    kind = self.__dict__.get("_kind")  # known once fitted; tags cost more than a prediction
    return (get_tags(self).estimator_type if kind is None else kind) == "classifier"


def _has_probabilities(self) -> bool:
    """Tell whether probabilities mean something: the wrapped classifier has them."""
    if not _is_classifier(self):
        raise AttributeError("predict_proba is for classifiers; this model is none.")
    return is_onnx_source(self.estimator) or hasattr(self.estimator, "predict_proba")


class PredictionMixin:
    """Methods of a trained estimator."""

    n_jobs: int | None
    n_features_in_: int
    classes_: np.ndarray
    onnx_: ModelProto
    _inference: Inference | None
    _problem: Problem
    _step_class: ClassVar[type[BaseStep]]
    _trained: ModelProto

    def _device(self) -> Device:
        raise NotImplementedError

    def _validate_rows(self, X: Any, dtype: Any, reset: bool) -> np.ndarray:
        raise NotImplementedError

    def _runner(self) -> Inference:
        runner = getattr(self, "_inference", None)
        if runner is None:
            runner = Inference(self._problem, self._trained, self._device(), self.n_jobs)
            self._inference = runner
        return runner

    def _rows(self, X) -> np.ndarray:
        """Return X as the trained graph takes it."""
        if "onnx_" in self.__dict__ and self._is_ready(X):
            return X
        check_is_fitted(self)
        return self._validate_rows(X, self._problem.trainable.input_dtype, reset=False)

    def _is_ready(self, X) -> bool:
        """Tell whether X needs no conversion and has no fault: scikit-learn's checks cost more than a row."""
        ready = (
            type(X) is np.ndarray
            and X.dtype == self._problem.trainable.input_dtype
            and X.flags.c_contiguous
            and X.ndim == 2
            and X.shape[1] == self.n_features_in_
            and len(X) > 0
            and "feature_names_in_" not in self.__dict__
        )
        if not ready:
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            # A sum that is not finite may still be of finite numbers: then the long way decides.
            return math.isfinite(X.sum())

    def predict(self, X):
        """Predict with the trained ONNX model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Classes, or values in the shape that y had in ``fit``.
        """
        rows = self._rows(X)
        return self._runner().predict(rows)

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        """Predict probabilities with the trained ONNX model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        rows = self._rows(X)
        return self._runner().probabilities(rows)

    @available_if(_is_classifier)
    def decision_function(self, X):
        """Return the raw scores that the loss is computed from.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores before sigmoid or softmax; one per row for two classes with a single score.
        """
        rows = self._rows(X)
        scores = self._runner().scores(rows)
        if scores.shape[1] == 2 and len(self.classes_) == 2:
            return scores[:, 1] - scores[:, 0]
        return scores.ravel() if scores.shape[1] == 1 else scores

    def score(self, X, y, sample_weight=None):
        """Return the accuracy of a classifier, R2 of a regressor.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
            Score.
        """
        metric = accuracy_score if _is_classifier(self) else r2_score
        return metric(y, self.predict(X), sample_weight=sample_weight)

    def losses(self, X, y):
        """Return the training loss of each row, without penalty.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels.

        Returns
        -------
        ndarray of shape (n_samples,)
            Losses.
        """
        check_consistent_length(X, y)
        rows = self._rows(X)
        return self._runner().losses(rows, self._problem.encoder.encode(y))

    def get_trained_onnx(self) -> ModelProto:
        """Return a copy of the trained ONNX model, its weights under the names they came with."""
        check_is_fitted(self)
        return copy.deepcopy(self.onnx_)

    def save_onnx_graph(self, folder) -> dict[str, Path]:
        """Write the trained model and the training graphs to files.

        Parameters
        ----------
        folder : str or pathlib.Path
            Where; it is made if missing.

        Returns
        -------
        dict of str to pathlib.Path
            Path of each file: ``trained`` and the graphs of the training step.
        """
        check_is_fitted(self)
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        step = getattr(self, "_step", None)
        if step is None:
            step = self._step_class(self._problem.task(False), self._device(), self.n_jobs)
        models = {"trained": self.onnx_, **step.graphs()}
        paths = {name: folder / f"{name}.onnx" for name in models}
        for name, model in models.items():
            onnx.save(model, paths[name])
        return paths
