"""Irregular partitions: correct results, or an error that names the partition before the first round."""

import warnings

import dask
import dask.array as da
import numpy as np
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.distributed import DaskOrtGradientOptimizer
from ortlearn.exceptions import SourceError
from tests.distributed.shards import cut, largest_difference, same_bits

#: Trainings on a cluster, half a minute in all.
pytestmark = pytest.mark.slow

OPTIONS = {"max_iter": 3, "batch_size": 32, "random_state": 0, "learning_rate": 0.01}


def trained(client, estimator, X, y, sample_weight=None, features=None, **options):
    model = DaskOrtGradientOptimizer(estimator, client=client, **{**OPTIONS, **options})
    return model.fit(X, y, sample_weight, features=features)


@pytest.fixture
def expected(client, regression):
    X, y = regression
    return trained(client, LinearRegression(), cut(X, [250, 350]), cut(y, [250, 350]))


def items(*pairs):
    return [dask.delayed(pair, traverse=False) for pair in pairs]


def test_delayed_pairs_are_shards(client, regression, expected):
    X, y = regression
    found = trained(client, LinearRegression(), items((X[:250], y[:250]), (X[250:], y[250:])), None)
    assert same_bits(found, expected)
    predicted = found.predict(items((X[:250], y[:250]), X[250:]))
    assert np.array_equal(np.concatenate(dask.compute(*predicted)), found.predict(X))


def test_empty_partitions_are_ignored(client, regression, expected):
    X, y = regression
    empty = X[:0], y[:0]
    parts = items(empty, (X[:250], y[:250]), empty, (X[250:], y[250:]))
    assert same_bits(trained(client, LinearRegression(), parts, None), expected)
    with pytest.raises(SourceError, match="There are no samples: all partitions are empty"):
        trained(client, LinearRegression(), items(empty, empty), None)


def test_unknown_numbers_of_samples(client, regression, expected):
    X, y = regression
    array = da.concatenate(
        [cut(X, [250, 350]), da.from_array(y.reshape(-1, 1), chunks=((250, 350), -1))], axis=1
    )
    array = array[array[:, 0] > -100]
    assert np.isnan(array.shape[0])
    found = trained(client, LinearRegression(), array[:, :4], array[:, 4])
    assert same_bits(found, expected)
    assert np.array_equal(found.predict(array[:, :4]).compute(), found.predict(X))
    with pytest.raises(ValueError, match="partitions of X have an unknown number of samples"):
        trained(client, LinearRegression(), array[:, :4], y)


def test_blocks_of_columns_and_differently_chunked_labels(client, regression, expected):
    X, y = regression
    blocks = da.from_array(X, chunks=((250, 350), (1, 3)))
    assert same_bits(trained(client, LinearRegression(), blocks, da.from_array(y, chunks=100)), expected)
    assert same_bits(trained(client, LinearRegression(), blocks, y), expected)
    assert np.array_equal(expected.predict(blocks).compute(), expected.predict(X))


def test_shards_smaller_than_a_batch(client, regression):
    X, y = regression
    sizes = [5, 1, 594]
    found = trained(client, LinearRegression(), cut(X, sizes), cut(y, sizes), sync_every="2 batches")
    assert [len(found.history_[0]["shard_losses"][f"Partition {i}"]) for i in range(3)] == [1, 1, 10]
    assert found.score(X, y) > 0.3


def test_shards_with_missing_classes(client, classes):
    X, y = classes
    order = np.argsort(y, kind="stable")
    X, y, sizes = X[order], y[order], [100, 250, 250]
    assert len(set(y[:100])) == 1
    for estimator in (LogisticRegression(), SGDClassifier(loss="log_loss")):
        found = trained(client, estimator, cut(X, sizes), cut(y, sizes), learning_rate="auto", max_iter=60)
        assert found.classes_.tolist() == ["a", "b", "c"] and found.score(X, y) > 0.8
    with pytest.raises(ValueError, match=r"must include all labels of y: \['c'\] are missing"):
        model = DaskOrtGradientOptimizer(LogisticRegression(), client=client, **OPTIONS)
        model.fit(cut(X, sizes), cut(y, sizes), classes=["a", "b"])


