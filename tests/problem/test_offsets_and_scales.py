"""For any offsets and scales, predictions agree with scikit-learn's or a warning is given."""

import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import FidelityWarning

STILL = {"warm_start": True, "max_iter": 1, "learning_rate": 1e-30, "clip_norm": 1e-9, "random_state": 0}
OFFSETS = [0.0, 0.0, 1e2, -1e4, 1e6, 1.6e9, -1e12]
SCALES = [1e-8, 1e-3, 1.0, 1.0, 50.0, 1e4, 1e8]
SCALERS = [StandardScaler, MinMaxScaler, RobustScaler, lambda: PCA(2, whiten=True), QuantileTransformer]
REGRESSORS = [
    Ridge,
    LinearRegression,
    SVR,
    KNeighborsRegressor,
    lambda: RandomForestRegressor(5, random_state=0),
    lambda: MLPRegressor(hidden_layer_sizes=(4,), max_iter=5, random_state=0),
    GaussianProcessRegressor,
    lambda: TransformedTargetRegressor(Ridge(), transformer=StandardScaler()),
]
CLASSIFIERS = [LogisticRegression, LinearSVC, lambda: SVC(probability=False), GaussianNB]
UNSUPERVISED = [lambda: KMeans(3, random_state=0), lambda: GaussianMixture(2, random_state=0)]


def moved(rng, values):
    """Return standard normal values with other scales and offsets, exact in float64."""
    columns = values.shape[1:] if rng.random() < 0.5 else ()
    scales, offsets = rng.choice(SCALES, size=columns), rng.choice(OFFSETS, size=columns)
    return values * scales + np.where(np.abs(offsets) < 1e9 * scales, offsets, 0.0)


def draw(rng):
    """Return an estimator, X and y."""
    X = rng.normal(size=(80, 3))
    Z = X @ rng.normal(size=3)
    X = moved(rng, X)
    kind = rng.choice(["regression", "regression", "classification", "unsupervised"])
    last = rng.choice({"regression": REGRESSORS, "classification": CLASSIFIERS}.get(kind, UNSUPERVISED))()
    y = moved(rng, Z) if kind == "regression" else (Z > 0).astype(int)
    steps = [rng.choice(SCALERS)() for _ in range(rng.integers(0, 3))]
    if rng.random() < 0.2:
        steps.insert(0, PolynomialFeatures(2))
    return make_pipeline(*steps, last) if steps else last, X, None if kind == "unsupervised" else y


def agreement(ours, theirs, y):
    """Return the share of equal labels, or one minus the squared differences relative to those of y."""
    if theirs.dtype.kind != "f":
        return float(np.mean(ours == theirs))
    return 1 - np.sum((ours - theirs) ** 2) / np.sum((y - y.mean()) ** 2)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(5))
def test_predictions_agree_or_a_warning_is_given(block):
    outcomes = {"agree": 0, "agree with a warning": 0, "warning": 0, "refused": 0}
    for seed in range(50 * block, 50 * block + 50):
        rng = np.random.default_rng(seed)
        estimator, X, y = draw(rng)
        optimizer = (OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer)[seed % 2]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                theirs = estimator.fit(X, y).predict(X)
            except ValueError:  # rejected by scikit-learn, too
                continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                ours = optimizer(estimator, **STILL).fit(X, y).predict(X)
            except (ValueError, ArithmeticError):
                outcomes["refused"] += 1
                continue
        warned = any(issubclass(item.category, FidelityWarning) for item in caught)
        agrees = agreement(ours, theirs, y) > 0.98
        assert agrees or warned, (seed, estimator, agreement(ours, theirs, y))
        outcomes["agree with a warning" if agrees and warned else "agree" if agrees else "warning"] += 1
    print(outcomes)
    assert outcomes["agree"] >= 15
