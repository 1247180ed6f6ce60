"""Fixtures for trainings that do not depend on default parameters."""

from tests.plain_training import plain_training  # noqa: F401
