"""Averaging strategies that are compared."""

from __future__ import annotations

import math
from collections.abc import Callable

from benchmarks.shards.rounds import Outer, Strategy

__all__ = ["SCALES", "STRATEGIES"]

#: Factors of the rate by the number of shards.
SCALES: dict[str, Callable[[int], float]] = {
    "1": lambda n_shards: 1.0,
    "√k": math.sqrt,
    "k": float,
}
#: Averaging strategies; each is combined with all scales.
STRATEGIES = (
    Strategy("once a pass"),
    Strategy("once a pass, moments reset", keeps_states=False),
    Strategy("4 times a pass", averages=4),
    Strategy("16 times a pass", averages=16),
    Strategy("once a pass, outer momentum 0.5, rate 1", outer=Outer(1.0, 0.5)),
    Strategy("once a pass, outer momentum 0.9, rate 0.7", outer=Outer(0.7, 0.9)),
    Strategy("after each batch for 2 passes, then once a pass", often_until=2),
    Strategy("once a pass, batches of 32 / k", divides_batch=True),
    Strategy("none: one shard alone", alone=True),
)
