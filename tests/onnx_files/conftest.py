"""Tests of files train plainly, whatever the defaults are."""

from tests.plain_training import plain_training  # noqa: F401
