"""Rounds: one shard equals one machine, and the result depends only on the shards."""

import copy
import pickle
import warnings
from functools import partial

import dask
import numpy as np
import pytest
from distributed import Future
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.data.orders import epoch_order
from ortlearn.distributed import DaskOrtGradientOptimizer, average_arrays, tasks
from ortlearn.distributed.averaging import Mean, merge_in_pairs
from ortlearn.distributed.rounds import TREE_BYTES, Interval
from ortlearn.exceptions import ClusterError, ConvergenceError, FewUpdatesWarning, PluginError
from ortlearn.learning_rates import LearningRateSGD
from tests.calls import calls_of
from tests.distributed.conftest import cluster_of
from tests.distributed.shards import cut, largest_difference, same_bits

LOW_THRESHOLD = {"distributed.admin.large-graph-warning-threshold": "100kB"}
OPTIONS = {"max_iter": 4, "batch_size": 32, "random_state": 0}


def network(**options):
    return MLPRegressor(hidden_layer_sizes=6, random_state=0, **options)


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "estimator, options",
    [
        (LinearRegression(), {"learning_rate": 0.01}),
        (network(), {"learning_rate": "Adam"}),
        (network(), {"learning_rate": "SGDNesterov", "clip_norm": 1.0, "dtype": "float64"}),
        (
            network(),
            {
                "learning_rate": LearningRateSGD(0.05, learning_rate="adaptive"),
                "tol": 100,
                "n_iter_no_change": 2,
            },
        ),
        (network(alpha=0.1), {"learning_rate": "Adam", "average": 40, "shuffle": False}),
        (make_pipeline(StandardScaler(), SGDRegressor()), {"learning_rate": "RMSprop"}),
        (LinearRegression(), {"learning_rate": "LBFGS", "max_iter": 20}),
        (LinearRegression(), {"max_iter": 20}),
        (LinearRegression(), {"learning_rate": 0.01, "batch_size": 1000}),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_one_shard_equals_one_machine(client, regression, estimator, options, weighted):
    X, y = regression
    weight = np.random.default_rng(2).random(len(y)) if weighted else None
    options = {**OPTIONS, **options}
    local = OrtGradientOptimizer(estimator, **options).fit(X, y, weight)
    found = DaskOrtGradientOptimizer(estimator, client=client, **options)
    found.fit(cut(X, [600]), cut(y, [600]), None if weight is None else cut(weight, [600]))
    assert same_bits(found, local)
    assert np.array_equal(found.predict(X), local.predict(X))


@pytest.mark.slow
@pytest.mark.sweep(1)
@pytest.mark.parametrize("sync_every", ["5 batches", "1 batch"])
def test_one_shard_equals_one_machine_with_several_rounds_per_epoch(client, regression, sync_every):
    X, y = regression
    local = OrtGradientOptimizer(network(), learning_rate="Adam", **OPTIONS).fit(X, y)
    found = DaskOrtGradientOptimizer(
        network(), learning_rate="Adam", sync_every=sync_every, client=client, **OPTIONS
    ).fit(cut(X, [600]), cut(y, [600]))
    assert largest_difference(found, local) == 0.0
    np.testing.assert_allclose(found.train_losses_, local.train_losses_, rtol=1e-6)


def test_round_averages_the_trainings_of_shards(client, regression):
    """The rounds equal separate trainings of each shard from the mean, averaged after each epoch."""
    X, y = regression
    sizes, rate = (200, 300, 100), 0.01
    options = {
        **OPTIONS,
        "learning_rate": LearningRateSGD(rate, learning_rate="constant"),
        "dtype": "float64",
    }
    found = DaskOrtGradientOptimizer(LinearRegression(), client=client, **options)
    found.fit(cut(X, sizes), cut(y, sizes))
    start = OrtGradientOptimizer(LinearRegression(), **{**options, "max_iter": 1, "learning_rate": 1e-30})
    weights = start.fit(X[:200], y[:200]).get_weights()
    seed = found._fitted.state.seed
    bounds = np.cumsum([0, *sizes])
    for epoch in range(OPTIONS["max_iter"]):
        parts = []
        for shard, (first, last) in enumerate(zip(bounds[:-1], bounds[1:], strict=True)):
            own = {name: array.astype(float) for name, array in weights.items()}
            order = epoch_order(last - first, seed, epoch, shard)
            for i in range(0, len(order), 32):
                samples = first + order[i : i + 32]
                left = X[samples].astype(float) @ own["coef"] + own["intercept"] - y[samples].reshape(-1, 1)
                own["coef"] = own["coef"] - rate * X[samples].T.astype(float) @ left / len(samples)
                own["intercept"] = own["intercept"] - rate * left.mean(axis=0)
            parts.append(own)
        weights = average_arrays(parts, sizes)
    for name, array in found.get_weights().items():
        np.testing.assert_allclose(array, weights[name].reshape(array.shape), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.sweep(1)
@pytest.mark.parametrize("sync_every", [1, 3, "4 batches"])
def test_result_is_independent_of_the_number_of_workers(client, regression, sync_every):
    X, y = regression
    sizes = [100, 250, 50, 200]
    options = {**OPTIONS, "learning_rate": "Adam", "sync_every": sync_every}
    two = DaskOrtGradientOptimizer(network(), client=client, **options).fit(cut(X, sizes), cut(y, sizes))
    with cluster_of(1, processes=False, is_current=False) as one_worker:
        one = DaskOrtGradientOptimizer(network(), client=one_worker, **options)
        one.fit(cut(X, sizes), cut(y, sizes))
    assert same_bits(one, two)
    other = DaskOrtGradientOptimizer(network(), client=client, **options)
    assert not same_bits(other.fit(cut(X, [300, 300]), cut(y, [300, 300])), two)


def test_merging_on_workers_gives_the_same_result(client):
    rng = np.random.default_rng(0)
    outcomes = [
        tasks.Outcome(Mean({("w", None): rng.normal(size=7).astype(np.float32)}, weight), (weight,))
        for weight in (1.0, 2.5, 0.5, 1.1, 0.9)
    ]
    expected = merge_in_pairs(outcomes, tasks.merge_outcomes)
    futures = [client.submit(lambda outcome: outcome, outcome) for outcome in outcomes]
    found = merge_in_pairs(futures, partial(client.submit, tasks.merge_outcomes)).result()
    np.testing.assert_array_equal(found.mean.arrays["w", None], expected.mean.arrays["w", None])
    assert (found.mean.weight, found.reports) == (expected.mean.weight, expected.reports)


@pytest.mark.slow
def test_large_models_are_merged_on_workers(client, regression):
    X, y = regression
    sizes, width = [100, 250, 50, 110, 90], 400
    assert 5 * 3 * 4 * width**2 > TREE_BYTES  # weights and two states in each of five shards
    options = {"learning_rate": "Adam", "max_iter": 1, "random_state": 0}
    model = MLPRegressor(hidden_layer_sizes=(width, width))
    with calls_of(merge_in_pairs) as calls:
        found = DaskOrtGradientOptimizer(model, client=client, **options).fit(cut(X, sizes), cut(y, sizes))
    assert len(calls) == 1 and isinstance(calls[0]["items"][0], Future)
    assert found.score(X, y) > 0.1


@pytest.mark.parametrize(
    "sync_every, interval",
    [
        (1, Interval(1)),
        (3, Interval(3)),
        ("1 pass", Interval(1)),
        ("2 passes", Interval(2)),
        ("100 batches", Interval(1, 100)),
        ("1 batch", Interval(1, 1)),
        (np.int64(2), Interval(2)),
    ],
)
def test_units_of_sync_every(sync_every, interval):
    assert Interval.of(sync_every) == interval


@pytest.mark.parametrize("sync_every", [0, -1, 1.5, "2", "0 batches", "two passes", None, True, "3 rounds"])
def test_invalid_sync_every_is_rejected(client, regression, sync_every):
    X, y = regression
    model = DaskOrtGradientOptimizer(LinearRegression(), client=client, sync_every=sync_every)
    with pytest.raises(ValueError, match="must be a number of passes, such as 1 or '2 passes'"):
        model.fit(cut(X, [600]), cut(y, [600]))


@pytest.mark.slow
def test_round_of_two_epochs_averages_once(client, regression):
    X, y = regression
    sizes = [200, 200, 200]
    options = {**OPTIONS, "max_iter": 5, "learning_rate": "Adam"}
    found = DaskOrtGradientOptimizer(network(), sync_every=2, client=client, **options)
    found.fit(cut(X, sizes), cut(y, sizes))
    assert len(found.train_losses_) == 5 and len(set(found.train_losses_)) == 5
    seen = found.set_params(sync_every=5).fit(cut(X, sizes), cut(y, sizes)).history_
    for name, losses in seen[4]["shard_losses"].items():  # each shard has never seen another one
        number = int(name.split()[1])
        part = slice(200 * number, 200 * number + 200)
        assert len(losses) == 1 and np.isfinite(losses[0]) and part.stop <= 600


def test_schedules_based_on_losses_need_one_epoch_per_round(client, regression):
    X, y = regression
    rate = LearningRateSGD(0.01, learning_rate="adaptive")
    model = DaskOrtGradientOptimizer(LinearRegression(), learning_rate=rate, sync_every=2, client=client)
    with pytest.raises(PluginError, match="set sync_every=1, or use another schedule"):
        model.fit(cut(X, [300, 300]), cut(y, [300, 300]))


@pytest.mark.slow
def test_history_has_columns_for_rounds_shards_and_workers(client, regression):
    X, y = regression
    model = DaskOrtGradientOptimizer(
        LinearRegression(), learning_rate=0.01, sync_every="4 batches", client=client, **OPTIONS
    ).fit(cut(X, [300, 200, 100]), cut(y, [300, 200, 100]))
    assert [record["epoch"] for record in model.history_] == [1, 2, 3, 4]
    for record in model.history_:
        assert record["rounds"] == 3  # 10, 7 and 4 batches
        assert [len(record["shard_losses"][f"Partition {i}"]) for i in range(3)] == [3, 2, 1]
        assert sum(record["worker_rows"].values()) == 600
        assert record["worker_rows"].keys() == record["worker_seconds"].keys()
        assert record["worker_rows"].keys() <= client.scheduler_info()["workers"].keys()


@pytest.mark.slow
@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    "estimator, rate", [(network(), "Adam"), (network(), "auto"), (LinearRegression(), 0.01)]
)
def test_partial_fit_continues(client, regression, estimator, rate):
    X, y = regression
    options = {"learning_rate": rate, "batch_size": 32, "random_state": 0}
    local, found = (OrtGradientOptimizer(estimator, **options), None)
    found = DaskOrtGradientOptimizer(estimator, client=client, **options)
    for part in (slice(0, 200), slice(200, 600)):
        n_samples = part.stop - part.start
        local.partial_fit(X[part], y[part])
        found.partial_fit(cut(X[part], [n_samples]), cut(y[part], [n_samples]))
    assert same_bits(found, local) and found.n_iter_ == 2
    found.partial_fit(cut(X, [300, 300]), cut(y, [300, 300]))
    assert found.n_iter_ == 3 and np.isfinite(found.train_losses_[2])


@pytest.mark.slow
def test_warm_start_continues(client, regression):
    X, y = regression
    shards = cut(X, [300, 300]), cut(y, [300, 300])
    own = LinearRegression().fit(X[:30], y[:30] + 0.1)
    model = DaskOrtGradientOptimizer(own, warm_start=True, learning_rate=0.01, client=client, **OPTIONS).fit(
        *shards
    )
    first = model.score(*shards)
    assert not model.start_kept_ and model.fit(*shards).score(*shards) >= first > 0.99
    perfect = LinearRegression().fit(X, y)
    model = DaskOrtGradientOptimizer(perfect, warm_start=True, learning_rate=0.9, client=client, **OPTIONS)
    with pytest.warns(UserWarning, match="Training did not improve the model"):
        model.fit(*shards)
    assert model.start_kept_
    np.testing.assert_allclose(model.predict(X), perfect.predict(X), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_starting_weights_are_kept_if_validation_loss_on_workers_is_lower(client, regression):
    X, y = regression
    perfect = LinearRegression().fit(X, y)
    model = DaskOrtGradientOptimizer(perfect, warm_start=True, learning_rate=0.9, client=client, **OPTIONS)
    samples = [cut(part, [300, 300]) for part in (X, y)]
    for held_out in (samples, (X, y)):
        with pytest.warns(UserWarning, match="Training did not improve the model"):
            clone(model).fit(*samples, X_val=held_out[0], y_val=held_out[1])
        worse = LinearRegression().fit(X[:20], y[:20] + 1)
        better = clone(model).set_params(estimator=worse, learning_rate=0.01)
        assert not better.fit(*samples, X_val=held_out[0], y_val=held_out[1]).start_kept_


@pytest.mark.slow
def test_large_weights_cause_no_dask_warning(client):
    """Weights of 120 KB, above a threshold that is lower than Dask's."""
    rng = np.random.default_rng(0)
    X, y = cut(rng.standard_normal((40, 100), np.float32), [20, 20]), cut(rng.random(40), [20, 20])
    network = MLPRegressor(hidden_layer_sizes=300, random_state=0)
    model = DaskOrtGradientOptimizer(network, client=client, learning_rate=0.001, max_iter=1, random_state=0)
    with warnings.catch_warnings(), dask.config.set(LOW_THRESHOLD):
        warnings.simplefilter("ignore")  # those of trainings of one pass
        warnings.filterwarnings("error", "Sending large graph")
        model.fit(X, y).partial_fit(X, y).set_params(warm_start=True).fit(X, y)
        assert np.isfinite(model.score(X, y))


@pytest.mark.slow
def test_divergence_names_the_partition(client, regression):
    X, y = regression
    X = X.copy()
    X[450:] *= 1e20
    shards = cut(X, [300, 100, 200]), cut(y, [300, 100, 200])
    model = DaskOrtGradientOptimizer(LinearRegression(), learning_rate=0.01, client=client, **OPTIONS)
    with pytest.raises(ConvergenceError, match=r"\(loss (nan|inf) in Partition 2\) in epoch 1"):
        model.fit(*shards)
    assert not hasattr(model, "n_iter_")
    model.set_params(exc=False)
    with pytest.warns(UserWarning, match="in Partition 2"):
        model.fit(*shards)
    assert all(np.isfinite(array).all() for array in model.get_weights().values())


@pytest.mark.slow
def test_early_stopping_on_driver_and_workers(client, regression):
    X, y = regression
    options = {"max_iter": 200, "batch_size": 32, "random_state": 0, "learning_rate": 0.3}
    options |= {"early_stopping": True, "n_iter_no_change": 3}
    shards = cut(X[:500], [200, 300]), cut(y[:500], [200, 300])
    model = DaskOrtGradientOptimizer(LinearRegression(), client=client, **options)
    with pytest.raises(ValueError, match="early_stopping needs validation data"):
        model.fit(*shards)
    local = clone(model).fit(*shards, X_val=X[500:], y_val=y[500:])
    assert local.n_iter_ < 200 and local.best_epoch_ <= local.n_iter_
    found = clone(model).fit(*shards, X_val=cut(X[500:], [60, 40]), y_val=cut(y[500:], [60, 40]))
    assert found.best_epoch_ == local.best_epoch_
    np.testing.assert_allclose(found.validation_losses_, local.validation_losses_, rtol=1e-5)
    np.testing.assert_allclose(found.validation_scores_, local.validation_scores_, rtol=1e-5)
    with pytest.raises(ValueError, match="pass X_val and y_val as arrays in memory"):
        model.set_params(scoring="neg_max_error").fit(*shards, X_val=shards[0], y_val=shards[1])


def test_clone_set_params_and_pickle(client, regression):
    X, y = regression
    model = DaskOrtGradientOptimizer(LinearRegression(), client=client, sync_every=2, **OPTIONS)
    names = {*OrtGradientOptimizer(LinearRegression()).get_params(deep=False), "client", "sync_every"}
    assert model.get_params(deep=False).keys() == names
    twin = clone(model)
    assert twin.client is client and twin.sync_every == 2 and twin.max_iter == 4
    model.set_params(learning_rate=0.01).fit(cut(X, [300, 300]), cut(y, [300, 300]))
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded.client is None and np.array_equal(loaded.predict(X), model.predict(X))
    local = model.to_local()
    assert type(local) is OrtGradientOptimizer and same_bits(local, model)
    assert np.array_equal(local.predict(X), model.predict(X))
    assert copy.deepcopy(local).partial_fit(X, y).n_iter_ == 5


def test_closed_client_is_an_error(client, regression):
    X, y = regression
    with cluster_of(1, processes=False, is_current=False) as other:
        model = DaskOrtGradientOptimizer(LinearRegression(), client=other)
    with pytest.raises(ClusterError, match="The Dask client is closed"):
        model.fit(cut(X, [600]), cut(y, [600]))


def test_fit_stream_is_not_supported(client):
    with pytest.raises(ValueError, match="pass parquet files or a dask collection to fit"):
        DaskOrtGradientOptimizer(LinearRegression(), client=client).fit_stream("folder")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:LearningRateLBFGS stopped:sklearn.exceptions.ConvergenceWarning")
def test_multiclass_classifier(client, classes):
    X, y = classes
    shards = cut(X, [150, 250, 200]), cut(y, [150, 250, 200])
    for estimator in (LogisticRegression(), MLPClassifier(hidden_layer_sizes=6, random_state=0)):
        model = DaskOrtGradientOptimizer(estimator, client=client, max_iter=25, random_state=0)
        model.fit(*shards)
        assert model.classes_.tolist() == ["a", "b", "c"]
        assert model.score(*shards) == pytest.approx(np.mean(model.predict(X) == y))
        assert model.score(*shards) > 0.8


def few_updates(client, X, y, **options):
    """Return the FewUpdatesWarning messages of a training over four shards of 100 samples each."""
    options = {"batch_size": 10, "max_iter": 2, "learning_rate": "Adam"} | options
    trainer = DaskOrtGradientOptimizer(Ridge(), client=client, random_state=0, **options)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        trainer.fit(cut(X[:400], [100] * 4), cut(y[:400], [100] * 4))
    return [str(item.message) for item in found if issubclass(item.category, FewUpdatesWarning)]


@pytest.mark.slow
def test_few_updates_of_shards_cause_a_warning(client, regression):
    (text,) = few_updates(client, *regression, batch_size=1, max_iter=4)  # 400 updates are few, 500 enough
    assert text.endswith("To compensate, multiply the learning rate by 2, or increase max_iter.")
    assert not few_updates(client, *regression, batch_size=1, max_iter=5)
    (text,) = few_updates(client, *regression, max_iter=13)
    assert "4 shards updates the weights 130 times in 13 passes, one machine 520 times" in text
    assert "set batch_size=2, multiply the learning rate by 2, or increase max_iter." in text


@pytest.mark.slow
@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    "options",
    [{"max_iter": 12}, {"batch_size": 400, "max_iter": 130}, {"learning_rate": "LBFGS", "max_iter": 13}],
    ids=str,
)
def test_no_warning_for_few_updates_of_one_machine_or_exact_training(client, regression, options):
    assert not few_updates(client, *regression, **options)
