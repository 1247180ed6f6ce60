"""Files of version 0.2.0 load, continue, and are written back.

The estimators were fitted on ``X``, then trained for three epochs of Adam with ``warm_start=True`` and
``keep_better=False``; the checkpoint is the state after the first epoch.
"""

import warnings
from pathlib import Path

import numpy as np
import pytest

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ResumedWarning, WriteBackError
from ortlearn.models.forms import Described
from ortlearn.saving import load, save

FILES = Path(__file__).with_name("version_0_2_0")
X = (np.arange(60).reshape(20, 3) * 7 % 11).astype(np.float32)
Y = X @ np.array([1, -2, 0.5], np.float32) + X[:, 0] % 3


def loaded(name):
    with warnings.catch_warnings():  # other versions of scikit-learn warn about their own files
        warnings.simplefilter("ignore")
        return load(FILES / name)


def test_records_are_read_and_completed(tmp_path):
    trained = loaded("bayes.zip")
    assert set(trained.weights_to_train_.values()) == {
        "gaussiannb: log(class_prior_)",
        "gaussiannb: theta_",
        "standardscaler: mean_",
    }
    save(trained, tmp_path / "again.zip")
    for estimator in (trained, load(tmp_path / "again.zip")):
        np.testing.assert_allclose(estimator.to_sklearn().predict_proba(X), estimator.predict_proba(X), 1e-4)
        priors = estimator.to_sklearn()[-1].class_prior_
        np.testing.assert_allclose(np.log(priors), estimator.trained_coef_["class_prior"], rtol=1e-5)
    trained.fit(X, Y > 0)
    forms = [parameter.form for parameter in trained._fitted.problem.trainable.parameters.values()]
    assert not any(isinstance(form, Described) for form in forms)


def test_a_link_without_an_equal_in_scikit_learn_is_known():
    with pytest.raises(WriteBackError, match="Ridge cannot represent an exponential"):
        loaded("poisson.zip").to_sklearn()


def test_a_checkpoint_is_resumed():
    start = loaded("checkpoint.zip")
    with pytest.warns(ResumedWarning, match="begun with version 0.2.0"):
        resumed = loaded("checkpoint.zip").fit(X, Y, resume_from=FILES / "checkpoint.zip")
    whole = OrtGradientOptimizer(**start.get_params(deep=False)).fit(X, Y)
    assert len(resumed.history_) == len(whole.history_) == 3
    np.testing.assert_allclose(resumed.to_sklearn().predict(X), whole.to_sklearn().predict(X), rtol=1e-5)
