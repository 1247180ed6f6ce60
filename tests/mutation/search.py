"""For each change, the first test that notices it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.mutation.child import run_items
from tests.mutation.subjects import Subject

__all__ = ["Finding", "Search"]

#: Folders whose tests are about a kind of plugin.
HOME = {
    "loss": "tests/losses/",
    "penalty": "tests/penalties/",
    "learning_rate": "tests/learning_rates/",
    "schedule": "tests/learning_rates/",
    "rule": "tests/differentiation/",
    "model": "tests/models/",
}
#: Seconds for the tests of other folders.
LIMIT = 120.0


@dataclass(frozen=True)
class Finding:
    """Result of a change.

    Attributes
    ----------
    subject : Subject
        Plugin.
    part : str
        Part that was changed; empty where no test reached the plugin.
    test : str
        Test that noticed; empty where none did.
    message : str
        Its error.
    """

    subject: Subject
    part: str
    test: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.subject} {self.part}".rstrip()


class Search:
    """Searches collected tests for those that notice changes.

    Parameters
    ----------
    items : sequence of pytest.Item
        Tests.

    Attributes
    ----------
    broken : dict of str to str
        Errors of tests that fail without any change; they prove nothing.
    """

    def __init__(self, items: Sequence[Any]):
        self.items = [item for item in items if not item.nodeid.startswith("tests/mutation/")]
        self.broken: dict[str, str] = {}

    def run(self, subjects: Sequence[Subject]) -> Iterator[Finding]:
        """Yield what became of each change of some plugins.

        Parameters
        ----------
        subjects : sequence of Subject
            Plugins.

        Yields
        ------
        Finding
            One for each part that gave a result in a test.
        """
        reached = self._reached(subjects)
        for subject in subjects:
            tests = reached[str(subject)]
            parts = sorted({part for _, _, found in tests for part in found})
            if not parts:
                yield Finding(subject, "", "")
            for part in parts:
                chosen = [item for _, item, found in tests if part in found]
                more = [*(self._near(subject) if subject.kind == "rule" else ()), *self._elsewhere(subject)]
                found = self._first(subject, part, chosen) or self._first(subject, part, more, LIMIT)
                yield found or Finding(subject, part, "")

    def _reached(self, subjects: Sequence[Subject]) -> dict[str, list[tuple[float, Any, list[str]]]]:
        """Return the tests that reach each plugin, the fastest first."""
        reached: dict[str, list] = {str(subject): [] for subject in subjects}
        for choose in (self._named, self._near, self._elsewhere):
            missing = [subject for subject in subjects if not reached[str(subject)]]
            items = {item.nodeid: item for subject in missing for item in choose(subject)}
            if not items:
                continue
            outcome = run_items(list(items.values()), missing, limit=3000.0)
            self.broken.update(outcome.failed)
            for nodeid, found in outcome.seen.items():
                for name, parts in found.items() if nodeid not in outcome.failed else ():
                    reached[name].append((outcome.seconds[nodeid], items[nodeid], parts))
        return {name: sorted(found, key=lambda known: known[0]) for name, found in reached.items()}

    def _named(self, subject: Subject) -> list[Any]:
        """Return the tests of its own folder that name a plugin; in a file that does, but for rules."""
        return self._about(subject, True, 1 if subject.kind == "rule" else 2)

    def _near(self, subject: Subject) -> list[Any]:
        """Return the tests of the files of its own folder that name a plugin."""
        return self._about(subject, True, 2)

    def _elsewhere(self, subject: Subject) -> list[Any]:
        """Return the tests of other folders that name a plugin."""
        return self._about(subject, False, 1)

    def _about(self, subject: Subject, at_home: bool, most: int) -> list[Any]:
        """Return tests of its own folder or of others up to a rank, the lowest first."""
        home = HOME[subject.kind]
        ranked = [
            (_rank(item, subject.words), number, item)
            for number, item in enumerate(self.items)
            if item.nodeid.startswith(home) == at_home and item.nodeid not in self.broken
        ]
        return [item for rank, _, item in sorted(ranked, key=lambda known: known[:2]) if rank <= most]

    def _first(self, subject: Subject, part: str, items: list[Any], limit: float = 600.0) -> Finding | None:
        """Return the first of some tests that notices a change."""
        outcome = run_items(items, [subject], part, limit) if items else None
        for test, message in outcome.failed.items() if outcome else ():
            return Finding(subject, part, test, message)
        return None


def _rank(item: Any, words: tuple[str, ...]) -> int:
    """Return 0 where the name of a test has one of the words, 1 where its text has, 2 where its file has."""
    if _pattern(words, re.IGNORECASE).search(item.nodeid.partition("::")[2]):
        return 0
    if _names(getattr(item, "function", None), words):
        return 1
    return 2 if _names(getattr(item, "module", None), words) else 3


@cache
def _names(found: Any, words: tuple[str, ...]) -> bool:
    """Return whether the source of a function or module has one of the words."""
    return bool(found) and _pattern(words).search(_source(found)) is not None


@cache
def _source(found: Any) -> str:
    return inspect.getsource(found)


@cache
def _pattern(words: tuple[str, ...], flags: int = 0) -> re.Pattern:
    return re.compile("|".join(rf"(?<![A-Za-z]){re.escape(word)}(?![A-Za-z])" for word in words), flags)
