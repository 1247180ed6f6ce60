"""Loaded estimators predict and continue as the saved ones; a warning names omitted parts."""

import json
import os
import sys
import zipfile
from contextlib import suppress

import numpy as np
import onnx
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import ShuffleSplit
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import OmittedWarning, SavedFileError, WriteBackError
from ortlearn.learning_rates import LearningRateAdam, WarmUpSchedule
from ortlearn.losses import FunctionLoss
from ortlearn.penalties import L2Penalty
from ortlearn.saving import FORMAT, load, read_summary, save
from tests.curves import Curves

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
Y = X @ [1.0, -2.0, 0.5] + 1
CLASSES = np.array(["a", "b", "c"])[(X[:, 0] > 0.3) + (X[:, 1] > 0).astype(int)]
FRAME = pd.DataFrame({"size": X[:, 0], "city": np.where(X[:, 1] > 0, "Rome", "Oslo"), "unused": X[:, 2]})
COLUMNS = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), ["city"]), ("passthrough", ["size"])
)
OF_COLUMNS = make_pipeline(COLUMNS, StandardScaler(), LogisticRegression())
OF_CURVES = make_pipeline(Curves(), Ridge())
OF_LABELS = TransformedTargetRegressor(Ridge(), transformer=StandardScaler())
MLP = MLPRegressor(hidden_layer_sizes=(3,))
RATE = LearningRateAdam(eta0=0.01, learning_rate=WarmUpSchedule(epochs=2, then="cosine"))

#: Model, X, y and parameters.
CASES = {
    "solver": (Ridge(), X, Y, {}),
    "adam": (LogisticRegression(), X, CLASSES, {"learning_rate": RATE}),
    "automatic_adam": (Ridge(), X, Y, {"clip_norm": 1.0}),
    "averages": (
        MLP,
        X,
        Y,
        {"learning_rate": "SGDNesterov", "average": 20},
    ),
    "early_stopping": (
        MLPClassifier(hidden_layer_sizes=(3,)),
        X,
        CLASSES,
        {"learning_rate": "RMSprop", "early_stopping": True, "validation_fraction": 0.3},
    ),
    "penalties": (
        MLP,
        X,
        Y,
        {"learning_penalty": {"coefs_[0]": "l1", "coefs_[1]": L2Penalty(0.3)}, "learning_rate": 0.01},
    ),
    "columns": (
        OF_COLUMNS,
        FRAME,
        CLASSES,
        {"learning_rate": 0.1},
    ),
    "sklearn_steps": (
        OF_CURVES,
        X,
        Y,
        {"learning_rate": 1e-3},
    ),
    "labels": (
        OF_LABELS,
        X,
        Y,
        {"learning_rate": "Adam"},
    ),
    "clusters": (KMeans(3, n_init=1), X, None, {"learning_rate": "Adam", "warm_start": True}),
    "mixture": (GaussianMixture(2), X, None, {"learning_rate": "Adam", "warm_start": True}),
    "class_weights": (
        LogisticRegression(),
        X,
        CLASSES,
        {"learning_rate": "Adagrad", "class_weight": {"a": 1.0, "b": 2.0, "c": 0.5}},
    ),
}


def fitted(name, kind=OrtGradientOptimizer):
    model, samples, labels, options = CASES[name]
    return kind(model, random_state=0, max_iter=4, **options).fit(samples, labels), samples, labels


def check_same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, strict=True)


