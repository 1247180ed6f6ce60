"""Parameters of an estimator -> what the training loop is told; what makes no sense is an error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.utils import get_tags

from ..exceptions import PluginError
from ..learning_rates import BaseLearningRate
from ..training import LoopSettings
from ..training.averaging import Averaged
from .class_weights import check_goes_by_batches

__all__ = ["Updates", "check_epoch_by_epoch", "check_stream", "loop_settings"]

#: What counts as better where nothing is said, as in MLPClassifier.
TOL = 1e-4


def loop_settings(
    owner: Any, max_iter: int, first_epoch: int, past_losses: Sequence[float], stream: bool = False
) -> LoopSettings:
    """Return how long and in which order to train.

    Parameters
    ----------
    owner : BaseOrtGradientEstimator
        Whose parameters count.
    max_iter : int
        Epochs.
    first_epoch : int
        Number of the first one, from 0.
    past_losses : sequence of float
        Mean losses of the epochs before.
    stream : bool, default=False
        Whether this is ``partial_fit``, which never stops by itself.

    Returns
    -------
    LoopSettings
        Settings.

    Raises
    ------
    ValueError
        If ``early_stopping`` would never validate.
    """
    every = owner.validation_every
    if isinstance(every, float):
        every = 1 if owner.early_stopping else max(1, round(every * max_iter))
    elif owner.early_stopping and every > max_iter:
        raise ValueError(
            f"early_stopping needs a validation, and validation_every={every} epochs is more than "
            f"max_iter={max_iter}: lower validation_every."
        )
    return LoopSettings(
        max_iter=max_iter,
        batch_size=owner.batch_size,
        shuffle=owner.shuffle,
        first_epoch=first_epoch,
        past_losses=past_losses,
        validation_every=every,
        watch=None if stream else _watched(owner),
        tol=TOL if owner.tol is None else owner.tol,
        n_iter_no_change=owner.n_iter_no_change,
        exc=owner.exc,
        verbose=owner.verbose,
        description=type(owner).__name__,
    )


def _watched(owner: Any) -> str | None:
    if owner.early_stopping:
        return "validation_loss" if owner.scoring == "loss" else "validation_score"
    return None if owner.tol is None else "loss"


def check_stream(owner: Any, learning_rate: BaseLearningRate, classes: Any = None) -> None:
    """Raise an error for parameters that mean nothing where rows come bit by bit.

    Parameters
    ----------
    owner : BaseOrtGradientEstimator
        Whose parameters count.
    learning_rate : BaseLearningRate
        Learning rate.
    classes : array-like, default=None
        Classes that will come.

    Raises
    ------
    ValueError
        If there are such parameters, or classes for a model that is no classifier.
    """
    if classes is not None and get_tags(owner).estimator_type != "classifier":
        raise ValueError("classes is for classifiers: this model has none, call partial_fit(X, y).")
    if owner.early_stopping:
        raise ValueError("partial_fit does not support early_stopping=True: use fit, or losses and score.")
    check_goes_by_batches(owner.class_weight)
    if learning_rate.full_batch:
        raise PluginError(
            f"{type(learning_rate).__name__} trains on all rows at once and keeps no state: use fit, or "
            "another learning rate for partial_fit."
        )


def check_epoch_by_epoch(owner: Any, learning_rate: BaseLearningRate) -> None:
    """Raise an error for parameters of single updates where a solver makes the updates.

    Parameters
    ----------
    owner : BaseOrtGradientEstimator
        Whose parameters count.
    learning_rate : BaseLearningRate
        Learning rate.

    Raises
    ------
    ValueError
        If there are such parameters.
    """
    given = {"average": owner.average, "clip_norm": owner.clip_norm, "clip_value": owner.clip_value}
    wrong = [name for name, value in given.items() if value]
    if learning_rate.full_batch and wrong:
        raise ValueError(
            f"{type(learning_rate).__name__} is a solver with steps of its own: {' and '.join(wrong)} "
            "cannot be used with it."
        )


@dataclass(frozen=True)
class Updates:
    """What is done with gradients and weights besides the rule of the learning rate.

    Attributes
    ----------
    average : int
        Number of the row with which averaging begins, from 1; 0 averages nothing.
    batch_size : int
        Rows of an update.
    clip_norm, clip_value : float or None
        Largest norm of all gradients together, largest value of an entry.
    """

    average: int = 0
    batch_size: int = 1
    clip_norm: float | None = None
    clip_value: float | None = None

    @classmethod
    def of(cls, owner: Any) -> Updates:
        """Return what the parameters of an estimator ask for."""
        return cls(int(owner.average), owner.batch_size, owner.clip_norm, owner.clip_value)

    def first_averaged(self, n_rows: int, seen: int) -> int:
        """Return the number of the first update, from 1, whose weights are averaged.

        Parameters
        ----------
        n_rows : int
            Rows of an epoch.
        seen : int
            Rows that earlier calls have trained on.

        Returns
        -------
        int
            Number among the updates to come: that of the update that sees row number ``average``.
        """
        left = max(self.average - seen, 1)
        epochs, row = divmod(left - 1, n_rows)
        return epochs * math.ceil(n_rows / self.batch_size) + row // self.batch_size + 1

    def rule(self, learning_rate: BaseLearningRate, n_rows: int, seen: int) -> BaseLearningRate:
        """Return the learning rate, with averages where they are asked for."""
        return Averaged(learning_rate, self.first_averaged(n_rows, seen)) if self.average else learning_rate
