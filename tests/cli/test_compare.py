"""Comparison and evaluation of models on a data file."""

import numpy as np
import pandas as pd
import pytest
import skops.io
from skl2onnx import to_onnx
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from ortlearn.preprocessing.schema import matrix_schema
from ortlearn.preprocessing.skl2onnx_steps import convert
from tests.cli.conftest import FEATURES

WINE = ("wine.csv", "--label", "kind")
PLAIN = {"zipmap": False}
NUMBERS = (*WINE, "--drop", "region", "--drop", "weight")


def save(model, path):
    skops.io.dump(model, path)
    return path


@pytest.fixture
def better(files, tmp_path):
    """Return a better model of the wines, and its predictions."""
    frame = pd.read_csv(files / "wine.csv")
    model = LogisticRegression(max_iter=5000).fit(frame[FEATURES], frame["kind"])
    return save(model, tmp_path / "better.skops"), model.predict(frame[FEATURES])


def test_evaluate(run):
    frame = pd.read_csv("wine.csv")
    model = skops.io.load("wine.skops")
    scores = run("evaluate", "wine.skops", *WINE, "--json").result["scores"]
    assert scores["accuracy"] == model.score(frame[FEATURES], frame["kind"])
    onnx = run("evaluate", "wine.onnx", *NUMBERS, "--json").result
    assert onnx["scores"] == pytest.approx(scores, rel=1e-3)
    weighted = run("evaluate", "wine.skops", *WINE, "--weights", "weight", "--json").result["scores"]
    expected = model.score(frame[FEATURES], frame["kind"], sample_weight=frame["weight"])
    assert weighted["accuracy"] == pytest.approx(expected)
    houses = run("evaluate", "houses.onnx", "houses.csv.gz", "--label", "price").out
    assert all(name in houses for name in ("r2", "mae", "rmse", "120 samples", "regression"))


def test_classifiers_without_probabilities(run, tmp_path):
    frame = pd.read_csv("wine.csv")
    model = LinearSVC().fit(frame[FEATURES].to_numpy(), frame["kind"])
    scores = run("evaluate", save(model, tmp_path / "svc.skops"), *NUMBERS, "--json").result["scores"]
    assert list(scores) == ["accuracy", "roc_auc"]
    onnx = convert(model, matrix_schema(3).types())  # its second output has decision values
    (tmp_path / "svc.onnx").write_bytes(onnx.SerializeToString())
    same = run("evaluate", tmp_path / "svc.onnx", *NUMBERS, "--json").result["scores"]
    assert same == pytest.approx(scores, abs=1e-3)


@pytest.mark.parametrize("classes", [[0, 1], ["0", "1"], [False, True]])
@pytest.mark.parametrize("written", [[0, 1], [0.0, 1.0], ["0", "1"], [False, True]])
def test_labels_match_classes_with_the_same_text(run, tmp_path, classes, written):
    x, codes = np.linspace(-1, 1, 40).reshape(-1, 1), np.repeat([0, 1], 20)
    model = save(LogisticRegression().fit(x, np.array(classes)[codes]), tmp_path / "m.skops")
    frame = pd.DataFrame({"x": x.ravel(), "y": np.array(written)[codes]})
    frame.to_parquet(tmp_path / "data.parquet")
    result = run("evaluate", model, tmp_path / "data.parquet", "--label", "y", "--json").result
    assert result["scores"]["accuracy"] == result["scores"]["roc_auc"] == 1


@pytest.mark.parametrize("options", [{"raw_scores": True}, {"zipmap": True}, {"zipmap": "columns"}])
def test_outputs_of_other_converters(run, tmp_path, options):
    frame = pd.read_csv("wine.csv")
    model = LogisticRegression(max_iter=5000).fit(frame[FEATURES].to_numpy(), frame["kind"])
    written = to_onnx(
        model, frame[FEATURES].to_numpy(np.float32)[:1], options={id(model): {**PLAIN, **options}}
    )
    (tmp_path / "model.onnx").write_bytes(written.SerializeToString())
    expected = run("evaluate", save(model, tmp_path / "model.skops"), *NUMBERS, "--json").result["scores"]
    found = run("evaluate", tmp_path / "model.onnx", *NUMBERS, "--json").result["scores"]
    if "raw_scores" in options:
        assert list(found) == ["accuracy", "roc_auc"] and found["accuracy"] == expected["accuracy"]
    else:
        assert found == pytest.approx(expected, abs=1e-2)


def test_text_that_looks_like_numbers(run, tmp_path):
    frame = pd.DataFrame({"code": ["01", "02"] * 20, "y": ["007", "008"] * 20})
    frame.to_csv(tmp_path / "data.csv", index=False)
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(frame[["code"]], frame["y"])
    arguments = (save(model, tmp_path / "m.skops"), tmp_path / "data.csv", "--label", "y")
    assert "not classes of the model: ['7', '8']" in run("evaluate", *arguments).error
    result = run("evaluate", *arguments, "--text", "y", "--text", "code", "--json").result
    assert result["scores"]["accuracy"] == 1
    assert "no column 'z'" in run("evaluate", *arguments, "--text", "z").error


