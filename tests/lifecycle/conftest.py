"""A classifier of the generated months."""

import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tests.lifecycle.data import month


@pytest.fixture(scope="session")
def classifier():
    columns = make_column_transformer(
        (StandardScaler(), ["age", "income"]), (OneHotEncoder(handle_unknown="ignore"), ["town"])
    )
    return make_pipeline(columns, LogisticRegression()).fit(*month(0))
