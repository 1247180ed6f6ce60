"""Files of version 0.2.0 load, continue, and are written back.

The estimators were fitted on ``X``, then trained for three epochs of Adam with ``warm_start=True`` and
``keep_better=False``; the checkpoint is the state after the first epoch.
"""

import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.neural_network import MLPRegressor

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ResumedWarning, WriteBackError
from ortlearn.fitting.saved_types import TYPES
from ortlearn.models.forms import Described
from ortlearn.models.trees.nodes import Nodes
from ortlearn.saving import load, save

FILES = Path(__file__).with_name("version_0_2_0")
X = (np.arange(60).reshape(20, 3) * 7 % 11).astype(np.float32)
MLP = MLPRegressor(hidden_layer_sizes=3, random_state=0)
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


def test_trees_with_the_name_of_one_table_are_read():
    kept = {"samples": "X", "numbers": "numbers", "nodes": Nodes.of_splits([1], [2], [0], [0.5], [True])}
    for name, tables in (("leaf_values", ("leaf_values",)), ("", ())):
        assert TYPES["FusedTrees"].make({**kept, "table": name}).tables == tables


def test_former_records_of_early_stopping():
    """Weights were stored in the coordinates of the model, those of an average beside them."""
    trained = OrtGradientOptimizer(MLP, learning_rate="auto", average=True, random_state=0)
    state = trained.partial_fit(X, Y).partial_fit(X, Y)._fitted.state
    raw = state.coordinates.as_weights(state.updated)
    parts = {"lowest": 1.5, "without_change": 2, "epoch": 1, "states": state.states, "stopped": True}
    window = TYPES["Window"].make({**parts, "weights": state.weights, "raw_weights": raw})
    kept = ("seed", "history", "n_seen", "states", "anchor", "coordinates", "total_weight", "penalty_weight")
    values = {name: getattr(state, name) for name in kept}
    found = TYPES["TrainingState"].make({**values, "raw_weights": raw, "window": window})
    assert (found.best.lowest, found.best.epoch, found.best.stopped) == (1.5, 1, True)
    for name, array in state.updated.items():
        np.testing.assert_allclose(found.updated[name], array, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(found.best.updated[name], found.updated[name])
    plain = TYPES["TrainingState"].make({**values, "raw_weights": None, "window": TYPES["Window"].make({})})
    assert plain.updated is None and plain.best.epoch is None and not plain.best.updated
