"""A saved estimator."""

import pytest
from sklearn.linear_model import Ridge

from ortlearn import OrtGradientOptimizer
from ortlearn.saving import save
from tests.saving.archives import X


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.zip"
    options = {"learning_rate": "Adam", "max_iter": 2, "random_state": 0}
    save(OrtGradientOptimizer(Ridge(), **options).fit(X, X[:, 0] * 3 + 1), path)
    return path
