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
    """What became of one change.

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
    """

    def __init__(self, items: Sequence[Any]):
        self.items = [item for item in items if not item.nodeid.startswith("tests/mutation/")]

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

        Raises
        ------
        RuntimeError
            If a test fails without a change.
        """
        reached = self._reached(subjects)
        for subject in subjects:
            tests = reached[str(subject)]
            parts = sorted({part for _, _, found in tests for part in found})
            if not parts:
                yield self._elsewhere(subject, "")
            for part in parts:
                chosen = [item for _, item, found in tests if part in found]
                outcome = run_items(chosen, [subject], part)
                if outcome.failed:
                    yield Finding(subject, part, outcome.failed, outcome.message)
                else:
                    yield self._elsewhere(subject, part)

    def _reached(self, subjects: Sequence[Subject]) -> dict[str, list[tuple[float, Any, list[str]]]]:
        """Return the tests of its own folder that reach each plugin, the fastest first."""
        reached: dict[str, list] = {str(subject): [] for subject in subjects}
        for most in (1, 2):  # tests that name the plugin, then all tests of files that do
            missing = [subject for subject in subjects if not reached[str(subject)]]
            items = {
                item.nodeid: item
                for subject in missing
                for item in self.items
                if item.nodeid.startswith(HOME[subject.kind]) and _rank(item, subject.words) <= most
            }
            if not items:
                continue
            outcome = run_items(list(items.values()), missing, limit=3000.0)
            if outcome.failed:
                raise RuntimeError(f"{outcome.failed} fails without any change: {outcome.message}")
            for nodeid, found in outcome.seen.items():
                for name, parts in found.items():
                    reached[name].append((outcome.seconds[nodeid], items[nodeid], parts))
        return {name: sorted(found, key=lambda known: known[0]) for name, found in reached.items()}

    def _elsewhere(self, subject: Subject, part: str) -> Finding:
        """Return what tests of other folders that name a plugin say of a change."""
        ranked = [(_rank(item, subject.words), i, item) for i, item in enumerate(self.items)]
        items = [item for rank, _, item in sorted(ranked, key=lambda known: known[:2]) if rank <= 1]
        items = [item for item in items if not item.nodeid.startswith(HOME[subject.kind])]
        if not items or not part:
            return Finding(subject, part, "")
        outcome = run_items(items, [subject], part, LIMIT)
        return Finding(subject, part, outcome.failed, outcome.message)


def _rank(item: Any, words: tuple[str, ...]) -> int:
    """Return 0 where the name of a test has one of the words, 1 where its text has, 2 where its file has."""
    pattern = _pattern(words)
    if pattern.search(item.nodeid.partition("::")[2]):
        return 0
    if pattern.search(_source(getattr(item, "function", None))):
        return 1
    return 2 if pattern.search(_source(getattr(item, "module", None))) else 3


@cache
def _pattern(words: tuple[str, ...]) -> re.Pattern:
    return re.compile("|".join(rf"(?<![A-Za-z]){re.escape(word)}(?![A-Za-z])" for word in words))


@cache
def _source(found: Any) -> str:
    return inspect.getsource(found) if found is not None else ""
