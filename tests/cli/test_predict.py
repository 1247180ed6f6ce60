"""``ortlearn predict``: predictions, intervals and sets of a data file."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from ortlearn import OrtGradientOptimizer, OrtIntervalRegressor, OrtSetClassifier
from ortlearn.saving import save

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(120, 2)).astype(np.float32), columns=["a", "b"])
LABELS = (FRAME["a"] + RNG.normal(size=120)).to_numpy()
CLASSES = np.where(LABELS > 0, "up", "down")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.assign(label=LABELS, site=np.where(FRAME["b"] > 0, "x", "y")).to_csv("rows.csv", index=False)
    FRAME[["b", "a"]].to_parquet("rows.parquet")
    return tmp_path


def write(model, name):
    with open(name, "wb") as file:
        file.write(model.get_trained_onnx().SerializeToString())


def test_intervals(run, folder):
    trained = OrtIntervalRegressor(Ridge(), random_state=0).fit(FRAME, LABELS)
    write(trained, "model.onnx")
    done = run("predict", "model.onnx", "rows.csv", "--out", "all.csv")
    assert done.status == 0 and "columns not used: label, site" in done.out
    found = pd.read_csv("all.csv")
    expected = ["prediction", "lower", "upper", "quantiles_0.05", "quantiles_0.5", "quantiles_0.95"]
    assert found.columns.tolist() == expected and len(found) == 120
    points, intervals = trained.predict_interval(FRAME)
    np.testing.assert_allclose(found["prediction"], points, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["lower"], intervals[:, 0, 0], rtol=1e-5, atol=1e-6)
    # Columns are found by their names, in a parquet file, too.
    assert run("predict", "model.onnx", "rows.parquet", "--out", "some.parquet", "--interval").status == 0
    found = pd.read_parquet("some.parquet")
    assert found.columns.tolist() == ["prediction", "lower", "upper"]
    np.testing.assert_allclose(found["upper"], intervals[:, 1, 0], rtol=1e-5, atol=1e-6)


def test_saved_estimators(run, folder):
    trained = OrtIntervalRegressor(Ridge(), random_state=0).fit(FRAME, LABELS)
    save(trained, "model.zip")
    assert run("predict", "model.zip", "rows.csv", "--out", "all.csv", "--interval").status == 0
    np.testing.assert_allclose(
        pd.read_csv("all.csv")["prediction"], trained.predict(FRAME), rtol=1e-5, atol=1e-6
    )


def test_a_class_is_not_written_for_empty_cells(run, folder):
    trained = OrtGradientOptimizer(LogisticRegression(), random_state=0).fit(FRAME, CLASSES)
    write(trained, "model.onnx")
    command = "predict", "model.onnx", "few.csv", "--out", "all.csv"
    FRAME.to_csv("few.csv", index=False)
    assert run(*command).status == 0
    with open("few.csv", "a") as file:
        file.write("0.5\n")  # a row with one field
    done = run(*command, "--force")
    assert done.status == 2 and "empty cells in the columns ['b']" in done.err
    assert len(pd.read_csv("all.csv")) == 120


def test_groups(run, folder):
    groups = np.where(FRAME["b"] > 0, "x", "y")
    trained = OrtIntervalRegressor(Ridge(), group_min_size=9, calibration=60, random_state=0)
    write(trained.fit(FRAME.to_numpy(), LABELS, groups=groups), "model.onnx")
    drop = ("--drop", "label", "--out", "all.csv")
    assert run("predict", "model.onnx", "rows.csv", *drop, "--group", "site").status == 0
    expected = trained.predict_interval(FRAME.to_numpy(), groups=groups)[1]
    np.testing.assert_allclose(pd.read_csv("all.csv")["lower"], expected[:, 0, 0], rtol=1e-5, atol=1e-6)
    for others in ((), ("--drop", "site")):
        found = run("predict", "model.onnx", "rows.csv", *drop, *others, "--force")
        assert found.status != 0 and "--group COLUMN" in found.error


def test_sets(run, folder):
    trained = OrtSetClassifier(LogisticRegression(), random_state=0).fit(FRAME, CLASSES)
    write(trained, "model.onnx")
    assert run("predict", "model.onnx", "rows.csv", "--out", "all.csv").status == 0
    found = pd.read_csv("all.csv")
    assert found.columns.tolist()[:3] == ["label", "probabilities_down", "probabilities_up"]
    labels, sets = trained.predict_set(FRAME)
    assert (found["prediction"] == labels).all()
    np.testing.assert_array_equal(found[["set_down", "set_up"]].to_numpy(), sets[:, :, 0])


def test_other_models(run, folder):
    trained = OrtGradientOptimizer(Ridge(), random_state=0).fit(FRAME, LABELS)
    save(trained, "model.zip")
    assert run("predict", "model.zip", "rows.csv", "--out", "all.csv").status == 0
    np.testing.assert_allclose(pd.read_csv("all.csv")["prediction"], trained.predict(FRAME), rtol=1e-5)
    error = run("predict", "model.zip", "rows.csv", "--out", "all.csv").error
    assert "all.csv exists" in error
    error = run("predict", "model.zip", "rows.csv", "--out", "b.csv", "--interval").error
    assert "has no outputs" in error and "OrtIntervalRegressor" in error
    assert "must end in .csv or .parquet" in run("predict", "model.zip", "rows.csv", "--out", "b.txt").error
