"""What a trained transformer does, in scikit-learn's containers and under its names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils._set_output import _SetOutputMixin, _wrap_data_with_container
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .. import conversion
from .availability import names_features, transforms
from .inference import Inference
from .result_types import as_floats_of

if TYPE_CHECKING:
    from ..conversion import Head

__all__ = ["TransformationMixin"]


class _Transformation:
    """The methods; those of a class that sets the container itself would lose their condition."""

    fit: Any
    _source: Any

    def _rows(self, X: Any) -> Any:
        raise NotImplementedError

    def _runner(self) -> Inference:
        raise NotImplementedError

    def _head(self) -> Head | None:
        raise NotImplementedError

    def _written(self) -> Any:
        raise NotImplementedError

    @available_if(transforms)
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
        rows, head = self._rows(X), self._head()
        from ..preprocessing.readers import last_step  # longer to import than all of ortlearn

        graph_has_it = head is not None and head.transformed is not None
        if graph_has_it:
            values = as_floats_of(X, self._runner().transform(rows))
        else:
            written = self._written()
            values = written.transform(*conversion.untouched(written, X))
        # A container that was chosen for the wrapped model counts where none was chosen here.
        chooser = self if "_sklearn_output_config" in self.__dict__ else last_step(self._source)
        return _wrap_data_with_container("transform", values, X, chooser)

    @available_if(transforms)
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

    @available_if(names_features)
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
        check_is_fitted(self)
        if input_features is None and not hasattr(self._source, "feature_names_in_"):
            input_features = getattr(self, "feature_names_in_", None)
        return np.asarray(self._source.get_feature_names_out(input_features), dtype=object)


class TransformationMixin(_Transformation, _SetOutputMixin):
    """``transform``, ``fit_transform``, ``get_feature_names_out`` and ``set_output``."""
