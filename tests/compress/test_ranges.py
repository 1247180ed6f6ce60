"""Scales and zero points by their definitions."""

import numpy as np
import pytest
from onnx import TensorProto

from ortlearn.compress.ranges import (
    BINS,
    METHODS,
    N_LEVELS,
    activation_levels,
    divergence,
    fake_quantised,
    weight_levels,
)

RNG = np.random.default_rng(0)
SKEWED = np.concatenate([RNG.normal(1, 1, 4000), [40.0]]).astype(np.float32)


def test_levels_of_an_activation_by_hand():
    levels = activation_levels(np.array([-1.0, 0.0, 4.1], np.float32))
    assert np.isclose(levels.scale, 5.1 / 255) and levels.zero == -128 + 50
    assert levels.zero.dtype == np.int8 and (levels.low, levels.high) == (-128, 127)
    levels = activation_levels(np.array([0.5, 5.1], np.float32))  # zero is always in the range
    assert np.isclose(levels.scale, 5.1 / 255) and levels.zero == -128
    levels = activation_levels(np.array([-1.0, 5.1], np.float32), symmetric=True)
    assert np.isclose(levels.scale, 5.1 / 127) and levels.zero == 0
    levels = activation_levels(np.array([0.0, 5.1], np.float32), elem_type=TensorProto.UINT8)
    assert np.isclose(levels.scale, 5.1 / 255) and levels.zero == 0 and levels.zero.dtype == np.uint8
    levels = activation_levels(np.array([-1.0, 5.1], np.float32), symmetric=True, elem_type=TensorProto.UINT8)
    assert np.isclose(levels.scale, 10.2 / 255) and levels.zero == 128


def test_constants_have_levels():
    for method in METHODS:
        for value in (0.0, 3.0, -3.0):
            for symmetric in (False, True):
                levels = activation_levels(np.full(50, value, np.float32), method, symmetric)
                found = levels.scale * (np.rint(value / levels.scale) + 0.0)
                assert levels.scale > 0 and abs(found - value) < 0.05


@pytest.mark.parametrize("last", [127, 64, 7])
def test_levels_of_a_weight_by_hand(last):
    array = np.array([[1.0, -2.0], [0.5, 0.1], [0.0, 0.0]], np.float32)
    levels = weight_levels(array, 0, last)
    np.testing.assert_allclose(levels.scale, [2 / last, 0.5 / last, 1.0], rtol=1e-6)
    assert not levels.zero.any() and (levels.low, levels.high) == (-last, last)
    np.testing.assert_allclose(weight_levels(array, 1, last).scale, [1 / last, 2 / last], rtol=1e-6)


def test_percentile():
    outside = (100 - 99.99) / 2
    low, high = METHODS["percentile"](SKEWED, False)
    np.testing.assert_allclose([low, high], np.percentile(SKEWED, [outside, 100 - outside]))
    low, high = METHODS["percentile"](SKEWED, True)
    assert low == -high == -np.percentile(np.abs(SKEWED), 99.99)


def test_squared_error_is_the_lowest_of_the_shares():
    low, high = METHODS["mse"](SKEWED, False)
    assert high < SKEWED.max()

    def error(share):
        rounded = fake_quantised(SKEWED.astype(float), share * SKEWED.min(), share * SKEWED.max())
        return np.square(rounded - SKEWED).sum()

    own = np.square(fake_quantised(SKEWED.astype(float), low, high) - SKEWED).sum()
    assert own <= min(error(share) for share in np.linspace(0.2, 1, 81)) * (1 + 1e-9)


def test_squared_error_of_weights():
    array = np.concatenate([RNG.normal(size=(3, 200)), [[8.0]] * 3], axis=1).astype(np.float32)
    whole, best = weight_levels(array, 0, 7), weight_levels(array, 0, 7, "mse")

    def error(levels):
        scale = levels.scale[:, None]
        return np.square(np.clip(np.rint(array / scale), -7, 7) * scale - array).sum(axis=1)

    assert (error(best) < 0.9 * error(whole)).all()


def test_entropy_is_thedivergence_by_its_formula():
    counts = RNG.integers(1, 50, BINS).astype(float)
    end = 512
    p = counts[:end].copy()
    p[-1] += counts[end:].sum()
    q = np.repeat(counts[:end].reshape(N_LEVELS, -1).mean(axis=1), end // N_LEVELS)
    p, q = p / p.sum(), q / q.sum()
    assert np.isclose(divergence(counts, end), (p * np.log(p / q)).sum())
    assert METHODS["entropy"](SKEWED, False)[1] < 20 < SKEWED.max()  # the outlier is clipped