@pytest.mark.sweep(7)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["model.zip", "folder"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
def test_round_trip(kind, name, form, tmp_path):
    trained, samples, labels = fitted(name, kind)
    save(trained, tmp_path / form)
    later = load(tmp_path / form, trusted=["tests.curves.Curves"])
    assert type(later) is kind and str(later.get_params()) == str(trained.get_params())
    assert later.history_ == trained.history_ and later.onnx_ == trained.onnx_
    np.testing.assert_array_equal(later.predict(samples), trained.predict(samples), strict=True)
    check_same(later.trained_coef_, trained.trained_coef_)
    for attribute in ("n_features_in_", "feature_names_in_", "classes_", "best_epoch_", "start_kept_"):
        assert hasattr(later, attribute) == hasattr(trained, attribute)
        np.testing.assert_equal(getattr(later, attribute, 0), getattr(trained, attribute, 0))
    written, expected = later.to_sklearn(), trained.to_sklearn()
    np.testing.assert_array_equal(written.predict(samples), expected.predict(samples))
    if name in ("solver", "early_stopping"):
        return  # without partial_fit
    for one in (trained, later):
        one.partial_fit(samples, labels).partial_fit(samples, labels)
    check_same(later.trained_coef_, trained.trained_coef_)
    assert later.train_losses_ == trained.train_losses_


def test_file_contains_the_onnx_model(tmp_path):
    trained = fitted("adam")[0]
    save(trained, tmp_path / "model.zip")
    with zipfile.ZipFile(tmp_path / "model.zip") as archive:
        assert onnx.load_model_from_string(archive.read("model.onnx")) == trained.onnx_
        manifest = json.loads(archive.read("manifest.json"))
    assert manifest["format"] == FORMAT and manifest["versions"]["numpy"] == np.__version__
    assert read_summary(tmp_path / "model.zip")["epochs"] == 4


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
def test_onnx_source_is_stored(tmp_path):
    model = fitted("adam")[0].onnx_
    onnx.save(model, tmp_path / "model.onnx")
    for source in (model, model.SerializeToString(), tmp_path / "model.onnx"):
        trained = OrtGradientOptimizer(source, max_iter=2, learning_rate=0.1, warm_start=True).fit(X, CLASSES)
        save(trained, tmp_path / "saved.zip")
        later = load(tmp_path / "saved.zip")
        assert later.estimator == model
        np.testing.assert_array_equal(later.predict_proba(X), trained.predict_proba(X))
        check_same(later.partial_fit(X, CLASSES).trained_coef_, trained.partial_fit(X, CLASSES).trained_coef_)


def absolute(expected, predicted):
    """A loss in Python."""
    return np.abs(predicted - expected).sum(axis=1), np.sign(predicted - expected)


def test_a_python_loss_is_omitted(tmp_path):
    options = {"learning_rate": 0.01, "max_iter": 2, "learning_penalty": None, "random_state": 0}
    trained = OrtGradientForwardBackwardOptimizer(Ridge(), learning_loss=FunctionLoss(absolute), **options)
    trained.fit(X, Y)
    with pytest.warns(OmittedWarning, match=r"saved without FunctionLoss: [^;]*$"):
        save(trained, tmp_path / "model.zip")
    with pytest.warns(OmittedWarning, match="was saved without"):
        later = load(tmp_path / "model.zip")
    np.testing.assert_array_equal(later.predict(X), trained.predict(X))
    with pytest.raises(ValueError, match="FunctionLoss"):
        later.partial_fit(X, Y)
    later.set_params(learning_loss=FunctionLoss(absolute)).partial_fit(X, Y)
    check_same(later.trained_coef_, trained.partial_fit(X, Y).trained_coef_)


@pytest.mark.parametrize("name", ["adam", "columns"])
def test_onnx_model_is_loaded_without_skops(name, tmp_path, monkeypatch):
    trained, samples, labels = fitted(name)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.warns(OmittedWarning, match="skops is not installed"):
        save(trained, tmp_path / "model.zip")
    with pytest.warns(OmittedWarning, match="skops is not installed"):
        later = load(tmp_path / "model.zip")
    np.testing.assert_array_equal(later.predict_proba(samples), trained.predict_proba(samples))
    assert isinstance(later.estimator, onnx.ModelProto)
    with pytest.raises(WriteBackError):
        later.to_sklearn()
    later.partial_fit(samples, labels)
    later.fit(samples, labels)
    assert later.score(samples, labels) > 0.2


def test_scikit_learn_steps_require_skops(tmp_path, monkeypatch):
    with pytest.warns(Warning, match="scikit-learn"):
        trained = fitted("sklearn_steps")[0]
    save(trained, tmp_path / "whole.zip")
    with pytest.raises(SavedFileError, match="needs SklearnSteps, which is not read: .*tests.curves.Curves"):
        load(tmp_path / "whole.zip")
    (tmp_path / "whole.zip").unlink()
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(SavedFileError, match="run in scikit-learn cannot be saved: .*skops is not installed"):
        save(trained, tmp_path / "model.zip")
    assert not list(tmp_path.iterdir())


def test_types_are_trusted_only_by_name(tmp_path):
    model = RidgeCV(cv=ShuffleSplit(2, random_state=0))
    options = {"max_iter": 2, "learning_rate": 0.1, "keep_better": False}
    trained = OrtGradientOptimizer(model, **options).fit(X, Y)
    save(trained, tmp_path / "model.zip")
    with pytest.warns(OmittedWarning, match=r"load\(path, trusted=\['sklearn.*ShuffleSplit'\]\)"):
        later = load(tmp_path / "model.zip")
    np.testing.assert_array_equal(later.predict(X), trained.predict(X))
    whole = load(tmp_path / "model.zip", trusted=["sklearn.model_selection._split.ShuffleSplit"])
    np.testing.assert_array_equal(whole.to_sklearn().coef_, trained.to_sklearn().coef_)


def test_a_folder_is_replaced_atomically(tmp_path):
    first, second = fitted("adam")[0], fitted("automatic_adam")[0]
    save(first, tmp_path / "folder")
    names = {path.name for path in (tmp_path / "folder").iterdir()}
    save(second, tmp_path / "folder")
    np.testing.assert_array_equal(load(tmp_path / "folder").predict(X), second.predict(X))
    assert not (names - {"manifest.json"}) & {path.name for path in (tmp_path / "folder").iterdir()}


def test_folder_with_other_files_is_rejected(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(SavedFileError, match="is a folder with other files"):
        save(fitted("adam")[0], tmp_path)
    with pytest.raises(SavedFileError, match=r"notes.txt is a file: pass a folder"):
        save(fitted("adam")[0], tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("form", ["model.zip", "folder"])
def test_full_disk_leaves_the_previous_file(form, tmp_path, monkeypatch):
    first, second = fitted("adam")[0], fitted("automatic_adam")[0]
    save(first, tmp_path / form)
    fsync, failed = os.fsync, 0
    for limit in range(20):
        calls = []

        def full(descriptor, limit=limit, calls=calls):
            calls.append(descriptor)
            if len(calls) > limit:
                raise OSError(28, "No space left on device")
            fsync(descriptor)

        with monkeypatch.context() as patch, suppress(OSError):
            patch.setattr(os, "fsync", full)
            save(second, tmp_path / form)
        later = load(tmp_path / form)
        if not hasattr(later, "classes_"):
            break
        failed += 1
        np.testing.assert_array_equal(later.predict(X), first.predict(X))
    assert 0 < failed < 19
    np.testing.assert_array_equal(later.predict(X), second.predict(X))


def test_unfitted_and_other_estimators_are_rejected(tmp_path):
    with pytest.raises(NotFittedError):
        save(OrtGradientOptimizer(Ridge()), tmp_path / "model.zip")
    with pytest.raises(TypeError, match="save takes OrtGradientOptimizer or .*, not Ridge"):
        save(Ridge().fit(X, Y), tmp_path / "model.zip")


@pytest.mark.parametrize("name", ["nothing.zip", "no/folder", "", "a\0b"])
def test_path_that_does_not_exist(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        FileNotFoundError, match="does not exist. Pass a file or a folder that ortlearn.saving.save"
    ):
        load(name)


@pytest.mark.parametrize("path", [None, 3, b"name"], ids=repr)
def test_path_of_another_type(path):
    with pytest.raises(TypeError, match="path must be the path of a saved estimator, not"):
        load(path)
