"""KernelDensity: graph, training and write-back."""

import warnings

import numpy as np
import pytest
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError, NoTrainableWeightError
from ortlearn.graphs import TensorType
from ortlearn.models import all_covered, write_model
from ortlearn.testing import check_model
from ortlearn.trainable.conversion import to_trainable
from ortlearn.trainable.explanation import explain

RNG = np.random.RandomState(0)
X = RNG.normal(size=(40, 3)) + 0.5
NEW = RNG.normal(size=(9, 3)) + 0.4
SMOOTH = ["gaussian", "exponential", "epanechnikov", "linear", "cosine"]
WEIGHTS = RNG.uniform(0.5, 2.0, size=40)


def written(model, dtype=np.float64, n_columns=3):
    elem_type = 11 if dtype == np.float64 else 1
    return write_model(model, {"X": TensorType(elem_type, (None, n_columns))}, dtype)


@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("kernel", SMOOTH)
def test_kernels(kernel, weights, algorithm, run):
    model = KernelDensity(kernel=kernel, bandwidth=2.5, algorithm=algorithm, leaf_size=5)
    check_model(model.fit(X, sample_weight=weights), NEW, run=run)
    assert [p.attribute for p in written(model).parameters.values() if not p.reason] == ["tree_.data"]


@pytest.mark.parametrize(
    "metric",
    [
        *({"metric": m} for m in ("manhattan", "chebyshev", "infinity", "l1", "l2", "cityblock")),
        {"metric": "minkowski", "metric_params": {"p": 3}},
        {"metric": "p", "metric_params": {"p": 1.5}},
    ],
    ids=str,
)
def test_metrics(metric, run):
    check_model(KernelDensity(bandwidth=1.5, **metric).fit(X), NEW, run=run)


@pytest.mark.parametrize("bandwidth", ["scott", "silverman", 0.2])
def test_bandwidths(bandwidth, run):
    check_model(KernelDensity(bandwidth=bandwidth).fit(X), NEW, run=run)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_columns", [1, 2, 3, 7])
@pytest.mark.parametrize("kernel", [*SMOOTH, "tophat"])
def test_constants_of_any_number_of_features(kernel, n_columns, dtype, run_onnx):
    samples = np.tile(X, 3)[:, :n_columns]
    model = KernelDensity(kernel=kernel, bandwidth=6.0).fit(samples)
    (found,) = run_onnx(written(model, dtype, n_columns).model, samples.astype(dtype))
    expected = model.score_samples(samples)
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-10 if dtype == np.float64 else 1e-4)


def test_normalisation_constants_beyond_scikit_learn():
    """For four features its constant of the cosine is the logarithm of a negative number."""
    samples = np.tile(X, 2)[:, :4]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        model = KernelDensity(kernel="cosine").fit(samples)
        assert np.isnan(model.score_samples(samples)).all()
        with pytest.raises(ConversionError, match="cannot normalise the kernel 'cosine' of 4 features"):
            written(model, n_columns=4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_samples_far_from_the_fit(dtype, run_onnx):
    """A density of zero has a finite loss; the log-density of a Gaussian kernel stays finite."""
    far = np.array([[60.0, 0.0, 0.0], X[0]])
    model = KernelDensity(kernel="linear", bandwidth=0.5).fit(X)
    (found,) = run_onnx(written(model, dtype).model, far.astype(dtype))
    assert found[0] == -np.inf and np.isfinite(found[1])
    options = {"warm_start": True, "max_iter": 1, "learning_rate": "SGD", "dtype": np.dtype(dtype).name}
    ours = OrtGradientOptimizer(model, **options).fit(X)
    losses = ours.losses(far)
    assert np.isfinite(losses).all() and losses[0] > 50 > losses[1]
    gaussian = KernelDensity(bandwidth=0.5).fit(X)
    (found,) = run_onnx(written(gaussian, dtype).model, far.astype(dtype))
    np.testing.assert_allclose(found[:, 0], gaussian.score_samples(far), rtol=1e-5)
    assert found[0] < -5000


def test_the_tophat_kernel_is_not_trained():
    model = KernelDensity(kernel="tophat", bandwidth=3.0).fit(X)
    with pytest.raises(NoTrainableWeightError, match="counts samples within the bandwidth"):
        to_trainable(model, X=X)


def test_training_moves_samples_to_new_ones():
    model = make_pipeline(StandardScaler(), KernelDensity(bandwidth=0.4)).fit(X)
    shifted = X + 1.0
    options = {"warm_start": True, "max_iter": 50, "random_state": 0, "learning_rate": "Adam"}
    ours = OrtGradientOptimizer(model, **options).fit(shifted)
    assert ours.score(shifted) > model.score(shifted)
    back = ours.to_sklearn()
    np.testing.assert_allclose(ours.score_samples(NEW), back.score_samples(NEW), atol=1e-4)
    np.testing.assert_allclose(ours.score(NEW), back.score(NEW), rtol=1e-5)
    assert not hasattr(ours, "predict") and not hasattr(ours, "predict_proba")
    np.testing.assert_allclose(ours.losses(NEW), -ours.score_samples(NEW), rtol=1e-5)


def test_bandwidth_is_trained_if_selected():
    model = KernelDensity(bandwidth=5.0).fit(X)
    (row,) = [row for row in explain(model, X).rows if row.attribute == "bandwidth_"]
    assert not row.trainable and "grows without bound" in row.reason
    options = {"weights_to_train": ["bandwidth_"], "warm_start": True, "max_iter": 50}
    ours = OrtGradientOptimizer(model, **options).fit(NEW)
    assert ours.to_sklearn().bandwidth_ < 4.0 and ours.score(NEW) > model.score(NEW)


def test_other_metrics_are_not_covered():
    assert not all_covered(KernelDensity(metric="canberra", algorithm="ball_tree").fit(X))
