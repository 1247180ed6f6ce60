"""Students of forests and of stacks on eight data sets, and the same network trained on the labels alone."""

from __future__ import annotations

from typing import Any

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
TITLES = (
    "data",
    "teacher",
    "student",
    "on labels alone",
    "agreement or R2",
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


def measured(name: str, kind: str) -> dict[str, Any]:
    """Return the record of one data set and teacher."""
    load, size = SETS[name]
    X, y = load()
    classifies = y.dtype.kind == "i"
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.3, random_state=0, stratify=y if classifies else None
    )
    teacher = teachers(classifies)[kind].fit(X_train, y_train)
    options: dict[str, Any] = {"held_out": (X_test, y_test)}
    found = distill(teacher, size, X_train, y_train, **options)
    alone = distill(teacher, size, X_train, y_train, alpha=0.0, extra=0.0, **options)
    scores = found.scores[found.metric]
    fidelity = found.facts.get("agreement", found.facts.get("fidelity r2"))
    return {
        "data": name,
        "teacher": scores["old"]["value"],
        "student": scores["new"]["value"],
        "interval": scores["difference"]["interval"],
        "alone": alone.scores[alone.metric]["new"]["value"],
        "fidelity": fidelity["value"],
        "alpha": found.facts["alpha"],
        "bytes": found.n_bytes,
        "faster": {count: part["old"] / part["new"] for count, part in found.seconds.items()},
    }


def rows(kind: str) -> list[tuple[str, ...]]:
    """Return the rows of the table of one kind of teacher."""
    table = []
    for name in SETS:
        one = measured(name, kind)
        size, ratio = one["bytes"]["new"], one["bytes"]["new"] / max(one["bytes"]["old"], 1)
        low, high = one["interval"]
        table.append(
            (
                name,
                f"{one['teacher']:.3f}",
                f"{one['student']:.3f} ({low:+.3f} to {high:+.3f})",
                f"{one['alone']:.3f}",
                f"{one['fidelity']:.3f}",
                f"{size:,} ({ratio:.4f})",
                *(f"{one['faster'][count]:.1f}" for count in (1, 1000)),
            )
        )
        print(table[-1], flush=True)
    return table
