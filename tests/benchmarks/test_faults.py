"""The runner detects all ends of attempts; no state is lost in a sample; the page has all faults."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.faults import catalogue, page
from benchmarks.faults.__main__ import main
from benchmarks.faults.fault import End, Fault, Lost, Outcome
from benchmarks.faults.processes import forked, measure

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
    forked(signal.pause)  # a child that would outlive the attempt
    signal.pause()


@pytest.mark.slow
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
def test_every_end_is_detected(attempt, seconds, expected):
    found = measure(Fault("it", attempt, 2, seconds), 2, time.monotonic() + 300)
    assert found == expected
    assert len(found.texts) == found.failed


def test_attempts_after_the_time_limit_are_omitted():
    found = measure(Fault("it", hanging, 2, repeats=5), 2, time.monotonic() + 0.5)
    assert found == Outcome(left_out=10) and not found.failed


def test_page_is_written_only_with_all_attempts(tmp_path, capsys):
    path = tmp_path / "page.md"
    path.write_text("<!-- faults: begin -->\n<!-- faults: end -->\n")
    faults = {"it": Fault("it", lambda draw, number, folder: End.RIGHT, 2)}
    assert main(["--write", str(path), "--limit", "0"], faults) == 1
    assert "2 attempts were omitted" in capsys.readouterr().out and "it" not in path.read_text()
    assert main(["--write", str(path)], faults) == 0 and "| it | 2 | 0 | 2 |" in path.read_text()


def test_table_of_a_page_is_replaced(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("before\n<!-- faults: begin -->\nold\n<!-- faults: end -->\nafter\n")
    page.write(path, {"kills": Outcome(1000, clean=2, right=3)}, 12.3)
    text = path.read_text()
    assert "| kills | 1,000 | 2 | 3 | 0 | 0 | 0 |" in text and "Measured in 12 seconds" in text
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    path.write_text("no marks")
    with pytest.raises(ValueError, match="has no marks for the table"):
        page.write(path, {}, 0)


@pytest.mark.needs_callbacks
def test_page_has_every_fault_and_no_lost_state():
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    table = text.partition("<!-- faults: begin -->")[2].partition("<!-- faults: end -->")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in re.findall(r"^\|.*\|$", table, re.M)]
    found = {title: [int(number.replace(",", "")) for number in numbers] for title, *numbers in rows[2:]}
    faults = {fault.title: fault for fault in map(catalogue.load, catalogue.NAMES)}
    assert list(found) == list(faults)
    for title, (tries, clean, right, other, lost, hung) in found.items():
        assert tries == faults[title].tries * faults[title].repeats
        assert right == tries and clean <= tries and other == lost == hung == 0


@pytest.mark.slow
@pytest.mark.needs_callbacks
def test_sample_of_the_faults():
    command = [sys.executable, "-m", "benchmarks.faults", "--share", "0.05", "--limit", "500"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=560)
    assert result.returncode == 0, result.stdout + result.stderr
