"""A fault, and the ends that an attempt at it may have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, auto
from pathlib import Path
from random import Random

__all__ = ["End", "Fault", "Lost", "Outcome"]


class End(Flag):
    """What an attempt found; everything else that it may find is an exception."""

    CLEAN = auto()  # an error of the documented class that names what failed
    RIGHT = auto()  # the result that there is without the fault, bit for bit


class Lost(AssertionError):
    """State that was there before the fault is gone, or is neither the old one nor the new one."""


@dataclass(frozen=True)
class Fault:
    """A fault that is tried many times, each time in a process of its own.

    Attributes
    ----------
    what : str
        Row of the table.
    attempt : callable
        Takes a random generator, the number of the attempt and an empty folder, returns an End. Raises Lost
        where state is lost, and any other exception for an unclear error or a wrong result.
    tries : int
        Attempts of a whole run.
    seconds : float
        Limit of one attempt, after which it hangs.
    repeats : int
        Trainings in an attempt, each of which counts.
    """

    what: str
    attempt: Callable[[Random, int, Path], End]
    tries: int
    seconds: float = 60.0
    repeats: int = 1


@dataclass
class Outcome:
    """How the attempts at a fault ended.

    Attributes
    ----------
    tries, clean, right, lost, hung : int
        Attempts; those with a clean error, with the right result, with lost state, and without an end.
    other : int
        Unclear errors, wrong results, and processes that stopped.
    left_out : int
        Attempts that the limit of the whole run left no time for.
    texts : list of str
        What was found in attempts that failed.
    """

    tries: int = 0
    clean: int = 0
    right: int = 0
    other: int = 0
    lost: int = 0
    hung: int = 0
    left_out: int = 0

    def __post_init__(self):
        self.texts: list[str] = []

    @property
    def failed(self) -> int:
        """Attempts that ended as they should not."""
        return self.other + self.lost + self.hung
