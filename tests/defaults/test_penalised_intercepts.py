"""The penalty of an intercept is that of the model, also where features are centred internally."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.svm import LinearSVC

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.penalties import ElasticPenalty, L1Penalty, L2Penalty

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 2)) + 5
Y = X @ [1.0, 2.0] + RNG.normal(size=200) * 0.1
ADAM = {"clip_norm": 1e9, "batch_size": 200, "max_iter": 4000}  # automatic, on standardised features


def objective(model, penalty):
    """Return the objective of a linear model on the samples."""
    return ((Y - model.predict(X)) ** 2).mean() / 2 + penalty(np.append(model.coef_, model.intercept_))


@pytest.mark.parametrize(
    ("penalty", "value", "options", "best"),
    [
        (L1Penalty(0.2, intercept=True), lambda w: 0.2 * np.abs(w).sum(), {}, 0.604133235),
        (
            ElasticPenalty(0.1, 0.1, intercept=True),
            lambda w: 0.1 * np.abs(w).sum() + 0.1 * w @ w,
            {},
            None,
        ),
        ({"intercept_": L1Penalty(0.2)}, lambda w: 0.2 * abs(w[-1]), {}, None),
        (L2Penalty(0.2, intercept=True), lambda w: 0.2 * w @ w, {}, 0.956684385),
        (L2Penalty(0.2, intercept=True), lambda w: 0.2 * w @ w, ADAM, 0.956684385),
        ({"intercept_": L2Penalty(0.2)}, lambda w: 0.2 * w[-1] ** 2, ADAM, None),
    ],
    ids=["l1", "elastic", "l1 of the intercept", "l2", "l2 by Adam", "l2 of the intercept by Adam"],
)
def test_objective_is_that_of_the_model(penalty, value, options, best):
    model = OrtGradientOptimizer(
        LinearRegression(), learning_penalty=penalty, random_state=0, dtype="float64", **options
    ).fit(X, Y)
    assert model.train_losses_[-1] == pytest.approx(objective(model, value), rel=0.02)
    if best is not None:
        assert objective(model, value) == pytest.approx(best, rel=1e-4)


def test_two_calls_and_one_graph_have_the_same_objective():
    options = {"learning_penalty": L2Penalty(0.2, intercept=True), "random_state": 0, "dtype": "float64"}
    for kind in (OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer):
        model = kind(LinearRegression(), **options, **ADAM).fit(X, Y)
        assert objective(model, lambda w: 0.2 * w @ w) == pytest.approx(0.956684385, rel=1e-4)


@pytest.mark.parametrize("streams", [False, True])
def test_a_support_vector_classifier_has_its_own_objective(streams):
    features = RNG.normal(size=(300, 3)) + [20, -10, 5]
    labels = (features @ [1, 1, 0.5] + RNG.normal(size=300) * 0.3 > 12.5).astype(int)
    own = LinearSVC(C=0.005, dual=False, tol=1e-10, max_iter=10**6)

    def loss(model):
        margins = (2 * labels - 1) * (features @ model.coef_.ravel() + model.intercept_)
        squares = np.maximum(0, 1 - margins) ** 2
        return 0.005 * squares.sum() + 0.5 * (model.coef_**2).sum() + 0.5 * (model.intercept_**2).sum()

    model = OrtGradientOptimizer(own, random_state=0, dtype="float64", batch_size=300)
    for _ in range(300 if streams else 0):
        model.partial_fit(features, labels, total_weight=300)
    model = model if streams else model.fit(features, labels)
    assert loss(model) == pytest.approx(loss(own.fit(features, labels)), rel=1e-3)
