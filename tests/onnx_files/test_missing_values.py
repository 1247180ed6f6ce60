"""A file with an input for each column takes missing values where it replaces them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from ortlearn import OrtGradientOptimizer

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(120, 2)), columns=["age", "pay"])
FRAME.loc[::5, "age"] = np.nan
LABELS = (FRAME.pay > 0) * 1
OPTIONS = {"learning_rate": "Adam", "max_iter": 3, "random_state": 0}


def test_columns_with_an_imputer_take_missing_values():
    columns = ColumnTransformer([("fill", SimpleImputer(), ["age"]), ("keep", "passthrough", ["pay"])])
    model = OrtGradientOptimizer(make_pipeline(columns, LogisticRegression()), **OPTIONS).fit(FRAME, LABELS)
    content = model.get_trained_onnx().SerializeToString()
    trained = OrtGradientOptimizer(content, warm_start=True, **OPTIONS).fit(FRAME, LABELS)
    assert trained.predict(FRAME).shape == (120,)
    whole = OrtGradientOptimizer(content, **OPTIONS).fit(FRAME.fillna(0), LABELS)
    assert whole.predict(FRAME).shape == (120,)
    wrong = FRAME.copy()
    wrong.loc[3, "pay"] = np.nan
    with pytest.raises(ValueError, match="NaN in column 'pay'"):
        trained.predict(wrong)
    with pytest.raises(ValueError, match="NaN in column 'pay'"):
        OrtGradientOptimizer(content, **OPTIONS).fit(wrong, LABELS)
