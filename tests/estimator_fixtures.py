"""Fixtures: the two estimator classes, data sets, and helpers of several files."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.utils import shuffle

from ortlearn.estimators import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session
from tests.estimators import mixed_frames
from tests.plain_training import plain_training  # noqa: F401

OPTIMIZERS = {"one_graph": OrtGradientOptimizer, "two_calls": OrtGradientForwardBackwardOptimizer}


@pytest.fixture(params=list(OPTIMIZERS))
def optimizer(request):
    """Return each of the two estimator classes."""
    return OPTIMIZERS[request.param]


@pytest.fixture
def both():
    """Return both estimator classes, for comparisons."""
    return tuple(OPTIMIZERS.values())


def _standardised(loader):
    X, y = shuffle(*loader(return_X_y=True), random_state=0)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="session")
def diabetes():
    """Return a regression problem of shape (442, 10), standardised."""
    return _standardised(load_diabetes)


@pytest.fixture(scope="session")
def diabetes_units(diabetes):
    """Return a regression problem of shape (442, 10) with standardised labels."""
    X, y = diabetes
    return X, (y - y.mean()) / y.std()


@pytest.fixture(scope="session")
def cancer():
    """Return a problem of two classes of shape (569, 30), standardised."""
    return _standardised(load_breast_cancer)


@pytest.fixture(scope="session")
def wine():
    """Return a problem of three classes of shape (178, 13), standardised."""
    return _standardised(load_wine)


@pytest.fixture(scope="session")
def digits():
    """Return a problem of ten classes of shape (1797, 64), with values in [0, 1]."""
    X, y = load_digits(return_X_y=True)
    return X / 16, y


@pytest.fixture(scope="session")
def two_outputs(diabetes):
    """Return a regression problem with y of shape (442, 2)."""
    X, y = diabetes
    return X, np.stack([y / 100, 1 - y / 50], axis=1)


@pytest.fixture(scope="session")
def people():
    """Return a data frame of six columns of four types, and labels."""
    return mixed_frames.people()


@pytest.fixture
def numbers():
    """Return a regression problem of shape (100, 3)."""
    X = np.random.RandomState(0).normal(size=(100, 3))
    return X, X[:, 0] + X[:, 1] ** 2


@pytest.fixture
def small(diabetes_units):
    """Return sixty samples of a regression problem."""
    X, y = diabetes_units
    return X[:60], y[:60]


@pytest.fixture
def fit_quietly():
    """Return a function that fits a scikit-learn model without warnings."""

    def fit(model, X, y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(X, y)

    return fit


@pytest.fixture
def run_onnx():
    """Return a function that runs a model in onnxruntime and returns outputs by name."""

    def run(model, X, **feeds):
        session = make_session(model, Device("cpu"))
        names = [output.name for output in session.get_outputs()]
        data = next(i for i in session.get_inputs() if i.name not in feeds)
        types = {"tensor(float16)": np.float16, "tensor(float)": np.float32, "tensor(double)": np.float64}
        dtype = types[data.type]
        samples = np.asarray(X).astype(dtype)
        return dict(zip(names, session.run(None, {data.name: samples, **feeds}), strict=True))

    return run


@pytest.fixture
def unchanged():
    """Return a function that checks that a failing call does not change a fitted estimator."""

    def check(fitted, X, fails):
        before = dict(fitted.__dict__)
        frozen = pickle.dumps(fitted)
        predicted = fitted.predict(X)
        fails()
        assert fitted.__dict__.keys() == before.keys()
        assert all(fitted.__dict__[name] is value for name, value in before.items())
        assert pickle.dumps(fitted) == frozen
        np.testing.assert_array_equal(fitted.predict(X), predicted)

    return check
