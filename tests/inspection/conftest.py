"""Fixtures: trained estimators."""

from tests.plain_training import plain_training  # noqa: F401
