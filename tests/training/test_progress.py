"""What the progress bar shows, and that a training needs none."""

import sys

import pytest
from rich.progress import Progress

from ortlearn.training.progress import progress_bar

RECORD = {"loss": 0.123456, "validation_loss": None, "validation_score": None, "rate": 0.01}


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    """Room for all columns."""
    monkeypatch.setenv("COLUMNS", "150")


def shown(capsys, *records, total=2, **changes):
    with progress_bar(total, "my training", True) as advance:
        for record in records:
            advance({**RECORD, **record, **changes})
    return capsys.readouterr().out


def test_loss_and_rate(capsys):
    out = shown(capsys, {}, {"loss": 0.5})
    assert "my training" in out and "2/2" in out
    assert "loss 0.5 rate 0.01" in out and "val" not in out


def test_the_last_validation_stays(capsys):
    out = shown(capsys, {"validation_loss": 0.25}, {})
    assert "loss 0.123 val 0.25 rate 0.01" in out


def test_a_solver_has_no_rate(capsys):
    out = shown(capsys, {}, rate=None)
    assert "loss 0.123" in out and "rate" not in out and "1/2" in out


def test_nothing_is_shown_unless_asked_for(capsys):
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


def test_an_error_inside_is_passed_on(capsys):
    with pytest.raises(KeyError, match="inside"):
        with progress_bar(2, "my training", True):
            raise KeyError("inside")
    assert "0/2" in capsys.readouterr().out
