"""Fixture that counts the trainings which are not joined."""

import pytest

from ortlearn.fitting.trainer import Trainer
from tests.calls import calls_of


@pytest.fixture
def trained_alone():
    """Trainings by a separate call of ``fit``."""
    with calls_of(Trainer.fit) as calls:
        yield calls
