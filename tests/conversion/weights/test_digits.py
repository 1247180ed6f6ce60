"""What is trained depends on the model, not on how many digits its numbers happen to have."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, RationalQuadratic, WhiteKernel
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from ortlearn.conversion import explain
from ortlearn.conversion.weights.weight_names import is_named_after

MEANS = (133.56, 134.0712345, 133.5, 0.0, 1.0, 2.0, -0.5, 3.0)


def rows(mean):
    """Return rows and targets that have a mean."""
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(40, 3)), np.round(rng.normal(size=40), 3)
    y[0] += 40 * mean - y.sum()
    return X, y


def trained(model):
    return {row.attribute for row in explain(model).rows if row.trainable}


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("scale", [2.0, 1.2345678])
def test_gaussian_process(mean, scale):
    kernel = RBF(scale) + 0.5 * RationalQuadratic(2.0, alpha=scale) + WhiteKernel(1.0)
    process = GaussianProcessRegressor(kernel, normalize_y=True, optimizer=None).fit(*rows(mean))
    assert trained(process) == {"X_train_", "alpha_", "_y_train_mean", "_y_train_std"}
    reasons = {row.attribute: row.reason for row in explain(process).rows}
    assert reasons["kernel_.k1.k1.length_scale"] == "fitted hyper-parameter of the kernel"


def test_gaussian_process_of_targets_as_they_are():
    process = GaussianProcessRegressor(RBF(3.0), alpha=0.1, optimizer=None).fit(*rows(0.0))
    assert trained(process) == {"X_train_", "alpha_", "_y_train_mean"}


@pytest.mark.parametrize("mean", MEANS)
def test_boosting(mean):
    X, y = rows(mean)
    histograms = HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=5).fit(X, y)
    assert trained(histograms) == {"_baseline_prediction", "_predictors[*][0].nodes['value']"}
    boosting = GradientBoostingRegressor(n_estimators=2).fit(X, y)
    assert trained(boosting) == {"init_.constant_", "estimators_[*][0].tree_.value"}


@pytest.mark.parametrize("digits", [0, 1, 2, 8])
@pytest.mark.parametrize("columns", [1, 3])
def test_rounded_rows(digits, columns):
    X = np.round(rows(0.0)[0][:, :columns] * 2, digits)
    assert trained(StandardScaler().fit(X)) == {"mean_", "scale_"}
    assert trained(MinMaxScaler().fit(X)) == {"min_", "scale_"}
    assert trained(GaussianNB().fit(X, np.arange(40) % 2)) == {"theta_", "var_", "class_prior_"}


def test_names_of_attributes():
    assert is_named_after("I3_coef_1", "coef_") and not is_named_after("I3_recoef", "coef_")
    assert is_named_after("node_base_values_0", "_baseline_prediction")
    assert not is_named_after("node_base_values_0", "_y_train_mean")
