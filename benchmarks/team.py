"""Contenders of a run, and the reasons why others do not take part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from benchmarks.cases import Case
from benchmarks.contenders import CONTENDERS, installed
from benchmarks.processes import Failed, Process

__all__ = ["Plan", "Team"]

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Plan:
    """Extent of a run.

    Attributes
    ----------
    rounds : int
        Number of rounds; each contender runs once per round.
    seconds : float
        Approximate duration of the longer of two fits.
    quick : bool
        Whether small cases are enough.
    """

    rounds: int = 5
    seconds: float = 0.3
    quick: bool = False


@dataclass
class Team:
    """Contenders by name.

    Attributes
    ----------
    names : list of str
        Those that take part.
    data : Path
        Folder of the data sets.
    left_out : dict of str to str
        Those that do not, and why.
    """

    names: list[str]
    data: Path
    left_out: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, names: list[str], data: Path) -> Team:
        """Return the installed contenders."""
        team = cls([name for name in names if installed(name)], data)
        for name in names:
            if name not in team.names:
                team.leave_out(name, f"{' or '.join(CONTENDERS[name].needs)} is not installed")
        return team

    def leave_out(self, name: str, why: str) -> None:
        """Report that a contender does not take part, or failed."""
        self.left_out.setdefault(name, why)
        print(f"left out: {CONTENDERS[name].label}: {why}", flush=True)

    def attempt(self, name: str, where: str, ask: Callable[[], Answer]) -> Answer | None:
        """Return an answer; None if the contender fails, which does not stop the others."""
        try:
            return ask()
        except Failed as error:
            self.leave_out(name, f"{where}: {error}")
            return None

    @contextmanager
    def processes(self, threads: int, names: list[str] | None = None) -> Iterator[dict[str, Process]]:
        """Start a process for each contender; they end with the block."""
        with ExitStack() as stack:
            found = {}
            for name in [name for name in self.names if names is None or name in names]:
                try:
                    found[name] = stack.enter_context(Process(name, threads, self.data))
                except Failed as error:
                    self.names.remove(name)
                    self.leave_out(name, str(error))
            yield found

    def prepare(self, processes: dict[str, Process], case: Case) -> dict[str, Process]:
        """Return the processes of contenders that support a case, after their setup."""
        ready = {}
        for name, process in processes.items():
            answer = self.attempt(name, case.name, partial(process.prepare, case))
            if answer is not None and answer["supported"]:
                ready[name] = process
        return ready
