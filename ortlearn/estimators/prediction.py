"""Predictions, scores and losses of a trained estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from ..inference.method_outputs import METHODS
from .fitted_estimator import (
    FittedEstimator,
    has_decisions,
    has_densities,
    has_probabilities,
    predicts,
    wraps,
)

__all__ = ["PredictionMethods"]


class PredictionMethods(FittedEstimator):
    """Methods that predict and score."""

    fit: Any

    @available_if(predicts)
    def predict(self, X: Any) -> np.ndarray:
        """Predict with the trained ONNX model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Classes, cluster indices, or values in the shape that y had in ``fit``, such as
            (n_samples, height, width) for classes of pixels. Floats are float32 if X and the model are
            float32, and float64 otherwise.
        """
        return self._model().predict(X)

    @available_if(has_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Predict probabilities with the trained ONNX model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or list of them
            Probabilities, in the order of ``classes_``: one matrix per output if there are several, one
            column per label of a multi-label classifier or per component of a mixture. An ONNX classifier of
            pixels or time steps has the class axis of its scores. The type is float32 if X and the model are
            float32, and float64 otherwise.
        """
        return self._model().predict_proba(X)

    @available_if(has_probabilities)
    def predict_log_proba(self, X: Any) -> Any:
        """Predict logarithms of probabilities with the trained ONNX model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or list of them
            Logarithms of the result of ``predict_proba``, minus infinity for a probability of zero.
        """
        shares = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return [np.log(part) for part in shares] if isinstance(shares, list) else np.log(shares)

    @available_if(has_decisions)
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the decision values of scikit-learn's ``decision_function``.

        For ONNX models and classifiers without this method, these are the raw scores that the loss is
        computed from. The method is not available if the graph computes votes instead of decision values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Decision values: one per sample for two classes, one per pair of classes for ``SVC`` with
            ``decision_function_shape="ovo"``. The type is float32 if X and the model are float32, and
            float64 otherwise.
        """
        return self._model().decision_function(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the score of the wrapped model with the trained weights.

        It is the accuracy of a classifier and R2 of a regressor, but D2 of ``PoissonRegressor``,
        ``GammaRegressor`` and ``TweedieRegressor``, and the value of ``scoring`` of a search. The score of a
        mixture and of ``PCA`` is the mean log-likelihood of the samples, that of a kernel density their sum,
        that of KMeans the negative inertia. Of models without a score, it is R2 of a transformer's output,
        and the accuracy of an outlier detector. With several outputs, a sample is classified correctly if all
        its labels are correct. For images and sequences, the score is the accuracy over pixels or time steps,
        or the mean of R2 over elements.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Labels.
        sample_weight : array-like of shape (n_samples,) or (n_samples, 1), default=None
            Sample weights; they have the shape of y if each label has a weight.

        Returns
        -------
        float
            Score.

        Raises
        ------
        ValueError
            If sample weights are given and the score of the wrapped model does not take them.
        WriteBackError
            If the score is that of ``to_sklearn()``, which is not available.
        """
        model = self._model()
        return model.score(X, y, sample_weight, getattr(self, "predict", model.predict))

    @available_if(has_densities)
    def score_samples(self, X: Any) -> Any:
        """Return the log-likelihood of each sample, or the normality score of an outlier detector.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-likelihoods, or the decision values of an outlier detector before the offset is subtracted.
            The type is float32 if X and the model are float32, and float64 otherwise.

        Raises
        ------
        WriteBackError
            If ``to_sklearn()``, which outlier detectors need, is not available.
        """
        return self._model().score_samples(X)

    def losses(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Return the training loss of each sample, without penalty.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Labels; not used by mixtures and KMeans.
        sample_weight : array-like of shape (n_samples,) or (n_samples, 1), default=None
            Factors of the losses; the training objective is the sum of the products divided by the sum of the
            weights. They have the shape of y if each label has a weight.

        Returns
        -------
        ndarray of shape (n_samples,)
            Losses; for classes of pixels or time steps, the mean over each sample. The type is float32 if X
            and the model are float32, and float64 otherwise.
        """
        return self._model().losses(X, y, sample_weight)

    def predictor(self, method: str = "predict") -> Any:
        """Return a method as a function of arrays without validation, for fast predictions of few samples.

        The function takes little more time than ONNX Runtime. It keeps the current weights: a later ``fit``
        or ``set_weights`` does not change it. It cannot be pickled or used in another process.

        Parameters
        ----------
        method : {"predict", "predict_proba", "decision_function", "transform"}, default="predict"
            Method.

        Returns
        -------
        callable
            Function of an array of shape (n_samples, n_features) with the type of the graph (float32, unless
            ``dtype`` is float64) that returns the result of the method. It does not detect values that are
            not finite; a wrong type or number of columns raises an ExecutionError.

        Raises
        ------
        ValueError
            If the input of the graph is not a matrix of numbers, or steps of the model run in scikit-learn.
        AttributeError
            If the wrapped model has no such method.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LinearRegression
        >>> from ortlearn import OrtGradientOptimizer
        >>> X = np.linspace(0, 1, 50, dtype=np.float32).reshape(-1, 1)
        >>> trained = OrtGradientOptimizer(LinearRegression(), random_state=0).fit(X, 2 * X.ravel() + 1)
        >>> predict = trained.predictor()
        >>> np.array_equal(predict(X[:1]), trained.predict(X[:1]))
        True
        """
        model = self._model()
        if method in METHODS:
            getattr(self, method)  # raises an AttributeError if the method is not available
        return model.predictor(method)

    @available_if(wraps("fit_predict"))
    def fit_predict(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """Train, then predict the same samples: clusters, components of a mixture, or outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,), default=None
            Labels, as in ``fit``; required for an outlier detector.
        **fit_params : dict
            Other arguments of ``fit``.

        Returns
        -------
        ndarray of shape (n_samples,)
            Result of ``predict``.
        """
        return self.fit(X, y, **fit_params).predict(X)
