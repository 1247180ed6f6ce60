"""Predictions of scikit-learn models."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import NotFittedError

from ..preprocessing.initial_fit import is_fitted
from ..preprocessing.readers import first_readers, selected_names
from .data_files import Table
from .predictions import Model, Predictions, explain_values, select_columns
from .table_checks import text_columns

__all__ = ["SklearnModel"]


class SklearnModel(Model):
    """Estimator or pipeline of scikit-learn, of a ``.skops`` file."""

    kind = "scikit-learn"

    def __init__(self, estimator: Any, path: str):
        self.source = estimator
        self.path = path
        self.is_fitted = is_fitted(estimator)
        self.task = (
            "classification"
            if is_classifier(estimator)
            else "regression"
            if is_regressor(estimator)
            else None
        )
        classes = getattr(estimator, "classes_", None) if self.task == "classification" else None
        self.classes = None if classes is None or isinstance(classes, list) else np.asarray(classes)
        names = getattr(estimator, "feature_names_in_", None)
        selected = selected_names(estimator) if self.is_fitted else None
        if selected is not None:  # such as those of a ColumnTransformer, which ignores the others
            read = {reader.position for reader in first_readers(estimator, range(len(selected)))}
            names = [name for position, name in enumerate(selected) if position in read]
        self.column_names = None if names is None else [str(name) for name in names]

    def features(self, table: Table) -> Any:
        """Return the columns that the model was fitted on; an array if it has no names of features."""
        if self.column_names is not None:
            return select_columns(table, self.column_names)
        if not self.is_fitted:
            return table.features
        frame = table.features
        if not hasattr(self.source, "n_features_in_") and frame.shape[1] == 1 and text_columns(frame):
            return frame.iloc[:, 0].to_numpy(object)  # documents
        return frame.to_numpy(object) if text_columns(frame) else frame.to_numpy(float, na_value=np.nan)

    def predict(self, table: Table) -> Predictions:
        """Return the predictions of a fitted model."""
        if not self.is_fitted:
            raise NotFittedError(f"{self.path}: the model is not fitted.")
        with explain_values(table, self.column_names):
            X = self.features(table)
            values = np.asarray(self.source.predict(X))
            if values.ndim == 2 and values.shape[1] == 1:
                values = values.ravel()
            if values.ndim != 1:
                raise ValueError(
                    f"{self.path} predicts {values.shape[1]} values per sample, but only one is supported."
                )
            if self.task != "classification":
                return Predictions(values)
            if hasattr(self.source, "predict_proba"):
                return Predictions(values, probabilities=np.asarray(self.source.predict_proba(X)))
            if hasattr(self.source, "decision_function"):
                return Predictions(values, scores=np.asarray(self.source.decision_function(X)))
            return Predictions(values)
