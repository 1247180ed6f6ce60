"""A fixture for tests of how training works, whatever its defaults are."""

import pytest

from ortlearn.estimators.parameters import Parameters

PLAIN = {"learning_rate": "SGD", "learning_penalty": None, "class_weight": None, "keep_better": False}


@pytest.fixture(scope="module", autouse=True)
def plain_training():
    """Train by SGD, without a penalty, and keep what it gives, unless a test says otherwise.

    What the defaults do is tested in ``tests/defaults``.
    """
    defaults = Parameters.__init__.__kwdefaults__
    before = dict(defaults)
    defaults.update(PLAIN)
    yield
    defaults.update(before)
