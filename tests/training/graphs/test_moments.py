"""Moments of columns in chunks are those of all samples."""

import numpy as np
import pytest
import scipy.sparse

from ortlearn.training.graphs.first_layers import Moments, moments


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("weighted", [False, True])
def test_chunks_are_merged(kind, weighted):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)) * [1e-6, 1, 1e4, 0] + [1e3, -5, 1e6, 7]
    weights = rng.uniform(size=300) * (np.arange(300) // 50 != 2) if weighted else None
    found = Moments()
    for start in range(0, 300, 50):  # the weights of one chunk are zero
        samples = slice(start, start + 50)
        found.add(kind(X[samples]), None if weights is None else weights[samples])
    mean = np.average(X, axis=0, weights=weights)
    spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    tolerance = 1e-9 if kind is np.asarray else 1e-3
    np.testing.assert_allclose(found.result(True)[0], mean, rtol=1e-12)
    np.testing.assert_allclose(found.result(True)[1][1:3], spread[1:3], rtol=tolerance)
    assert found.result(True)[1][[0, 3]].tolist() == [0.0, 0.0]  # constant up to rounding
    root = np.sqrt(np.average(X**2, axis=0, weights=weights))
    np.testing.assert_allclose(found.result(False)[1], root, rtol=1e-12)
    assert found.result(False)[0].tolist() == [0.0] * 4


@pytest.mark.parametrize("centred", [True, False])
def test_one_chunk_is_bitwise_the_same(centred):
    X = np.random.default_rng(0).standard_normal((100, 3)).astype(np.float32)
    found = Moments()
    found.add(X, None)
    for one, other in zip(found.result(centred), moments(X, None, centred), strict=True):
        np.testing.assert_array_equal(one, other)
