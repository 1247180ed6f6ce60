"""``transform`` of a trained transformer, with ``set_output`` and feature names."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils._set_output import _SetOutputMixin, _wrap_data_with_container
from sklearn.utils.metaestimators import available_if

from .fitted_estimator import FittedEstimator, wraps

__all__ = ["TransformerMethods"]


class _Transform(FittedEstimator):
    """Methods; they are not in the class with ``_SetOutputMixin``, which would remove their conditions."""

    fit: Any

    @available_if(wraps("transform"))
    def transform(self, X: Any) -> Any:
        """Transform with the trained model.

        The ONNX model computes the result if it contains the transformation. Otherwise ``to_sklearn()`` does,
        as for discriminant analysis and voting classifiers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_outputs)
            Transformed samples, such as distances to the centres for KMeans, in the container chosen by
            ``set_output``. The type is float32 if X and the model are float32, and float64 otherwise.

        Raises
        ------
        WriteBackError
            If ``to_sklearn()`` is needed and not available.
        """
        from ..preprocessing.estimator_checks import last_step  # slow import

        model = self._model()
        values = model.transform(X)
        # By default, use the container that was chosen for the wrapped model.
        chooser = self if hasattr(self, "_sklearn_output_config") else last_step(model.problem.source)
        return _wrap_data_with_container("transform", values, X, chooser)

    @available_if(wraps("transform"))
    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Train, then transform the same samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Labels, as in ``fit``.
        **fit_params : dict
            Other arguments of ``fit``.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_outputs)
            Result of ``transform``.
        """
        return self.fit(X, y, **fit_params).transform(X)

    @available_if(wraps("transform", "get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the columns of the result of ``transform``.

        Parameters
        ----------
        input_features : array-like of str of shape (n_features,), default=None
            Names of the columns of X; by default those seen in ``fit``, or x0, x1, ...

        Returns
        -------
        ndarray of str
            Names from the wrapped model.
        """
        model = self._model()
        source: Any = model.problem.source
        if input_features is None and not hasattr(source, "feature_names_in_"):
            input_features = model.features.names
        return np.asarray(source.get_feature_names_out(input_features), dtype=object)


class TransformerMethods(_Transform, _SetOutputMixin):
    """``transform``, ``fit_transform``, ``get_feature_names_out`` and ``set_output``."""
