"""Parts with trees are trained with a named loss as each is alone."""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor, VotingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.losses import QuantileLoss

X, Y = make_friedman1(800, noise=1.0, random_state=0)
TREES = [
    HistGradientBoostingRegressor(max_iter=30, random_state=0),
    RandomForestRegressor(20, random_state=0),
]


def trained(model, y=Y, **options):
    trainer = OrtGradientOptimizer(model, learning_loss=QuantileLoss(0.9), random_state=0, **options)
    return trainer.fit(X[:400], y[:400])


@pytest.mark.parametrize("model", TREES, ids=lambda model: type(model).__name__)
def test_each_output_is_trained_alone(model):
    found = trained(make_pipeline(StandardScaler(), MultiOutputRegressor(model)), np.stack([Y, -1e4 * Y], 1))
    alone = [trained(make_pipeline(StandardScaler(), model), y).predict(X) for y in (Y, -1e4 * Y)]
    np.testing.assert_allclose(found.predict(X), np.stack(alone, axis=1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.to_sklearn().predict(X), found.predict(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("model", TREES, ids=lambda model: type(model).__name__)
def test_voters_and_the_best_model_of_a_search_are_trained_alone(model):
    alone, linear = (trained(own).predict(X) for own in (model, Ridge()))
    voters = [("trees", model), ("none", "drop"), ("linear", Ridge())]
    vote = trained(VotingRegressor(voters, weights=[2, 1, 1]))
    np.testing.assert_allclose(vote.predict(X), (2 * alone + linear) / 3, rtol=1e-4)
    assert list(vote.to_sklearn().named_estimators_) == ["trees", "none", "linear"]
    search = trained(GridSearchCV(model, {"max_depth": [model.max_depth]}, cv=2))
    np.testing.assert_allclose(search.predict(X), alone, rtol=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("func, inverse", [(np.exp, np.log), (np.negative, np.negative)])
def test_quantiles_of_transformed_labels_are_trained_alone_if_these_increase(func, inverse):
    """A decreasing function transforms the upper quantile to the lower one."""
    model, y = HistGradientBoostingRegressor(max_iter=30, random_state=0), Y / 10
    found = trained(TransformedTargetRegressor(model, func=func, inverse_func=inverse), y)
    assert (len(found.history_) == 1) == (func is np.exp)
    if func is np.exp:
        alone = np.log(trained(model, np.exp(y)).predict(X))
        np.testing.assert_allclose(found.predict(X), alone, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("options", [{"learning_rate": "Adam"}, {"early_stopping": True}])
def test_a_training_that_is_named_trains_all_parts_together(options):
    model = MultiOutputRegressor(HistGradientBoostingRegressor(max_iter=3, random_state=0))
    assert len(trained(model, np.stack([Y, Y], 1), max_iter=3, **options).history_) > 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_chain_is_trained_as_a_whole():
    model = RegressorChain(HistGradientBoostingRegressor(max_iter=3, random_state=0))
    assert len(trained(model, np.stack([Y, Y], 1), max_iter=3).history_) > 1
