"""Sums of weights have the same bits for any chunks, and are exact if possible."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from ortlearn import OrtGradientOptimizer
from ortlearn.targets.weight_sums import BLOCK, LabelSums, scale_of, sum_of, sums_of_labels

rng = np.random.default_rng(0)
N = 2 * BLOCK + 777
WEIGHTS = rng.lognormal(sigma=3, size=N)
LABELS = {
    "numbers": rng.integers(3, size=N),
    "texts": np.array(["a", "b", "c"])[rng.integers(3, size=N)],
    "column": rng.integers(3, size=(N, 1)),
    "outputs": rng.integers(2, size=(N, 2)),
    "rows of texts": np.array([["a", "x"], ["b", "y"]], dtype=object)[rng.integers(2, size=N)],
}


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("size", [999, BLOCK])
def test_labels_in_blocks(name, size):
    y, found = LABELS[name], LabelSums()
    for start in range(0, N, size):
        found.add(y[start : start + size], WEIGHTS[start : start + size])
    for blocks, at_once in zip(found.result(), sums_of_labels(y, WEIGHTS), strict=True):
        np.testing.assert_array_equal(blocks, at_once)
    labels, sums = found.result()
    for label, value in zip(labels, sums, strict=True):
        own = WEIGHTS[(y.reshape(N, -1) == np.atleast_1d(label)).all(axis=1)]
        assert value == pytest.approx(math.fsum(own), rel=1e-12)
    again = sums_of_labels(labels, sums)  # sums of sums
    np.testing.assert_array_equal(again[1], sums)
    counts = sums_of_labels(y, None)[1]
    assert counts.sum() == N and (counts == np.round(counts)).all()


def test_sum_and_scale():
    assert sum_of(WEIGHTS) == pytest.approx(math.fsum(WEIGHTS), rel=1e-15)
    assert sum_of(WEIGHTS / 2**40) * 2**40 == sum_of(WEIGHTS)
    for largest in (0.3, 1.0, 7.0, 1e300, 5e-324):
        assert 1 <= largest / scale_of(largest) < 2
    assert scale_of(0.0) == scale_of(None) == 1.0


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.1, 1: 3.7}])
def test_source_of_blocks_equals_arrays(class_weight):
    X = rng.normal(size=(N, 3)).astype(np.float32)
    y = (X[:, 0] + rng.normal(size=N) > 0.3).astype(int)
    options = {"learning_rate": 0.1, "max_iter": 1, "batch_size": 4096, "shuffle": False, "random_state": 0}
    options["class_weight"] = class_weight
    in_memory = OrtGradientOptimizer(LogisticRegression(), **options).fit(X, y, WEIGHTS)
    found = OrtGradientOptimizer(LogisticRegression(), **options)
    found.fit_stream(X, y, WEIGHTS, shuffle_buffer=10_000)
    np.testing.assert_array_equal(found.coef_, in_memory.coef_)
    assert found.train_losses_ == in_memory.train_losses_
    if class_weight == "balanced":
        table = found._fitted.problem.targets.class_weights[0]
        expected = [WEIGHTS.sum() / (2 * WEIGHTS[y == label].sum()) for label in (0, 1)]
        np.testing.assert_allclose([table[0], table[1]], expected, rtol=1e-10)


def test_large_and_small_weights():
    """Only ratios of weights have an effect, in memory and in chunks."""
    X = rng.normal(size=(300, 3)).astype(np.float32)
    y, weights = (X[:, 0] > 0).astype(int), rng.uniform(0.5, 2, size=300)
    options = {"learning_rate": 0.1, "max_iter": 2, "batch_size": 16, "random_state": 0}
    options |= {"learning_penalty": None, "shuffle": False}
    expected = OrtGradientOptimizer(LogisticRegression(), **options).fit(X, y, weights).coef_
    for factor in (2.0**1000, 2.0**-1000):
        fits = OrtGradientOptimizer(LogisticRegression(), **options), X, y, weights * factor
        np.testing.assert_array_equal(fits[0].fit(*fits[1:]).coef_, expected)
        np.testing.assert_array_equal(fits[0].fit_stream(*fits[1:], shuffle_buffer=64).coef_, expected)
    with pytest.raises(ValueError, match="sum of sample_weight is infinite"):
        fits[0].fit_stream(X, y, np.full(300, 1e308), shuffle_buffer=64)
