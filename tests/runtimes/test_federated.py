"""Federated averages of ten Node processes."""

import importlib.util

import pytest

from .conftest import modules_of

pytestmark = pytest.mark.runtimes


def test_averages_improve_over_rounds(tmp_path):
    source = modules_of("node") / "federated" / "coordinator.py"
    spec = importlib.util.spec_from_file_location("coordinator", source)
    coordinator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(coordinator)
    scores, pooled = coordinator.federated_scores(tmp_path, rounds=6)
    assert scores[-1] > scores[0] + 0.2 and scores[-1] > 0.7
    assert pooled > scores[-1]
