"""Detection and report of non-finite losses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..exceptions import ConvergenceError, warn_user
from ..runtime.buffers import CarriedBuffers
from .settings import LoopSettings
from .steps.base_step import BaseStep

__all__ = ["Diverged", "check_last", "report"]


class Diverged(Exception):
    """A loss, or a weight after the last batch, is non-finite; ``where`` is added to the message."""

    def __init__(self, value: float, where: str = ""):
        super().__init__(value)
        self.value, self.where = value, where


def check_last(step: BaseStep, buffers: CarriedBuffers, samples: np.ndarray) -> None:
    """Check the weights after the last batch, with the loss of another run on its samples."""
    value = step.run(samples, buffers)  # its update is discarded
    weights = buffers.split()[0].values()
    if not np.isfinite(value) or not all(np.isfinite(weight).all() for weight in weights):
        buffers.step_back(1)
        raise Diverged(value)


def report(
    diverged: Diverged, recent: Sequence[float], rate: float, settings: LoopSettings, n_epochs: int
) -> None:
    """Raise an error or warn that a loss is non-finite, depending on the settings."""
    epoch = min(n_epochs + 1, settings.max_iter)
    message = (
        f"The training diverged (loss {diverged.value}{diverged.where}) in epoch {epoch}, at "
        f"learning rate {rate:.6g}; last losses: {', '.join(f'{loss:.6g}' for loss in recent)}. "
        "Lower the learning rate, scale the features or the labels"
    )
    if settings.exc:
        raise ConvergenceError(
            message + ", or keep the last finite weights with exc=False." + settings.advice(),
            losses=recent,
            rate=rate,
        ) from None
    warn_user(message + "; the last finite weights are kept." + settings.advice(), ConvergenceWarning)
