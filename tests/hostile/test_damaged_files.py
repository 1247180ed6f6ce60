"""Damaged models are trained or refused in plain words; no process stops, and none hangs."""

import signal

import pytest

from .files import models
from .runs import RAISES, STOPS, run

SEEDS = 14


@pytest.mark.slow
@pytest.mark.needs_training
@pytest.mark.parametrize("name", list(models()))
def test_damaged_models(name):
    ends = dict(run(name, range(SEEDS)))
    assert len(ends) == SEEDS
    assert not [f"{seed}: {end}" for seed, end in ends.items() if not end.startswith(("trained", "refused"))]


@pytest.mark.slow
def test_a_stopped_process_and_a_foreign_error_are_seen():
    ends = dict(run("ridge", [STOPS, RAISES, 0]))
    assert ends[STOPS] == f"stopped by -{signal.SIGSEGV.value}"
    assert ends[RAISES].startswith("foreign KeyError")
    assert ends[0].startswith(("trained", "refused"))
