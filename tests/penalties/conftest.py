"""Trainings that do not depend on the defaults."""

from tests.plain_training import plain_training  # noqa: F401
