"""A file of intervals or sets is scored by its own outputs, not by those of the model inside."""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression, Ridge

from ortlearn import OrtIntervalRegressor, OrtSetClassifier
from ortlearn.evaluation.data_files import Table
from ortlearn.evaluation.onnx_model import OnnxModel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))


def test_predictions_are_those_of_the_intervals():
    y = X[:, 0] + RNG.exponential(size=300)  # the median is below the mean
    model = OrtIntervalRegressor(Ridge(), method="residual", random_state=0).fit(X, y)
    found = OnnxModel(model.get_trained_onnx(), "file").predict(Table("X", pd.DataFrame(X)))
    np.testing.assert_allclose(found.values, model.predict(X), atol=1e-5)
    assert np.abs(model.predict(X) - model.estimators_[0].predict(X)).min() > 0.05


def test_probabilities_are_the_calibrated_ones():
    y = (X[:, 0] + RNG.normal(size=300) > 0).astype(int)
    model = OrtSetClassifier(LogisticRegression(C=1e4), probabilities="temperature", random_state=0).fit(X, y)
    found = OnnxModel(model.get_trained_onnx(), "file").predict(Table("X", pd.DataFrame(X)))
    np.testing.assert_allclose(found.probabilities, model.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(found.values, model.predict(X))
