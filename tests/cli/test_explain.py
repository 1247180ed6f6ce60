"""Output of explain for scikit-learn models and ONNX files."""

import onnx
import pandas as pd
import pytest
import skops.io
from onnx import parser
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier

from ortlearn.trainable.explanation import explain
from tests.cli.conftest import FEATURES


def test_scikit_learn(run):
    done = run("explain", "wine.skops")
    assert str(explain(skops.io.load("wine.skops"))) in done.out
    assert "classes: ['barbera', 'barolo', 'grignolino']" in done.out and f"columns: {FEATURES}" in done.out
    result = run("explain", "wine.skops", "--json").result
    assert [row["trainable"] for row in result["weights"]] == [False, False, True, True]


def test_onnx(run):
    result = run("explain", "wine.onnx", "--json").result
    weights = {row["name"]: (row["shape"], row["trained"]) for row in result["weights"]}
    assert weights == {
        "mean": ([3], False),
        "coef": ([3, 3], True),
        "intercept": ([3], True),
    }
    assert result["inputs"] == [{"name": "X", "type": "float", "shape": ["N", 3]}]
    assert [output["type"] for output in result["outputs"]] == ["string", "float"]
    assert (result["task"], result["classes"]) == ("classification", ["barbera", "barolo", "grignolino"])
    assert result["operators"]["ai.onnx.ml:LinearClassifier"] == 1 and result["without_gradient"] == {}
    text = run("explain", "wine.onnx").out
    (line,) = [line.split() for line in text.splitlines() if line.startswith("coef ")]
    assert "inputs: X float(N, 3)" in text and line[2:] == ["(3,", "3)", "MatMul", "yes"]
    assert text.splitlines()[-1] == "trained: 12 of 15 numbers, in 2 of 3 weights"


def test_preview_of_patterns_and_adapters(run):
    """The sources are an ONNX file and a scikit-learn model."""
    asked = ("--weights-to-train", "inter*")
    for path, trained in (("wine.onnx", "intercept"), ("wine.skops", ["intercept"])):
        result = run("explain", path, *asked, "--json").result
        assert [
            row.get("name", row.get("weights"))
            for row in result["weights"]
            if row.get("trained", row.get("trainable"))
        ] == [trained]
    result = run("explain", "wine.onnx", "--lora", "1", "--json").result
    shapes = {row["name"]: row["shape"] for row in result["weights"] if row["trained"]}
    assert shapes == {"coef.lora_A": [3, 1], "coef.lora_B": [1, 3]}
    assert "lora is for ONNX files" in run("explain", "wine.skops", "--lora", "1").out
    for path in ("wine.onnx", "wine.skops"):
        assert "'x' matches no" in run("explain", path, "--weights-to-train", "x").error


def test_operators_without_a_gradient(run, tmp_path):
    text = """<ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x) => (float[N,1] y) <float[2,2] v = {1, 2, 3, 4}, float[2,1] w = {1, 2}>
        { z = MatMul (x, v) r = Round (z) y = MatMul (r, w) }"""
    onnx.save(parser.parse_model(text), tmp_path / "round.onnx")
    result = run("explain", tmp_path / "round.onnx", "--json").result
    assert result["without_gradient"] == {"Round": "no gradient passes"}
    assert {row["name"]: row["trained"] for row in result["weights"]} == {"v": False, "w": True}
    assert "Round (no gradient passes)" in run("explain", tmp_path / "round.onnx").out


@pytest.mark.parametrize("kind", ["skops", "onnx"])
def test_nothing_to_train(run, tmp_path, kind):
    path = tmp_path / f"model.{kind}"
    if kind == "skops":
        skops.io.dump(KNeighborsClassifier().fit([[0.0], [1.0]] * 5, [0, 1] * 5), path)
    else:
        text = '<ir_version: 8, opset_import: ["": 18]> g (float[N,1] x) => (float[N,1] y) { y = Neg (x) }'
        onnx.save(parser.parse_model(text), path)
    result = run("explain", path, "--json").result
    assert not result["trainable"] and "no weight to train" in result["problem"]
    assert "no weight to train" in run("explain", path).out


def test_unfitted_model_needs_data(run, tmp_path):
    skops.io.dump(Ridge(), tmp_path / "ridge.skops")
    assert "not fitted" in run("explain", tmp_path / "ridge.skops").error
    pd.DataFrame({"x": [0.0, 1.0, 2.0], "y": [1.0, 2.0, 4.0]}).to_csv(tmp_path / "data.csv", index=False)
    done = run("explain", tmp_path / "ridge.skops", tmp_path / "data.csv", "--label", "y")
    assert done.status == 0 and "coef_" in done.out
    assert "DATA, which is missing" in run("explain", tmp_path / "ridge.skops", "--label", "y").error


def test_model_that_reads_text_needs_data(run):
    assert "or 'ortlearn explain MODEL DATA'" in run("explain", "houses.skops").error
    assert "coef_" in run("explain", "houses.skops", "houses.parquet", "--label", "price").out
