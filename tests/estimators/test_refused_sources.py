"""What cannot be trained is refused in plain words before anything is fitted."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.conversion import explain

X, y = np.random.RandomState(0).normal(size=(30, 2)), np.arange(30) % 2


@pytest.mark.parametrize(
    "model",
    [Ridge(), LogisticRegression(), make_pipeline(StandardScaler(), Ridge())],
    ids=lambda m: str(m)[:8],
)
def test_labels_are_required_before_the_first_fit(model, optimizer):
    with pytest.raises(ValueError, match=r"requires y to be passed, but the target y is None"):
        optimizer(model).fit(X)
    with pytest.raises(ValueError, match=r"requires y to be passed, but the target y is None"):
        optimizer(model).partial_fit(X)
    with pytest.raises(ValueError, match=r"requires y to be passed"):
        explain(model, X)


def test_models_without_labels_need_none(optimizer):
    assert optimizer(KMeans(2, n_init=1), max_iter=1, random_state=0).fit(X).predict(X).shape == (30,)