def test_balanced_class_weights_use_all_shards(client, classes):
    X, y = classes
    kept = np.flatnonzero((y != "a") | (np.arange(600) < 120))
    X, y = X[kept], y[kept]
    sizes = [150, len(y) - 150]
    options = {"class_weight": "balanced", "learning_rate": "LBFGS", "max_iter": 200}
    local = OrtGradientOptimizer(LogisticRegression(), **{**OPTIONS, **options}).fit(X, y)
    found = trained(client, LogisticRegression(), cut(X, sizes), cut(y, sizes), **options)
    assert found._fitted.problem.targets.class_weights == local._fitted.problem.targets.class_weights
    assert largest_difference(found, local) < 2e-3
    plain = trained(
        client, LogisticRegression(), cut(X, sizes), cut(y, sizes), learning_rate="LBFGS", max_iter=200
    )
    assert largest_difference(plain, local) > 0.1


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.FewUpdatesWarning")
def test_sample_weights_are_relative_to_all_shards(client, regression):
    X, y = regression
    rng = np.random.default_rng(5)
    weight = rng.random(600) * np.repeat([1.0, 1000.0], 300)
    sizes = [300, 300]
    options = {"learning_rate": "LBFGS", "max_iter": 50, "dtype": "float64"}
    local = OrtGradientOptimizer(LinearRegression(), **{**OPTIONS, **options}).fit(X, y, weight)
    found = trained(client, LinearRegression(), cut(X, sizes), cut(y, sizes), cut(weight, sizes), **options)
    assert largest_difference(found, local) < 1e-6
    zero = np.where(np.arange(600) < 300, 0.0, weight)  # a shard without any weight
    for rate in (0.05, "LBFGS"):
        options = {"learning_rate": rate, "max_iter": 8}
        found = trained(client, LinearRegression(), cut(X, sizes), cut(y, sizes), cut(zero, sizes), **options)
        rest = trained(client, LinearRegression(), items((X[300:], y[300:], zero[300:])), None, **options)
        assert np.isfinite(found.train_losses_).all() and largest_difference(found, rest) < 0.1
    with pytest.raises(ValueError, match="sample_weight is zero for every sample"):
        trained(client, LinearRegression(), cut(X, sizes), cut(y, sizes), cut(0 * zero, sizes))


@pytest.mark.parametrize("rate", [0.01, "auto"])
def test_sparse_chunks(client, regression, rate):
    X, y = regression
    X = np.where(X > 0, X, 0)
    parts = [sparse.csr_array(X[:250]), sparse.csc_matrix(X[250:])]
    options = {"learning_rate": rate, "dtype": "float64", "max_iter": 8}
    found = trained(
        client, LinearRegression(), items((parts[0], y[:250]), (parts[1], y[250:])), None, **options
    )
    dense = trained(client, LinearRegression(), cut(X, [250, 350]), cut(y, [250, 350]), **options)
    assert largest_difference(found, dense) < 1e-6
    mixed = trained(
        client, LinearRegression(), items((X[:250], y[:250]), (parts[1], y[250:])), None, **options
    )
    assert largest_difference(mixed, dense) < 1e-6
    assert np.allclose(np.concatenate(dask.compute(*found.predict(items(*parts)))), found.predict(X))


def test_sparse_and_dense_shards_are_standardised_equally(client, regression):
    """The rate ``"auto"`` standardises the features of a network."""
    X, y = regression
    X = np.where(X > 0, X, 0).astype(np.float32)
    network = MLPRegressor(hidden_layer_sizes=4, random_state=0)
    dense, mixed = (
        DaskOrtGradientOptimizer(network, client=client, random_state=0)
        .partial_fit(items((X[:250], y[:250]), (part, y[250:])))
        .get_weights()
        for part in (X[250:], sparse.csr_array(X[250:]))
    )
    for name, array in dense.items():
        np.testing.assert_allclose(mixed[name], array, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "part, message",
    [
        (lambda X, y: (X[:, :3], y), "Partition 1: .*X has 3 features, but .* is expecting 4"),
        (lambda X, y: (np.where(X == X[7], np.nan, X), y), "Partition 1: .*NaN"),
        (lambda X, y: (X.astype(str), y), "Partition 1: .*must contain numbers"),
        (lambda X, y: (X, y[:-1]), "Partition 1: .*inconsistent numbers of samples: .350, 349."),
        (lambda X, y: (X, np.where(y == y[3], np.nan, y)), "Partition 1: .*NaN"),
        (lambda X, y: (X, y, -np.ones(350)), "Partition 1: .*negative"),
        (lambda X, y: (X, y, y, y), "Partition 1: .*has 4 items"),
    ],
)
def test_invalid_partition_is_named(client, regression, part, message):
    X, y = regression
    first = (X[:250], y[:250]) if "negative" not in message else (X[:250], y[:250], np.ones(250))
    with pytest.raises(ValueError, match=message):
        trained(client, LinearRegression(), items(first, part(X[250:], y[250:])), None)


def test_error_of_a_delayed_loader_names_the_partition(client, regression):
    X, y = regression

    def load():
        raise OSError("no such bucket")

    parts = [*items((X[:250], y[:250])), dask.delayed(load)()]
    with pytest.raises(Exception, match="Partition 1: OSError: no such bucket"):
        trained(client, LinearRegression(), parts, None)


@pytest.mark.parametrize(
    "X, y, message",
    [
        (np.zeros((3, 2)), np.zeros(3), "X is a ndarray, which is not distributed. Pass a dask array"),
        ([1, 2], None, "X is a list, which is not distributed. Pass a dask array"),
        (da.zeros((4, 2), chunks=2), da.zeros(5, chunks=5), "X has 4 samples, and y has 5"),
        (da.zeros((4, 2), chunks=2), "label", "name columns, which X .type Array. does not have"),
    ],
)
def test_invalid_arguments_are_rejected(client, X, y, message):
    with pytest.raises(ValueError, match=message):
        trained(client, LinearRegression(), X, y)


