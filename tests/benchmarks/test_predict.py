"""The benchmark of predictions."""

import pytest

from benchmarks import bench_predict as bench


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
