"""learning_rate="LBFGS" finds the optimum of scikit-learn in both estimators."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor

from ortlearn.exceptions import PluginError
from ortlearn.learning_rates import LearningRateLBFGS
from ortlearn.penalties import L2Penalty


def squared_error(scores, y):
    return ((scores - y.reshape(len(y), -1)) ** 2).sum(axis=1) / 2


def log_loss(scores, y):
    if scores.shape[1] == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    highest = scores.max(axis=1)
    total = highest + np.log(np.exp(scores - highest[:, None]).sum(axis=1))
    return total - scores[np.arange(len(y)), y]


def objective(loss, coef, intercept, X, y, weights, l2):
    values = loss(X @ np.atleast_2d(coef).T + np.ravel(intercept), y)
    return np.average(values, weights=weights) + l2 * (coef**2).sum()


def coefficients(trained):
    coef = trained.trained_coef_
    return coef["coef"].T.astype(np.float64), np.ravel(coef["intercept"]).astype(np.float64)


#: Data, estimator for a penalty on the mean loss, and the loss of each sample.
CASES = {
    "ridge": ("diabetes", lambda l2, total: Ridge(alpha=2 * l2 * total), squared_error),
    "binary": (
        "cancer",
        lambda l2, total: LogisticRegression(C=1 / (2 * l2 * total), tol=1e-8, max_iter=1000),
        log_loss,
    ),
    "multinomial": (
        "wine",
        lambda l2, total: LogisticRegression(C=1 / (2 * l2 * total), tol=1e-8, max_iter=1000),
        log_loss,
    ),
}


@pytest.mark.parametrize(
    "weighted, dtype", [(False, "float32"), (True, "float64")], ids=["plain", "weighted"]
)
@pytest.mark.parametrize("name", list(CASES))
def test_objective_equals_scikit_learns(name, weighted, dtype, optimizer, request):
    data, make, loss = CASES[name]
    X, y = request.getfixturevalue(data)
    if name == "ridge":
        y = y / 100
    weights = np.random.RandomState(0).uniform(0.1, 3, len(X)) if weighted else np.ones(len(X))
    l2 = 0.01
    theirs = make(l2, weights.sum()).fit(X, y, sample_weight=weights)
    ours = optimizer(
        clone(theirs),
        learning_rate="LBFGS",
        learning_penalty=L2Penalty(l2),
        max_iter=300,
        random_state=0,
        dtype=dtype,
    ).fit(X, y, sample_weight=weights)
    best = objective(loss, theirs.coef_, theirs.intercept_, X, y, weights, l2)
    found = objective(loss, *coefficients(ours), X, y, weights, l2)
    assert found <= best * (1 + (1e-4 if dtype == "float32" else 1e-6))
    np.testing.assert_allclose(ours.train_losses_[-1], found, rtol=1e-4)
    assert ours.n_iter_ == len(ours.train_losses_) < 300
    assert type(ours.learning_rate_) is LearningRateLBFGS


@pytest.mark.slow
def test_both_estimators_agree(both, diabetes_units):
    X, y = diabetes_units
    first, second = (
        make(MLPRegressor(hidden_layer_sizes=(5,)), learning_rate="LBFGS", random_state=0, max_iter=1000).fit(
            X, y
        )
        for make in both
    )
    for name, array in first.trained_coef_.items():
        np.testing.assert_array_equal(second.trained_coef_[name], array)


def test_loss_of_a_network_is_near_scikit_learns(optimizer, diabetes_units, fit_quietly):
    X, y = diabetes_units
    theirs = fit_quietly(
        MLPRegressor(hidden_layer_sizes=(5,), solver="lbfgs", alpha=0.1, max_iter=200, random_state=0), X, y
    )
    ours = optimizer(
        MLPRegressor(hidden_layer_sizes=(5,)),
        learning_rate="LBFGS",
        learning_penalty=L2Penalty(0.05 / len(X)),
        max_iter=200,
        random_state=0,
        dtype="float64",
    )
    ours = fit_quietly(ours, X, y)
    assert ours.train_losses_[-1] < theirs.loss_ * 1.1


def test_max_iter_is_reached(optimizer, cancer):
    X, y = cancer
    model = optimizer(LogisticRegression(), learning_rate="LBFGS", max_iter=3, random_state=0)
    message = (
        "LearningRateLBFGS stopped after 3 iterations: it reached max_iter=3 before it converged. Increase"
    )
    with pytest.warns(ConvergenceWarning, match=message):
        model.fit(X, y)
    assert model.n_iter_ == len(model.train_losses_) == 3


def test_training_continues(optimizer, cancer, fit_quietly):
    X, y = cancer
    options = {"learning_rate": "LBFGS", "learning_penalty": L2Penalty(0.01), "random_state": 0}
    model = optimizer(LogisticRegression(), max_iter=3, warm_start=True, **options)
    first = fit_quietly(model, X, y).train_losses_[-1]
    assert model.set_params(max_iter=200).fit(X, y).train_losses_[0] < first


def test_start_at_the_optimum(optimizer, diabetes_units):
    X, y = diabetes_units
    options = {"learning_rate": "LBFGS", "learning_penalty": L2Penalty(0.01), "dtype": "float64"}
    model = optimizer(Ridge(), warm_start=True, random_state=0, **options).fit(X, y)
    first = model.trained_coef_["coef"]
    model.fit(X, y)
    assert (model.n_iter_, model.train_losses_) == (0, [])
    np.testing.assert_array_equal(model.trained_coef_["coef"], first)
    assert model.predict(X).shape == y.shape
    assert model.set_params(learning_rate="SGD").partial_fit(X, y).n_iter_ == 1


def test_partial_fit_is_rejected(optimizer, diabetes):
    X, y = diabetes
    with pytest.raises(PluginError, match="LearningRateLBFGS trains on all samples at once.*fit"):
        optimizer(Ridge(), learning_rate="LBFGS").partial_fit(X, y)
    model = optimizer(Ridge(), learning_rate="LBFGS", random_state=0).fit(X, y)
    before = model.trained_coef_["coef"]
    with pytest.raises(PluginError, match="trains on all samples at once"):
        model.partial_fit(X, y)
    assert model.trained_coef_["coef"] is before
    # Another learning rate continues from its solution.
    model.set_params(learning_rate=1e-30).partial_fit(X, y)
    np.testing.assert_array_equal(model.trained_coef_["coef"], before)


def test_projection_is_rejected(optimizer, diabetes):
    model = optimizer(Ridge(), learning_rate="LBFGS", learning_penalty="max_norm")
    with pytest.raises(PluginError, match="needs a smooth objective"):
        model.fit(*diabetes)


def test_sparse_data_and_validation(optimizer, diabetes_units):
    X, y = diabetes_units
    X = np.where(X > 0, X, 0)
    options = {"learning_rate": "LBFGS", "random_state": 0, "validation_every": 1}
    dense = optimizer(Ridge(), **options).fit(X, y, X_val=X[:50], y_val=y[:50])
    sparse = optimizer(Ridge(), **options).fit(csr_matrix(X), y)
    np.testing.assert_allclose(sparse.trained_coef_["coef"], dense.trained_coef_["coef"], atol=1e-3)
    assert len(dense.validation_losses_) == dense.n_iter_
    assert dense.validation_losses_[-1] == pytest.approx(dense.losses(X[:50], y[:50]).mean(), rel=1e-5)


def test_nested_parameters(optimizer, diabetes_units):
    X, y = diabetes_units
    model = optimizer(Ridge(), learning_rate=LearningRateLBFGS(), random_state=0)
    search = GridSearchCV(model, {"learning_rate__gtol": [10.0, 1e-4]}, cv=3).fit(X, y)
    assert search.best_params_ == {"learning_rate__gtol": 1e-4}
