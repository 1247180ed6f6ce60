"""Reject trainings that cannot run outside of Python in a training package."""

from __future__ import annotations

import numpy as np

from ..exceptions import PackageError
from ..learning_rates import BaseLearningRate
from ..problem.problem import Problem
from ..training.optimisations.hoisting import needs_hoisting

__all__ = ["check_package", "class_weights"]


def check_package(problem: Problem, rate: BaseLearningRate, is_rate_given: bool) -> None:
    """Raise an error if a training cannot run outside of Python."""
    updates, loss, trainable = problem.updates, problem.loss, problem.trainable
    advice = 'pass learning_rate="Adam" to export_training, or another learning rate that is not a solver'
    if trainable.entry.sklearn_steps is not None:
        names = ", ".join(type(step).__name__ for _, step in trainable.entry.sklearn_steps.steps)
        raise PackageError(
            f"Steps of this model run in scikit-learn, since they cannot be converted to ONNX: {names}. "
            "Apply them to X first, and export a model without them."
        )
    if loss is not None and loss.in_python:
        raise PackageError(
            f"{type(loss).__name__} is computed in Python. Write it as a loss plugin with ONNX operators, or "
            "choose a built-in loss."
        )
    if rate.full_batch:
        raise PackageError(f"{type(rate).__name__} is a solver, which runs in Python: {advice}.")
    if updates.in_units and not is_rate_given:
        raise PackageError(f"The automatic learning rate standardises features in Python: {advice}.")
    if rate.start() is not None:
        raise PackageError(
            f"The schedule of {rate!r} depends on the losses, and a package stores a fixed rate for each "
            'epoch: choose another schedule, such as learning_rate="cosine".'
        )
    scores = trainable.scores
    if scores is not None and scores.target_transformers:
        raise PackageError(
            "The transformer of the labels runs in scikit-learn: transform y first, and export a model "
            "without it."
        )
    if needs_hoisting(problem.task(False)):
        raise PackageError(
            "This model reads text, which is not supported in a training loop: encode it first, and export a "
            "model of the encoded columns."
        )


def class_weights(problem: Problem) -> list[float] | None:
    """Return the weight of each class in the order of the classes; None without class weights."""
    tables, classes = problem.targets.class_weights, problem.targets.classes
    if tables is None:
        return None
    if len(tables) != 1 or isinstance(classes, list) or classes is None or problem.trainable.scores is None:
        raise PackageError(
            "Class weights for y with several columns or dimensions are applied in Python: set "
            "class_weight=None and fit again, or export with weighted=True and pass sample weights."
        )
    return [float(tables[0].get(name, 1.0)) for name in np.asarray(classes).tolist()]
