"""Training packages: their contents, trainings without a package, and invalid packages."""

import json

import numpy as np
import onnxruntime
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDRegressor
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import PackageError, SavedFileError
from ortlearn.learning_rates import LearningRateAdam
from ortlearn.losses import FunctionLoss
from ortlearn.saving import export_training, load_training, merge_weights
from ortlearn.saving.package_files import EPOCH, sealed
from ortlearn.saving.tensors import pack_tensors, unpack_tensors

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3)).astype(np.float32)
y = X @ [1.0, 2.0, 3.0]


def fitted(model, labels=y, features=X, **options):
    settings = {"learning_rate": "Adam", "max_iter": 2, "random_state": 0, **options}
    return OrtGradientOptimizer(model, **settings).fit(features, labels)


def squares(labels, scores):
    return ((scores - labels) ** 2).ravel(), 2 * (scores - labels)


def manifest_of(folder):
    return json.loads((folder / "training.json").read_text())


def values_of(folder):
    return unpack_tensors((folder / "values.safetensors").read_bytes())[0]


@pytest.mark.parametrize("kind", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_both_estimators_and_types(kind, dtype, tmp_path):
    trained = kind(Ridge(), learning_rate="Adam", max_iter=2, random_state=0, dtype=dtype).fit(X, y)
    export_training(trained, tmp_path)
    assert manifest_of(tmp_path)["dtype"] == dtype
    np.testing.assert_array_equal(load_training(tmp_path).predict(X), trained.predict(X))


@pytest.mark.parametrize(
    "model, labels",
    [
        (LogisticRegression(), y > 0),
        (LogisticRegression(), np.digitize(y, [-1, 1])),
        (MultiOutputClassifier(LogisticRegression()), np.column_stack([y > 0, y > 1]).astype(int)),
        (LinearRegression(), np.column_stack([y, -y])),
        (StandardScaler(), X),
    ],
    ids=["two classes", "three classes", "labels", "outputs", "transformer"],
)
def test_kinds_of_models(model, labels, tmp_path):
    trained = fitted(model, labels)
    export_training(trained, tmp_path, example=(X, labels))
    record, _ = unpack_tensors((tmp_path / "record.safetensors").read_bytes())
    manifest = manifest_of(tmp_path)
    assert np.isfinite(manifest["record"]["objectives"]).all()
    session = onnxruntime.InferenceSession(tmp_path / "predict.onnx")
    assert {value.name for value in session.get_outputs()} == set(manifest["predict"])
    assert {f"column {item['name']}" for item in manifest["features"]} <= record.keys()


def test_schedule_and_batch_size(tmp_path):
    rate = LearningRateAdam(eta0=0.5, learning_rate="cosine")
    export_training(fitted(Ridge(), learning_rate=rate, max_iter=4), tmp_path, batch_size=7)
    manifest = manifest_of(tmp_path)
    assert manifest["batch_size"] == 7
    spanning = rate.for_epochs(4)
    assert manifest["schedule"]["rates"] == pytest.approx([spanning.rate(i) for i in range(4)])


def test_the_state_of_the_update_continues(tmp_path):
    trained = fitted(Ridge())
    export_training(trained, tmp_path / "same")
    export_training(trained, tmp_path / "other", learning_rate="SGDNesterov")
    same, _ = unpack_tensors((tmp_path / "same" / "values.safetensors").read_bytes())
    other, _ = unpack_tensors((tmp_path / "other" / "values.safetensors").read_bytes())
    states = [item["name"] for item in manifest_of(tmp_path / "other")["carried"] if item["state"]]
    assert any(same[name].any() for name in same if "square" in name)
    assert states and not any(other[name].any() for name in states)


@pytest.mark.parametrize(
    "trained, cure",
    [
        (lambda: fitted(Ridge(), learning_rate="LBFGS", max_iter=200), 'learning_rate="Adam"'),
        (lambda: fitted(Ridge(), learning_rate="auto", max_iter=200), 'learning_rate="Adam"'),
        (
            lambda: fitted(
                MultiOutputClassifier(LogisticRegression()),
                np.column_stack([y > 0, y > 1]).astype(int),
                class_weight="balanced",
            ),
            "class_weight=None",
        ),
        (
            lambda: fitted(Ridge(), learning_rate=LearningRateAdam(learning_rate="adaptive")),
            "choose another schedule",
        ),
        (
            lambda: OrtGradientForwardBackwardOptimizer(
                Ridge(), learning_rate="Adam", max_iter=2, random_state=0, learning_loss=FunctionLoss(squares)
            ).fit(X, y),
            "loss plugin",
        ),
        (
            lambda: fitted(TransformedTargetRegressor(SGDRegressor(), transformer=StandardScaler())),
            "transform y",
        ),
        (
            lambda: fitted(
                make_pipeline(TfidfVectorizer(), Ridge()), y[:4], ["one two", "two six", "six ten", "ten one"]
            ),
            "encode it",
        ),
    ],
)
def test_trainings_that_require_python_are_rejected(trained, cure, tmp_path):
    with pytest.raises(PackageError, match=cure):
        export_training(trained(), tmp_path / "package")
    assert not (tmp_path / "package").exists()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_error_names_scikit_learn_steps(tmp_path):
    model = make_pipeline(FunctionTransformer(np.cbrt), Ridge())
    with pytest.raises(PackageError, match="FunctionTransformer"):
        export_training(fitted(model), tmp_path)


def test_invalid_arguments(tmp_path):
    with pytest.raises(NotFittedError):
        export_training(clone(fitted(Ridge())), tmp_path)
    with pytest.raises(ValueError, match="batch_size"):
        export_training(fitted(Ridge()), tmp_path, batch_size=0)
    with pytest.raises(ValueError, match="X has 2 features"):
        export_training(fitted(Ridge()), tmp_path, example=(X[:, :2], y))


@pytest.mark.parametrize("example", [X, X[:2], None], ids=["X", "two rows", "lengths"])
def test_examples_are_pairs_of_as_many_samples(example, tmp_path):
    text = "inconsistent numbers of samples" if example is None else r"example must be a pair \(X, y\)"
    with pytest.raises(ValueError, match=text):
        export_training(fitted(Ridge()), tmp_path, example=(X, y[:4]) if example is None else example)
    assert not any(tmp_path.iterdir())


def test_estimators_of_scikit_learn_are_rejected(tmp_path):
    with pytest.raises(TypeError, match="not LogisticRegression: fit OrtGradientOptimizer"):
        export_training(LogisticRegression(), tmp_path)


@pytest.mark.parametrize("name", ["predict.onnx", "training.json", "notes.txt"])
def test_folders_with_other_files_are_kept(name, tmp_path):
    (tmp_path / name).write_text("{}")
    with pytest.raises(SavedFileError, match="folder with other files.*pass a new or an empty folder"):
        export_training(fitted(Ridge()), tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["{}"]


def trained_by_a_program(folder, n_epochs):
    """Write the number of epochs that a program would have trained."""
    values, metadata = unpack_tensors((folder / "values.safetensors").read_bytes())
    content = pack_tensors({**values, EPOCH: np.array(n_epochs)}, metadata)
    (folder / "values.safetensors").write_bytes(sealed(content))


def test_a_package_that_was_trained_further_is_replaced_with_a_warning(tmp_path, recwarn):
    trained = fitted(Ridge())
    export_training(trained, tmp_path)
    export_training(trained, tmp_path)  # the same epochs
    trained_by_a_program(tmp_path, 3)
    export_training(load_training(tmp_path), tmp_path)
    assert not recwarn.list and load_training(tmp_path).n_iter_ == 5
    trained_by_a_program(tmp_path, 1)
    with pytest.warns(UserWarning, match="trained for 6 epochs, 1 of them by a program.*one of 2: to keep"):
        export_training(trained, tmp_path)
    assert load_training(tmp_path).n_iter_ == 2


def test_names_of_the_estimator_are_merged(tmp_path):
    trained = fitted(make_pipeline(StandardScaler(), LogisticRegression()), y > 0)
    export_training(trained, tmp_path)
    weights = {name: 2 * array for name, array in trained.get_weights().items()}
    assert not weights.keys() & values_of(tmp_path).keys()
    merge_weights(tmp_path, weights)
    for item in manifest_of(tmp_path)["carried"]:
        if item["state"] is None:
            np.testing.assert_array_equal(values_of(tmp_path)[item["name"]], weights[item["original"]])


def test_weights_are_merged(tmp_path):
    trained = fitted(Ridge())
    export_training(trained, tmp_path)
    values = values_of(tmp_path)
    weights = [item["name"] for item in manifest_of(tmp_path)["carried"] if item["state"] is None]
    doubled = {name: 2 * values[name] for name in weights}
    (tmp_path / "sent").write_bytes(pack_tensors(doubled))
    model = merge_weights(tmp_path, tmp_path / "sent")
    session = onnxruntime.InferenceSession(model.SerializeToString())
    found = session.run(None, {"X": X})[0].ravel()
    np.testing.assert_allclose(found, 2 * trained.predict(X), rtol=1e-5)
    np.testing.assert_array_equal(load_training(tmp_path).predict(X), found)
    deployed = onnxruntime.InferenceSession(tmp_path / "predict.onnx")
    np.testing.assert_array_equal(deployed.run(None, {"X": X})[0].ravel(), found)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"format": 9}, "format 9"),
        ({"carried": 1}, "carried"),
        ({"schedule": {}}, "lacks"),
        ({"kind": "a list"}, "kind"),
    ],
)
def test_invalid_manifests_are_rejected(change, message, tmp_path):
    export_training(fitted(Ridge()), tmp_path)
    (tmp_path / "training.json").write_text(json.dumps({**manifest_of(tmp_path), **change}))
    with pytest.raises(SavedFileError, match=message):
        load_training(tmp_path)
