"""Models that reproduce the samples of their fit are shifted for another loss, by predictions of clones."""

import pickle
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import AdaBoostRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsRegressor, RadiusNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR, NuSVR

from ortlearn import OrtGradientOptimizer
from ortlearn.conversion import explain
from ortlearn.exceptions import StartKeptWarning
from ortlearn.losses import QuantileLoss
from ortlearn.saving import load, save

MODELS = [
    AdaBoostRegressor(n_estimators=30, random_state=0),
    KNeighborsRegressor(),
    make_pipeline(StandardScaler(), KNeighborsRegressor(weights="distance")),
    make_pipeline(StandardScaler(), SVR(C=10.0)),
    NuSVR(C=10.0),
    GaussianProcessRegressor(RBF(0.5), alpha=0.05, optimizer=None),
]
each = pytest.mark.parametrize(
    "model", MODELS, ids=["adaboost", "neighbours", "scaled", "SVR", "NuSVR", "process"]
)


def data(n_samples=250):
    X, y = make_friedman1(n_samples + 1000, noise=1.0, random_state=0)
    return X[:n_samples], y[:n_samples], X[n_samples:], y[n_samples:]


def trained(model, X, y, level=0.95, **options):
    loss = QuantileLoss(level)
    return OrtGradientOptimizer(clone(model), learning_loss=loss, random_state=0, **options).fit(X, y)


@each
def test_intervals_cover_new_labels(model):
    """AdaBoost whose leaves were trained covered 0.69."""
    X, y, new, labels = data()
    low, high = (trained(model, X, y, level) for level in (0.05, 0.95))
    inside = (low.predict(new) <= labels) & (labels <= high.predict(new))
    assert 0.85 < inside.mean() < 0.97
    own, unseen = clone(model).fit(X, y), cross_val_predict(clone(model), X, y, cv=3)
    peer = own.predict(new) + np.quantile(y - unseen, 0.95)  # the same in scikit-learn
    assert mean_pinball_loss(labels, high.predict(new), alpha=0.95) < 1.1 * mean_pinball_loss(
        labels, peer, alpha=0.95
    )


@pytest.mark.parametrize(
    "options",
    [{"keep_better": False}, {"early_stopping": True}, {"learning_rate": "Adam", "max_iter": 5}],
    ids=["kept", "stopped", "Adam"],
)
def test_every_training_begins_with_the_shift(options):
    """A training of AdaBoost by Adam covered 0.07 of the labels."""
    X, y, new, labels = data()
    named = pytest.warns(UserWarning, match="reproduces their labels")
    with named if "learning_rate" in options else nullcontext():
        low, high = (trained(KNeighborsRegressor(), X, y, level, **options) for level in (0.05, 0.95))
    inside = (low.predict(new) <= labels) & (labels <= high.predict(new))
    assert 0.85 < inside.mean() < 0.97


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize("wrap", [FrozenEstimator, lambda model: make_pipeline(StandardScaler(), model)])
def test_samples_of_the_fit_are_recognised(wrap, warm_start):
    X, y, new, labels = data()
    model = clone(MODELS[0]).fit(X, y)
    own = wrap(model) if wrap is FrozenEstimator else wrap(model).fit(X, y)
    high = OrtGradientOptimizer(own, warm_start=warm_start, learning_loss=QuantileLoss(0.95), random_state=0)
    assert 0.9 < np.mean(labels <= high.fit(X, y).predict(new)) < 0.99


@pytest.mark.filterwarnings("ignore:One or more samples have no neighbors")
@pytest.mark.parametrize("radius", [0.7, 0.9])
def test_samples_without_neighbours(radius):
    X, y, new, labels = data()
    own = RadiusNeighborsRegressor(radius).fit(X, y)
    high = trained(RadiusNeighborsRegressor(radius), X, y)
    known = np.isfinite(own.predict(new))
    moves = high.predict(new)[known] - own.predict(new)[known]
    assert np.ptp(moves) < 1e-4 and 0.9 < np.mean(labels[known] <= high.predict(new)[known]) < 0.99


@each
def test_predictions_are_those_of_the_own_fit_and_a_constant(model):
    X, y, new, _ = data()
    trainer = trained(model, X, y)
    moves = trainer.predict(new) - clone(model).fit(X, y).predict(new)
    assert np.ptp(moves) < 1e-4 and moves.mean() > 1.0
    np.testing.assert_allclose(trainer.to_sklearn().predict(new), trainer.predict(new), atol=1e-4)


def test_kernel_ridge_has_the_coefficients_of_a_fit_to_shifted_labels():
    """It has no intercept, but a fit is linear in the labels; kernels that cannot express ones are kept."""
    X, y, new, labels = data()
    trainer = trained(KernelRidge(kernel="rbf", alpha=0.1), X, y)
    assert 0.85 < np.mean(labels <= trainer.predict(new)) < 0.99
    shift = np.mean(
        trainer.to_sklearn().dual_coef_ - KernelRidge(kernel="rbf", alpha=0.1).fit(X, y).dual_coef_
    )
    assert shift > 0
    with pytest.warns(StartKeptWarning):
        trained(KernelRidge(), X - X.mean(axis=0), y)


def test_outputs_are_shifted_for_themselves():
    X, y, new, labels = data()
    trainer = trained(KNeighborsRegressor(), X, np.column_stack([y, -100 * y]))
    shares = (np.column_stack([labels, -100 * labels]) <= trainer.predict(new)).mean(axis=0)
    assert np.all((shares > 0.9) & (shares < 0.99))


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
def test_few_samples():
    """A fit on some of six samples has too few neighbours: the tables are trained as before."""
    X, y = load_diabetes(return_X_y=True)
    trainer = trained(KNeighborsRegressor(5), X[:6], y[:6])
    assert np.isfinite(trainer.predict(X)).all()


def test_samples_without_weight_change_nothing():
    X, y, new, _ = data(200)
    weights = np.repeat([1.0, 0.0], 100)
    trainer = OrtGradientOptimizer(MODELS[0], learning_loss=QuantileLoss(0.9), random_state=0)
    found = [
        clone(trainer).fit(X, labels, sample_weight=weights).predict(new)
        for labels in (y, np.where(weights > 0, y, 1e6))
    ]
    np.testing.assert_allclose(*found, rtol=1e-5)


@each
def test_fits_are_reproducible_and_are_saved(model, tmp_path):
    X, y, new, _ = data()
    first, second = trained(model, X, y), trained(model, X, y)
    np.testing.assert_array_equal(first.predict(new), second.predict(new))
    save(first, tmp_path / "model.ort")
    for other in (load(tmp_path / "model.ort"), pickle.loads(pickle.dumps(first))):
        np.testing.assert_array_equal(first.predict(new), other.predict(new))


def test_explain_tells_the_rule():
    X, y, *_ = data()
    assert "shifts them by a constant" in str(explain(MODELS[0], X, y).objective)
