"""Retrain converted scikit-learn models on new data: the main job of ortlearn.

Each model is fitted by scikit-learn on one half of a data set, converted to ONNX, and trained
again on the other half by both estimators, from its own weights. 30 % of that half is kept
apart for the scores. scikit-learn's own score is that of the same model fitted from scratch on
the same rows.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import onnx
from rich.console import Console
from rich.table import Table
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD, LearningRateSGDNesterov

OUTPUT = Path("demo-output")
ESTIMATORS = {
    "one graph": OrtGradientOptimizer,
    "forward-backward": OrtGradientForwardBackwardOptimizer,
}


@dataclass
class Case:
    """A model, its data, and how it is trained again."""

    name: str
    model: Any
    data: Any
    scale: bool
    learning_rate: Any
    max_iter: int = 100


def cases() -> list[Case]:
    """Return the five models of the demo."""
    network = {"max_iter": 300, "random_state": 0}
    return [
        Case(
            "Ridge, diabetes", Ridge(alpha=0.1), load_diabetes, True, LearningRateSGD(0.003), 20
        ),
        Case(
            "MLPRegressor, diabetes",
            MLPRegressor(hidden_layer_sizes=(20,), learning_rate_init=0.01, **network),
            load_diabetes,
            True,
            LearningRateSGD(0.0002),
            20,
        ),
        Case(
            "LogisticRegression, breast cancer",
            LogisticRegression(C=0.1),
            load_breast_cancer,
            True,
            LearningRateSGD(0.02),
            20,
        ),
        Case(
            "MLPClassifier, digits",
            MLPClassifier(hidden_layer_sizes=(64,), **network),
            load_digits,
            False,
            LearningRateAdam(0.001),
            30,
        ),
        Case(
            "Scaler + MLPClassifier, wine",
            make_pipeline(StandardScaler(), MLPClassifier(hidden_layer_sizes=(20,), **network)),
            load_wine,
            False,
            LearningRateSGDNesterov(0.002),
        ),
    ]


def split(case: Case):
    """Return the half that scikit-learn trains on, and the rows to retrain on and to score."""
    X, y = case.data(return_X_y=True)
    X = X / 16 if case.data is load_digits else X
    stratify = y if is_classifier(case.model) else None
    X_old, X_new, y_old, y_new = train_test_split(
        X, y, test_size=0.5, random_state=0, stratify=stratify
    )
    if case.scale:
        scaler = StandardScaler().fit(X_old)
        X_old, X_new = scaler.transform(X_old), scaler.transform(X_new)
    stratify = y_new if is_classifier(case.model) else None
    parts = train_test_split(X_new, y_new, test_size=0.3, random_state=0, stratify=stratify)
    return (X_old, y_old), (parts[0], parts[2]), (parts[1], parts[3])


def loss_of(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the loss that training minimises, of a scikit-learn model."""
    if is_classifier(model):
        return log_loss(y, model.predict_proba(X), labels=model.classes_)
    return mean_squared_error(y, model.predict(X)) / 2


def fit_timed(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[Any, float]:
    """Fit and return model and seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = time.perf_counter()
        model.fit(X, y)
        return model, time.perf_counter() - start


def run_case(case: Case, table: Table) -> None:
    """Fit, convert, retrain and report one model."""
    old, new, held_out = split(case)
    model, _ = fit_timed(clone(case.model), *old)
    own, own_seconds = fit_timed(clone(case.model), *new)
    slug = case.name.lower().replace(", ", "-").replace(" + ", "-").replace(" ", "-")
    figure, axes = plt.subplots(figsize=(7, 4))
    for label, kind in ESTIMATORS.items():
        trainer = kind(
            model,
            learning_rate=case.learning_rate,
            warm_start=True,
            max_iter=case.max_iter,
            random_state=0,
            verbose=1,
        )
        trained, seconds = fit_timed(trainer, *new)
        table.add_row(
            case.name,
            label,
            f"{loss_of(model, *new):.4g}",
            f"{trained.losses(*new).mean():.4g}",
            f"{model.score(*held_out):.3f}",
            f"{trained.score(*held_out):.3f}",
            f"{own.score(*held_out):.3f}",
            f"{seconds:.2f}",
            f"{own_seconds:.2f}",
        )
        onnx.save(trained.get_trained_onnx(), OUTPUT / f"{slug}-{label.replace(' ', '-')}.onnx")
        style = "-" if kind is OrtGradientOptimizer else ":"  # the curves coincide
        axes.plot(
            range(1, trained.n_iter_ + 1),
            trained.train_losses_,
            style,
            label=label,
            linewidth=2,
        )
    axes.set(title=f"Retraining {case.name}", xlabel="epoch", ylabel="mean training loss")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend()
    figure.savefig(OUTPUT / f"{slug}.png", dpi=120, bbox_inches="tight")
    plt.close(figure)


def main() -> None:
    """Run every case and print the table."""
    OUTPUT.mkdir(exist_ok=True)
    table = Table(title="Converted scikit-learn models, trained again on new rows")
    for name in ("model", "estimator"):
        table.add_column(name, no_wrap=True)
    for name in (
        "loss before",
        "loss after",
        "score before",
        "score after",
        "scikit-learn's score",
        "seconds",
        "scikit-learn's seconds",
    ):
        table.add_column(name, justify="right", min_width=12 if "scikit" in name else None)
    X, y = np.eye(4), np.arange(4.0)  # so that loading libraries counts for no model's seconds
    OrtGradientOptimizer(Ridge(), max_iter=1).fit(X, y)
    for case in cases():
        run_case(case, table)
    console = Console()
    Console(width=max(console.width, 152)).print(table)
    print(
        "Losses are of the rows retrained on, scores of rows kept apart. Few new rows pull a "
        "model to\nthemselves: a score can fall towards scikit-learn's own on the same rows."
    )
    print(f"Trained ONNX models and loss curves are in {OUTPUT}/.")


if __name__ == "__main__":
    main()
