"""Losses of clones are those of the estimator's own methods where the graph has the same, else of a graph."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_iris
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from ortlearn import OrtGradientOptimizer
from ortlearn.fitting import clone_losses
from ortlearn.fitting.clone_losses import CloneLosses

IRIS, DIABETES = load_iris(return_X_y=True), load_diabetes(return_X_y=True)
HARD = IRIS[0][50:], IRIS[1][50:]
TARGETS = DIABETES[0], np.column_stack([DIABETES[1], DIABETES[1] ** 2 / 100])

MODELS = {
    "logits of two classes": (LogisticRegression(), HARD),
    "logits of three classes": (LogisticRegression(), IRIS),
    "margins": (LinearSVC(), IRIS),
    "joint likelihoods": (GaussianNB(), IRIS),
    "means of probabilities": (CalibratedClassifierCV(LogisticRegression(), cv=2), IRIS),
    "one process for each class": (GaussianProcessClassifier(), IRIS),
    "one process": (GaussianProcessClassifier(), HARD),
    "confidences of pairs": (OneVsOneClassifier(LinearSVC()), IRIS),
    "sums of pairwise scores": (SVC(), IRIS),
    "a decision for each class": (OneVsRestClassifier(LogisticRegression()), IRIS),
    "a pipeline": (make_pipeline(StandardScaler(), LogisticRegression()), IRIS),
    "a log link": (PoissonRegressor(), DIABETES),
    "several outputs": (Ridge(), TARGETS),
}


@pytest.fixture
def trained(monkeypatch):
    """Return a function: a warm start on other samples, and whether clones are judged by their methods."""

    def run(model, samples, converts=False):
        used, find = [], CloneLosses.find_method
        with monkeypatch.context() as patch:
            patch.setattr(
                CloneLosses, "find_method", lambda self, own: used.append(find(self, own)) or used[-1]
            )
            if converts:
                patch.setattr(clone_losses, "METHODS", {})
            trainer = OrtGradientOptimizer(clone(model), warm_start=True, random_state=0)
            X, y = samples
            trainer.set_params(estimator=clone(model).fit(X[::2], y[::2])).fit(X[1::2], y[1::2])
        return trainer, used

    return run


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
def test_methods_and_graphs_of_clones_give_the_same_warm_start(name, trained):
    (found, used), (expected, others) = (
        trained(*MODELS[name], converts=converts) for converts in (False, True)
    )
    assert used == [True] and others == [False] and found.start_kept_ == expected.start_kept_
    assert found.n_iter_ == expected.n_iter_
    for own, weights in expected.get_weights().items():
        np.testing.assert_allclose(found.get_weights()[own], weights, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
def test_clones_are_converted_if_methods_give_other_losses(trained):
    """A graph has scores of the distances to code words, which no method returns."""
    assert trained(OutputCodeClassifier(LogisticRegression(), random_state=0), IRIS)[1] == [False]
