"""Progress bars and lines of streams."""

import contextlib
import functools
import io
import subprocess
import sys
import threading
import time

import pytest
from rich.progress import Progress

from ortlearn.training.progress import progress_bar
from ortlearn.training.stream_progress import close_stream

RECORD = {"loss": 0.123456, "validation_loss": None, "validation_score": None, "rate": 0.01}


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    """Make the terminal wide enough for all columns."""
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setattr("rich._console", None)


def shown(capsys, *records, total=2, **changes):
    with progress_bar(total, "my training", True) as advance:
        for record in records:
            advance({**RECORD, **record, **changes})
    return capsys.readouterr().out


def test_loss_and_rate(capsys):
    out = shown(capsys, {}, {"loss": 0.5})
    assert "my training" in out and "2/2" in out
    assert "loss 0.5 rate 0.01" in out and "val" not in out


def test_last_validation_is_shown(capsys):
    out = shown(capsys, {"validation_loss": 0.25}, {})
    assert "loss 0.123 val 0.25 rate 0.01" in out


def test_a_solver_has_no_rate(capsys):
    out = shown(capsys, {}, rate=None)
    assert "loss 0.123" in out and "rate" not in out and "1/2" in out


def test_nothing_is_shown_by_default(capsys):
    with progress_bar(2, "my training", False) as advance:
        advance(RECORD)
    assert capsys.readouterr().out == ""


def test_a_bar_inside_another_display(capsys):
    with Progress() as outer:
        outer.add_task("outside")
        with progress_bar(1, "my training", True) as advance:
            advance(RECORD)
    assert "outside" in capsys.readouterr().out


def test_without_rich_there_is_a_warning(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.warns(UserWarning, match=r"pip install 'ortlearn\[progress\]'"):
        with progress_bar(2, "my training", True) as advance:
            advance(RECORD)
    assert capsys.readouterr().out == ""


def test_errors_are_propagated(capsys):
    with pytest.raises(KeyError, match="inside"):
        with progress_bar(2, "my training", True):
            raise KeyError("inside")
    assert "0/2" in capsys.readouterr().out


# Streams


class Owner:
    """Replaces an estimator."""


class Terminal(io.StringIO):
    """A terminal that records the output."""

    def isatty(self):
        return True

    def screen(self):
        """Return the visible text, without erased lines."""
        return [line.rpartition("\r\x1b[K")[2] for line in self.getvalue().split("\n")]


class Clock:
    """A clock that advances by ``step`` seconds at each reading, and never goes back between tests."""

    now = time.monotonic()

    def __init__(self):
        Clock.now = max(self.now, time.monotonic()) + 1
        self.step = 0.06  # there are two readings between two drawings, which are 0.1 seconds apart

    def __call__(self):
        Clock.now += self.step
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """Return a clock in place of ``time.monotonic``, so that the speed of the machine has no effect."""
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


@pytest.fixture
def terminal(clock):
    """Return a terminal that is drawn at every call."""
    return Terminal()


def on_terminal(test):
    """Run a test with the terminal as standard output, which pytest replaces before each test."""

    @functools.wraps(test)
    def run(terminal, **others):
        with contextlib.redirect_stdout(terminal):
            test(terminal=terminal, **others)

    return run


def call(owner, epoch, enabled=True, **changes):
    with progress_bar(1, "my stream", enabled, owner) as advance:
        advance({**RECORD, "epoch": epoch, **changes})


@on_terminal
def test_calls_share_a_line(terminal):
    owner = Owner()
    for epoch in range(1, 5):
        call(owner, epoch, loss=1 / epoch)
        assert terminal.screen() == [f"my stream epoch {epoch} loss {1 / epoch:.3g} rate 0.01 0:00"]
    del owner
    assert terminal.screen() == ["my stream epoch 4 loss 0.25 rate 0.01 0:00", ""]


@on_terminal
def test_minimum_time_between_drawings(terminal, clock):
    clock.step = 0.0
    owner = Owner()
    for epoch in range(1, 50):
        call(owner, epoch)
    close_stream(owner)
    assert terminal.getvalue().count("epoch") <= 2 and "epoch 49 " in terminal.getvalue()
    close_stream(owner)
    assert terminal.getvalue().count("\n") == 1


def test_a_stream_outside_of_a_terminal_is_one_line(capsys):
    owner = Owner()
    for epoch in range(1, 5):
        call(owner, epoch)
    assert capsys.readouterr().out == ""
    close_stream(owner)
    assert capsys.readouterr().out == "my stream epoch 4 loss 0.123 rate 0.01 0:00\n"


@on_terminal
def test_two_streams_share_a_line(terminal):
    first, second = Owner(), Owner()
    call(first, 7)
    call(second, 1, loss=0.5)
    (line,) = terminal.screen()
    assert line.count("my stream") == 2 and "epoch 7 loss 0.123" in line and "epoch 1 loss 0.5" in line
    close_stream(first)
    assert ["epoch 7" in line for line in terminal.screen()] == [True, False]
    close_stream(second)
    assert ["epoch 1" in line for line in terminal.screen()] == [False, True, False]


@on_terminal
def test_an_error_and_a_bar_begin_a_new_line(terminal):
    owner = Owner()
    call(owner, 1)
    with pytest.raises(KeyError), progress_bar(1, "my stream", True, owner):
        raise KeyError("inside")
    assert terminal.getvalue().endswith("\n")
    call(owner, 2)
    with progress_bar(1, "another training", True):
        assert terminal.getvalue().count("\n") == 2
    close_stream(owner)


@on_terminal
def test_a_stream_that_is_no_longer_shown(terminal):
    owner = Owner()
    call(owner, 1)
    call(owner, 2, enabled=False)
    assert terminal.screen()[0].startswith("my stream epoch 1 ") and terminal.getvalue().endswith("\n")


@on_terminal
def test_streams_in_threads(terminal):
    owners = [Owner() for _ in range(6)]

    def run(owner):
        for epoch in range(1, 30):
            call(owner, epoch)
        close_stream(owner)

    threads = [threading.Thread(target=run, args=(owner,)) for owner in owners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [line.count("epoch 29 ") >= 1 for line in terminal.screen()] == [True] * 6 + [False]


@pytest.mark.slow
def test_line_is_closed_at_exit():
    code = (
        "from ortlearn.training.progress import progress_bar\n"
        "class Owner: pass\n"
        "owner = Owner()\n"
        "for epoch in (1, 2, 3):\n"
        "    with progress_bar(1, 'my stream', True, owner) as advance:\n"
        "        advance({'loss': 1.0, 'rate': 0.1, 'epoch': epoch})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "my stream epoch 3 loss 1 rate 0.1 0:00\n" and done.stderr == ""


def test_closed_standard_output(monkeypatch):
    owner = Owner()
    for closed in (None, io.StringIO()):
        monkeypatch.setattr(sys, "stdout", closed)
        if closed is not None:
            closed.close()
        call(owner, 1)
        close_stream(owner)
