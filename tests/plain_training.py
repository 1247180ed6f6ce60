"""Fixture that replaces the default parameters of training by simple ones."""

import pytest

from ortlearn.estimators.parameters import Parameters

PLAIN = {"learning_rate": "SGD", "learning_penalty": None, "class_weight": None, "keep_better": False}


@pytest.fixture(scope="module", autouse=True)
def plain_training():
    """Train by SGD without penalty, and keep the trained weights, unless a test sets parameters.

    The defaults are tested in ``tests/defaults``.
    """
    defaults = Parameters.__init__.__wrapped__.__kwdefaults__
    before = dict(defaults)
    defaults.update(PLAIN)
    yield
    defaults.update(before)
