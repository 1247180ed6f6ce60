"""Factor analysis and sparse PCA: transform, likelihood and write-back."""

import numpy as np
import pytest
from sklearn.decomposition import FactorAnalysis, MiniBatchSparsePCA, SparsePCA
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.graphs import TensorType, extract_model
from ortlearn.models import all_covered, write_model
from ortlearn.models.formulas.linear_systems import LARGEST
from ortlearn.testing import check_model, check_objective
from ortlearn.trainable.from_estimator import sklearn_to_onnx

RNG = np.random.RandomState(0)
X = RNG.normal(size=(60, 2)) @ RNG.normal(size=(2, 5)) + 0.4 * RNG.normal(size=(60, 5)) + 0.3
MODELS = [
    FactorAnalysis(2, random_state=0),
    FactorAnalysis(1, svd_method="lapack"),
    FactorAnalysis(),
    FactorAnalysis(2, rotation="varimax", random_state=0),
    SparsePCA(2, random_state=0),
    SparsePCA(1, ridge_alpha=1.0, random_state=0),
    SparsePCA(7, max_iter=20, random_state=0),  # more components than features
    MiniBatchSparsePCA(2, max_iter=20, random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_transformed_samples_gradients_and_write_back(model):
    model.fit(X)
    check_model(model, X)
    parameters = write_model(model, {"X": TensorType(1, (None, 5))}).parameters.values()
    trained = {parameter.attribute for parameter in parameters if not parameter.reason}
    noise = {"noise_variance_"} if isinstance(model, FactorAnalysis) else set()
    assert trained == {"mean_", "components_"} | noise


@pytest.mark.parametrize("model", [FactorAnalysis(2, random_state=0), SparsePCA(2, random_state=0)], ids=str)
def test_float32_far_from_zero(run_onnx, model):
    far = (X + 200).astype(np.float32).astype(np.float64)
    expected = model.fit(far).transform(far)
    found = run_onnx(sklearn_to_onnx(model), far.astype(np.float32))[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3 * np.abs(expected).max())


def test_the_objective_of_factor_analysis_is_the_likelihood(run):
    model = FactorAnalysis(2, tol=1e-12, max_iter=20000, svd_method="lapack").fit(X)
    check_objective(model, X, run=run)
    written = write_model(model, {"X": TensorType(11, (None, 5))}, np.float64)
    likelihood = run(extract_model(written.model, [written.scores.likelihood]), {"X": X})[0]
    np.testing.assert_allclose(likelihood[:, 0], model.score_samples(X))


@pytest.mark.slow
def test_training_raises_the_likelihood_without_labels():
    start = FactorAnalysis(2, tol=1e6, random_state=0).fit(X)
    best = FactorAnalysis(2, tol=1e-10, max_iter=10000, random_state=0).fit(X)
    options = {"learning_rate": "LBFGS", "max_iter": 300, "random_state": 0}
    ours = OrtGradientOptimizer(start, warm_start=True, **options).fit(X)
    assert start.score(X) < best.score(X) - 0.1
    assert ours.to_sklearn().score(X) > best.score(X) - 1e-2
    np.testing.assert_allclose(ours.transform(X), ours.to_sklearn().transform(X), atol=1e-4)


def test_factors_are_features_of_a_pipeline():
    model = make_pipeline(FactorAnalysis(2, random_state=0), Ridge()).fit(X, X[:, 0])
    check_model(model, X)


def test_systems_that_are_too_large_have_no_definition():
    for kind in (FactorAnalysis, SparsePCA):
        model = kind(2).fit(X)
        for n_components in (LARGEST, LARGEST + 1):
            model.components_ = np.zeros((n_components, X.shape[1]))
            assert all_covered(model) == (n_components == LARGEST)
    assert not all_covered(SparsePCA(2, ridge_alpha=0.0).fit(X))
