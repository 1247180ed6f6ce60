"""Kernels of remote samples are as small as in scikit-learn, and decide the same classes."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.semi_supervised import LabelPropagation

from ortlearn import OrtGradientOptimizer

pytestmark = pytest.mark.filterwarnings("ignore::ortlearn.exceptions.FidelityWarning", "ignore::UserWarning")
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
CLASSES = np.where(X[:, 0] > 0, "yes", "no")
#: Kernels with the nearest training sample from 0.1 down to zero.
REMOTE = np.outer(np.linspace(1, 45, 90), [0.8, -0.6, 0.0]) * rng.choice([-1, 1], (90, 1))


def trained(model, y, **params):
    return OrtGradientOptimizer(model.fit(X, y), warm_start=True, random_state=0, **params).fit(X, y)


def test_classes_of_a_process():
    model = GaussianProcessClassifier(random_state=0, optimizer=None).fit(X, CLASSES)
    kernels = model.base_estimator_.kernel_(REMOTE, X).max(axis=1)
    assert kernels.max() > 0.01 and kernels[kernels > 0].min() < 1e-300 and kernels.min() == 0
    expected = model.predict(REMOTE)
    assert len(set(expected)) == 2
    np.testing.assert_array_equal(trained(model, CLASSES).predict(REMOTE), expected)


def test_classes_of_label_propagation():
    model = LabelPropagation().fit(X, CLASSES == "yes")
    with np.errstate(invalid="ignore"):
        expected = model.predict(REMOTE)
    np.testing.assert_array_equal(trained(model, CLASSES == "yes").predict(REMOTE), expected)


def test_a_kernel_is_zero_in_float64():
    ridge = trained(KernelRidge(kernel="rbf", gamma=1.0), X[:, 0], dtype="float64")
    assert ridge.predict(REMOTE)[-1] == 0 < abs(ridge.predict(REMOTE)[0])
