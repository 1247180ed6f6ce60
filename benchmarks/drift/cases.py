"""Models and data of the table."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.drift.data import DRIFTS, SIZES

__all__ = ["CASES", "FORESTS", "Case"]

MODELS: dict[str, Any] = {
    "LogisticRegression": LogisticRegression(max_iter=1000),
    "MLPClassifier": MLPClassifier(random_state=0),
    "GradientBoostingClassifier": GradientBoostingClassifier(random_state=0),
    "HistGradientBoostingClassifier": HistGradientBoostingClassifier(random_state=0),
    "RandomForestClassifier": RandomForestClassifier(random_state=0),
    "ExtraTreesClassifier": ExtraTreesClassifier(random_state=0),
}
#: The rules of warm starts were chosen on samples of the seeds 0 and 1.
SEEDS = (2, 3)


@dataclass(frozen=True)
class Case:
    """A model, and data with a drift.

    Attributes
    ----------
    source, drift : str
        Data, as :func:`~benchmarks.drift.data.drifted` takes them.
    scaling : str
        ``"raw"``, or ``"scaled"`` with a StandardScaler in front of the model.
    model : str
        Name of a model.
    seed : int
        Draws samples.
    """

    source: str
    drift: str
    scaling: str
    model: str
    seed: int

    @property
    def name(self) -> str:
        """All of it, as the table shows it."""
        return f"{self.source} {self.drift} {self.scaling} {self.model} {self.seed}"

    def estimator(self) -> Any:
        """Return the model, not fitted."""
        model = clone(MODELS[self.model])
        return make_pipeline(StandardScaler(), model) if self.scaling == "scaled" else model


def _models(source: str, scaling: str) -> list[str]:
    """Return the models for some data: trees do not depend on scales, and many classes take one too long."""
    trees = ["HistGradientBoostingClassifier"] + ["GradientBoostingClassifier"] * (source == "generated")
    return ["LogisticRegression", "MLPClassifier"] + (trees if scaling == "raw" else [])


CASES = [
    Case(source, drift, scaling, model, seed)
    for source, drift, scaling in product(SIZES, DRIFTS, ("raw", "scaled"))
    for model, seed in product(_models(source, scaling), SEEDS)
]
#: Cases of forests, which have a separate table.
FORESTS = [
    Case(source, drift, "raw", model, seed)
    for source, drift in product(SIZES, DRIFTS)
    for model, seed in product(("RandomForestClassifier", "ExtraTreesClassifier"), SEEDS)
]
