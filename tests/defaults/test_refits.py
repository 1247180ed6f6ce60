"""Models whose fit has another objective than the training may be fitted again on new samples."""

import pickle

import numpy as np
import onnxruntime
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    make_blobs,
    make_friedman1,
    make_multilabel_classification,
)
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Perceptron
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestCentroid, RadiusNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from ortlearn import OrtGradientOptimizer
from ortlearn.saving import load, save

X, Y = make_blobs(600, 4, centers=3, cluster_std=2.0, random_state=1)
MOVED = X[:, ::-1] * [1.0, 2.0, 0.5, 1.0] + 3.0
CLASSIFIERS = [
    LabelSpreading(gamma=0.1),
    GaussianNB(),
    LinearDiscriminantAnalysis(),
    make_pipeline(StandardScaler(), LabelSpreading()),
]


@pytest.mark.slow
@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_a_warm_start_is_as_good_as_a_refit_after_a_drift(model):
    old, refit = clone(model).fit(X[:200], Y[:200]), clone(model).fit(MOVED[200:400], Y[200:400])
    assert old.score(MOVED[400:], Y[400:]) < refit.score(MOVED[400:], Y[400:]) - 0.2
    trainer = OrtGradientOptimizer(old, warm_start=True, random_state=0).fit(MOVED[200:400], Y[200:400])
    assert trainer.score(MOVED[400:], Y[400:]) > refit.score(MOVED[400:], Y[400:]) - 0.02
    assert type(trainer.to_sklearn()) is type(model)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
def test_a_warm_start_without_a_drift_loses_nothing(model):
    old = clone(model).fit(X[:200], Y[:200])
    trainer = OrtGradientOptimizer(old, warm_start=True, random_state=0).fit(X[200:400], Y[200:400])
    assert trainer.score(X[400:], Y[400:]) > old.score(X[400:], Y[400:]) - 0.011


@pytest.mark.slow
def test_a_refit_is_in_every_form_of_the_model(tmp_path):
    """The samples that a kernel model stores are the new ones, in files, copies and later trainings."""
    y, later = np.sin(X[:, 0]) * 3, np.cos(MOVED[:, 0]) * 3 + 5
    old = KernelRidge(kernel="rbf", gamma=0.1, alpha=0.1).fit(X[:150], y[:150])
    trainer = OrtGradientOptimizer(old, warm_start=True, random_state=0).fit(MOVED[200:400], later[200:400])
    written = trainer.to_sklearn()
    assert written.X_fit_.shape == (200, 4)
    expected = trainer.predict(MOVED[400:])
    np.testing.assert_allclose(written.predict(MOVED[400:]), expected, rtol=1e-3, atol=1e-3)
    save(trainer, tmp_path / "model.ortlearn")
    for copy in (pickle.loads(pickle.dumps(trainer)), load(tmp_path / "model.ortlearn")):
        np.testing.assert_allclose(copy.predict(MOVED[400:]), expected, rtol=1e-5)
    session = onnxruntime.InferenceSession(trainer.onnx_.SerializeToString())
    feed = session.get_inputs()[0]
    samples = MOVED[400:].astype(np.float64 if "double" in feed.type else np.float32)
    outputs = session.run(None, {feed.name: samples})[0]
    np.testing.assert_allclose(outputs.ravel(), expected, rtol=1e-3, atol=1e-3)
    again = trainer.fit(MOVED[400:], later[400:])
    assert again.score(MOVED[200:400], later[200:400]) > 0.5


STREAMED = [
    GaussianNB(),
    LinearDiscriminantAnalysis(),
    NearestCentroid(),
    SVC(random_state=0),
    make_pipeline(StandardScaler(), LabelSpreading()),
]


