"""FeatureAgglomeration."""

import numpy as np
import pytest
from sklearn.cluster import FeatureAgglomeration
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from ortlearn.models import all_covered
from ortlearn.testing import check_model
from ortlearn.trainable.explanation import explain
from ortlearn.trainable.from_estimator import sklearn_to_onnx

X = np.random.RandomState(0).normal(size=(30, 9))
X[:, 3:5] += 3 * X[:, :1]
X[:, 5:8] -= 3 * X[:, 1:2]


@pytest.mark.parametrize("pooling", [np.mean, np.sum, np.max, np.min, np.median])
@pytest.mark.parametrize("n_clusters", [1, 4])
def test_pooled_features(run_onnx, pooling, n_clusters):
    model = FeatureAgglomeration(n_clusters, pooling_func=pooling).fit(X)
    found = run_onnx(sklearn_to_onnx(model), X.astype(np.float32))[0]
    np.testing.assert_allclose(found, model.transform(X), atol=1e-5)
    check_model(make_pipeline(model, Ridge()).fit(X, X[:, 0]), X)


def test_explain_reports_no_parameters():
    model = FeatureAgglomeration(2).fit(X)
    assert any("no parameters" in row.reason for row in explain(model, X).rows)


def test_other_functions_have_no_definition():
    assert not all_covered(FeatureAgglomeration(2, pooling_func=np.std).fit(X))
