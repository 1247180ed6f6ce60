"""Losses with a log link, and labels outside of the domain of a loss."""

import numpy as np
import pytest
from sklearn._loss.loss import HalfGammaLoss, HalfPoissonLoss, HalfTweedieLoss
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, RandomForestRegressor, StackingRegressor, VotingRegressor
from sklearn.linear_model import GammaRegressor, LinearRegression, PoissonRegressor, Ridge, TweedieRegressor
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.losses import GammaLoss, PoissonLoss, TweedieLoss
from ortlearn.penalties import L2Penalty

KINDS = [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer]
RNG = np.random.RandomState(0)
X = RNG.normal(size=(200, 4)).astype(np.float32)
MEAN = np.exp(X @ [0.5, -0.3, 0.2, 0.0] + 0.3)
COUNTS = RNG.poisson(MEAN).astype(float)
AMOUNTS = RNG.gamma(2.0, MEAN / 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "model",
    [
        PoissonRegressor(),
        LinearRegression(),
        MLPRegressor(hidden_layer_sizes=(5,), max_iter=10),
        MLPRegressor("poisson", hidden_layer_sizes=(5,), max_iter=10),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_model_predicts_the_mean(kind, model, run_onnx):
    """The trained model ends with Exp, and its loss equals scikit-learn's."""
    trained = kind(model, learning_loss="poisson", learning_rate=0.05, max_iter=15, random_state=0).fit(
        X, COUNTS
    )
    predicted = trained.predict(X)
    assert (predicted > 0).all()
    np.testing.assert_allclose(predicted.mean(), COUNTS.mean(), rtol=0.15)
    np.testing.assert_allclose(next(iter(run_onnx(trained.onnx_, X).values())).ravel(), predicted, rtol=1e-6)
    expected = HalfPoissonLoss().loss(COUNTS, np.log(predicted.astype(np.float64)))
    np.testing.assert_allclose(trained.losses(X, COUNTS), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "model, loss, reference, y",
    [
        (PoissonRegressor(alpha=0.1, tol=1e-8), PoissonLoss(), HalfPoissonLoss(), COUNTS),
        (GammaRegressor(alpha=0.1, tol=1e-8), GammaLoss(), HalfGammaLoss(), AMOUNTS),
        (
            TweedieRegressor(power=1.5, alpha=0.1, link="log", tol=1e-8),
            TweedieLoss(power=1.5),
            HalfTweedieLoss(power=1.5),
            COUNTS,
        ),
    ],
    ids=["poisson", "gamma", "tweedie"],
)
def test_lbfgs_reaches_scikit_learns_objective(model, loss, reference, y):
    fitted = model.fit(X, y)
    trained = OrtGradientOptimizer(
        model, learning_loss=loss, learning_penalty=L2Penalty(0.05), learning_rate="LBFGS", random_state=0
    ).fit(X, y)

    def objective(coef, intercept):
        raw = X.astype(np.float64) @ coef + intercept
        return reference.loss(y, raw).mean() + 0.05 * (coef**2).sum()

    own = {name.partition("_")[0]: value for name, value in trained.trained_coef_.items()}
    coef, intercept = (np.float64(own[name]).ravel() for name in sorted(own, key=lambda n: -own[n].size))
    assert objective(coef, intercept) <= objective(fitted.coef_, fitted.intercept_) * (1 + 1e-3)


def test_transformed_targets():
    model = TransformedTargetRegressor(PoissonRegressor(), func=np.sqrt, inverse_func=np.square)
    trained = OrtGradientOptimizer(
        model, learning_loss="poisson", max_iter=5, random_state=0, warm_start=True
    )
    trained.fit(X, COUNTS)
    roots = np.log(np.sqrt(trained.predict(X).astype(np.float64)))
    expected = HalfPoissonLoss().loss(np.sqrt(COUNTS), roots)
    np.testing.assert_allclose(trained.losses(X, COUNTS), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "loss, y, message",
    [
        ("poisson", COUNTS - 1, r"outside of \[0, inf\), such as -1"),
        ("gamma", COUNTS, r"outside of \(0, inf\), such as 0"),
        (TweedieLoss(power=3), COUNTS, r"outside of \(0, inf\), such as 0"),
    ],
)
def test_labels_outside_of_the_domain(kind, loss, y, message):
    trainer = kind(LinearRegression(), learning_loss=loss)
    with pytest.raises(ValueError, match=message):
        trainer.fit(X, y)
    assert not hasattr(trainer, "onnx_")


OUTPUTS = np.stack([COUNTS, COUNTS + 1], axis=1) + 1
INSIDE = [
    (MultiOutputRegressor(PoissonRegressor()), OUTPUTS, "PoissonLoss"),
    (RegressorChain(PoissonRegressor()), OUTPUTS, "PoissonLoss"),
    (MultiOutputRegressor(make_pipeline(StandardScaler(), PoissonRegressor())), OUTPUTS, "PoissonLoss"),
    (
        MultiOutputRegressor(
            TransformedTargetRegressor(PoissonRegressor(), func=np.sqrt, inverse_func=np.square)
        ),
        OUTPUTS,
        "SquaredErrorLoss",
    ),
    (BaggingRegressor(PoissonRegressor(), 3, random_state=0), COUNTS, "SquaredErrorLoss"),
    (
        VotingRegressor([("a", PoissonRegressor()), ("b", PoissonRegressor(alpha=2))]),
        COUNTS,
        "SquaredErrorLoss",
    ),
    (StackingRegressor([("a", Ridge())], PoissonRegressor()), COUNTS, "SquaredErrorLoss"),
]


@pytest.mark.parametrize("model, y, loss", INSIDE, ids=lambda value: type(value).__name__)
def test_members_with_a_log_link(model, y, loss):
    """By default, the graph of the weights of a model predicts like it, and the loss compares predictions."""
    fitted = model.fit(X, y)
    settings = {"warm_start": True, "learning_rate": 1e-12, "max_iter": 1, "learning_penalty": None}
    for kind in KINDS:
        trained = kind(fitted, keep_better=False, random_state=0, **settings).fit(X, y)
        predicted = trained.predict(X)
        np.testing.assert_allclose(predicted, fitted.predict(X), rtol=1e-4)
        np.testing.assert_allclose(trained.to_sklearn().predict(X), predicted, rtol=1e-4)
        assert type(trained.loss_).__name__ == loss
        if loss == "SquaredErrorLoss":
            expected = ((predicted - y) ** 2).reshape(len(y), -1).sum(axis=1) / 2
        else:
            expected = (predicted - y * np.log(predicted)).sum(axis=1)
        np.testing.assert_allclose(trained.losses(X, y), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("model", [PoissonRegressor(), MLPRegressor("poisson", (4,), max_iter=9)], ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_squared_error_of_a_model_with_a_log_link(model):
    fitted = model.fit(X, COUNTS)
    trained = OrtGradientOptimizer(
        fitted,
        learning_loss="squared_error",
        learning_rate=1e-12,
        max_iter=1,
        warm_start=True,
        random_state=0,
    ).fit(X, COUNTS)
    predicted = trained.predict(X)
    np.testing.assert_allclose(predicted, fitted.predict(X), rtol=1e-4)
    np.testing.assert_allclose(trained.losses(X, COUNTS), (predicted - COUNTS) ** 2 / 2, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(trained.to_sklearn().predict(X), predicted, rtol=1e-4)


def test_initial_fit_of_transformed_targets():
    """Working responses of a log link may be negative, unlike the labels that the model transforms."""
    model = TransformedTargetRegressor(LinearRegression(), func=np.log1p, inverse_func=np.expm1)
    trained = OrtGradientOptimizer(model, learning_loss="poisson", random_state=0).fit(X, COUNTS)
    assert np.corrcoef(trained.predict(X), COUNTS)[0, 1] > 0.4
    model.set_params(func=np.log, inverse_func=np.exp)
    with pytest.raises(ValueError, match=r"outside of \[0, inf\)"):
        OrtGradientOptimizer(model, learning_loss="poisson").fit(X, MEAN)
    with pytest.raises(ValueError, match="not finite for some labels.*log1p"):
        OrtGradientOptimizer(model).fit(X, COUNTS)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestRegressor(5, random_state=0),
        DecisionTreeRegressor(random_state=0),
        make_pipeline(StandardScaler(), BaggingRegressor(DecisionTreeRegressor(), 5, random_state=0)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_trees_that_take_no_negative_labels_are_fitted_to_logarithms(model):
    name = next(name for name in model.get_params() if name.endswith("criterion"))
    found, expected = (
        OrtGradientOptimizer(
            clone(model).set_params(**{name: criterion}), learning_loss="poisson", random_state=0
        )
        for criterion in ("poisson", "squared_error")
    )
    np.testing.assert_allclose(found.fit(X, COUNTS).predict(X), expected.fit(X, COUNTS).predict(X))
