"""Damaged models are trained or rejected with a clear error; no process stops or hangs."""

import signal

import pytest

from tests.hostile.files import models
from tests.hostile.runs import RAISES, STOPS, run

SEEDS = 20


@pytest.mark.slow
def test_damaged_models():
    ends = dict(run((name, seed) for seed in range(SEEDS) for name in models()))
    assert len(ends) == SEEDS * len(models())
    assert not {case: end for case, end in ends.items() if not end.startswith(("trained", "refused"))}
    assert {"trained", "refused ConversionError", "refused ExecutionError"} <= set(ends.values())


@pytest.mark.slow
def test_stopped_process_and_foreign_error_are_detected():
    ends = dict(run([("ridge", STOPS), ("ridge", RAISES), ("ridge", 0)]))
    assert ends["ridge", STOPS] == f"stopped by -{signal.SIGSEGV.value}"
    assert ends["ridge", RAISES].startswith("foreign KeyError")
    assert ends["ridge", 0].startswith(("trained", "refused"))
