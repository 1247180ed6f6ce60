"""Methods of an estimator for Dask collections: lazy predictions, and scores summed over partitions."""

from __future__ import annotations

from typing import Any

from sklearn.utils.metaestimators import available_if

from ..estimators import OrtGradientOptimizer
from ..estimators.fitted_estimator import has_decisions, has_probabilities, predicts, wraps
from ..exceptions import MissingRuntimeError

__all__ = ["LazyMethods", "check_installed"]


def check_installed() -> None:
    """Raise an error if Dask is not installed."""
    try:
        import dask  # noqa: F401
        import distributed  # noqa: F401
    except ImportError as error:
        raise MissingRuntimeError(
            "Training on a cluster needs dask and distributed: pip install 'ortlearn[dask]'."
        ) from error


class LazyMethods(OrtGradientOptimizer):
    """Predictions and scores for arrays in memory and for Dask collections."""

    client: Any
    to_local: Any

    def _computed(self, method: str, X: Any, compute: Any) -> Any:
        """Return the result of a method: lazy for Dask collections, else computed."""
        check_installed()
        from .partitions import are_on_workers

        if not are_on_workers(X):
            return compute(X)
        from .predictions import lazy_predictions

        return lazy_predictions(self.to_local(), method, X)

    @available_if(predicts)
    def predict(self, X: Any) -> Any:
        """Predict, lazily for dask collections.

        Parameters
        ----------
        X : dask array or dataframe, list of delayed, or array-like
            Features.

        Returns
        -------
        dask array, list of Delayed, or ndarray
            Predictions: a dask array for a dask array or dataframe, a list of Delayed for a list, and an
            ndarray for data in memory.
        """
        return self._computed("predict", X, super().predict)

    @available_if(has_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Predict probabilities, lazily for dask collections.

        Parameters
        ----------
        X : dask array or dataframe, list of delayed, or array-like
            Features.

        Returns
        -------
        dask array, list of them, list of Delayed, or ndarray
            Probabilities; a list with one array per output for several outputs with separate classes.
        """
        return self._computed("predict_proba", X, super().predict_proba)

    @available_if(has_probabilities)
    def predict_log_proba(self, X: Any) -> Any:
        """Predict logarithms of probabilities, lazily for dask collections.

        Parameters
        ----------
        X : dask array or dataframe, list of delayed, or array-like
            Features.

        Returns
        -------
        dask array, list of them, list of Delayed, or ndarray
            Logarithms of the result of ``predict_proba``.
        """
        return self._computed("predict_log_proba", X, super().predict_log_proba)

    @available_if(has_decisions)
    def decision_function(self, X: Any) -> Any:
        """Return decisions, lazily for dask collections.

        Parameters
        ----------
        X : dask array or dataframe, list of delayed, or array-like
            Features.

        Returns
        -------
        dask array, list of Delayed, or ndarray
            Decisions.
        """
        return self._computed("decision_function", X, super().decision_function)

    @available_if(wraps("transform"))
    def transform(self, X: Any) -> Any:
        """Transform, lazily for dask collections.

        Parameters
        ----------
        X : dask array or dataframe, list of delayed, or array-like
            Features.

        Returns
        -------
        dask array, list of Delayed, ndarray or frame
            Result of the wrapped model.
        """
        return self._computed("transform", X, super().transform)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Return the score; for Dask collections it is computed on the workers.

        Parameters
        ----------
        X : dask array or dataframe, list of delayed, str, os.PathLike or list of paths, or array-like
            Features.
        y : dask array, series or dataframe, array-like, str or list of str, default=None
            Labels.
        sample_weight : as y, default=None
            Weights of the samples.

        Returns
        -------
        float
            Accuracy, R2, or the score of :class:`~ortlearn.OrtGradientOptimizer`.
        """
        check_installed()
        from .cluster import Cluster, find_client
        from .partitions import are_on_workers

        if not are_on_workers(X):
            return super().score(X, y, sample_weight)
        from .validation import score_on_cluster

        model = self._model()
        cluster = Cluster(find_client(self.client))
        return score_on_cluster(cluster, model, model.runner.runtime, X, y, sample_weight)
