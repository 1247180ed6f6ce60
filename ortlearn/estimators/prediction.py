"""Predictions, scores and losses of a trained estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from .availability import has_decisions, has_densities, has_probabilities, predicts, wraps
from .fitted_estimator import FittedEstimator
from .method_outputs import METHODS

__all__ = ["PredictionMethods"]


class PredictionMethods(FittedEstimator):
    """Methods that predict and score."""

    fit: Any

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
            Classes, numbers of clusters, or values in the shape that y had in ``fit``, such as
            (n_samples, height, width) for classes of pixels. Floats are float32 where X and the model are, or
            else float64.
        """
        return self._model().predict(X)

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
            of its own, one column per label of a multi-label classifier, one per component of a mixture;
            for an ONNX classifier of pixels or time steps along the axis that its scores have them.
            float32 where X and the model are, or else float64.
        """
        return self._model().predict_proba(X)

    @available_if(has_probabilities)
    def predict_log_proba(self, X):
        """Predict logarithms of probabilities with the trained ONNX model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or list of them
            Logarithms of what ``predict_proba`` returns, minus infinity for a probability of zero.
        """
        found = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return [np.log(part) for part in found] if isinstance(found, list) else np.log(found)

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
        return self._model().decision_function(X)

    def score(self, X, y=None, sample_weight=None):
        """Return the accuracy of a classifier, R2 of a regressor or of a transformer's output.

        A mixture has the mean log-likelihood of the rows, a kernel density their sum, KMeans minus its
        inertia. Several columns of classes are right where all of a row's are. Of images and sequences it is
        the share of right pixels or time steps, or the mean of R2 over elements.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Labels.
        sample_weight : array-like of shape (n_samples,) or (n_samples, 1), default=None
            Weights of the rows; of the shape of y where each label has one.

        Returns
        -------
        float
            Score.
        """
        model = self._model()
        return model.score(X, y, sample_weight, getattr(self, "predict", model.predict))

    @available_if(has_densities)
    def score_samples(self, X):
        """Return the log-likelihood of each row under a density, or how normal an outlier detector finds it.

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
        return self._model().score_samples(X)

    def losses(self, X, y=None, sample_weight=None):
        """Return the training loss of each sample, without penalty.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Labels; none for mixtures and KMeans.
        sample_weight : array-like of shape (n_samples,) or (n_samples, 1), default=None
            Factors of the losses: the mean that is trained is their sum by the sum of the weights. They have
            the shape of y where each label has one.

        Returns
        -------
        ndarray of shape (n_samples,)
            Losses, means over the pixels or time steps of a sample where these have classes: float32 where X
            and the model are, or else float64.
        """
        return self._model().losses(X, y, sample_weight)

    def predictor(self, method="predict"):
        """Return a method as a bare function of arrays, for predictions of few rows at a time.

        It validates nothing, and takes little more time than ONNX Runtime. It has the weights of the moment:
        a later ``fit`` or ``set_weights`` does not change it. It cannot be pickled, and is for the process
        that made it.

        Parameters
        ----------
        method : {"predict", "predict_proba", "decision_function", "transform"}, default="predict"
            Method.

        Returns
        -------
        callable
            Takes an array of shape (n_samples, n_features) of the type of the graph (float32, unless
            ``dtype`` is float64), and returns what the method does. Numbers that are not finite are not
            looked for; another type or number of columns is an ExecutionError.

        Raises
        ------
        ValueError
            If the graph takes more than a matrix of numbers, or steps before it run in scikit-learn.
        AttributeError
            If there is no such method for the wrapped model.

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
        found = self._model()
        if method in METHODS:
            getattr(self, method)  # an AttributeError says why there is no such method
        return found.predictor(method)

    @available_if(wraps("fit_predict"))
    def fit_predict(self, X, y=None, **fit_params):
        """Train, then predict the same rows: clusters, components of a mixture, or outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,), default=None
            Labels, as ``fit`` takes them: an outlier detector needs some.
        **fit_params : dict
            Other arguments of ``fit``.

        Returns
        -------
        ndarray of shape (n_samples,)
            What ``predict`` returns.
        """
        return self.fit(X, y, **fit_params).predict(X)
