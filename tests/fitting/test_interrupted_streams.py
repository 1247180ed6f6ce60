"""After an error of a source, the trained weights are kept and training resumes exactly."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier

from ortlearn.exceptions import ConvergenceError, SavedFileError, SourceError
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD

OPTIONS = {"batch_size": 16, "max_iter": 4, "random_state": 0, "learning_rate": LearningRateAdam(eta0=0.01)}


class Batches:
    """Source of batches that raises an error at one batch of some passes."""

    def __init__(self, X, y, passes=(), number=None):
        self.arrays, self.passes, self.number, self.count = (X, y), passes, number, 0

    def __call__(self):
        self.count += 1
        for number, start in enumerate(range(0, len(self.arrays[0]), 20)):
            if self.count in self.passes and number == self.number:
                raise SourceError(f"batch {number} is gone")
            yield tuple(array[start : start + 20] for array in self.arrays)


@pytest.fixture(scope="module")
def samples():
    X = np.random.default_rng(0).standard_normal((410, 5)).astype(np.float32)
    return X, (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)


def same(first, second):
    for name, value in first.trained_coef_.items():
        np.testing.assert_array_equal(value, second.trained_coef_[name])
    keys = ("epoch", "loss", "validation_loss", "rate")
    records = [[tuple(r[key] for key in keys) for r in model.history_] for model in (first, second)]
    assert records[0] == records[1]


@pytest.mark.slow
@pytest.mark.sweep(3)
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(
    "failing", [(5, 9), (4, 20), (6, 0)]
)  # passes 1 to 3: inspection, counting, first chunk
def test_resumed_training_is_bitwise_equal(optimizer, samples, shuffle, failing):
    options = {**OPTIONS, "shuffle": shuffle, "average": True}
    whole = optimizer(MLPClassifier((4,)), **options).fit_stream(Batches(*samples), shuffle_buffer=64)
    model = optimizer(MLPClassifier((4,)), **options)
    with pytest.raises(SourceError, match=f"batch {failing[1]} is gone"):
        model.fit_stream(Batches(*samples, failing[:1], failing[1]), shuffle_buffer=64)
    done = failing[0] - 4
    assert model.n_iter_ == done and len(model.predict(samples[0])) == 410
    model = pickle.loads(pickle.dumps(model))
    same(whole, model.fit_stream(Batches(*samples), shuffle_buffer=64, resume_from=model))
    with pytest.raises(ValueError, match="finished training"):
        model.fit_stream(Batches(*samples), resume_from=model)


@pytest.mark.slow
@pytest.mark.sweep(1)
def test_automatic_rate_with_early_stopping(optimizer, samples):
    """Standardisation, patience and best weights are resumed, too."""
    X, y = samples
    target = X @ np.arange(1.0, 6.0) * 100 + np.random.default_rng(1).standard_normal(410)
    train, test = (X[:300], target[:300]), (X[300:], target[300:])
    options = {"batch_size": 8, "max_iter": 60, "random_state": 0, "early_stopping": True, "tol": 50.0}
    options |= {"n_iter_no_change": 6, "learning_rate": "auto", "validation_every": 1}
    arguments = {"shuffle_buffer": 64, "source_val": test[0], "y_val": test[1]}
    whole = optimizer(LinearRegression(), **options).fit_stream(Batches(*train), **arguments)
    assert whole.n_iter_ < 60
    model = optimizer(LinearRegression(), **options)
    with pytest.raises(SourceError):
        model.fit_stream(Batches(*train, [3 + whole.n_iter_], 14), **arguments)
    assert 0 < model.n_iter_ < whole.n_iter_
    same(whole, model.fit_stream(Batches(*train), **arguments, resume_from=model))
    assert model.best_epoch_ == whole.best_epoch_


def test_resuming_requires_the_same_source(optimizer, samples):
    X, y = samples
    model = optimizer(LogisticRegression(), **OPTIONS)
    with pytest.raises(SourceError):
        model.fit_stream(Batches(X, y, [5], 9), shuffle_buffer=64)
    before = model.get_weights()
    for source, size, changes, message in (
        (Batches(X[:400], y[:400]), 64, {}, "source=400 rows .* instead of 410 rows"),
        (Batches(X, 1 - y), 64, {}, "y=64 x 1 values .* instead of 64"),
        (Batches(X, y), 48, {}, "shuffle_buffer=48 instead of 64"),
        (Batches(X, y), 64, {"batch_size": 32}, "batch_size=32 instead of 16"),
    ):
        model.set_params(**{**OPTIONS, **changes})
        with pytest.raises(SavedFileError, match=message):
            model.fit_stream(source, shuffle_buffer=size, resume_from=model)
    with pytest.raises(SavedFileError, match="shuffle_buffer=None instead of 64"):
        model.set_params(**OPTIONS).fit(X, y, resume_from=model)
    for name, value in model.get_weights().items():
        np.testing.assert_array_equal(value, before[name])


def test_error_before_the_first_update_changes_nothing(optimizer, samples):
    model = optimizer(LogisticRegression(), **OPTIONS)
    with pytest.raises(SourceError):
        model.fit_stream(Batches(*samples, [4], 0), shuffle_buffer=64)
    assert not hasattr(model, "trained_coef_")
    model.fit(*samples)
    before = model.get_weights()
    with pytest.raises(SourceError):
        model.fit_stream(Batches(*samples, [2], 3), shuffle_buffer=64)
    for name, value in model.get_weights().items():
        np.testing.assert_array_equal(value, before[name])


@pytest.mark.parametrize("encoding", ["dictionary", "plain"])
def test_corrupt_row_group_is_named(optimizer, samples, tmp_path, encoding):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = samples
    path = tmp_path / "x.parquet"
    options = {"use_dictionary": encoding == "dictionary", "compression": "NONE", "row_group_size": 100}
    pq.write_table(pa.table([*X.T, y], names=[*"abcde", "label"]), path, **options)
    whole = path.read_bytes()
    chunk = pq.ParquetFile(path).metadata.row_group(3).column(2)
    broken = bytearray(whole)
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    broken[begin : begin + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(broken)
    options = {**OPTIONS, "shuffle": False}
    model = optimizer(LogisticRegression(), **options)
    with pytest.raises(SourceError, match=r"Row group 3 of .*x\.parquet cannot be read"):
        model.fit_stream(path, "label", shuffle_buffer=100)
    assert model.n_iter_ == 0 and len(model.trained_coef_["coef"]) == 5
    once = optimizer(LogisticRegression(), **{**options, "max_iter": 1, "learning_penalty": None})
    once.fit(X[:288], y[:288])  # three chunks of six batches
    np.testing.assert_array_equal(model.trained_coef_["coef"], once.trained_coef_["coef"])
    path.write_bytes(whole)
    expected = optimizer(LogisticRegression(), **options).fit_stream(path, "label", shuffle_buffer=100)
    same(expected, model.fit_stream(path, "label", shuffle_buffer=100, resume_from=model))


@pytest.mark.parametrize("size", [5, 64, 1000])
def test_last_finite_weights_are_kept_across_chunks(optimizer, size):
    """The divergence is detected in the chunk after the update that causes it."""
    X = np.ones((160, 1), np.float32)
    X[79] = 1e25  # the last sample of a batch and of a chunk of 16: the next loss overflows
    y = np.zeros(160)
    options = {"learning_rate": LearningRateSGD(eta0=0.1, learning_rate="constant"), "batch_size": 16}
    options |= {"max_iter": 2, "shuffle": False, "random_state": 0, "exc": False}
    with pytest.warns(UserWarning, match="training diverged"):
        in_memory = optimizer(LinearRegression(), **options).fit(X, y)
    found = optimizer(LinearRegression(), **options)
    with pytest.warns(UserWarning, match="training diverged"):
        found.fit_stream([(X[a : a + 5], y[a : a + 5]) for a in range(0, 160, 5)], shuffle_buffer=size)
    # in memory, the epoch is repeated batch by batch in another graph to find them
    np.testing.assert_allclose(found.trained_coef_["coef"], in_memory.trained_coef_["coef"], rtol=1e-6)
    assert np.isfinite(found.trained_coef_["coef"]).all()
    with pytest.raises(ConvergenceError):
        found.set_params(exc=True).fit_stream([(X, y)], shuffle_buffer=size)
