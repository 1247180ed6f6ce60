"""Pickles, joblib files and ONNX files."""

import io
import pickle

import cloudpickle
import joblib
import numpy as np
import onnx
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session


def through_joblib(value):
    file = io.BytesIO()
    joblib.dump(value, file)
    file.seek(0)
    return joblib.load(file)


ROUND_TRIPS = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "joblib": through_joblib,
    "cloudpickle": lambda value: pickle.loads(cloudpickle.dumps(value)),
}


@pytest.fixture(params=list(ROUND_TRIPS))
def round_trip(request):
    """Return a function that writes and reads an object."""
    return ROUND_TRIPS[request.param]


def test_fitted(round_trip, optimizer, wine):
    X, y = wine
    model = optimizer(
        MLPClassifier(hidden_layer_sizes=(5,)), learning_rate="Adam", random_state=0, max_iter=3
    )
    weights = np.linspace(0.5, 1.5, len(X))
    model.fit(X, y, sample_weight=weights)
    expected = model.predict_proba(X)
    back = round_trip(model)
    np.testing.assert_array_equal(back.predict_proba(X), expected)
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    np.testing.assert_array_equal(back.losses(X, y), model.losses(X, y))
    assert back.train_losses_ == model.train_losses_
    assert back.onnx_.SerializeToString() == model.onnx_.SerializeToString()
    # training continues equally, including the states of Adam and the order of samples
    model.partial_fit(X, y)
    back.partial_fit(X, y)
    assert back.n_iter_ == model.n_iter_ == 4
    for name, array in model.trained_coef_.items():
        np.testing.assert_array_equal(array, back.trained_coef_[name])


def test_unfitted(round_trip, optimizer, cancer):
    model = optimizer(LogisticRegression(C=3), learning_rate=0.25, max_iter=2, random_state=0)
    back = round_trip(model)
    assert str(back.get_params()) == str(model.get_params())
    with pytest.raises(NotFittedError):
        back.predict(cancer[0])
    np.testing.assert_array_equal(back.fit(*cancer).predict(cancer[0]), model.fit(*cancer).predict(cancer[0]))


@pytest.mark.parametrize("reload", [False, True])
def test_save_onnx_graph(reload, optimizer, cancer, tmp_path):
    model = optimizer(LogisticRegression(), max_iter=2, random_state=0).fit(*cancer)
    if reload:
        model = pickle.loads(pickle.dumps(model))
    paths = model.save_onnx_graph(tmp_path / "new" / "folder")
    assert "trained" in paths and len(paths) >= 2
    assert sorted(paths.values()) == sorted((tmp_path / "new" / "folder").iterdir())
    for path in paths.values():
        loaded = onnx.load(path)
        assert len(loaded.graph.node) > 0
        if all(node.op_type != "YieldOp" for node in loaded.graph.node):  # requires a TrainingAgent
            make_session(loaded, Device("cpu"))
    assert onnx.load(paths["trained"]) == model.onnx_
    onnx.checker.check_model(paths["trained"])
    with pytest.raises(ValueError, match=r"'.*model.onnx' is a file name: pass a folder"):
        model.save_onnx_graph(tmp_path / "model.onnx")


def test_get_trained_onnx_is_a_copy(optimizer, cancer):
    X, y = cancer
    model = optimizer(LogisticRegression(), max_iter=2, random_state=0).fit(X, y)
    expected = model.predict_proba(X)
    copied = model.get_trained_onnx()
    assert copied is not model.onnx_ and copied == model.onnx_
    del copied.graph.node[:]
    assert len(model.onnx_.graph.node) > 0
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), expected)
