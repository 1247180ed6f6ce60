"""What a training leaves on an estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from onnx import ModelProto
from sklearn.utils import get_tags

from ..graphs import initializer_arrays
from ..training import Device, TrainingResult
from .inference import Inference
from .problem import Problem

__all__ = ["ResultsMixin", "draw_seed"]

#: Attribute of each measured value of the epochs.
CURVES = {
    "loss": "train_losses_",
    "validation_loss": "validation_losses_",
    "validation_score": "validation_scores_",
}


def draw_seed(random_state: np.random.RandomState) -> int:
    """Return the seed of the orders of a training's samples.

    Parameters
    ----------
    random_state : numpy.random.RandomState
        Draws the seed.

    Returns
    -------
    int
        From 0 to 2**63 - 1.
    """
    return int(random_state.randint(np.iinfo(np.int64).max, dtype=np.int64))


class ResultsMixin:
    """The attributes of a trained estimator."""

    n_jobs: int | None
    history_: list[dict[str, Any]]
    train_losses_: list[float]
    validation_losses_: list[float]
    validation_scores_: list[float]
    n_iter_: int
    best_epoch_: int
    _seed: int
    _epoch: int
    _rows_seen: int
    _problem: Problem
    _trained: ModelProto
    _raw_weights: dict[str, np.ndarray] | None
    _states: dict[tuple[str, str], np.ndarray]

    def _device(self) -> Device:
        raise NotImplementedError

    def _begin_anew(self, seed: int) -> None:
        """Forget what earlier trainings have left to go on from, and take the seed of the new orders."""
        self._seed = seed
        self._epoch, self._rows_seen, self._states, self.history_ = 0, 0, {}, []

    def _take_over(self, problem: Problem, result: TrainingResult, n_rows: int) -> None:
        """Set the attributes that a training on so many rows leaves."""
        self._note(result.history)
        self._epoch += result.n_iter
        self._rows_seen += result.n_iter * n_rows
        self._states = result.states
        self._raw_weights = None if result.raw_weights is result.weights else result.raw_weights
        if result.best_epoch is not None:
            self.best_epoch_ = result.best_epoch
        self.__dict__.update(self._fitted_weights(problem, result.weights))

    def _note(self, history: list[dict]) -> None:
        """Append the records of epochs to those before."""
        self.history_ = [*self.history_[: self._epoch], *history]
        self.n_iter_ = len(self.history_)
        for name in ("loss", "validation_loss", "validation_score"):
            values = [record[name] for record in self.history_ if record[name] is not None]
            setattr(self, CURVES[name], values)

    def _forget(self, *names: str) -> None:
        for name in names:
            self.__dict__.pop(name, None)

    def _fitted_kind(self, problem: Problem) -> dict[str, Any]:
        """Return the attributes of a trained estimator that do not depend on its weights."""
        kind = get_tags(self).estimator_type
        found = {
            "_problem": replace(problem, source=None),
            "_kind": kind,
            "weights_to_train_": problem.trainable.origins(),
            "loss_": problem.loss,
            "penalty_": _as_in_trained_coef(problem),
            "learning_rate_": problem.learning_rate,
        }
        if problem.classes is not None and kind != "outlier_detector":
            found["classes_"] = problem.classes
        return found

    def _fitted_weights(self, problem: Problem, weights: dict[str, np.ndarray]) -> dict[str, Any]:
        """Return the attributes of a trained estimator with some weights."""
        trainable = problem.trainable
        trained = trainable.with_stable_weights(weights)
        return {
            "_trained": trained,
            "_inference": Inference(problem, trained, self._device(), self.n_jobs),
            "onnx_": trainable.with_weights(weights),
            "trained_coef_": trainable.coefficients(weights),
        }

    def _last_weights(self, names: list[str] | None = None) -> dict[str, np.ndarray]:
        """Return the weights that the last training would have updated next."""
        names = self._problem.trainable.trained if names is None else names
        last = initializer_arrays(self._trained, names)
        if self._raw_weights is not None:
            last |= {name: array for name, array in self._raw_weights.items() if name in names}
        return {name: array.copy() for name, array in last.items()}


def _as_in_trained_coef(problem: Problem) -> Any:
    """Return the penalty with its weights under the names of ``trained_coef_``."""
    names = problem.trainable.original_names

    def rename(weights):  # a key of several penalties is a pattern, and stands for those of its penalty
        return list(names.values()) if isinstance(weights, str) else [names[name] for name in weights]

    return None if problem.penalty is None else problem.penalty.for_weights(rename)
