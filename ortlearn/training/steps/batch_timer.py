"""Time per batch, to split long epochs into calls between which interrupts are handled."""

from __future__ import annotations

import time

__all__ = ["BatchTimer", "clock"]

#: Approximate maximum seconds of a call.
SECONDS = 1.0


def clock() -> float:
    """Return the time in seconds."""
    return time.perf_counter()


class BatchTimer:
    """The time per batch of a graph, measured in the calls so far.

    It determines the number of batches per call, but not the results. Threads that share a graph share its
    timer; measurements lost by simultaneous calls do no harm.
    """

    def __init__(self) -> None:
        self._measured = 0.0, 0.0

    @property
    def is_known(self) -> bool:
        """Whether a call has been measured."""
        return self._measured[0] > 0

    @property
    def seconds(self) -> float:
        """Seconds per batch; 0 before the first measurement."""
        batches, seconds = self._measured
        return seconds / batches if batches else 0.0

    def note(self, n_batches: int, seconds: float) -> None:
        """Record the time of a call."""
        batches, before = self._measured
        # Longer calls replace earlier ones, which include the allocation of memory.
        kept = 0.0 if n_batches > batches else 0.5
        self._measured = kept * batches + n_batches, kept * before + seconds

    def batches(self, n_left: int) -> int:
        """Return the number of batches of the next call."""
        n_calls = max(1, -int(-n_left * self.seconds // SECONDS))
        return max(1, -(-n_left // n_calls))
