"""``transform`` of a trained transformer, in scikit-learn's containers and under its names."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils._set_output import _SetOutputMixin, _wrap_data_with_container
from sklearn.utils.metaestimators import available_if

from .availability import wraps
from .fitted_estimator import FittedEstimator

__all__ = ["TransformerMethods"]


class _Transform(FittedEstimator):
    """The methods; those of a class that sets the container itself would lose their condition."""

    fit: Any

    @available_if(wraps("transform"))
    def transform(self, X):
        """Transform with the trained model.

        What the ONNX model predicts comes from it. What it does not hold, as the transformation by a
        discriminant analysis or the predictions of the members of a vote, comes from ``to_sklearn()``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_outputs)
            What the wrapped model gives: distances to the centres for KMeans. ``set_output`` chooses
            the container. float32 where X and the model are, or else float64.

        Raises
        ------
        WriteBackError
            If ``to_sklearn()`` is needed and cannot be.
        """
        from ..preprocessing.estimator_checks import last_step  # longer to import than all of ortlearn

        model = self._model()
        values = model.transform(X)
        # A container that was chosen for the wrapped model counts where none was chosen here.
        chooser = self if hasattr(self, "_sklearn_output_config") else last_step(model.problem.source)
        return _wrap_data_with_container("transform", values, X, chooser)

    @available_if(wraps("transform"))
    def fit_transform(self, X, y=None, **fit_params):
        """Train, then transform the same rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Labels, as ``fit`` takes them.
        **fit_params : dict
            Other arguments of ``fit``.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_outputs)
            What ``transform`` returns.
        """
        return self.fit(X, y, **fit_params).transform(X)

    @available_if(wraps("transform", "get_feature_names_out"))
    def get_feature_names_out(self, input_features=None):
        """Return the names of the columns that ``transform`` gives.

        Parameters
        ----------
        input_features : array-like of str of shape (n_features,), default=None
            Names of the columns of X; those seen in ``fit``, or else x0, x1, ... by default.

        Returns
        -------
        ndarray of str
            Names, as the wrapped model makes them.
        """
        model = self._model()
        source: Any = model.problem.source
        if input_features is None and not hasattr(source, "feature_names_in_"):
            input_features = model.features.names
        return np.asarray(source.get_feature_names_out(input_features), dtype=object)


class TransformerMethods(_Transform, _SetOutputMixin):
    """``transform``, ``fit_transform``, ``get_feature_names_out`` and ``set_output``."""
