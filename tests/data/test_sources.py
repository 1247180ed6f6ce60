"""Arrays, memory maps, sparse matrices and iterables as sources."""

import numpy as np
import pytest
import scipy.sparse

from ortlearn.data.opening import is_source, open_source
from ortlearn.data.sample_blocks import SampleBlock
from ortlearn.data.sources import ROWS_OF_BLOCK
from ortlearn.exceptions import SourceError


def whole(source, numbers=None):
    return SampleBlock.join(list(source.blocks(numbers)))


def test_blocks_of_an_array_can_be_read_in_any_order():
    n_samples = 2 * ROWS_OF_BLOCK + 5
    X, y = np.arange(float(n_samples)).reshape(-1, 1), np.arange(n_samples)
    source = open_source(X, y, y / 2)
    assert list(source.sizes) == [ROWS_OF_BLOCK, ROWS_OF_BLOCK, 5]
    samples = whole(source, [2, 0])
    numbers = np.r_[np.arange(2 * ROWS_OF_BLOCK, n_samples), :ROWS_OF_BLOCK]
    np.testing.assert_array_equal(samples.X.ravel(), numbers)
    np.testing.assert_array_equal(samples.y, numbers)
    np.testing.assert_array_equal(samples.sample_weight, numbers / 2)


def test_memory_map_is_not_copied(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, np.arange(12.0).reshape(6, 2))
    X = np.load(path, mmap_mode="r")
    samples = whole(open_source(X, np.arange(6)))
    assert samples.X.tolist() == np.arange(12.0).reshape(6, 2).tolist() and np.shares_memory(samples.X, X)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_sparse_samples_stay_sparse(kind):
    dense = np.eye(5)[:, :3]
    X = scipy.sparse.coo_matrix(dense).asformat(kind)
    for source in (open_source(X, np.arange(5)), open_source([(X, np.arange(5))])):
        samples = whole(source)
        assert samples.X.format == "csr" and samples.X.toarray().tolist() == dense.tolist()


def test_functions_and_lists_can_be_read_several_times():
    batches = [(np.ones((2, 1)), [0, 1]), (np.zeros((1, 1)), [1]), (np.empty((0, 1)), [])]
    for source in (open_source(batches), open_source(lambda: iter(batches))):
        for _ in range(2):
            assert [len(samples) for samples in source.blocks()] == [2, 1]
            assert whole(source).y.tolist() == [0, 1, 1]


def test_items_are_tuples_of_features_labels_and_weights():
    X = np.ones((2, 1))
    assert whole(open_source([X])).y is None
    assert whole(open_source([(X, [1, 2], [0.5, 1])])).sample_weight.tolist() == [0.5, 1]
    with pytest.raises(SourceError, match="batch 0 .* 4 items"):
        whole(open_source([(X, X, X, X)]))
    with pytest.raises(SourceError, match=r"In batch 1 .* inconsistent numbers of samples: \[2, 3\]"):
        whole(open_source([(X, [1, 2]), (X, [1, 2, 3])]))
    with pytest.raises(SourceError, match=r"In batch 1 .*The samples of X differ in shape.*a tuple \(X, y\)"):
        whole(open_source([(X, [1, 2]), [X, [1, 2]]]))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((iter([]),), "can be read only once"),
        ((np.ones((2, 1)), [1, 2, 3]), r"inconsistent numbers of samples: \[2, 3\]"),
        ((np.ones((2, 1)), "label"), "y cannot name columns"),
        ((np.ones((2, 1)), None, None, ["a"]), "features cannot name columns"),
        (([np.ones((2, 1))], [1, 2]), "not supported for an iterable of batches"),
        ((3,), "int is not a source of samples"),
    ],
)
def test_invalid_sources_are_rejected(arguments, message):
    with pytest.raises(ValueError, match=message):
        open_source(*arguments)


def test_is_source():
    pandas = pytest.importorskip("pandas")
    for samples in (np.ones((2, 1)), [[1.0]], pandas.DataFrame({"a": [1]}), scipy.sparse.eye(2), {"a": [1]}):
        assert not is_source(samples)
    for source in ("data", iter([]), lambda: [], (part for part in [1])):
        assert is_source(source)
