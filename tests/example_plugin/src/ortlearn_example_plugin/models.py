"""An estimator of this package, and its model definition."""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ortlearn.models import ModelDefinition
from ortlearn.models.constraints.signs import Positive
from ortlearn.models.scores import regression

__all__ = ["PowerLawDefinition", "PowerLawRegressor"]


class PowerLawRegressor(RegressorMixin, BaseEstimator):
    """``scale_ * prod(x ** exponents_)`` of positive features, fitted by least squares of the logarithms.

    Attributes
    ----------
    exponents_ : ndarray of shape (n_features,)
        Exponents.
    scale_ : float
        Factor, above 0.
    """

    def fit(self, X, y):
        """Fit."""
        X, y = validate_data(self, X, y, y_numeric=True)
        table = np.column_stack([np.log(X), np.ones(len(X))])
        *self.exponents_, logarithm = np.linalg.lstsq(table, np.log(y), rcond=None)[0]
        self.exponents_, self.scale_ = np.array(self.exponents_), float(np.exp(logarithm))
        return self

    def predict(self, X):
        """Predict."""
        check_is_fitted(self)
        return self.scale_ * np.exp(np.log(validate_data(self, X, reset=False)) @ self.exponents_)


class PowerLawDefinition(ModelDefinition):
    """Definition of PowerLawRegressor, with a positive factor."""

    def write(self, op, model, x):
        """Append the prediction."""
        exponents = op.parameter(model, "exponents_", role="weight")
        scale = op.parameter(model, "scale_", role="scale", constraint=Positive())
        powers = op.Exp(op.MatMul(op.Log(x), op.Unsqueeze(exponents, [1])))
        return regression(op, op.Mul(powers, scale))
