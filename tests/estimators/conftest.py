"""Both estimators, small data sets, and what several files measure."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.utils import shuffle

from ortlearn.estimators import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.training.devices import Device
from ortlearn.training.sessions import make_session
from tests.plain_training import plain_training  # noqa: F401

OPTIMIZERS = {"one_graph": OrtGradientOptimizer, "two_calls": OrtGradientForwardBackwardOptimizer}


@pytest.fixture(params=list(OPTIMIZERS))
def optimizer(request):
    """Each of the two estimator classes."""
    return OPTIMIZERS[request.param]


@pytest.fixture
def either(request):
    """One of the two estimator classes, which take turns over tests and their cases."""
    case = getattr(request.node, "callspec", None)
    number = sum(case.indices.values()) if case else len(request.node.name)
    return list(OPTIMIZERS.values())[number % 2]


@pytest.fixture
def both():
    """Both estimator classes, to be compared."""
    return tuple(OPTIMIZERS.values())


def _standardised(loader):
    X, y = shuffle(*loader(return_X_y=True), random_state=0)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="session")
def diabetes():
    """Regression: 442 x 10, standardised."""
    return _standardised(load_diabetes)


@pytest.fixture(scope="session")
def diabetes_units(diabetes):
    """Regression with labels near one: 442 x 10."""
    X, y = diabetes
    return X, (y - y.mean()) / y.std()


@pytest.fixture(scope="session")
def cancer():
    """Two classes: 569 x 30, standardised."""
    return _standardised(load_breast_cancer)


@pytest.fixture(scope="session")
def wine():
    """Three classes: 178 x 13, standardised."""
    return _standardised(load_wine)


@pytest.fixture(scope="session")
def digits():
    """Ten classes: 1797 x 64, in [0, 1]."""
    X, y = load_digits(return_X_y=True)
    return X / 16, y


@pytest.fixture(scope="session")
def two_outputs(diabetes):
    """Regression with y of shape (442, 2)."""
    X, y = diabetes
    return X, np.stack([y / 100, 1 - y / 50], axis=1)


@pytest.fixture
def fit_quietly():
    """Fit a scikit-learn model that is stopped before it converges."""

    def fit(model, X, y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(X, y)

    return fit


@pytest.fixture
def run_onnx():
    """Run a model in onnxruntime: outputs by name."""

    def run(model, X, **feeds):
        session = make_session(model, Device("cpu"))
        names = [output.name for output in session.get_outputs()]
        data = next(i for i in session.get_inputs() if i.name not in feeds)
        types = {"tensor(float16)": np.float16, "tensor(float)": np.float32, "tensor(double)": np.float64}
        dtype = types[data.type]
        rows = np.asarray(X).astype(dtype)
        return dict(zip(names, session.run(None, {data.name: rows, **feeds}), strict=True))

    return run


@pytest.fixture
def unchanged():
    """Run something that fails, and check that a fitted object is exactly as it was."""

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
