"""Losses of clones are those of the estimator's own methods where the graph has the same, else of a graph."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_iris
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from ortlearn import OrtGradientOptimizer
from ortlearn.fitting.method_scores import method_scores
from ortlearn.fitting.seen_samples import _Clones

IRIS, DIABETES = load_iris(return_X_y=True), load_diabetes(return_X_y=True)
TWO = IRIS[0][:100], IRIS[1][:100]
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
    "a pipeline": (make_pipeline(StandardScaler(), LogisticRegression()), IRIS),
    "a log link": (PoissonRegressor(), DIABETES),
    "several outputs": (Ridge(), TARGETS),
}


@pytest.fixture
def trained(monkeypatch):
    """Return a function: a warm start on other samples, and whether clones are judged by their methods."""

    def run(model, samples, converts=False):
        used, by_methods = [], _Clones.by_methods
        with monkeypatch.context() as patch:
            judged = lambda self, own: used.append(by_methods(self, own)) or (not converts and used[-1])  # noqa: E731
            patch.setattr(_Clones, "by_methods", judged)
            trainer = OrtGradientOptimizer(clone(model), warm_start=True, random_state=0)
            X, y = samples
            trainer.set_params(estimator=clone(model).fit(X[::2], y[::2])).fit(X[1::2], y[1::2])
        return trainer, used

    return run


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
def test_methods_and_graphs_of_clones_give_the_same_warm_start(name, trained):
    (found, used), (expected, _) = (trained(*MODELS[name], converts=converts) for converts in (False, True))
    assert used == [True] and found.start_kept_ == expected.start_kept_
    assert found.n_iter_ == expected.n_iter_
    for own, weights in expected.get_weights().items():
        np.testing.assert_allclose(found.get_weights()[own], weights, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
def test_clones_are_converted_if_methods_give_other_losses(trained):
    """Decisions of an SVC with three classes are votes, and its graph has scores of pairs."""
    assert trained(SVC(), IRIS)[1] == [False]


def test_scores_need_a_method():
    class Model:
        predict_proba = staticmethod(lambda X: [np.ones((len(X), 2)) / 2])  # of several outputs

    problem = OrtGradientOptimizer(LogisticRegression(), random_state=0).fit(*IRIS)._fitted.problem
    assert method_scores(problem, Model(), IRIS[0]) is None
    assert method_scores(problem, LogisticRegression().fit(*TWO), IRIS[0]) is None  # two classes of three
