"""Settings and observers of the training loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from .state import TrainingState, Weights

__all__ = ["LoopSettings", "Measured", "Observer", "Validate"]


@dataclass(frozen=True)
class LoopSettings:
    """Settings of the training loop."""

    max_iter: int  # number of the last epoch, from 1
    batch_size: int
    shuffle: bool = True  # whether to shuffle in every epoch
    validation_every: int = 1  # number of epochs between two validations
    # "loss", "validation_loss" or "validation_score" (keeps the best weights); None never stops early.
    watch: str | None = None
    tol: float = 0.0  # minimum improvement of the criterion
    n_iter_no_change: int = 10  # epochs (or validations) without improvement before the training stops
    exc: bool = True  # whether a non-finite loss is an error or a warning
    verbose: int = 0  # whether to show a progress bar
    description: str = "training"
    # Returns a sentence, after a space, for the message about a non-finite loss, or an empty string.
    advice: Callable[[], str] = str
    # Estimator whose calls of ``partial_fit`` share a line of progress, and stop early together.
    stream: Any = None
    columns: Callable[[], dict[str, Any]] = dict  # returns additional entries of the record of an epoch
    keeps_weights: bool = True  # whether the best ones fit the model later; False if trees are added to it
    keeps_history: bool = True  # whether it is used; otherwise solvers may omit losses
    deadline: float | None = None  # time of ``time.monotonic`` after which the training ends
    chosen_rate: bool = False  # whether "auto" chose it, so that the user knows neither solver nor iterations

    @property
    def keeps_best(self) -> bool:
        """Whether the weights of the best validation are kept."""
        return self.keeps_weights and self.watch is not None and self.watch.startswith("validation")


class Measured(NamedTuple):
    """Mean loss and score of a validation."""

    loss: float
    score: float | None = None


#: Measures weights.
Validate = Callable[[Weights], Measured]


class Observer(Protocol):
    """Object that is called for every epoch; the state of the training is read when it is called."""

    def begin(self, epoch: int) -> None:
        """Called at the beginning of an epoch, with its number from 0."""

    def end(self, record: dict[str, Any], state: Callable[[], TrainingState]) -> bool | None:
        """Called at the end of an epoch with its record; return whether to stop the training."""

    def pause(self, state: Callable[[], TrainingState]) -> None:
        """Called within an epoch, at most a few times per second."""
