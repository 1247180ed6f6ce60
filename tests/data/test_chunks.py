"""Chunks contain each sample of the blocks once, in order, for all sizes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, issparse

from ortlearn.data.chunks import chunk_size, cut, whole_blocks
from ortlearn.data.sample_blocks import SampleBlock
from ortlearn.exceptions import SourceError

SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=8)


def blocks_of(sizes, kind):
    ends = np.cumsum(sizes)
    for start, stop in zip(ends - sizes, ends, strict=True):
        X = np.arange(2.0 * start, 2.0 * stop).reshape(-1, 2)
        yield SampleBlock(kind(X), np.arange(start, stop), np.arange(start, stop) / 2, f"samples {start}")


@pytest.mark.slow
@given(SIZES, st.integers(1, 20), st.integers(0, 30), st.sampled_from([np.asarray, csr_matrix, list]))
def test_chunks_are_the_samples_in_order(sizes, size, skipped, kind):
    chunks = list(cut(blocks_of(sizes, kind), size, skipped=skipped))
    left = max(0, sum(sizes) - skipped)
    assert [len(chunk) for chunk in chunks] == [size] * (left // size) + [left % size] * (left % size > 0)
    if not chunks:
        return
    whole = SampleBlock.join(chunks)
    X = whole.X.toarray() if issparse(whole.X) else np.asarray(whole.X)
    numbers = np.arange(sum(sizes))[skipped:]
    np.testing.assert_array_equal(X, np.stack([2.0 * numbers, 2.0 * numbers + 1], axis=1))
    np.testing.assert_array_equal(whole.y, numbers)
    np.testing.assert_array_equal(whole.sample_weight, numbers / 2)


@given(SIZES, st.integers(0, 70), st.randoms(use_true_random=False))
def test_whole_blocks_skips_samples(sizes, skipped, random):
    order = random.sample(range(len(sizes)), len(sizes))
    flat = [(number, sample) for number in order for sample in range(sizes[number])]
    numbers, left = whole_blocks(order, sizes, skipped)
    assert [(n, sample) for n in numbers for sample in range(sizes[n])][left:] == flat[skipped:]
    assert not numbers or left < sizes[numbers[0]]


@given(st.integers(1, 200), st.integers(1, 50), st.integers(1, 300))
def test_all_chunks_but_the_last_have_whole_batches(n_samples, batch_size, buffer):
    size = chunk_size(n_samples, batch_size, buffer)
    assert size == n_samples or (size % batch_size == 0 and size <= max(buffer, batch_size))


def test_chunk_of_several_types_is_rejected():
    blocks = [SampleBlock(np.zeros((2, 3), np.float32), where="a"), SampleBlock(np.zeros((2, 3)), where="b")]
    with pytest.raises(SourceError, match="between a and b"):
        list(cut(blocks, 4))


def test_frames_of_pandas_and_polars_stay_frames():
    for name in ("pandas", "polars"):
        frames = pytest.importorskip(name)
        blocks = [SampleBlock(frames.DataFrame({"a": [1, 2], "b": ["x", "y"]})) for _ in range(2)]
        chunks = list(cut(blocks, 3))
        assert [type(chunk.X) for chunk in chunks] == [frames.DataFrame] * 2
        assert [list(chunk.X["b"]) for chunk in chunks] == [["x", "y", "x"], ["y"]]


def test_mappings_of_columns():
    blocks = [SampleBlock({"a": np.array([1, 2]), "b": np.array([[3], [4]])}) for _ in range(2)]
    assert [chunk.X["a"].tolist() for chunk in cut(blocks, 3)] == [[1, 2, 1], [2]]
