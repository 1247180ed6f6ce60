"""The runner for Node: records of packages, training, files and errors."""

import json
import shutil
import subprocess

import numpy as np
import pytest

from ortlearn.saving import load_training

from .conftest import modules_of, node
from .packages import PACKAGES
from .test_python_bare import runner

ERRORS = """
import { load } from "./index.mjs";
const [folder, X, y] = process.argv.slice(1);
try {
  const trainer = await load(folder);
  await trainer.fit(JSON.parse(X), JSON.parse(y));
  console.log("no error");
} catch (error) {
  console.log(error.message);
}
"""

pytestmark = pytest.mark.runtimes


@pytest.mark.parametrize("name", PACKAGES)
def test_training_matches_python(name, packages, tmp_path):
    folder = modules_of("node")
    found = json.loads(node("test/run.mjs", packages[name], tmp_path / "trained", folder=folder))
    assert max(found["differences"].values()) < 1e-4
    assert found["epoch"] == 3 and [event["epoch"] for event in found["events"]] == [1, 2, 3]
    assert found["after"]["loss"] < found["before"]["loss"]
    # Python continues with what Node has saved.
    later = load_training(tmp_path / "trained", trusted=["sklearn.tree._tree.Tree"])
    _, _, X, y, _ = PACKAGES[name]
    expected = later.predict(X)
    if expected.dtype.kind == "U":
        assert list(expected) == found["predictions"]
    else:
        np.testing.assert_allclose(found["predictions"], expected, rtol=1e-4, atol=1e-5)
    assert later.n_iter_ == 4 + 3 and later.partial_fit(X, y).history_[-1]["epoch"] == 8


def message(folder, X, y):
    return node(
        "--input-type=module", "-e", ERRORS, folder, json.dumps(X), json.dumps(y), folder=modules_of("node")
    )


def broken(packages, tmp_path, name="logistic"):
    return shutil.copytree(packages[name], tmp_path / "broken")


def test_unknown_class(packages):
    assert 'y has "tall", the classes are ["high","low","middle"]' in message(
        packages["logistic"], [[1, 2, 3, 4, 5]], ["tall"]
    )


def test_wrong_shape(packages):
    assert "X must have samples of shape [5], and sample 0 is [1,2]" in message(
        packages["logistic"], [[1, 2]], ["low"]
    )


def test_wrong_type(packages):
    text = message(packages["logistic"], [[1, 2, "three", 4, 5]], ["low"])
    assert 'X must be of type float32, and sample 0 has "three"' in text


def test_unknown_format(packages, tmp_path):
    folder = broken(packages, tmp_path)
    manifest = json.loads((folder / "training.json").read_text())
    (folder / "training.json").write_text(json.dumps({**manifest, "format": 9}))
    assert "format 9" in message(folder, [[1, 2, 3, 4, 5]], ["low"])


def test_missing_file(packages, tmp_path):
    folder = broken(packages, tmp_path)
    (folder / "step.onnx").unlink()
    assert "step.onnx" in message(folder, [[1, 2, 3, 4, 5]], ["low"])


def test_truncated_file(packages, tmp_path):
    folder = broken(packages, tmp_path)
    content = (folder / "values.safetensors").read_bytes()
    (folder / "values.safetensors").write_bytes(content[:-4])
    assert "values.safetensors is damaged, its header does not describe its content" in message(
        folder, [[1, 2, 3, 4, 5]], ["low"]
    )


def test_inconsistent_numbers_of_samples(packages):
    assert "Inputs must have equal numbers of samples, but have X: 1, ortlearn_label: 2" in message(
        packages["logistic"], [[1, 2, 3, 4, 5]], ["low", "high"]
    )


WEIGHTS = """
import { load } from "./index.mjs";
const [folder, X, y, weights] = process.argv.slice(1);
const trainer = await load(folder);
const columns = trainer.columns(JSON.parse(X), JSON.parse(y), JSON.parse(weights));
await trainer.trainEpoch(columns, [...JSON.parse(y).keys()]);
const { loss, score } = await trainer.evaluate(JSON.parse(X), JSON.parse(y), JSON.parse(weights));
const values = Object.entries(trainer.values).map(([name, { data }]) => [name, Array.from(data, Number)]);
console.log(JSON.stringify({ loss, score, values: Object.fromEntries(values) }));
"""


def test_sample_weights_match_python(packages):
    _, _, X, y, _ = PACKAGES["weights"]
    weights = np.random.default_rng(3).uniform(0, 2, size=len(y))
    arguments = (json.dumps(part.tolist()) for part in (X, y, weights))
    command = ("--input-type=module", "-e", WEIGHTS, packages["weights"], *arguments)
    found = json.loads(node(*command, folder=modules_of("node")))
    trainer = runner().Trainer(packages["weights"])
    trainer.train_epoch(trainer.columns(X, y, weights), np.arange(len(y)))
    expected = trainer.evaluate(X, y, weights)
    assert found["score"] == pytest.approx(expected["ortlearn_score"], abs=1e-5)
    assert found["loss"] == pytest.approx(expected["ortlearn_mean_loss"], rel=1e-4)
    for name, values in found["values"].items():
        np.testing.assert_allclose(values, np.ravel(trainer.values[name]), rtol=1e-4, atol=1e-5)


def test_sample_weights_without_support(packages):
    source = WEIGHTS.replace("JSON.parse(weights)", "[1]", 1)
    command = ("--input-type=module", "-e", source, packages["logistic"], "[[1,2,3,4,5]]", '["low"]', "[1]")
    found = subprocess.run(
        ["node", *map(str, command)], cwd=modules_of("node"), capture_output=True, text=True, timeout=120
    )
    assert "export it with weighted=True" in found.stderr


def test_loss_that_is_not_finite(packages):
    assert "not finite" in message(packages["boosting"], [[1, 2, 3, 4, 5]] * 60, [1e38] * 60)


def test_typescript_types():
    folder = modules_of("node")
    compiler = folder / "node_modules" / ".bin" / "tsc"
    if not compiler.exists():
        pytest.skip("TypeScript is not installed: run make test-runtimes")
    found = subprocess.run([compiler, "--project", "test"], cwd=folder, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout
