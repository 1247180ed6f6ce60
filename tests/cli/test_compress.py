"""The command compress."""

import json

import onnx
import pandas as pd
import pytest
import skops.io
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


@pytest.fixture(scope="module")
def wines(tmp_path_factory):
    """Return a folder with samples, a network as an ONNX file, and a forest."""
    from ortlearn.conversion import sklearn_to_onnx

    folder = tmp_path_factory.mktemp("wines")
    X, y = load_wine(return_X_y=True)
    pd.DataFrame(X).assign(label=y).to_csv(folder / "rows.csv", index=False)
    network = make_pipeline(StandardScaler(), MLPClassifier((64, 32), max_iter=300, random_state=0)).fit(X, y)
    onnx.save(sklearn_to_onnx(network), folder / "model.onnx")
    skops.io.dump(RandomForestClassifier(30, random_state=0).fit(X, y), folder / "forest.skops")
    return folder


@pytest.mark.slow
def test_quantisation(run, wines, tmp_path):
    out = tmp_path / "small.onnx"
    given = ("compress", wines / "model.onnx", wines / "rows.csv", "--label", "label", "--to", "int8")
    found = run(*given, "--max-loss", "0.005", "--out", out)
    assert found.status == 0 and "before" in found.out and "int8 weights" in found.out
    assert out.stat().st_size < 0.6 * (wines / "model.onnx").stat().st_size
    scores = json.loads(run("evaluate", out, wines / "rows.csv", "--label", "label", "--json").out)["scores"]
    assert scores["accuracy"] > 0.98
    shown = run("explain", out)
    assert "quantised to int8: coefs_0_quantized, coefs_1_quantized, coefs_2_quantized" in shown.out
    assert run(*given, "--out", out).status == 2  # exists


@pytest.mark.slow
def test_distil_prune_quantise(run, wines, tmp_path):
    out = tmp_path / "small.onnx"
    given = ("compress", wines / "forest.skops", wines / "rows.csv", "--label", "label", "--json")
    kinds = ("--student", "mlp:32", "--sparsity", "0.5", "--to", "int8")
    found = run(*given, *kinds, "--max-samples", "170", "--out", out)
    assert found.status == 0
    result = json.loads(found.out)
    assert (result["rows"], result["rows_of_data"]) == (170, 178)
    steps = result["steps"]
    assert [step["step"] for step in steps] == ["distil", "prune", "quantise"]
    assert steps[1]["layers"] == {"hidden units": "32 -> 16"}
    assert steps[2]["scores"]["accuracy"]["new"]["value"] > 0.85 and out.exists()


def test_bad_arguments(run, wines):
    given = ("compress", wines / "model.onnx", wines / "rows.csv")
    assert "nothing to do" in run(*given, "--label", "label").err
    assert "--max-samples 0: must be 1 or more" in run(*given, "--to", "int8", "--max-samples", "0").err
    assert "pruning needs labels" in run(*given, "--sparsity", "0.5").err
    forest = ("compress", wines / "forest.skops", wines / "rows.csv", "--label", "label", "--to", "int8")
    assert "no linear layer or convolution" in run(*forest).err
    gaps = wines / "gaps.csv"
    pd.read_csv(wines / "rows.csv").replace({"3": {15.6: None}}).to_csv(gaps, index=False)
    for kind in (("--to", "int8"), ("--student", "mlp:4")):
        found = run("compress", wines / "model.onnx", gaps, "--label", "label", *kind)
        assert found.status == 2 and "empty cells in the columns ['3']" in found.err