def test_evaluate_model_that_is_not_trainable(run, tmp_path):
    frame = pd.read_csv("wine.csv")
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(frame[FEATURES].to_numpy(), frame["kind"])
    onnx = convert(model, matrix_schema(3).types())
    (tmp_path / "tree.onnx").write_bytes(onnx.SerializeToString())
    scores = run("evaluate", tmp_path / "tree.onnx", *NUMBERS, "--json").result["scores"]
    trusted = (*NUMBERS, "--trust", "sklearn.tree._tree.Tree", "--json")
    same = run("evaluate", save(model, tmp_path / "tree.skops"), *trusted).result["scores"]
    assert scores == pytest.approx(same, abs=1e-6) and "roc_auc" in scores


@pytest.mark.slow
def test_compare(run, better, tmp_path):
    path, predicted = better
    frame = pd.read_csv("wine.csv")
    old = skops.io.load("wine.skops").predict(frame[FEATURES])
    changed = tmp_path / "changed.csv"
    arguments = ("--by", "region", "--changed", changed, "--resamples", "200")
    result = run("compare", "wine.skops", path, *WINE, *arguments, "--json").result
    samples = np.flatnonzero(old != predicted)
    assert result["changed"] == len(samples) > 0 and result["changed_share"] == len(samples) / len(frame)
    kinds = frame["kind"].to_numpy()
    assert result["now_right"] == np.sum((old != kinds) & (predicted == kinds))
    assert result["now_wrong"] == np.sum((old == kinds) & (predicted != kinds))
    accuracy = result["scores"]["accuracy"]
    assert accuracy["old"]["value"] == np.mean(old == kinds)
    assert accuracy["difference"]["value"] == pytest.approx(
        np.mean(predicted == kinds) - np.mean(old == kinds)
    )
    low, high = accuracy["difference"]["interval"]
    assert low <= accuracy["difference"]["value"] <= high and low < high
    for region, part in result["groups"].items():
        mask = frame["region"].to_numpy() == region
        assert part["rows"] == mask.sum() and part["changed"] == np.sum((old != predicted)[mask])
        assert part["scores"]["accuracy"]["new"]["value"] == np.mean((predicted == kinds)[mask])
    written = pd.read_csv(changed)
    assert list(written.columns) == ["row", "old", "new", "label", "by region"]
    assert (
        written["row"].tolist() == samples.tolist() and written["new"].tolist() == predicted[samples].tolist()
    )


@pytest.mark.slow
def test_compare_as_text(run, better):
    done = run("compare", "wine.skops", better[0], *WINE, "--by", "region", "--resamples", "20")
    assert (done.status, done.err) == (0, "")
    for text in (
        "new - old",
        "region = north: ",
        "region = south: ",
        "predictions changed: ",
        "now right",
        "[",
    ):
        assert text in done.out


def test_two_formats_of_one_model_agree(run):
    result = run("compare", "wine.skops", "wine.onnx", *NUMBERS, "--resamples", "20", "--json").result
    assert result["changed"] == 0
    houses = run("compare", "houses.skops", "houses.onnx", "houses.parquet", "--json").result
    assert houses["changed"] == 0 and "scores" not in houses  # without labels


def test_changed_predictions(run, tmp_path):
    frame = pd.read_parquet("houses.parquet")
    X, model = frame[["size m2"]], Ridge()
    old = save(model.fit(X, frame["price"]), tmp_path / "old.skops")
    model.intercept_ += 0.5
    new = save(model, tmp_path / "new.skops")
    arguments = (old, new, "houses.parquet", "--label", "price", "--resamples", "20", "--json")
    changed = [run("compare", *arguments, "--tolerance", t).result["changed"] for t in ("0.4", "0.6")]
    assert changed == [120, 0] and run("compare", *arguments).result["changed"] == 120


def test_missing_groups_have_a_name(run, better, tmp_path):
    frame = pd.read_csv("wine.csv")
    frame.loc[:9, "region"] = None
    frame.to_csv(tmp_path / "data.csv", index=False)
    arguments = (better[0], tmp_path / "data.csv", "--label", "kind", "--by", "region", "--resamples", "5")
    groups = run("compare", "wine.skops", *arguments, "--json").result["groups"]
    assert groups["(missing)"]["rows"] == 10


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "arguments, text",
    [
        (("--by", "alcohol"), "Choose a column with at most 100"),
        (("--by", "nothing"), "no column 'nothing'"),
        (("--level", "2"), "--level 2.0"),
        (("--resamples", "0"), "--resamples 0"),
        (("--changed", "a.txt"), "must end in .csv"),
        (("--changed", "wine.csv"), "wine.csv exists"),
    ],
)
def test_invalid_options(run, better, arguments, text):
    assert text in run("compare", "wine.skops", better[0], *WINE, *arguments).error


def test_models_of_different_tasks_are_rejected(run):
    assert "Compare models of the same task" in run("compare", "wine.skops", "houses.skops", *WINE).error
