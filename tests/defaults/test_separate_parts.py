"""Parts with trees are trained with a named loss as each is alone."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.losses import BaseLoss, QuantileLoss

X, Y = make_friedman1(800, noise=1.0, random_state=0)
TREES = [
    HistGradientBoostingRegressor(max_iter=30, random_state=0),
    RandomForestRegressor(20, random_state=0),
]


def trained(model, y=Y, **options):
    trainer = OrtGradientOptimizer(model, learning_loss=QuantileLoss(0.9), random_state=0, **options)
    return trainer.fit(X[:400], y[:400])


@pytest.mark.slow
@pytest.mark.parametrize("model", TREES, ids=lambda model: type(model).__name__)
def test_each_output_is_trained_alone(model):
    found = trained(make_pipeline(StandardScaler(), MultiOutputRegressor(model)), np.stack([Y, -1e4 * Y], 1))
    alone = [trained(make_pipeline(StandardScaler(), model), y).predict(X) for y in (Y, -1e4 * Y)]
    np.testing.assert_allclose(found.predict(X), np.stack(alone, axis=1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.to_sklearn().predict(X), found.predict(X), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("model", TREES, ids=lambda model: type(model).__name__)
def test_voters_and_the_best_model_of_a_search_are_trained_alone(model):
    alone, linear = (trained(own).predict(X) for own in (model, Ridge()))
    voters = [("trees", model), ("none", "drop"), ("linear", Ridge())]
    vote = trained(VotingRegressor(voters, weights=[2, 1, 1]))
    np.testing.assert_allclose(vote.predict(X), (2 * alone + linear) / 3, rtol=1e-4)
    assert list(vote.to_sklearn().named_estimators_) == ["trees", "none", "linear"]
    search = trained(GridSearchCV(model, {"max_depth": [model.max_depth]}, cv=2))
    np.testing.assert_allclose(search.predict(X), alone, rtol=1e-4)


@pytest.mark.parametrize("options", [{}, {"max_features": 0.8, "bootstrap": False, "max_samples": 0.6}])
def test_members_of_a_bagging_are_trained_alone(options):
    """Trained together, leaves would be fitted to samples that trees have seen."""
    model = BaggingRegressor(RandomForestRegressor(3), n_estimators=2, random_state=0, **options)
    low, high = (
        OrtGradientOptimizer(model, learning_loss=QuantileLoss(level), random_state=0).fit(X[:400], Y[:400])
        for level in (0.05, 0.95)
    )
    inside = (low.predict(X[400:]) <= Y[400:]) & (Y[400:] <= high.predict(X[400:]))
    assert inside.mean() > 0.9  # together: 0.6
    np.testing.assert_allclose(low.to_sklearn().predict(X), low.predict(X), rtol=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("func, inverse", [(np.exp, np.log), (np.negative, np.negative), (np.abs, np.exp)])
def test_quantiles_of_transformed_labels_are_trained_alone_if_these_keep_or_reverse_the_order(func, inverse):
    """The loss is that of the transformed labels: a decreasing one makes the upper quantile the lower."""
    model, y = HistGradientBoostingRegressor(max_iter=30, random_state=0), (Y - 10) / 10
    found = trained(
        TransformedTargetRegressor(model, func=func, inverse_func=inverse, check_inverse=False), y
    )
    assert (len(found.history_) == 1) == (func is not np.abs)
    if func is not np.abs:
        alone = inverse(trained(model, func(y)).predict(X))
        np.testing.assert_allclose(found.predict(X), alone, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("options", [{"learning_rate": "Adam"}, {"early_stopping": True}])
def test_a_training_that_is_named_trains_all_parts_together(options):
    model = MultiOutputRegressor(HistGradientBoostingRegressor(max_iter=3, random_state=0))
    assert len(trained(model, np.stack([Y, Y], 1), max_iter=3, **options).history_) > 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.PrecisionWarning")
@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
@pytest.mark.parametrize("model", [TREES[0], Ridge()], ids=lambda model: type(model).__name__)
def test_links_of_a_chain_are_trained_one_after_another(model, order):
    """Trained together, the first outputs would serve the last ones, whose loss is larger."""
    labels = np.stack([Y, 1000 * np.sin(Y)], 1)
    chain, inputs = trained(RegressorChain(model, order=order), labels), X
    for output in order:
        link = OrtGradientOptimizer(model, learning_loss=QuantileLoss(0.9), random_state=0)
        predicted = link.fit(inputs[:400], labels[:400, output]).predict(inputs)
        # a few samples are at thresholds of later trees
        assert np.isclose(chain.predict(X)[:, output], predicted, rtol=1e-3, atol=1e-2).mean() > 0.99
        inputs = np.column_stack([inputs, predicted])
    assert np.isclose(chain.to_sklearn().predict(X), chain.predict(X), rtol=1e-3, atol=1e-2).mean() > 0.99


def test_small_outputs_beside_large_ones_reach_their_quantiles():
    found = trained(MultiOutputRegressor(LinearRegression()), np.stack([Y, 1000 * Y], 1)).predict(X[:400])
    np.testing.assert_allclose((Y[:400, np.newaxis] * [1, 1000] <= found).mean(axis=0), 0.9, atol=0.01)


def test_a_loss_that_couples_outputs_is_trained_together():
    class Distance(BaseLoss):
        kinks = True

        def forward(self, op, expected, predicted):
            difference = op.Sub(expected, predicted)
            return op.Sqrt(op.ReduceSum(op.Mul(difference, difference), [1], keepdims=0))

    assert not Distance.by_output
    model = MultiOutputRegressor(LinearRegression())
    trainer = OrtGradientOptimizer(model, learning_loss=Distance(), random_state=0)
    assert len(trainer.fit(X[:100], np.stack([Y, Y**2], 1)[:100]).history_) > 1


def test_parts_that_cannot_store_the_scores_of_a_loss_are_trained_together():
    X, y = make_friedman1(400, noise=0.5, random_state=0)
    Y = np.maximum(np.column_stack([y, 30 - y]), 0)
    model = MultiOutputRegressor(GradientBoostingRegressor(n_estimators=10, random_state=0))
    own = clone(model).fit(X[:300], Y[:300]).score(X[300:], Y[300:])
    trainer = OrtGradientOptimizer(model, learning_loss="poisson", random_state=0).fit(
        X[:300], np.maximum(Y[:300], 0)
    )
    assert r2_score(Y[300:], trainer.predict(X[300:])) > own - 0.05
