"""With scikit-learn before 1.9, setting callbacks is an error, and trainings are unchanged."""

import importlib.util
import sys

import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge

from ortlearn.callbacks import LearningRateMonitor
from ortlearn.fitting import callback_support, callbacks


@pytest.fixture
def without(monkeypatch):
    """Return the module as imported with scikit-learn before 1.9."""
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)
    spec = importlib.util.spec_from_file_location("ortlearn.estimators.without", callback_support.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_set_callbacks_names_the_required_version(without):
    class Trainer(without.CallbackSupportMixin, BaseEstimator):
        pass

    with pytest.raises(ImportError, match=f"1.9 or later, and {sklearn.__version__} is installed"):
        Trainer().set_callbacks(print)


def test_monitor_names_the_required_version(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)
    with pytest.raises(ImportError, match="scikit-learn>=1.9"):
        LearningRateMonitor()


def test_training_without_callbacks(without):
    seen = []
    without.with_callbacks(seen.append)("trained")
    assert seen == ["trained"]


def test_estimator_without_callbacks_has_no_task():
    assert callbacks.EstimatorView(Ridge()).task("fit", 3) is None
