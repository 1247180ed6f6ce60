"""Losses of clones are those of the estimator's own methods where the graph has the same, else of a graph."""

from dataclasses import replace

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
from ortlearn.fitting.clone_losses import CloneLosses, sample_losses
from tests.calls import calls_of

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


def clones(model, samples):
    """Return the arguments of the clones that judge a warm start on other samples."""
    X, y = samples
    fitted = clone(model).fit(X[::2], y[::2])
    with calls_of(CloneLosses.__init__) as built:
        OrtGradientOptimizer(fitted, warm_start=True, random_state=0).fit(X[1::2], y[1::2])
    configuration, start, known, growth = (
        built[0][name] for name in ("configuration", "start", "samples", "growth")
    )
    growth = growth and replace(growth, scores_by_methods=None, clones={})  # as before the fit
    return configuration, start, known, growth


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
def test_methods_and_graphs_of_clones_give_the_same_losses(name):
    given = clones(*MODELS[name])
    by_method, by_graph = CloneLosses(*given), CloneLosses(*given)
    assert by_method.find_method(sample_losses(*given[:2]))
    some = np.arange(0, len(given[1].data), 2)
    found, expected = by_method.losses(some), by_graph.losses(some)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3 * np.abs(expected).max())


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
def test_clones_are_converted_if_methods_give_other_losses():
    """A graph has scores of the distances to code words, which no method returns."""
    given = clones(OutputCodeClassifier(LogisticRegression(), random_state=0), IRIS)
    assert not CloneLosses(*given).find_method(sample_losses(*given[:2]))
