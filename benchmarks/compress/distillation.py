"""Students of forests and of stacks on eight data sets, and the same network trained on the labels alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    make_classification,
    make_friedman1,
    make_friedman2,
    make_friedman3,
    make_gaussian_quantiles,
)
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
)
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import train_test_split

from ortlearn.compress import distill

#: Name, samples, and the student.
SETS: dict[str, tuple[Any, str]] = {
    "breast cancer": (lambda: load_breast_cancer(return_X_y=True), "mlp:32"),
    "digits": (lambda: load_digits(return_X_y=True), "mlp:64"),
    "clusters": (
        lambda: make_classification(3000, 20, n_informative=8, n_classes=4, random_state=0),
        "mlp:64",
    ),
    "spheres": (
        lambda: make_gaussian_quantiles(n_samples=3000, n_features=8, n_classes=3, random_state=0),
        "mlp:64",
    ),
    "friedman1": (lambda: make_friedman1(3000, noise=1.0, random_state=0), "mlp:64"),
    "friedman2": (lambda: make_friedman2(3000, noise=50.0, random_state=0), "mlp:64"),
    "friedman3": (lambda: make_friedman3(3000, noise=0.1, random_state=0), "mlp:64"),
    "diabetes": (lambda: load_diabetes(return_X_y=True), "mlp:16"),
}
#: Splits that no choice was made with. The network on labels alone has the same split and first weights, and
#: the better of two lengths of training.
SPLITS = range(100, 103)
TITLES = (
    "data",
    "teacher",
    "student",
    "worst difference",
    "on labels alone",
    "gain over it",
    "splits with a gain",
    "agreement or R2",
    "alpha",
    "bytes",
    "times faster, 1",
    "1,000",
)


def teachers(classifies: bool) -> dict[str, Any]:
    """Return unfitted teachers by name."""
    forest = RandomForestClassifier if classifies else RandomForestRegressor
    boosting = HistGradientBoostingClassifier if classifies else HistGradientBoostingRegressor
    stack = StackingClassifier if classifies else StackingRegressor
    parts = [("forest", forest(100, random_state=0)), ("boosting", boosting(random_state=0))]
    last = LogisticRegression(max_iter=1000) if classifies else RidgeCV()
    return {"forest": forest(300, random_state=0), "stack": stack(parts, last, cv=3)}


def measured(name: str, kind: str, seed: int) -> dict[str, Any]:
    """Return the record of one data set, teacher and split."""
    load, size = SETS[name]
    X, y = load()
    classifies = y.dtype.kind == "i"
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.3, random_state=seed, stratify=y if classifies else None
    )
    teacher = teachers(classifies)[kind].fit(X_train, y_train)
    options: dict[str, Any] = {"held_out": (X_test, y_test), "random_state": seed}
    found = distill(teacher, size, X_train, y_train, **options)
    # with as many updates, and with as many epochs; nothing of the teacher is learned, so a fast one will do
    options |= {"alpha": 0.0, "cross_fit": 0}
    alone, shorter = (
        distill(found.model, size, X_train, y_train, extra=extra, **options) for extra in (3.0, 0.0)
    )
    scores = found.scores[found.metric]
    fidelity = found.facts.get("agreement", found.facts.get("fidelity r2"))
    return {
        "teacher": scores["old"]["value"],
        "student": scores["new"]["value"],
        "alone": alone.scores[alone.metric]["new"]["value"],
        "shorter": shorter.scores[shorter.metric]["new"]["value"],
        "fidelity": fidelity["value"],
        "alpha": found.facts["alpha"],
        "bytes": found.n_bytes["new"],
        "ratio": found.n_bytes["new"] / max(found.n_bytes["old"], 1),
        **{f"faster {count}": _faster(found.seconds, count) for count in (1, 1000)},
    }


def _faster(seconds: dict[int, dict[str, float]], count: int) -> float:
    """Return how much faster the student is; nan if slow calls left this number of samples untimed."""
    return seconds[count]["old"] / seconds[count]["new"] if count in seconds else np.nan


def rows(kind: str) -> list[tuple[str, ...]]:
    """Return the rows of the table of one kind of teacher."""
    table = []
    for name in SETS:
        table.append(row(name, [measured(name, kind, seed) for seed in SPLITS]))
        print(table[-1], flush=True)
    return table


def row(name: str, found: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return a row: means over splits, the worst difference, and the gain with its standard error."""
    one = {key: float(np.nanmean([record[key] for record in found])) for key in found[0]}
    worst = min(record["student"] - record["teacher"] for record in found)
    alone = max("alone", "shorter", key=lambda key: one[key])
    gains = np.array([record["student"] - record[alone] for record in found])
    error = f" ± {gains.std(ddof=1) / np.sqrt(len(gains)):.4f}" if len(gains) > 1 else ""
    return (
        name,
        *(f"{one[key]:.3f}" for key in ("teacher", "student")),
        f"{worst:+.3f}",
        f"{one[alone]:.3f}",
        f"{gains.mean():+.4f}{error}",
        f"{(gains > 0).sum()} of {len(gains)}",
        *(f"{one[key]:.2f}" for key in ("fidelity", "alpha")),
        f"{one['bytes']:,.0f} ({one['ratio']:.4f})",
        *(f"{one[f'faster {count}']:.1f}" for count in (1, 1000)),
    )
