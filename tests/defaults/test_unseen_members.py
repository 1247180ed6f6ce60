"""Bagged ensembles are trained with the members that have not seen a sample."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import load_iris, make_friedman1
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from ortlearn import OrtGradientOptimizer
from ortlearn.conversion import explain
from ortlearn.fitting.leaves.estimates import LeafEstimates
from ortlearn.fitting.leaves.shifts import VALUES, best_shift
from ortlearn.fitting.run import new_step
from ortlearn.fitting.start import new_start
from ortlearn.fitting.validation import Validation
from ortlearn.inference.score_runner import ScoreRunner
from ortlearn.losses import QuantileLoss
from ortlearn.problem.samples import Samples

X, Y = make_friedman1(700, noise=1, random_state=0)
IRIS = load_iris(return_X_y=True)
OOB = {"oob_score": True, "random_state": 0}
PAIR = np.stack([Y, Y**2], axis=1)
MODELS = [
    (RandomForestRegressor(40, **OOB), X, Y),
    (RandomForestRegressor(40, max_samples=0.3, **OOB), X, PAIR),
    (BaggingRegressor(n_estimators=30, max_features=0.6, **OOB), X, Y),
    (RandomForestClassifier(40, **OOB), *IRIS),
    (ExtraTreesClassifier(40, bootstrap=True, **OOB), *IRIS),
    (BaggingClassifier(n_estimators=40, **OOB), *IRIS),
]


def prepared(model, X, y, fit=True, **options):
    """Return start, step and samples of a training on exactly or nearly the samples of a fit."""
    trainer = OrtGradientOptimizer(model, dtype="float64", warm_start=fit, random_state=0, **options)
    configuration = trainer._configuration()
    start = new_start(configuration, Samples(X, y), np.random.RandomState(0), 0)
    step, data, _ = new_step(configuration, start)
    return configuration, start, step, data


@pytest.mark.sweep(3)
@pytest.mark.parametrize("model, X, y", MODELS, ids=lambda value: type(value).__name__)
def test_scores_in_training_are_those_of_scikit_learn_out_of_bag(model, X, y):
    model.fit(X, y)
    configuration, start, step, data = prepared(model, X, y)
    scores = ScoreRunner(step.task, configuration.runtime).scores(start.weights, data)
    if is_classifier(model):
        expected = np.maximum(model.oob_decision_function_, 0.1 / 40)  # lowest probability in training
        np.testing.assert_allclose(np.maximum(np.exp(scores), 0.1 / 40), expected, atol=1e-9)
    else:
        expected = model.oob_prediction_.reshape(scores.shape)
        np.testing.assert_allclose(scores, expected, rtol=1e-9)


@pytest.mark.slow
def test_other_samples_are_predicted_by_all_members():
    model = RandomForestRegressor(10, random_state=0).fit(X[:300], Y[:300])
    for numbers in (slice(300, 600), slice(200, 500), slice(0, 299)):
        assert prepared(model, X[numbers], Y[numbers])[3].members is None
    assert prepared(model, X[:300][::-1], Y[:300])[3].members is None
    assert prepared(model, X[:300], Y[:300])[3].members is not None
    weights = np.arange(300) % 3
    weighted = OrtGradientOptimizer(model, warm_start=True)._configuration()
    given = Samples(X[:300], Y[:300], weights)
    other = RandomForestRegressor(10, random_state=0).fit(X[:300], Y[:300], weights)
    weighted = replace(weighted, source=other)
    assert new_start(weighted, given, np.random.RandomState(0), 0).data.members is not None
    pipeline = make_pipeline(StandardScaler(), RandomForestRegressor(10, random_state=0))
    assert prepared(pipeline, X[:300], Y[:300], fit=False)[3].members is not None
    all_seen = RandomForestRegressor(10, bootstrap=False, random_state=0).fit(X[:300], Y[:300])
    assert prepared(all_seen, X[:300], Y[:300])[3].members is None


def test_estimates_are_quantiles_weighted_by_shared_leaves():
    """Against the definition, for samples that trees have not seen and trees that have seen the others."""
    model, (X_some, y) = RandomForestRegressor(30, min_samples_leaf=5, random_state=0), (X[:120], Y[:120])
    configuration, start, step, data = prepared(model, X_some, y, False, learning_loss=QuantileLoss(0.3))
    found = LeafEstimates.of(start.problem, configuration.runtime, step.task, start.weights, data, 1 / 30)
    (curves,) = found._curves(data, 0.0)
    leaves, drawn = start.problem.source.apply(X_some), data.members == 0
    weights = np.zeros((120, 120))
    for tree in range(30):
        shared = (leaves[:, None, tree] == leaves[None, :, tree]) & drawn[None, :, tree]
        weights += ~drawn[:, None, tree] * shared / np.maximum(shared.sum(axis=1, keepdims=True), 1)
    weights /= weights.sum(axis=1, keepdims=True)
    losses = np.maximum(0.3 * (y[:, None] - curves.values), -0.7 * (y[:, None] - curves.values))
    np.testing.assert_allclose(curves.local, weights @ losses, rtol=1e-4)
    order = np.argsort(y)
    expected = y[order][(np.cumsum(weights[:, order], axis=1) >= 0.3).argmax(axis=1)]
    assert np.abs(curves.minima(0.0)[:-1] - expected).mean() < 0.02 * y.std()
    estimates = found.estimated(data, 0.0, 0.0)["I0_leaf_values"] * 30
    means = [
        curves.minima(0.0)[:-1][leaves[:, number] == leaf].mean()
        for number, tree in enumerate(start.problem.source.estimators_)
        for leaf in np.flatnonzero(tree.tree_.children_left < 0)
    ]
    shift = np.median(estimates - means)
    np.testing.assert_allclose(estimates, np.array(means) + shift, rtol=1e-6)
    scores = found.runner.scores({"I0_leaf_values": estimates / 30}, data)[:, 0]
    assert np.mean(y < scores - 1e-6) <= 0.3 <= np.mean(y <= scores + 1e-6)


@pytest.mark.parametrize("kind", [ExtraTreesRegressor, DecisionTreeRegressor])
def test_trees_leave_out_samples_if_bags_would_have_all(kind):
    """For another loss, each tree leaves out a fold, and predicts it in training."""
    model = kind(random_state=0) if kind is DecisionTreeRegressor else kind(12, random_state=0)
    options = {"learning_loss": QuantileLoss(0.5)}
    configuration, start, step, data = prepared(model, X[:200], Y[:200], False, **options)
    trees = getattr(start.problem.source, "estimators_", [start.problem.source])
    assert data.members.shape == (200, len(trees)) and len(trees) == getattr(model, "n_estimators", 1)
    values, unseen = np.stack([tree.predict(X[:200]) for tree in trees], axis=1), data.members > 0
    reached = unseen.any(axis=1)
    scores = ScoreRunner(step.task, configuration.runtime).scores(start.weights, data)[:, 0]
    expected = (values * unseen).sum(axis=1)[reached] / unseen.sum(axis=1)[reached]
    np.testing.assert_allclose(scores[reached], expected, rtol=1e-6)
    assert (values == Y[:200, None])[~unseen].all()  # fully grown trees reproduce what they have seen
    assert reached.mean() == (0.5 if kind is DecisionTreeRegressor else 1.0)
    named = prepared(model, X[:200], Y[:200], False, learning_loss="squared_error")
    assert named[3].members is None


@pytest.mark.parametrize("weights", ["few", "heavy"])
@pytest.mark.parametrize("model", [RandomForestRegressor(30), BaggingRegressor(n_estimators=30)])
def test_trees_leave_out_samples_if_bags_would_have_all_heavy_ones(model, weights):
    """Bags that are drawn by weight contain nearly all samples of large weight, which also count."""
    rng = np.random.default_rng(0)
    features, is_heavy = rng.normal(size=(1500, 3)), rng.random(1500) < 0.15
    labels = features[:, 0] + rng.normal(size=1500) + 4 * is_heavy
    given = np.where(is_heavy, 10.0, 1.0 if weights == "heavy" else 0.0)
    trainer = OrtGradientOptimizer(model, learning_loss=QuantileLoss(0.6), random_state=0)
    trainer.fit(features[:500], labels[:500], sample_weight=given[:500])
    is_below = labels[500:] <= trainer.predict(features[500:])
    assert 0.5 < np.average(is_below, weights=given[500:]) < 0.7


@pytest.mark.slow
@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    "model, options",
    [
        (RandomForestRegressor(40, random_state=0), {}),
        (RandomForestRegressor(40, random_state=0), {"learning_rate": "Adam", "max_iter": 5}),
        (RandomForestRegressor(40, random_state=0), {"keep_better": False}),
        (BaggingRegressor(DecisionTreeRegressor(min_samples_leaf=3), n_estimators=30, random_state=0), {}),
        (make_pipeline(StandardScaler(), ExtraTreesRegressor(40, random_state=0)), {}),
        (DecisionTreeRegressor(random_state=0), {}),
    ],
    ids=["forest", "Adam", "alone", "bagging", "pipeline of extra trees", "tree"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_quantiles_cover_new_samples(model, options):
    low, high = (
        OrtGradientOptimizer(model, learning_loss=QuantileLoss(level), random_state=0, **options).fit(
            X[:300], Y[:300]
        )
        for level in (0.05, 0.95)
    )
    inside = (low.predict(X[300:]) <= Y[300:]) & (Y[300:] <= high.predict(X[300:]))
    assert 0.84 < inside.mean() < 0.96
    np.testing.assert_allclose(high.to_sklearn().predict(X[300:]), high.predict(X[300:]), rtol=1e-4)


def test_explain_names_the_samples_that_train_leaves():
    forests = (RandomForestRegressor(3), ExtraTreesRegressor(3), DecisionTreeRegressor())
    bagged, whole, single = (explain(model.fit(X[:50], Y[:50])).objective for model in forests)
    assert "trees that have not drawn it" in bagged
    assert "leave samples out" in whole and "leave samples out" in single
    classes = explain(ExtraTreesClassifier(3).fit(X[:50], Y[:50] > 10)).objective
    assert "class shares are mixed" in classes and "leave samples out" not in classes
    file = OrtGradientOptimizer(forests[0], random_state=0, warm_start=True).fit(X[50:90], Y[50:90])
    assert "do not grow" in explain(file.get_trained_onnx()).objective


def test_held_out_samples_that_all_trees_have_seen_do_not_count():
    model = RandomForestRegressor(4, random_state=0).fit(X[:200], Y[:200])
    configuration, start, _, _ = prepared(model, X[:200], Y[:200])
    members, numbers = start.data.members, np.arange(200)
    is_seen = ~members.any(axis=1)
    assert 10 < is_seen.sum() < 100

    def validation(numbers, weights=None):
        samples = Samples(X[numbers], Y[numbers], weights)
        return Validation.of(configuration, start, samples, lambda own: Ridge(), members[numbers])

    trees = np.stack([tree.predict(X[:200]) for tree in model.estimators_], axis=1)
    unseen = (trees * (members > 0)).sum(axis=1) / np.maximum((members > 0).sum(axis=1), 1)
    losses, weights = (unseen - Y[:200]) ** 2 / 2, np.linspace(1, 3, 200)
    for given in (None, weights):
        own = ~is_seen * (1.0 if given is None else given)
        found = validation(numbers, given).loss(start.weights)
        assert found == pytest.approx(np.average(losses, weights=own), rel=1e-6)
    losses = (trees.mean(axis=1) - Y[:200]) ** 2 / 2  # all trees have seen all of these
    found = validation(numbers[is_seen]).loss(start.weights)
    assert found == pytest.approx(losses[is_seen].mean(), rel=1e-6)


@pytest.mark.parametrize("n_samples", [1, 7, VALUES, 50 * VALUES])
def test_best_shift_has_the_lowest_loss_of_all_candidates(n_samples):
    rng = np.random.default_rng(n_samples)
    residuals, weights = rng.normal(3.0, 1e-7, n_samples), rng.uniform(0.1, 2.0, n_samples)
    calls = []

    def losses_at(values):
        calls.append(len(values))
        away = residuals[:, np.newaxis] - values
        return np.maximum(0.8 * away, -0.2 * away)

    found = best_shift(losses_at, residuals, weights)
    if n_samples == 1:
        assert found == 0 and not calls
        return
    order = np.argsort(residuals)
    shares = np.cumsum(weights[order]) / weights.sum()
    assert found == residuals[order][np.searchsorted(shares, 0.8)]  # the weighted quantile
    assert max(calls) <= VALUES and len(calls) <= 3
