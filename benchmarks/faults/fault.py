"""Faults and the outcomes of attempts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, auto
from pathlib import Path
from random import Random

__all__ = ["End", "Fault", "Lost", "Outcome"]


class End(Flag):
    """Valid ends of an attempt; any other end is an exception."""

    CLEAN = auto()  # an error of the documented class that names the cause
    RIGHT = auto()  # the result without the fault, bit for bit


class Lost(AssertionError):
    """State from before the fault is lost, or is neither the old nor the new state."""


@dataclass(frozen=True)
class Fault:
    """A fault that is injected many times, each time in a new process.

    Attributes
    ----------
    title : str
        Title in the table.
    attempt : callable
        Function of a random generator, the number of the attempt and an empty folder, that returns an End.
        It raises Lost if state is lost, and any other exception for an unclear error or a wrong result.
    tries : int
        Attempts per run.
    seconds : float
        Time limit of an attempt, after which it counts as hanging.
    repeats : int
        Trainings per attempt, each counted.
    """

    title: str
    attempt: Callable[[Random, int, Path], End]
    tries: int
    seconds: float = 60.0
    repeats: int = 1


@dataclass
class Outcome:
    """Counts of the ends of attempts.

    Attributes
    ----------
    tries, clean, right, lost, hung : int
        Attempts: all, and those with a clean error, the right result, lost state, or no end.
    other : int
        Unclear errors, wrong results, and processes that stopped.
    left_out : int
        Attempts omitted because of the time limit of the run.
    texts : list of str
        Errors of failed attempts.
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
        """Number of failed attempts."""
        return self.other + self.lost + self.hung
