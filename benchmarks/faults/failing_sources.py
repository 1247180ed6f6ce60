"""A source of samples fails during a pass, and the training is resumed."""

from __future__ import annotations

from pathlib import Path
from random import Random

from benchmarks.faults.fault import End, Fault
from benchmarks.faults.subjects import KINDS, X, Y, check_same, check_unchanged, snapshot, trainer
from ortlearn.exceptions import SourceError

__all__ = ["FAULT"]

ERRORS = (SourceError, OSError, ConnectionResetError, ValueError, MemoryError)
SIZE, EPOCHS = 10, 3


class Source:
    """Blocks of samples; reading one of them raises an error."""

    def __init__(self, error=None, at=0):
        self.error, self.at, self.n = error, at, 0

    def __call__(self):
        for start in range(0, len(X), SIZE):
            self.n += 1
            if self.n == self.at:
                raise self.error
            yield X[start : start + SIZE], Y[start : start + SIZE]


def _attempt(draw: Random, number: int, folder: Path) -> End:
    options = {"max_iter": EPOCHS, "shuffle": bool(number % 4 // 2), "average": bool(number % 8 // 4)}
    source = Source()
    expected = trainer(KINDS[number % 2], **options).fit_stream(source, shuffle_buffer=60)
    found = trainer(KINDS[number % 2], **options)
    before = snapshot(found)
    error = draw.choice(ERRORS)("on purpose")
    try:
        found.fit_stream(Source(error, draw.randint(1, source.n)), shuffle_buffer=60)
    except Exception as caught:
        assert error in (caught, caught.__cause__), caught
        assert "on purpose" in str(caught), caught
    else:
        raise AssertionError("the error was swallowed")
    resumes = hasattr(found, "trained_coef_")
    if resumes:
        assert found.predict(X).shape == Y.shape
    else:
        check_unchanged(found, before)
    resumed = {"resume_from": found} if resumes else {}
    check_same(found.fit_stream(Source(), shuffle_buffer=60, **resumed), expected)
    return End.CLEAN | End.RIGHT


FAULT = Fault("read error of a data source in `fit_stream`; training resumed", _attempt, tries=40)
