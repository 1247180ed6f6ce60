"""Fixtures of estimators."""

from tests.estimator_fixtures import *  # noqa: F403
