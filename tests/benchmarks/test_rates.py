"""The benchmark of learning rates, on which the advice on batch sizes and rates is based."""

import numpy as np
import pytest

from benchmarks import bench_rates as rates


@pytest.fixture(scope="module")
def part(digits):
    return digits.X_train[:200], digits.X_test[:100], digits.y_train[:200], digits.y_test[:100]


def test_first_epoch_below_a_target():
    assert rates.first_below([0.5, 0.2, 0.1, 0.3], 0.2) == 3
    assert rates.first_below([0.5, np.inf], 0.2) == np.inf


def test_curve_is_the_mean_over_seeds():
    curve = rates.Curve(np.array([[1.0, 0.11, 0.1], [1.0, 0.5, 0.1]]), 0.5)
    np.testing.assert_allclose(curve.mean, [1.0, 0.305, 0.1])
    assert curve.epochs == 2.5


def test_measurement(part):
    low = rates.measure(part, "SGD", 0.001, 10, 3)
    high = rates.measure(part, "SGD", 0.1, 10, 3)
    assert low.losses.shape == (3, 3) and low.seconds > 0
    assert (high.mean < low.mean).all()
    assert len(set(high.losses[:, -1])) == 3


def test_diverging_training_has_infinite_losses(part):
    X_train, X_val, y_train, y_val = part
    curve = rates.measure((1e30 * X_train, X_val, y_train, y_val), "SGD", 1e30, 10, 2)
    assert np.isinf(curve.mean).all() and curve.epochs == np.inf


@pytest.mark.slow
def test_tables_and_picture(part, tmp_path, capsys):
    found = {10: {0.1: rates.Curve(np.linspace(1, 0.1, 60)[None].repeat(3, axis=0), 1e-3)}}
    rates.print_table("batch size", found)
    assert capsys.readouterr().out.splitlines()[-1] == "| 10 | 0.1 | 59 | 0.71 | 1.0 ms | 59 ms |"
    rates.draw(found, str(tmp_path / "rates.png"))
    assert (tmp_path / "rates.png").read_bytes().startswith(b"\x89PNG")
