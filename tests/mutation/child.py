"""Run collected tests in a forked process, with subjects wrapped, and perhaps one of their parts changed."""

from __future__ import annotations

import json
import os
import signal
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.mutation.subjects import Subject

__all__ = ["Outcome", "run_items"]


@dataclass
class Outcome:
    """Results of some tests.

    Attributes
    ----------
    failed : dict of str to str
        Errors of the tests that failed.
    seconds : dict of str to float
        Duration of each test that ran.
    seen : dict of str to dict of str to list of str
        Parts of the subjects that each test reached.
    """

    failed: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    seen: dict[str, dict[str, list[str]]] = field(default_factory=dict)


class _Recorder:
    """A plugin of pytest that watches one run."""

    def __init__(self, subjects: Sequence[Subject], outcome: Outcome):
        self.subjects = subjects
        self.outcome = outcome

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        for subject in self.subjects:
            subject.seen.clear()

    def pytest_runtest_logreport(self, report: Any) -> None:
        seconds = self.outcome.seconds
        seconds[report.nodeid] = seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            lines = [line[1:] for line in str(report.longrepr).splitlines() if line.startswith("E ")]
            self.outcome.failed[report.nodeid] = " ".join(" ".join(lines).split())

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        seen = {str(subject): sorted(subject.seen) for subject in self.subjects if subject.seen}
        if seen:
            self.outcome.seen[nodeid] = seen


def run_items(
    items: Sequence[Any], subjects: Sequence[Subject], changed: str = "", limit: float = 300.0
) -> Outcome:
    """Run tests in their order; with a change, until one fails.

    Parameters
    ----------
    items : sequence of pytest.Item
        Tests.
    subjects : sequence of Subject
        Plugins to watch.
    changed : str, default=""
        Part of the first of them that is changed; none by default.
    limit : float, default=300.0
        Seconds until the process is ended, which counts as a failure.

    Returns
    -------
    Outcome
        What happened.
    """
    receiving, sending = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the threads of BLAS, which do nothing
        pid = os.fork()
    if pid == 0:
        os.close(receiving)
        try:
            signal.setitimer(signal.ITIMER_REAL, limit)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            _silence()
            outcome = _run(items, subjects, changed)
            with os.fdopen(sending, "w") as file:
                json.dump(vars(outcome), file)
        finally:
            os._exit(0)
    os.close(sending)
    with os.fdopen(receiving) as file:
        text = file.read()
    os.waitpid(pid, 0)
    return Outcome(**json.loads(text)) if text else Outcome(failed={"the process": "it ended"})


def _silence() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _run(items: Sequence[Any], subjects: Sequence[Subject], changed: str) -> Outcome:
    outcome = Outcome()
    for subject in subjects:
        subject.install()
    if changed:
        subjects[0].changed = changed
    recorder = _Recorder(subjects, outcome)
    items[0].config.pluginmanager.register(recorder)
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if changed and outcome.failed:
            break
    return outcome
