"""What a trained estimator does: predictions, scores and losses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import ModelProto
from scipy.sparse import issparse
from sklearn.utils import check_consistent_length
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .. import conversion
from ..preprocessing.columns import as_array_like, count_rows
from ..training import Device
from .availability import has_decisions, has_densities, has_probabilities, predicts
from .export import ExportMixin
from .inference import Inference
from .problem import Problem
from .result_types import as_floats_of, probabilities_as_floats_of
from .transformation import TransformationMixin
from .validation import check_weights, flat_weights
from .weights import WeightsMixin

if TYPE_CHECKING:
    from ..conversion import Head

__all__ = ["PredictionMixin"]


def _dense(y) -> np.ndarray:
    return y.toarray() if issparse(y) else np.asarray(y)


class PredictionMixin(ExportMixin, WeightsMixin, TransformationMixin):
    """Methods of a trained estimator."""

    n_jobs: int | None
    n_features_in_: int
    classes_: np.ndarray
    onnx_: ModelProto
    _inference: Inference | None
    _problem: Problem
    _trained: ModelProto

    def _device(self) -> Device:
        raise NotImplementedError

    def _read(self, problem: Problem, X: Any) -> Any:
        raise NotImplementedError

    def _runner(self) -> Inference:
        runner = getattr(self, "_inference", None)
        if runner is None:
            runner = Inference(self._problem, self._trained, self._device(), self.n_jobs)
            self._inference = runner
        return runner

    def _rows(self, X) -> Any:
        """Return X as the trained graph takes it."""
        if "onnx_" in self.__dict__ and self._is_ready(X):
            return X
        check_is_fitted(self)
        return self._read(self._problem, X)

    def _is_ready(self, X) -> bool:
        """Tell whether X needs no conversion and has no fault: scikit-learn's checks cost more than a row."""
        ready = (
            type(X) is np.ndarray
            and self._problem.trainable.takes_numbers
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

    @available_if(predicts)
    def predict(self, X):
        """Predict with the trained ONNX model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Classes, numbers of clusters, or values in the shape that y had in ``fit``: float32 where X and
            the model are, or else float64.
        """
        rows = self._rows(X)
        found = self._runner().predict(rows)
        return as_floats_of(X, found) if self._problem.classes is None else found

    @available_if(has_probabilities)
    def predict_proba(self, X):
        """Predict probabilities with the trained ONNX model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or list of them
            Probabilities, in the order of ``classes_``; one matrix per output where each has classes
            of its own, one column per label of a multi-label classifier, one per component of a mixture.
            float32 where X and the model are, or else float64.
        """
        rows = self._rows(X)
        found = self._runner().probabilities(rows)
        if isinstance(found, list):
            return [probabilities_as_floats_of(X, part, True) for part in found]
        head = self._problem.trainable.head
        return probabilities_as_floats_of(X, found, head is None or head.task != "multilabel")

    @available_if(has_decisions)
    def decision_function(self, X):
        """Return what scikit-learn's ``decision_function`` gives, where the wrapped classifier has one.

        Of other classifiers, and of ONNX models, these are the raw scores that the loss is computed from.
        A graph that holds votes of members in the place of their decisions has no such method.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores; one per row for two classes, one per pair of classes for ``SVC`` with
            ``decision_function_shape="ovo"``. float32 where X and the model are, or else float64.
        """
        rows = self._rows(X)
        scores = as_floats_of(X, self._runner().scores(rows))
        if scores.shape[1] == 2 and len(self._problem.classes) == 2 and not self._is_multilabel():
            return scores[:, 1] - scores[:, 0]
        return scores.ravel() if scores.shape[1] == 1 else scores

    def score(self, X, y=None, sample_weight=None):
        """Return the accuracy of a classifier, R2 of a regressor or of a transformer's output.

        A mixture has the mean log-likelihood of the rows, KMeans minus its inertia. Several columns
        of classes are right where all of a row's are.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Labels.
        sample_weight : array-like of shape (n_samples,) or (n_samples, 1), default=None
            Weights of the rows.

        Returns
        -------
        float
            Score.
        """
        head = self._head()
        y, sample_weight = as_array_like(y, "y"), flat_weights(sample_weight)
        if head is not None and head.task == "unsupervised":
            losses = self.losses(X).astype(np.float64)
            if head.likelihood is not None:
                return -float(np.average(losses, weights=sample_weight))
            return -float(losses.sum() if sample_weight is None else np.dot(sample_weight, losses))
        from sklearn.metrics import accuracy_score, r2_score  # longer to import than all of ortlearn

        if self._is_multilabel():
            right = (_dense(self.predict(X)) == _dense(y)).all(axis=1)
            return float(np.average(right, weights=sample_weight))
        if head is not None and head.transformed is not None:
            return r2_score(y, self.transform(X), sample_weight=sample_weight)
        metric = accuracy_score if self._problem.classes is not None else r2_score
        return metric(y, self.predict(X), sample_weight=sample_weight)

    @available_if(has_densities)
    def score_samples(self, X):
        """Return the log-likelihood of each row under a mixture, or how normal an outlier detector finds it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-likelihoods; the decisions of an outlier detector before its threshold. float32 where X and
            the model are, or else float64.

        Raises
        ------
        WriteBackError
            If ``to_sklearn()``, which scores for an outlier detector, cannot be.
        """
        rows, head = self._rows(X), self._head()
        if head is not None and head.likelihood is not None:
            return as_floats_of(X, self._runner().likelihoods(rows))
        written = self._written()
        return written.score_samples(*conversion.untouched(written, X))

    def _head(self) -> Head | None:
        check_is_fitted(self)
        return self._problem.trainable.head

    def _is_multilabel(self) -> bool:
        head = self._head()
        return head is not None and head.task == "multilabel"

    def losses(self, X, y=None, sample_weight=None):
        """Return the training loss of each sample, without penalty.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Labels; none for mixtures and KMeans.
        sample_weight : array-like of shape (n_samples,) or (n_samples, 1), default=None
            Factors of the losses: the mean that is trained is their sum by the sum of the weights.

        Returns
        -------
        ndarray of shape (n_samples,)
            Losses: float32 where X and the model are, or else float64.
        """
        y = as_array_like(y, "y")
        check_consistent_length(np.empty(count_rows(X)), y)
        rows = self._rows(X)
        found = self._runner().losses(rows, self._problem.encoder.encode(y, rows.shape[0]))
        if sample_weight is not None:
            found = found * check_weights(flat_weights(sample_weight), rows.shape[0]).astype(found.dtype)
        return as_floats_of(X, found)
