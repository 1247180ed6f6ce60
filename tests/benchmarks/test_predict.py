"""The benchmark of predictions."""

import numpy as np
import pytest
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)

from benchmarks import bench_predict as bench
from benchmarks import bench_trees


def test_both_files_run_equally_often_and_alternate():
    order = []
    times = bench.compare(lambda: order.append("ours"), lambda: order.append("theirs"), rounds=4, seconds=0.0)
    assert [len(part) for part in times] == [4, 4]
    assert order.count("ours") == order.count("theirs") == 9  # once before the rounds, then twice in each
    assert order[2:6] == ["theirs", "theirs", "ours", "ours"] and order[6:8] == ["ours", "ours"]


def test_files_of_a_model():
    found = list(bench.files(["StandardScaler, LogisticRegression"], 100, 2, 0.0, (1, 3)))
    assert [(name, rows) for name, rows, _, _ in found] == [
        ("StandardScaler, LogisticRegression", r) for r in (1, 3)
    ]
    assert all(min(map(min, times)) > 0 and own > 0 for _, _, times, own in found)


@pytest.mark.slow
def test_outputs_agree_and_every_model_has_a_limit():
    X, _ = bench.data(50)
    for name in ("Ridge", "RandomForestClassifier, 100 trees", "MLPClassifier, 2 classes"):
        model, trainer = bench.trained(name, 60)
        feeds = {"X": X}
        ours = bench.session_of(trainer.get_trained_onnx()).run(None, feeds)
        theirs = bench.session_of(bench.by_skl2onnx(model, X)).run(None, feeds)
        assert [part.size for part in ours] == [part.size for part in theirs]
    assert set(bench.LIMITS) == set(bench.MODELS)


def test_tables():
    found = bench.sheet_of_files(bench.files(["Ridge"], 60, 2, 0.0, (1,)))
    assert "| Ridge | 1 |" in found.markdown()
    assert "| Ridge | 7 (over 5) |" in bench.sheet_of_predictors({"Ridge": 7.0}).markdown()
    found = bench.sheet_of_methods({"float32": [[3.0], [1.0]]})
    assert "| 3 | 1 | 3 (over 1.2) |" in found.markdown()


@pytest.mark.parametrize(
    "model, expected",
    [
        (
            GradientBoostingRegressor(n_estimators=5),
            lambda own, X: (own.predict(X) - own.init_.constant_[0, 0]) / 0.1,
        ),
        (HistGradientBoostingRegressor(max_iter=5), lambda own, X: own.predict(X) - own._baseline_prediction),
        (RandomForestClassifier(5), lambda own, X: 5 * own.predict_proba(X)[:, 1]),
    ],
    ids=["boosting", "histograms", "forest"],
)
def test_texts_of_lightgbm_have_the_trees(model, expected):
    lightgbm = pytest.importorskip("lightgbm")
    X, labels = bench.data(200)
    model.fit(X, labels["two"])
    booster = lightgbm.Booster(model_str=bench_trees.lightgbm_text(model))
    np.testing.assert_allclose(booster.predict(X), np.ravel(expected(model, X)), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_rows_of_trees():
    found = bench_trees.rows(["boosting, depth 3"], ["onnxruntime", "scikit-learn"], [1, 600], 1, 60, 2, 0.0)
    rows = list(found)
    assert [row[:2] for row in rows] == [["boosting, depth 3", "1"], ["boosting, depth 3", "600"]]
    assert all(float(cell.replace(",", "")) > 0 for row in rows for cell in row[2:])


def test_a_peer_with_other_predictions_is_an_error():
    with pytest.raises(AssertionError, match="lleaves predicts other values"):
        bench_trees._check(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]), "lleaves")