def test_separate_labels_of_delayed_pairs_are_rejected(client, regression):
    X, y = regression
    with pytest.raises(ValueError, match=r"Make items \(X, y\)"):
        trained(client, LinearRegression(), items((X, y)), cut(y, [600]))


def frame(pd, X, y):
    data = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    data["city"] = np.array(["Rome", "Oslo", "Lima"])[np.arange(len(X)) % 3]
    data["label"] = y + np.arange(len(X)) % 3
    return data


def pipeline():
    encoder = make_column_transformer((OneHotEncoder(), ["city"]), remainder=StandardScaler())
    return make_pipeline(encoder, LinearRegression())


def test_frames_with_categories(client, regression):
    pd = pytest.importorskip("pandas", reason="dask dataframes need pandas")
    dd = pytest.importorskip("dask.dataframe", reason="dask dataframes need pandas and pyarrow")
    data = frame(pd, *regression)
    local = OrtGradientOptimizer(pipeline(), **OPTIONS).fit(data.drop(columns="label"), data["label"])
    one = dd.from_pandas(data, npartitions=1)
    assert same_bits(trained(client, pipeline(), one, "label"), local)
    parts = dd.from_pandas(data, npartitions=3)
    expected = trained(client, pipeline(), parts, "label")
    assert same_bits(trained(client, pipeline(), parts.drop(columns="label"), parts["label"]), expected)
    coded = parts.astype({"city": "category"})
    assert same_bits(trained(client, pipeline(), coded, "label"), expected)
    predicted = expected.predict(parts.drop(columns="label")).compute()
    assert np.array_equal(predicted, expected.predict(data.drop(columns="label")))
    assert expected.score(parts.drop(columns="label"), parts["label"]) == pytest.approx(
        expected.score(data.drop(columns="label"), data["label"]), rel=1e-5
    )
    with pytest.raises(ValueError, match=r"X has no columns \['size'\]"):
        trained(client, pipeline(), parts, "size")


def test_dataframe_partitions_with_different_columns(client, regression):
    pd = pytest.importorskip("pandas", reason="dask dataframes need pandas")
    data = frame(pd, *regression)
    first, second = data.iloc[:250], data.iloc[250:]

    def pair(part):
        return part.drop(columns="label"), part["label"]

    swapped = second[["b", "a", *second.columns[2:]]]
    with pytest.raises(ValueError, match="Partition 1: .*feature names"):
        numbers = [part.drop(columns="city") for part in (first, swapped)]
        trained(client, LinearRegression(), items(*map(pair, numbers)), None)
    unknown = second.assign(city="Paris")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with pytest.raises(ValueError, match="Partition 1: "):
            trained(client, pipeline(), items(pair(first), pair(unknown)), None)


def test_parquet_files_are_read_on_the_workers(client, regression, tmp_path):
    pd = pytest.importorskip("pandas", reason="frames are written by pandas")
    pytest.importorskip("pyarrow", reason="parquet files are read by pyarrow")
    X, y = regression
    data = pd.DataFrame(X, columns=list("abcd")).assign(label=y)
    expected = trained(client, LinearRegression(), cut(X, [250, 350]), cut(y, [250, 350]))
    data[:250].to_parquet(tmp_path / "0.parquet")
    data[250:].to_parquet(tmp_path / "1.parquet")
    assert same_bits(trained(client, LinearRegression(), tmp_path, "label"), expected)
    paths = [tmp_path / "0.parquet", str(tmp_path / "1.parquet")]
    found = trained(client, LinearRegression(), paths, "label")
    assert same_bits(found, expected)
    assert found.score(tmp_path, "label") == pytest.approx(found.score(data[list("abcd")], y))
    data.to_parquet(tmp_path / "one.parquet", row_group_size=250)
    groups = trained(client, LinearRegression(), tmp_path / "one.parquet", "label")
    by_hand = trained(client, LinearRegression(), cut(X, [250, 250, 100]), cut(y, [250, 250, 100]))
    assert same_bits(groups, by_hand)
    two = trained(client, LinearRegression(), paths, "label", features=["b", "a"])
    assert two.feature_names_in_.tolist() == ["b", "a"]
    stopped = DaskOrtGradientOptimizer(LinearRegression(), client=client, early_stopping=True, **OPTIONS)
    with pytest.warns(UserWarning, match="reached max_iter"):
        stopped.fit(paths, "label", X_val=tmp_path / "one.parquet")
    assert len(stopped.validation_losses_) == 3
    with pytest.raises(SourceError, match="No parquet files can be read at"):
        trained(client, LinearRegression(), tmp_path / "missing", "label")
    (tmp_path / "1.parquet").write_bytes(b"no parquet")
    with pytest.raises(SourceError, match="1.parquet"):
        trained(client, LinearRegression(), paths, "label")
