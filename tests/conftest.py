"""Bundled data sets, scaled and split with fixed seeds, and a way to run a graph."""

from functools import lru_cache
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import onnxruntime
import pytest
from _pytest.doctest import DoctestItem
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler


def pytest_collection_modifyitems(items):
    """Skip what needs the gradient builder of onnxruntime, or the callbacks of scikit-learn, without them."""
    lacking = []
    if not hasattr(onnxruntime.capi._pybind_state, "GradientGraphBuilder"):
        lacking.append(("needs_training", "needs onnxruntime-training"))
    if find_spec("sklearn.callback") is None:
        lacking.append(("needs_callbacks", "scikit-learn before 1.9 has no callbacks"))
    for item in items:
        if isinstance(item, DoctestItem) and "callbacks" in str(item.path):
            item.add_marker("needs_callbacks")
        for marker, reason in lacking:
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def seeded():
    """Seed numpy's global generator, which estimators without a random state draw from, before each test."""
    np.random.seed(0)


def pytest_terminal_summary(terminalreporter):
    """Print how many checks of scikit-learn are expected to fail, of those that ran."""

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
    """Two parts of a data set, X as float32."""

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
    """Regression, 10 columns; X and y standardised."""
    X, y = datasets.load_diabetes(return_X_y=True)
    return _split(X, (y - y.mean()) / y.std(), stratify=False)


@pytest.fixture(scope="session")
def breast_cancer():
    """Two classes, 30 columns, standardised."""
    return _split(*datasets.load_breast_cancer(return_X_y=True))


@pytest.fixture(scope="session")
def digits():
    """Ten classes, 64 columns in [0, 1]."""
    X, y = datasets.load_digits(return_X_y=True)
    return _split(X / 16.0, y, scale=False)


@pytest.fixture(scope="session")
def wine():
    """Three classes, 13 columns of very different scales, as they come."""
    return _split(*datasets.load_wine(return_X_y=True), scale=False)


@lru_cache(maxsize=8)
def _session(content):
    """Return a session of a serialized model, of one thread: checks run the same few models many times."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="session")
def run_onnx():
    """Run a model by onnxruntime on positional or named arrays: a list of its outputs."""

    def run(model, *arrays, **feeds):
        session = _session(model.SerializeToString())
        names = [value.name for value in session.get_inputs()]
        feeds.update(zip(names, arrays, strict=False))
        return session.run(None, feeds)

    return run
