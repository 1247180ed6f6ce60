"""Fixtures: split data sets, and a function that runs a model."""

import signal
from functools import lru_cache
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import onnxruntime
import pytest
from _pytest.doctest import DoctestItem
from hypothesis import HealthCheck, settings
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from tests.covering import mark_cases

#: Random cases are the same in each run, and do not fail because a machine is slow.
settings.register_profile(
    "ortlearn",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ortlearn")


def pytest_configure():
    """Enable Ctrl-C, which shells disable for commands in the background: some tests raise it."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before cases are chosen by their marks
def pytest_collection_modifyitems(items):
    """Skip tests whose packages are missing, and mark the cases that make test leaves to other commands."""
    mark_cases(items)
    missing = []
    if not hasattr(onnxruntime.capi._pybind_state, "GradientGraphBuilder"):
        missing.append(("needs_training", "needs onnxruntime-training"))
    if find_spec("sklearn.callback") is None:
        missing.append(("needs_callbacks", "scikit-learn before 1.9 has no callbacks"))
    for item in items:
        if isinstance(item, DoctestItem) and "callbacks" in str(item.path):
            item.add_marker("needs_callbacks")
        for marker, reason in missing:
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def seeded():
    """Seed numpy's global generator before each test, for estimators without a random state."""
    np.random.seed(0)


def pytest_terminal_summary(terminalreporter):
    """Print the numbers of passed and of expectedly failed checks of scikit-learn."""

    def count(outcome):
        reports = terminalreporter.stats.get(outcome, [])
        return sum("::test_check_of_sklearn[" in report.nodeid for report in reports)

    passed, expected = count("passed"), count("xfailed")
    if passed or expected:
        terminalreporter.write_line(
            f"scikit-learn's checks of estimators: {passed} passed, {expected} expected failures, whose "
            "reasons are in tests/estimators/common/expected_failures.py"
        )


class Split(NamedTuple):
    """Training and test parts of a data set, X as float32."""

    X_train: np.ndarray
    X_test: np.ndarray
    y_train: np.ndarray
    y_test: np.ndarray


def _split(X, y, scale=True, stratify=True):
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.25, random_state=0, stratify=y if stratify else None
    )
    if scale:
        scaler = StandardScaler().fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    return Split(X_train.astype(np.float32), X_test.astype(np.float32), y_train, y_test)


@pytest.fixture(scope="session")
def diabetes():
    """Return a regression problem of 10 features; X and y are standardised."""
    X, y = datasets.load_diabetes(return_X_y=True)
    return _split(X, (y - y.mean()) / y.std(), stratify=False)


@pytest.fixture(scope="session")
def breast_cancer():
    """Return a problem of two classes and 30 standardised features."""
    return _split(*datasets.load_breast_cancer(return_X_y=True))


@pytest.fixture(scope="session")
def digits():
    """Return a problem of ten classes and 64 features in [0, 1]."""
    X, y = datasets.load_digits(return_X_y=True)
    return _split(X / 16.0, y, scale=False)


@pytest.fixture(scope="session")
def wine():
    """Return a problem of three classes and 13 unscaled features."""
    return _split(*datasets.load_wine(return_X_y=True), scale=False)


@lru_cache(maxsize=8)
def _session(content):
    """Return a cached session with one thread for a serialized model."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="session")
def run_onnx():
    """Return a function that runs a model on positional or named arrays, and returns its outputs."""

    def run(model, *arrays, **feeds):
        session = _session(model.SerializeToString())
        names = [value.name for value in session.get_inputs()]
        feeds.update(zip(names, arrays, strict=False))
        return session.run(None, feeds)

    return run
