"""Saved estimators as models of the command line."""

import pytest
from sklearn.linear_model import LogisticRegression

from ortlearn import OrtGradientOptimizer, saving
from ortlearn.cli import main
from tests.cli.conftest import FEATURES, wine_frame


@pytest.mark.parametrize("name", ["trained.zip", "folder"])
@pytest.mark.parametrize("source", ["wine.onnx", "wine.skops"])
def test_evaluate_saved_estimator(name, source, files, tmp_path, capsys):
    frame = wine_frame()
    model = files / source
    if source == "wine.skops":
        model = LogisticRegression(max_iter=3000).fit(frame[FEATURES], frame["kind"])
    options = {"warm_start": True, "max_iter": 1, "learning_rate": 1e-6, "keep_better": False}
    samples = frame[FEATURES] if source == "wine.skops" else frame[FEATURES].to_numpy()
    trainer = OrtGradientOptimizer(model, **options).fit(samples, frame["kind"])
    saving.save(trainer, tmp_path / name)
    wine = [str(files / "wine.csv"), "--label", "kind", "--drop", "region", "--drop", "weight", "--json"]
    assert main(["evaluate", str(tmp_path / name), *wine]) == 0
    assert f'"accuracy": {trainer.score(samples, frame["kind"])}'[:20] in capsys.readouterr().out
    assert main(["explain", str(tmp_path / name), "--json"]) == 0


@pytest.mark.slow
def test_train_writes_saved_estimator(files, tmp_path, capsys):
    command = ["train", str(files / "wine.skops"), str(files / "wine.csv"), "--label", "kind", "--json"]
    out = tmp_path / "trained.zip"
    assert main([*command, "--drop", "region", "--drop", "weight", "--max-iter", "3", "--out", str(out)]) == 0
    trained = saving.load(out)
    assert trained.score(wine_frame()[FEATURES], wine_frame()["kind"]) > 0.5
    capsys.readouterr()
    again = ["train", str(out), *command[2:], "--drop", "region", "--drop", "weight"]
    assert main([*again, "--out", str(tmp_path / "more.onnx")]) == 0


def test_damaged_saved_estimator_is_an_error(tmp_path, capsys):
    (tmp_path / "trained.zip").write_bytes(b"nothing")
    assert main(["explain", str(tmp_path / "trained.zip")]) == 2
    assert "is not a saved estimator, or is damaged" in capsys.readouterr().err