@pytest.mark.slow
@pytest.mark.parametrize("model", STREAMED, ids=str)
def test_a_stream_follows_a_drift(model):
    """Gradients of another objective would not reach what a fit finds."""
    trainer = OrtGradientOptimizer(model, random_state=0)
    for samples, labels in ((X[:300], Y[:300]), (MOVED[300:500], Y[300:500])):
        for part in np.array_split(np.arange(len(labels)), len(labels) // 100):
            trainer.partial_fit(samples[part], labels[part], classes=[0, 1, 2])
    refit = clone(model).fit(MOVED[300:500], Y[300:500])
    assert trainer.score(MOVED[500:], Y[500:]) > refit.score(MOVED[500:], Y[500:]) - 0.05


def test_a_class_that_arrives_late_is_learnt():
    trainer, late = OrtGradientOptimizer(GaussianNB(), random_state=0), np.flatnonzero(Y[:300] < 2)
    trainer.partial_fit(X[late], Y[late], classes=[0, 1, 2])
    for first in (300, 400):
        trainer.partial_fit(X[first : first + 100], Y[first : first + 100])
    assert trainer.score(X[500:], Y[500:]) > GaussianNB().fit(X[:500], Y[:500]).score(X[500:], Y[500:]) - 0.03


@pytest.mark.parametrize("options", [{"learning_rate": "Adam"}, {"learning_loss": "focal"}], ids=str)
def test_other_settings_train_by_gradient(options):
    trainer = OrtGradientOptimizer(SVC(random_state=0), random_state=0, **options)
    for first in (0, 100, 200):
        trainer.partial_fit(X[first : first + 100], Y[first : first + 100])
    first = SVC(random_state=0).fit(X[:100], Y[:100])
    np.testing.assert_allclose(trainer.to_sklearn().support_vectors_, first.support_vectors_, atol=0.2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
def test_a_refit_that_does_not_predict_its_own_samples_is_not_taken():
    """Features of different scales: fits of a perceptron vary with each sample."""
    inputs, labels = load_breast_cancer(return_X_y=True)
    worst = []
    for seed in (0, 1, 210, 211):
        order = np.random.RandomState(seed).permutation(len(inputs))
        first, second, others = np.split(order, [200, 300])
        old = Perceptron(random_state=0).fit(inputs[first], labels[first])
        trainer = OrtGradientOptimizer(old, warm_start=True, random_state=0)
        trainer.fit(inputs[second], labels[second])
        assert trainer.score(inputs[second], labels[second]) >= old.score(inputs[second], labels[second])
        worst.append(
            trainer.score(inputs[others], labels[others]) - old.score(inputs[others], labels[others])
        )
    assert min(worst) > -0.1


@pytest.mark.slow
def test_a_refit_of_sparse_labels():
    inputs, labels = make_multilabel_classification(300, 5, n_classes=3, random_state=0)
    moved, sparse = inputs[:, ::-1] * 2 + 1, csr_matrix(labels)
    old = OneVsRestClassifier(GaussianNB()).fit(inputs[:150], sparse[:150])
    trainer = OrtGradientOptimizer(old, warm_start=True, random_state=0).fit(moved[150:], sparse[150:])
    dense = OneVsRestClassifier(GaussianNB()).fit(inputs[:150], labels[:150])
    other = OrtGradientOptimizer(dense, warm_start=True, random_state=0).fit(moved[150:], labels[150:])
    np.testing.assert_allclose(trainer.predict_proba(moved), other.predict_proba(moved), atol=1e-5)


@pytest.mark.filterwarnings("ignore:One or more samples have no neighbors:UserWarning")
def test_fewer_samples_do_not_replace_those_within_a_radius():
    """Predictions would be NaN where none of the fewer samples is near."""
    features, labels = make_friedman1(1000, random_state=1)
    moved = 3 * labels + 30
    old = RadiusNeighborsRegressor(0.95).fit(features[:200], labels[:200])
    trainer = OrtGradientOptimizer(old, warm_start=True, random_state=0).fit(
        features[200:260], moved[200:260]
    )
    known = ~np.isnan(old.predict(features))
    assert not np.isnan(trainer.predict(features)[known]).any() and known.mean() > 0.95
    assert trainer.score(features[known], moved[known]) > 0.3
    many = OrtGradientOptimizer(old, warm_start=True, random_state=0).fit(features[200:450], moved[200:450])
    assert len(many.to_sklearn()._fit_X) == 250
