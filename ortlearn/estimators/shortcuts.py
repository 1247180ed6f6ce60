"""Methods that follow from others, as scikit-learn's estimators have them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from .availability import has_probabilities, predicts_own_rows

__all__ = ["ShortcutsMixin"]


class ShortcutsMixin:
    """``predict_log_proba`` and ``fit_predict``."""

    fit: Any
    predict: Any
    predict_proba: Any

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

    @available_if(predicts_own_rows)
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
