"""Fixtures of trainings."""

from tests.training.conftest import *  # noqa: F403
