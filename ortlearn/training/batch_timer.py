"""How long a batch takes, to cut long epochs into calls between which an interrupt is served."""

from __future__ import annotations

import time

__all__ = ["BatchTimer", "clock"]

#: Seconds that a call may take, about.
SECONDS = 1.0
clock = time.perf_counter


class BatchTimer:
    """The time that a batch of a graph takes, measured in the calls so far.

    It decides how many batches go into a call, never what they compute. Threads that share a graph
    share its timer; what they lose of each other's measurements is measured again.

    Examples
    --------
    >>> from ortlearn.training.batch_timer import BatchTimer
    >>> timer = BatchTimer()
    >>> timer.note(100, seconds=0.5)
    >>> timer.batches(1000), timer.batches(150)
    (200, 150)
    """

    def __init__(self) -> None:
        self._measured = 0.0, 0.0

    @property
    def is_known(self) -> bool:
        """Whether a call was measured."""
        return self._measured[0] > 0

    @property
    def seconds(self) -> float:
        """Seconds that a batch takes; 0 where nothing was measured."""
        batches, seconds = self._measured
        return seconds / batches if batches else 0.0

    def note(self, n_batches: int, seconds: float) -> None:
        """Take note of a call."""
        batches, before = self._measured
        # A call longer than those before says more than they do: the first ones also prepare memory.
        kept = 0.0 if n_batches > batches else 0.5
        self._measured = kept * batches + n_batches, kept * before + seconds

    def batches(self, n_left: int) -> int:
        """Return the number of batches of the next call."""
        n_calls = max(1, -int(-n_left * self.seconds // SECONDS))
        return max(1, -(-n_left // n_calls))
