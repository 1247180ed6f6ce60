"""The reference runner, which requires only numpy and onnxruntime."""

import ast
import importlib.util
import re
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from sklearn.metrics import accuracy_score, r2_score
from sklearn.svm import LinearSVC

from ortlearn import OrtGradientOptimizer
from ortlearn.saving import export_training, load_training, merge_weights
from ortlearn.saving.tensors import unpack_tensors

from .packages import PACKAGES, write_package

SOURCE = Path(__file__).parents[2] / "runtimes" / "python_bare" / "ortlearn_trainer.py"


def runner():
    spec = importlib.util.spec_from_file_location("ortlearn_trainer", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Trainer = runner().Trainer


@pytest.fixture(params=PACKAGES)
def package(request, tmp_path):
    return request.param, tmp_path, write_package(request.param, tmp_path)


def record_of(folder):
    return unpack_tensors((folder / "record.safetensors").read_bytes())[0]


def test_length_and_imports():
    source = SOURCE.read_text()
    imported = {
        name.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert imported == {"json", "math", "os", "zlib", "pathlib", "numpy", "onnxruntime"}
    assert len(source.splitlines()) <= 320


def test_readme_works(tmp_path, monkeypatch, capsys):
    write_package("logistic", tmp_path / "folder")
    (code,) = re.findall(r"```python\n(.*?)```", SOURCE.with_name("README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(SOURCE.parent)
    exec(code, dict(zip("Xy", PACKAGES["logistic"][2:4], strict=True)))
    assert len(capsys.readouterr().out.splitlines()) == 5
    assert load_training("folder").n_iter_ == 4 + 5


@pytest.mark.slow
@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", PACKAGES)
def test_training_reproduces_the_record(name, packages):
    trainer, record = Trainer(packages[name]), record_of(packages[name])
    columns = {name.removeprefix("column "): a for name, a in record.items() if name.startswith("column ")}
    orders = [record[f"order {n}"] for n in range(trainer.manifest["record"]["epochs"])]
    objectives = [value for order in orders for value in trainer.train_epoch(columns, order)]
    assert objectives == trainer.manifest["record"]["objectives"]
    for item in trainer.carried:
        assert np.array_equal(trainer.values[item["name"]], record[f"result {item['name']}"]), item["name"]


@pytest.mark.sweep(3)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_training_matches_the_estimator(package):
    name, folder, trained = package
    _, _, X, y, _ = PACKAGES[name]
    trained.set_weights(trained.get_weights())  # resets the states of the update
    export_training(trained, folder)
    trainer = Trainer(folder)
    trainer.train_epoch(trainer.columns(X, y), np.arange(len(X)))
    trained.set_params(warm_start=True, max_iter=1, shuffle=False, keep_better=False).fit(X, y)
    weights = trained._fitted.state.next_weights
    for key, array in weights.items():
        assert np.abs(trainer.values[key] - array).max() <= 1e-5 * np.abs(array).max(), key


@pytest.mark.sweep(2)
def test_training_continues_in_python(package):
    name, folder, trained = package
    _, _, X, y, _ = PACKAGES[name]
    trainer = Trainer(folder)
    trainer.fit(X, y, epochs=2)
    found = trainer.predict(X)
    trainer.save()
    later = load_training(folder, trusted=["sklearn.tree._tree.Tree"])
    session = onnxruntime.InferenceSession(folder / "predict.onnx")
    kind = "label" if "label" in found else "prediction"
    deployed = session.run([kind], {session.get_inputs()[0].name: X})[0]
    merged = onnxruntime.InferenceSession(merge_weights(folder).SerializeToString())
    assert np.array_equal(merged.run([kind], {session.get_inputs()[0].name: X})[0], deployed)
    if kind == "label":
        assert np.array_equal(found[kind], deployed) and np.array_equal(deployed, later.predict(X))
    else:
        np.testing.assert_allclose(deployed, found[kind], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(later.predict(X), np.ravel(deployed), rtol=1e-4, atol=1e-6)
    assert any(not np.array_equal(a, later.trained_coef_[n]) for n, a in trained.trained_coef_.items())
    assert Trainer(folder).values["ortlearn_epoch"] == 2
    assert later.n_iter_ == len(later.history_) == trained.n_iter_ + 2
    assert later.partial_fit(X, y).n_iter_ == later.history_[-1]["epoch"] == trained.n_iter_ + 3


@pytest.mark.sweep(6)
def test_evaluation(package):
    name, folder, trained = package
    _, _, X, y, _ = PACKAGES[name]
    found = Trainer(folder).evaluate(X, y)
    score = r2_score if y.dtype.kind == "f" else accuracy_score
    assert found["ortlearn_score"] == pytest.approx(score(y, trained.predict(X)), abs=1e-5)
    assert found["ortlearn_mean_loss"] > 0


@pytest.mark.parametrize("labels", [[0, 1, 2], ["a", "b", "c"]])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_evaluation_of_one_hot_labels(labels, dtype, tmp_path):
    X = np.random.default_rng(0).normal(size=(90, 3)).astype(dtype)
    y = np.array(labels)[np.digitize(X[:, 0], [-0.4, 0.4])]
    trained = OrtGradientOptimizer(LinearSVC(), learning_rate="Adam", max_iter=5, random_state=0, dtype=dtype)
    export_training(trained.fit(X, y), tmp_path)
    trainer = Trainer(tmp_path)
    assert trainer.manifest["label"]["encoding"] == "one_hot"
    assert trainer.evaluate(X, y)["ortlearn_score"] == pytest.approx(trained.score(X, y), abs=1e-6)


def weighted_package(folder, **options):
    """Write a package that supports sample weights, and return its trained estimator."""
    model, _, X, y, _ = PACKAGES["logistic"]
    options |= {"learning_rate": "SGD", "batch_size": 32, "random_state": 0, "learning_penalty": None}
    trained = OrtGradientOptimizer(model, **options).fit(X, y)
    trained.set_weights(trained.get_weights())
    export_training(trained, folder, weighted=True)
    return trained


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_sample_weights(class_weight, tmp_path):
    _, _, X, y, _ = PACKAGES["logistic"]
    weights = np.random.default_rng(0).uniform(0, 3, size=len(y))
    trained = weighted_package(tmp_path, class_weight=class_weight)
    trainer = Trainer(tmp_path)
    trainer.train_epoch(trainer.columns(X, y, weights), np.arange(len(X)))
    tables = trained._fitted.problem.targets.class_weights
    trained.set_params(
        warm_start=True, max_iter=1, shuffle=False, keep_better=False, class_weight=tables and tables[0]
    ).fit(X, y, sample_weight=weights)
    for key, array in trained._fitted.stable_weights().items():
        assert np.abs(trainer.values[key] - array).max() <= 1e-5 * np.abs(array).max(), key
    plain = trainer.evaluate(X, y)["ortlearn_score"]
    assert plain == pytest.approx(accuracy_score(y, trained.predict(X)), abs=1e-6)
    found = trainer.evaluate(X, y, weights)["ortlearn_score"]
    expected = accuracy_score(y, trained.predict(X), sample_weight=weights)
    assert found == pytest.approx(expected, abs=1e-6) and found != plain


@pytest.mark.parametrize(
    ("name", "samples", "message"),
    [("weights", 3, "must have equal numbers of samples"), ("logistic", 230, "export it with weighted=True")],
)
def test_invalid_sample_weights(name, samples, message, packages):
    _, _, X, y, _ = PACKAGES[name]
    with pytest.raises(ValueError, match=message):
        Trainer(packages[name]).fit(X, y, sample_weight=np.ones(samples))


@pytest.mark.parametrize("name", ["logistic", "network", "classes"])
def test_inconsistent_numbers_of_samples(name, packages):
    _, _, X, y, _ = PACKAGES[name]
    with pytest.raises(ValueError, match="Inputs must have equal numbers of samples, but have X: "):
        Trainer(packages[name]).fit(X, y[:-1])


def test_lora_adapters(tmp_path):
    file = OrtGradientOptimizer(PACKAGES["network"][0], max_iter=1, learning_rate="SGD", random_state=0)
    _, _, X, y, _ = PACKAGES["network"]
    file = file.fit(X, y).get_trained_onnx(fused=False)
    options = {
        "learning_rate": "Adam",
        "max_iter": 1,
        "random_state": 0,
        "batch_size": 50,
        "shuffle": False,
        "keep_better": False,
    }
    trained = OrtGradientOptimizer(file, lora=2, warm_start=True, **options)
    trained.fit(X, y)
    trained.set_weights(trained.get_weights())
    export_training(trained, tmp_path, example=(X, y))
    trainer = Trainer(tmp_path)
    trainer.train_epoch(trainer.columns(X, y), np.arange(len(X)))
    trainer.save()
    later = load_training(tmp_path)
    trained.fit(X, y)
    for key, array in trained._fitted.stable_weights().items():
        assert np.abs(trainer.values[key] - array).max() <= 1e-5 * np.abs(array).max(), key
    merged = later.get_trained_onnx()
    session = onnxruntime.InferenceSession(merged.SerializeToString())
    found = session.run(None, {session.get_inputs()[0].name: X})[0]
    np.testing.assert_allclose(found.ravel(), later.predict(X).ravel(), rtol=1e-3, atol=1e-5)
    assert {i.name for i in merged.graph.initializer} == {i.name for i in file.graph.initializer}
