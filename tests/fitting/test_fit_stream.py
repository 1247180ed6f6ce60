"""fit_stream learns the same as fit on the same samples, for any chunks."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ortlearn.exceptions import PluginError, SourceError

OPTIONS = {"learning_rate": 0.1, "batch_size": 16, "max_iter": 3, "random_state": 0}


@pytest.fixture(scope="module")
def given():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((501, 6)).astype(np.float32)
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.8])]
    return X, y, rng.uniform(0.1, 3.0, size=501)


def cut(size, *arrays):
    """Return a function that returns an iterator of batches."""
    return lambda: (
        tuple(array[start : start + size] for array in arrays) for start in range(0, arrays[0].shape[0], size)
    )


def same(first, second):
    """Check that weights and losses of two estimators are equal, bit for bit."""
    assert first.trained_coef_.keys() == second.trained_coef_.keys()
    for name, value in first.trained_coef_.items():
        np.testing.assert_array_equal(value, second.trained_coef_[name])
    assert first.train_losses_ == second.train_losses_
    assert first.validation_losses_ == second.validation_losses_


@pytest.mark.sweep(5)
@pytest.mark.parametrize("size", [1, 7, 100, 501])
@pytest.mark.parametrize("buffer", [40, 10_000])
def test_without_shuffling_chunks_have_no_effect(optimizer, given, size, buffer):
    X, y, _ = given
    model = optimizer(LogisticRegression(), shuffle=False, **OPTIONS)
    in_memory = optimizer(LogisticRegression(), shuffle=False, **OPTIONS).fit(X, y)
    same(in_memory, model.fit_stream(cut(size, X, y), shuffle_buffer=buffer))
    assert model.score(X, y) == in_memory.score(X, y) and model.n_features_in_ == 6


@pytest.mark.parametrize("size", [7, 501])
def test_buffer_of_all_samples_equals_fit(optimizer, given, size):
    X, y, weights = given
    for model in (MLPClassifier((4,)), make_pipeline(StandardScaler(), LogisticRegression())):
        in_memory = optimizer(model, **OPTIONS).fit(X, y, weights)
        same(in_memory, optimizer(model, **OPTIONS).fit_stream(cut(size, X, y, weights)))


def test_weights_with_several_chunks(optimizer, given):
    X, y, weights = given
    weights = np.where(np.arange(501) // 80 == 1, 0.0, weights)  # chunks of total weight zero
    model = Ridge(alpha=5.0)
    target = X @ np.arange(6) + 1
    in_memory = optimizer(model, shuffle=False, **OPTIONS).fit(X, target, weights)
    found = optimizer(model, shuffle=False, **OPTIONS)
    found.fit_stream(cut(30, X, target, weights), shuffle_buffer=32)
    same(in_memory, found)
    unweighted = optimizer(model, shuffle=False, **OPTIONS).fit(X, target)
    assert np.abs(found.coef_ - unweighted.coef_).max() > 1e-4


@pytest.mark.parametrize("class_weight", ["balanced", {"a": 1.0, "b": 2.0, "c": 0.5}])
def test_class_weights_use_all_samples(optimizer, given, class_weight):
    X, y, weights = given
    order = np.argsort(y)  # the first chunks have one class only
    X, y, weights = X[order], y[order], weights[order]
    for extra in ((), (weights,)):
        options = {**OPTIONS, "class_weight": class_weight, "shuffle": False}
        in_memory = optimizer(LogisticRegression(C=0.1), **options).fit(X, y, *extra)
        found = optimizer(LogisticRegression(C=0.1), **options)
        found.fit_stream(cut(50, X, y, *extra), shuffle_buffer=64)
        assert found.classes_.tolist() == ["a", "b", "c"]
        same(in_memory, found)


def test_every_sample_once_in_random_order(given):
    """The order differs between epochs, and is determined by the seed."""
    from ortlearn.data.opening import open_source
    from ortlearn.data.orders import ORDER_VERSION
    from ortlearn.data.samples import Data
    from ortlearn.fitting.sources.counts import count
    from ortlearn.fitting.sources.samples import SourcePasses, SourceSamples

    numbers = np.arange(200_000, dtype=np.float32).reshape(-1, 1)
    source = open_source(numbers, numbers.ravel())
    samples = SourceSamples(source, count(source, False, "", False), 64, 20_000)
    samples.read = lambda given: Data(given.X, given.y)
    samples._matrix_dtype = np.dtype(np.float32)

    def order(seed, epoch, n_samples=0):
        passes = SourcePasses(samples, lambda data: data, seed, ORDER_VERSION)
        chunks = passes.chunks(epoch, n_samples)
        found = [(data.y[order], data.X[order, 0]) for data, order in chunks]
        assert all((labels == features).all() for labels, features in found)
        return np.concatenate([labels for labels, _ in found])

    first = order(0, 0)
    assert sorted(first) == numbers.ravel().tolist()
    np.testing.assert_array_equal(first, order(0, 0))
    assert (first != order(0, 1)).mean() > 0.99 and (first != order(1, 0)).mean() > 0.99
    # blocks have a random order, samples are shuffled within the buffer
    assert not (first[:60_000] < 66_000).all() or not (order(0, 1)[:60_000] < 66_000).all()
    assert np.abs(np.diff(first[:1000])).mean() > 1000
    np.testing.assert_array_equal(order(None, 3), numbers.ravel())
    for seed in (0, None):
        done = 3 * samples.size + 5 * 64
        np.testing.assert_array_equal(order(seed, 0)[done:], order(seed, 0, done))


def test_memory_maps_and_sparse_data(optimizer, given, tmp_path):
    X, y, weights = given
    np.save(tmp_path / "X.npy", X)
    in_memory = optimizer(LogisticRegression(), **OPTIONS).fit(X, y, weights)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    same(in_memory, optimizer(LogisticRegression(), **OPTIONS).fit_stream(mapped, y, weights))
    sparse = scipy.sparse.csr_matrix(np.where(X > 1, X, 0))
    options = {**OPTIONS, "shuffle": False}
    in_memory = optimizer(LogisticRegression(), **options).fit(sparse, y)
    found = optimizer(LogisticRegression(), **options)
    same(in_memory, found.fit_stream(cut(33, sparse, y), shuffle_buffer=64))
    same(in_memory, optimizer(LogisticRegression(), **options).fit_stream(sparse, y, shuffle_buffer=100))


@pytest.mark.slow
@pytest.mark.sweep(1)
def test_types_of_labels(optimizer, given):
    X, _, _ = given
    one, two = X[:, 0] * 2 + 1, np.stack([X[:, 0], X[:, 1] - X[:, 2]], axis=1)
    labels = (two > 0).astype(int)
    for model, y in (
        (LinearRegression(), one),
        (MLPRegressor(hidden_layer_sizes=(3,)), two),
        (MLPClassifier((3,)), labels),
        (MultiOutputClassifier(LogisticRegression()), labels),
        (MultiOutputClassifier(LogisticRegression()), np.array(["no", "yes"], dtype=object)[labels]),
    ):
        options = {**OPTIONS, "shuffle": False, "learning_penalty": None}
        in_memory = optimizer(model, **options).fit(X, y)
        found = optimizer(model, **options).fit_stream(cut(40, X, y), shuffle_buffer=80)
        same(in_memory, found)
        np.testing.assert_array_equal(found.predict(X), in_memory.predict(X))


def test_pipeline_is_fitted_on_the_first_buffer(optimizer, given):
    X, y, _ = given
    X = X * 3 + 5
    scaler = StandardScaler().fit(X[:96])
    found = optimizer(make_pipeline(StandardScaler(), LogisticRegression()), shuffle=False, **OPTIONS)
    found.fit_stream(cut(10, X, y), shuffle_buffer=100)  # six batches
    np.testing.assert_allclose(found.to_sklearn()[0].mean_, scaler.mean_, rtol=1e-6)
    scaled = scaler.transform(X).astype(np.float32)
    in_memory = optimizer(LogisticRegression(), shuffle=False, **OPTIONS).fit(scaled, y)
    np.testing.assert_allclose(found.to_sklearn()[1].coef_, in_memory.coef_, rtol=1e-3, atol=1e-5)
    whole = optimizer(make_pipeline(StandardScaler(), LogisticRegression()), precompute=False, **OPTIONS)
    same(whole.fit(X, y), whole.fit_stream(cut(10, X, y)))


@pytest.mark.slow
@pytest.mark.sweep(1)
def test_validation_on_another_source(optimizer, given):
    X, y, _ = given
    train, test = (X[:400], y[:400]), (X[400:], y[400:])
    options = {**OPTIONS, "max_iter": 12, "early_stopping": True, "n_iter_no_change": 2, "shuffle": False}
    options |= {"validation_every": 1, "tol": 0.05}
    for scoring in ("loss", None, "balanced_accuracy"):
        model = optimizer(LogisticRegression(), **{**options, "scoring": scoring})
        in_memory = optimizer(LogisticRegression(), **{**options, "scoring": scoring}).fit(
            *train, None, *test
        )
        source = cut(9, *test)
        model.fit_stream(cut(50, *train), shuffle_buffer=32, source_val=source)
        np.testing.assert_allclose(model.validation_losses_, in_memory.validation_losses_, rtol=1e-6)
        np.testing.assert_allclose(model.validation_scores_, in_memory.validation_scores_)
        assert model.best_epoch_ == in_memory.best_epoch_
        held = optimizer(LogisticRegression(), **{**options, "scoring": scoring})
        held.fit_stream(cut(50, *train), source_val=test[0], y_val=test[1])
        np.testing.assert_array_equal(held.trained_coef_["coef"], in_memory.trained_coef_["coef"])
    with pytest.raises(ValueError, match="pass source_val"):
        optimizer(LogisticRegression(), early_stopping=True, **OPTIONS).fit_stream(cut(50, X, y))
    with pytest.raises(ValueError, match="source_val is missing"):
        optimizer(LogisticRegression(), **OPTIONS).fit_stream(cut(50, X, y), y_val=y)


@pytest.mark.parametrize("encoding", ["dictionary", "plain"])
def test_columns_of_a_parquet_folder(optimizer, given, tmp_path, encoding):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y, weights = given
    names = [f"x{number}" for number in range(6)]
    frame = pa.table([*X.T, y, weights], names=[*names, "label", "weight"]).to_pandas()
    columns, options = pa.Table.from_pandas(frame), {"use_dictionary": encoding == "dictionary"}
    pq.write_table(columns, tmp_path / "x.parquet", row_group_size=90, **options)
    in_memory = optimizer(LogisticRegression(), **OPTIONS).fit(frame[names], y, weights)
    found = optimizer(LogisticRegression(), **OPTIONS).fit_stream(tmp_path, "label", "weight")
    same(in_memory, found)
    assert found.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(found.predict(frame[names]), in_memory.predict(frame[names]))
    options = {**OPTIONS, "shuffle": False}
    several = optimizer(LogisticRegression(), **options).fit_stream(tmp_path, "label", shuffle_buffer=100)
    same(optimizer(LogisticRegression(), **options).fit(frame[[*names, "weight"]], y), several)


@pytest.mark.slow
def test_columns_of_text(optimizer, given, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y, _ = given
    city = np.array(["Oslo", "Rome", "Bonn"])[np.arange(501) % 3]
    columns = pa.table({"city": city, "x": X[:, 0], "z": X[:, 1], "label": y})
    pq.write_table(columns, tmp_path / "x.parquet", row_group_size=90)
    encoder = ColumnTransformer([("one", OneHotEncoder(), ["city"]), ("all", StandardScaler(), ["z", "x"])])
    model = make_pipeline(encoder, LogisticRegression())
    frame = columns.drop(["label"]).to_pandas()
    same(optimizer(model, **OPTIONS).fit(frame, y), optimizer(model, **OPTIONS).fit_stream(tmp_path, "label"))
    options = {**OPTIONS, "shuffle": False}
    found = optimizer(model, **options).fit_stream(tmp_path, "label", shuffle_buffer=100)
    assert found.score(frame, y) > 0.7


def test_reader_is_read_once(optimizer, given):
    pa = pytest.importorskip("pyarrow")
    X, y, _ = given
    columns = pa.table([*X.T, y], names=[*"abcdef", "label"])
    in_memory = optimizer(LogisticRegression(), **OPTIONS).fit(columns.drop(["label"]).to_pandas(), y)
    same(in_memory, optimizer(LogisticRegression(), **OPTIONS).fit_stream(columns.to_reader(50), "label"))


@pytest.mark.parametrize(
    "options, arguments, error, message",
    [
        ({"learning_rate": "LBFGS"}, {}, PluginError, "LearningRateLBFGS trains on all samples at once"),
        ({}, {"shuffle_buffer": 0}, ValueError, "shuffle_buffer=0 must be"),
        ({}, {"classes": ["a", "b"]}, ValueError, "must include all labels"),
        ({}, {"resume_from": LogisticRegression()}, ValueError, "neither a path nor an estimator"),
    ],
)
def test_invalid_arguments(optimizer, given, options, arguments, error, message):
    X, y, _ = given
    model = optimizer(LogisticRegression(), **{**OPTIONS, **options})
    with pytest.raises(error, match=message):
        model.fit_stream(cut(50, X, y), **arguments)
    assert not hasattr(model, "trained_coef_")


def test_invalid_data(optimizer, given):
    X, y, _ = given
    model = optimizer(LogisticRegression(), **OPTIONS)
    with pytest.raises(SourceError, match="has no samples"):
        model.fit_stream(lambda: iter(()))
    calls = []

    def fewer():
        calls.append(None)
        return iter(list(cut(50, X, y)())[: -1 if len(calls) > 3 else None])

    with pytest.raises(SourceError, match="returned 500 samples .* 501 when they were counted"):
        model.fit_stream(fewer, shuffle_buffer=64)
    with pytest.raises(ValueError, match="which is not held in memory: use fit_stream"):
        model.fit(cut(50, X, y))
    with pytest.raises(ValueError, match="use fit_stream"):
        model.partial_fit("folder", y)
    broken = X.copy()
    broken[450, 2] = np.nan
    with pytest.raises(ValueError, match="In batch 9 of the source: Input X contains NaN"):
        optimizer(LogisticRegression(), shuffle=False, **OPTIONS).fit_stream(
            cut(50, broken, y), shuffle_buffer=48
        )
    unlabelled = y.astype(object)
    unlabelled[300] = None
    with pytest.raises(ValueError, match="no label"):
        optimizer(LogisticRegression(), **OPTIONS).fit_stream(cut(50, X, unlabelled), shuffle_buffer=64)
    with pytest.raises(ValueError, match="zero for every sample"):
        optimizer(LogisticRegression(), **OPTIONS).fit_stream(cut(50, X, y, np.zeros(501)))
    for weights, message in (
        (np.full(501, -1.0), "negative"),
        (np.full((501, 2), 1.0), r"In batch 0 .*must be 1D, and has the shape \(50, 2\)"),
    ):
        with pytest.raises(ValueError, match=message):
            optimizer(LogisticRegression(), **OPTIONS).fit_stream(cut(50, X, y, weights), shuffle_buffer=64)
