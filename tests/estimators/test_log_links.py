"""Losses with a log link, and labels outside of the domain of a loss."""

import numpy as np
import pytest
from sklearn._loss.loss import HalfGammaLoss, HalfPoissonLoss, HalfTweedieLoss
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import GammaRegressor, LinearRegression, PoissonRegressor, TweedieRegressor
from sklearn.neural_network import MLPRegressor

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
