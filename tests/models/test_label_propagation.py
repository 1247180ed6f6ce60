"""Label propagation and spreading: graph, training and write-back."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.neural_network import MLPClassifier
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier

from ortlearn import OrtGradientOptimizer
from ortlearn.graphs import TensorType
from ortlearn.models import all_covered, write_model, write_parameters
from ortlearn.testing import check_model

RNG = np.random.RandomState(0)
X = RNG.normal(size=(60, 3))
NEW = RNG.normal(size=(12, 3))
THREE = np.digitize(X[:, 0] - X[:, 1] ** 2, [-1.5, 0.0])
OTHERS = 5 * THREE + 2
SOME = np.where(RNG.uniform(size=60) < 0.4, -1, THREE)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def written(model, dtype=np.float64):
    return write_model(model, {"X": TensorType(11 if dtype == np.float64 else 1, (None, 3))}, dtype)


@pytest.mark.parametrize("kernel", ["rbf", "knn"])
@pytest.mark.parametrize(
    "y", [THREE > 0, THREE, SOME, 5 * SOME + 4 * (SOME < 0)], ids="two three some five".split()
)
@pytest.mark.parametrize("kind", [LabelPropagation, LabelSpreading])
def test_shares(kind, y, kernel, run):
    options = {} if kind is LabelPropagation else {"alpha": 0.8}  # no share is nearly zero
    model = kind(kernel=kernel, gamma=1.0, n_neighbors=5, **options).fit(X, y)
    check_model(model, NEW, run=run)
    found = [p.attribute for p in written(model).parameters.values() if not p.reason]
    assert found == ["label_distributions_"]


def test_sparse_samples(run):
    check_model(LabelSpreading(gamma=1.5).fit(csr_array(X), THREE), NEW, run=run)
    assert not all_covered(LabelSpreading(kernel="knn").fit(csr_array(X), THREE))
    assert not all_covered(LabelSpreading(kernel=lambda a, b: np.exp(a @ b.T)).fit(X, THREE))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_samples_far_from_all_others(dtype, run_onnx):
    """If weights underflow, shares are those of the nearest sample, and the class is scikit-learn's first."""
    model = LabelPropagation(gamma=20).fit(X, THREE)
    far = X[:10] + np.array([3.0, 0.0, 0.0])
    label, shares = run_onnx(written(model, dtype).model, far.astype(dtype))
    np.testing.assert_allclose(shares, model.predict_proba(far), atol=1e-4 if dtype == np.float32 else 1e-9)
    assert np.exp(-20 * np.square(far[:, None] - X).sum(axis=2)).astype(np.float32).sum(axis=1).min() == 0
    label, shares = run_onnx(written(model, dtype).model, (far[:1] + 100).astype(dtype))
    nearest = np.argmin(np.square(far[0] + 100 - X).sum(axis=1))
    assert label[0] == 0 and THREE[nearest] == shares.argmax() and shares.max() == pytest.approx(1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_far_from_zero(dtype, run_onnx):
    far, new = ((samples + 1e3).astype(np.float32).astype(np.float64) for samples in (X, NEW))
    model = LabelSpreading(gamma=1.5).fit(far, THREE)
    found = run_onnx(written(model, dtype).model, new.astype(dtype))[1]
    np.testing.assert_allclose(found, model.predict_proba(new), atol=1e-3 if dtype == np.float32 else 1e-5)


def test_write_back_updates_the_transduction():
    model = LabelPropagation(gamma=1.5).fit(X, SOME)
    shares = model.label_distributions_[:, ::-1]
    result = write_parameters(model, written(model).parameters, {"label_distributions": shares})
    assert result.transduction_.tolist() == (2 - np.argmax(model.label_distributions_, axis=1)).tolist()


def test_training():
    model = LabelSpreading(gamma=1.5).fit(X, SOME)
    ours = OrtGradientOptimizer(model, warm_start=True, max_iter=20, random_state=0).fit(X, THREE)
    assert ours.score(X, THREE) >= model.score(X, THREE)
    back = ours.to_sklearn()
    np.testing.assert_allclose(ours.predict_proba(NEW), back.predict_proba(NEW), atol=1e-5)
    np.testing.assert_allclose(back.label_distributions_.sum(axis=1), 1)


@pytest.mark.parametrize("options", [{}, {"early_stopping": True}, {"learning_rate": "Adam", "max_iter": 3}])
@pytest.mark.parametrize(
    "source", [LabelSpreading(gamma=1.5), SelfTrainingClassifier(MLPClassifier(max_iter=5))]
)
def test_samples_without_a_label_are_left_out(source, options):
    ours = OrtGradientOptimizer(source, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours.fit(X, SOME)
        ours.set_params(early_stopping=False).partial_fit(X, SOME)
    assert ours.classes_.tolist() == [0, 1, 2] and ours.predict(X).min() == 0
