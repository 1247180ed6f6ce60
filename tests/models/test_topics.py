"""LatentDirichletAllocation."""

import numpy as np
import pytest
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from ortlearn.graphs import TensorType
from ortlearn.models import write_model, write_parameters
from ortlearn.testing import check_model
from ortlearn.trainable.from_estimator import sklearn_to_onnx

RNG = np.random.RandomState(0)
TOPICS = RNG.dirichlet(np.full(8, 0.3), size=3)
X = np.array([RNG.multinomial(30, shares @ TOPICS) for shares in RNG.dirichlet(np.ones(3), size=40)]).astype(
    float
)


@pytest.mark.slow
@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"n_components": 1},
        {"doc_topic_prior": 0.9, "topic_word_prior": 0.1},
        {"mean_change_tol": 1e-9, "max_doc_update_iter": 300},
        {"max_doc_update_iter": 2, "learning_method": "online"},
    ],
    ids=str,
)
def test_shares_of_topics(run, run_onnx, params):
    model = LatentDirichletAllocation(**{"n_components": 3, "max_iter": 4, "random_state": 0, **params}).fit(
        X
    )
    samples = np.vstack([X[:10], np.zeros(8), 100 * X[:2]])
    expected = model.transform(samples)
    for dtype, tolerance in ((np.float64, 1e-7), (np.float32, 1e-3)):
        found = run_onnx(sklearn_to_onnx(model, dtype=dtype), samples.astype(dtype))[0]
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    if params.get("n_components") != 1:
        check_model(model, X[:10], run=run)


def test_write_back_updates_the_word_distributions():
    model = LatentDirichletAllocation(3, max_iter=4, random_state=0).fit(X)
    written = write_model(model, {"X": TensorType(1, (None, 8))})
    expected = model.exp_dirichlet_component_.copy()
    trained = write_parameters(model, written.parameters, {"components": model.components_.copy()})
    # scikit-learn's digamma has eight digits
    np.testing.assert_allclose(trained.exp_dirichlet_component_, expected, rtol=1e-7)


def test_topics_are_features_of_a_pipeline(run):
    topics = LatentDirichletAllocation(3, max_iter=4, random_state=0)
    check_model(make_pipeline(topics, Ridge()).fit(X, X[:, 0]), X, run=run)
