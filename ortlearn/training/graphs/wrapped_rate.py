"""Learning rates that wrap another one."""

from __future__ import annotations

from typing import Any

from ...learning_rates import BaseLearningRate

__all__ = ["WrappedRate"]


class WrappedRate(BaseLearningRate):
    """Base class of learning rates that change the update of another one, with the same schedule."""

    def __init__(self, learning_rate: BaseLearningRate) -> None:
        self.learning_rate = learning_rate

    @property
    def elementwise(self) -> bool:  # type: ignore[override]
        """Whether the update is elementwise."""
        return self.learning_rate.elementwise

    def rate(self, epoch: int, memory: Any = None) -> float:
        """Return the learning rate of an epoch."""
        return self.learning_rate.rate(epoch, memory)

    def start(self) -> Any:
        """Return the initial state of the schedule."""
        return self.learning_rate.start()

    def remember(self, memory: Any, loss: float) -> Any:
        """Return the state of the schedule after an epoch."""
        return self.learning_rate.remember(memory, loss)
