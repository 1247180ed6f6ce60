"""The runner sees every kind of end; a sample of the faults leaves nothing lost, and the page has all."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults import catalogue, page
from tests.faults.__main__ import main
from tests.faults.fault import End, Fault, Lost, Outcome
from tests.faults.processes import forked, measure

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
ROOT = Path(__file__).parents[2]


def lost(draw, number, folder):
    raise Lost("gone")


def wrong(draw, number, folder):
    assert folder.is_dir() and number == 1, "wrong"
    return End.RIGHT | End.CLEAN


def stopped(draw, number, folder):
    os.kill(os.getpid(), signal.SIGKILL)


def hanging(draw, number, folder):
    forked(signal.pause)  # a child that has the pipe, and would outlive the attempt
    signal.pause()


@pytest.mark.parametrize(
    "attempt, seconds, expected",
    [
        (lambda draw, number, folder: End.RIGHT, 60, Outcome(2, right=2)),
        (lambda draw, number, folder: End.CLEAN, 60, Outcome(2, clean=2)),
        (lambda draw, number, folder: End(0), 60, Outcome(2)),
        (wrong, 60, Outcome(2, clean=1, right=1, other=1)),
        (lost, 60, Outcome(2, lost=2)),
        (stopped, 60, Outcome(2, other=2)),
        (hanging, 0.5, Outcome(2, hung=2)),
    ],
)
def test_every_end_is_seen(attempt, seconds, expected):
    found = measure(Fault("it", attempt, 2, seconds), 2, time.monotonic() + 300)
    assert found == expected
    assert len(found.texts) == found.failed


def test_attempts_that_the_limit_ends_or_leaves_no_time_for_are_left_out():
    found = measure(Fault("it", hanging, 2, repeats=5), 2, time.monotonic() + 0.5)
    assert found == Outcome(left_out=10) and not found.failed


def test_a_page_with_all_attempts_or_none(tmp_path, monkeypatch, capsys):
    path = tmp_path / "page.md"
    path.write_text("<!-- faults: begin -->\n<!-- faults: end -->\n")
    fault = Fault("it", lambda draw, number, folder: End.RIGHT, 2)
    monkeypatch.setattr(catalogue, "NAMES", ("it",))
    monkeypatch.setattr(catalogue, "load", lambda name: fault)
    assert main(["--write", str(path), "--limit", "0"]) == 1
    assert "2 attempts were left out" in capsys.readouterr().out and "it" not in path.read_text()
    assert main(["--write", str(path)]) == 0 and "| it | 2 | 0 | 2 |" in path.read_text()


def test_the_table_replaces_the_last_one(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("before\n<!-- faults: begin -->\nold\n<!-- faults: end -->\nafter\n")
    page.write(path, {"kills": Outcome(1000, clean=2, right=3)}, 12.3)
    text = path.read_text()
    assert "| kills | 1,000 | 2 | 3 | 0 | 0 | 0 |" in text and "Measured in 12 seconds" in text
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    path.write_text("no place")
    with pytest.raises(ValueError, match="has no place for the table"):
        page.write(path, {}, 0)


@pytest.mark.needs_callbacks
def test_the_page_has_every_fault_and_nothing_was_lost():
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    table = text.partition("<!-- faults: begin -->")[2].partition("<!-- faults: end -->")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in re.findall(r"^\|.*\|$", table, re.M)]
    found = {what: [int(number.replace(",", "")) for number in numbers] for what, *numbers in rows[2:]}
    faults = {fault.what: fault for fault in map(catalogue.load, catalogue.NAMES)}
    assert list(found) == list(faults)
    for what, (tries, clean, right, other, lost, hung) in found.items():
        assert tries == faults[what].tries * faults[what].repeats
        assert right == tries and clean <= tries and other == lost == hung == 0


@pytest.mark.slow
@pytest.mark.needs_callbacks
def test_a_sample_of_the_faults():
    command = [sys.executable, "-m", "tests.faults", "--share", "0.05", "--limit", "500"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=560)
    assert result.returncode == 0, result.stdout + result.stderr
