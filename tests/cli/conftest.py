"""Fixtures: data and model files, and a function that runs a command in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.cli import main

FEATURES = ["alcohol", "hue", "proline"]


def wine_frame():
    frame = load_wine(as_frame=True).frame[[*FEATURES, "target"]]
    frame["kind"] = frame.pop("target").map({0: "barolo", 1: "grignolino", 2: "barbera"})
    frame["region"] = np.where(frame["alcohol"] > 13, "north", "south")
    frame["weight"] = np.linspace(1, 2, len(frame))
    return frame.sample(frac=1, random_state=0, ignore_index=True)


def house_frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size m2": rng.normal(90, 20, 120), "city": rng.choice(["Bonn", "Oslo"], 120)})
    frame["price"] = 3 * frame["size m2"] + 50 * (frame["city"] == "Oslo") + rng.normal(0, 5, 120)
    return frame


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Return a folder with data and models."""
    folder = tmp_path_factory.mktemp("cli")
    wine, houses = wine_frame(), house_frame()
    wine.to_csv(folder / "wine.csv", index=False)
    houses.to_parquet(folder / "houses.parquet")
    houses.to_csv(folder / "houses.csv.gz", index=False)
    some = wine[:40]
    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=0.1)).fit(some[FEATURES], some["kind"])
    skops.io.dump(classifier, folder / "wine.skops")
    encoder = make_column_transformer((StandardScaler(), ["size m2"]), (OneHotEncoder(), ["city"]))
    regressor = make_pipeline(encoder, Ridge(100)).fit(houses[["size m2", "city"]], houses["price"])
    skops.io.dump(regressor, folder / "houses.skops")
    for name, model, X, y in (
        ("wine", classifier, wine[FEATURES], wine["kind"]),
        ("houses", regressor, houses[["size m2", "city"]], houses["price"]),
    ):
        trainer = OrtGradientOptimizer(model, warm_start=True, max_iter=1, learning_rate=1e-6, random_state=0)
        onnx = trainer.fit(X, y).get_trained_onnx()
        (folder / f"{name}.onnx").write_bytes(onnx.SerializeToString())
    return folder


@dataclass(frozen=True)
class Done:
    """Output and exit status of a command."""

    status: int
    out: str
    err: str

    @property
    def result(self):
        assert (self.status, self.err) == (0, "")
        return json.loads(self.out)

    @property
    def error(self):
        assert (self.status, self.out) == (2, "")
        assert self.err.count("\n") == 1 and self.err.endswith("\n")
        return self.err.strip()


@pytest.fixture
def run(files, capsys, monkeypatch):
    """Return a function that runs a command in the folder of the files."""
    monkeypatch.chdir(files)

    def command(*arguments):
        status = main([str(argument) for argument in arguments])
        return Done(status, *capsys.readouterr())

    return command
