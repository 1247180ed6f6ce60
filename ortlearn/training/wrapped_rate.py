"""A learning rate around another one, whose schedule it has."""

from __future__ import annotations

from typing import Any

from ..learning_rates import BaseLearningRate

__all__ = ["WrappedRate"]


class WrappedRate(BaseLearningRate):
    """Base class of learning rates that change the update of another one.

    Parameters
    ----------
    learning_rate : BaseLearningRate
        Schedule and update.
    """

    def __init__(self, learning_rate):
        self.learning_rate = learning_rate

    @property
    def elementwise(self) -> bool:  # type: ignore[override]
        """Whether each element of a weight is updated by itself."""
        return self.learning_rate.elementwise

    def rate(self, epoch: int, memory: Any = None) -> float:
        """Return the learning rate of an epoch."""
        return self.learning_rate.rate(epoch, memory)

    def start(self) -> Any:
        """Return what is remembered before the first epoch."""
        return self.learning_rate.start()

    def remember(self, memory: Any, loss: float) -> Any:
        """Return what is remembered once an epoch has ended."""
        return self.learning_rate.remember(memory, loss)
