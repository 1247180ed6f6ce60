"""Averages of trainings: weighted, in float64, independent of where pairs are merged."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, SGDRegressor
from sklearn.neural_network import MLPRegressor

from ortlearn import OrtGradientOptimizer
from ortlearn.distributed import average_arrays, average_trainers
from ortlearn.distributed.averaging import Mean, merged


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(1, 10**6)), min_size=1, max_size=20))
def test_mean_is_weighted_and_computed_in_float64(pairs):
    values, weights = zip(*pairs, strict=True)
    found = average_arrays([{"w": np.array(v)} for v in values], weights)["w"]
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, np.average(values, weights=weights), rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 3, 8])
def test_mean_of_equal_parts_is_exact(dtype, count):
    array = np.random.default_rng(0).standard_normal(50).astype(dtype)
    found = average_arrays([{"w": array}] * count, weights=np.arange(1, count + 1) / 7)["w"]
    assert found.dtype == dtype and np.array_equal(found, array)


def test_float32_is_averaged_in_float64():
    parts = [{"w": np.array([x], np.float32)} for x in (2.0**24, 1.0, 1.0, 1.0)]
    assert average_arrays(parts)["w"] == np.float32((2**24 + 3) / 4)


def test_mean_of_integers_is_their_maximum():
    parts = [{"steps": np.array(n), "seen": np.array([n > 2])} for n in (3, 5, 1)]
    found = average_arrays(parts, [1, 1, 9])
    assert found["steps"] == 5 and found["steps"].dtype == parts[0]["steps"].dtype
    assert found["seen"].tolist() == [True]


@pytest.mark.parametrize("count", [2, 3, 5, 6, 7, 8])
def test_result_is_independent_of_where_pairs_are_merged(count):
    rng = np.random.default_rng(count)
    parts = [{"w": rng.standard_normal(30).astype(np.float32)} for _ in range(count)]
    weights = rng.integers(1, 100, count).astype(float).tolist()
    level = [Mean(part, weight) for part, weight in zip(parts, weights, strict=True)]
    while len(level) > 1:  # as tasks do, each on another worker
        level = [
            merged(*level[i : i + 2]) if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)
        ]
    expected = average_arrays(parts, weights)["w"]
    assert np.array_equal(level[0].arrays["w"].astype(np.float32), expected)
    assert level[0].weight == sum(weights)


@pytest.mark.parametrize("weights", [[1.0], [-1.0, 2.0], [0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_invalid_weights_are_rejected(weights):
    with pytest.raises(ValueError, match="must be a number >= 0 for each of 2 trainings"):
        average_arrays([{"w": np.zeros(1)}] * 2, weights)


@pytest.mark.parametrize(
    "other",
    [{"v": np.zeros(2)}, {"w": np.zeros(3)}, {"w": np.zeros(2, np.float32)}, {}, {"w": np.zeros(2), "v": 0}],
)
def test_different_arrays_are_rejected(other):
    other = {name: np.asarray(array) for name, array in other.items()}
    with pytest.raises(ValueError, match=r"Part 1 has other arrays.*\['[vw]'"):
        average_arrays([{"w": np.zeros(2)}, other])


def test_empty_sequence_is_rejected():
    with pytest.raises(ValueError, match="nothing to average"):
        average_arrays([])
    with pytest.raises(ValueError, match="nothing to average"):
        average_trainers([])


X = np.random.default_rng(0).standard_normal((120, 3)).astype(np.float32)
Y = X @ np.array([1.0, -2.0, 0.5], np.float32) + 3


def begun(estimator=None, **parameters):
    estimator = LinearRegression() if estimator is None else estimator
    model = OrtGradientOptimizer(estimator, random_state=0, **{"learning_rate": 0.02, **parameters})
    return model.partial_fit(X[:20], Y[:20])


def on_shards(model, cuts=(0, 60, 120)):
    return [
        copy.deepcopy(model).partial_fit(X[a:b], Y[a:b]) for a, b in zip(cuts[:-1], cuts[1:], strict=True)
    ]


def test_average_of_full_batch_sgd_equals_one_update_on_all_samples():
    """The average of one full-batch update per shard, weighted by samples, is the update on all samples."""
    model = begun(batch_size=1000)
    expected = copy.deepcopy(model).partial_fit(X, Y)
    found = average_trainers(on_shards(model, (0, 30, 120)), [30, 90])
    for name, array in expected.get_weights().items():
        np.testing.assert_allclose(found.get_weights()[name], array, rtol=2e-6)


@pytest.mark.parametrize("rate", ["Adam", "SGDNesterov", "auto"])
def test_states_are_averaged_and_training_continues(rate):
    model = begun(MLPRegressor(hidden_layer_sizes=4, random_state=0), learning_rate=rate)
    one, other = on_shards(model)
    found = average_trainers([one, other], [1, 3])
    states = [m._fitted.state.states for m in (one, other, found)]
    assert states[0] and states[0].keys() == states[2].keys()
    for key, array in states[2].items():
        expected = (states[0][key].astype(float) + 3 * states[1][key].astype(float)) / 4
        np.testing.assert_allclose(array, expected, rtol=1e-6, atol=1e-12)
        assert array.dtype == states[0][key].dtype
    assert found.n_iter_ == 2 and len(found.history_) == 2
    losses = [m.train_losses_[1] for m in (one, other, found)]
    assert losses[2] == pytest.approx((losses[0] + 3 * losses[1]) / 4)
    assert average_trainers(on_shards(found)).n_iter_ == 3


def test_average_of_one_training_is_unchanged():
    model = begun(MLPRegressor(hidden_layer_sizes=4, random_state=0), learning_rate="Adam")
    one = average_trainers([model], [17])
    assert one is not model
    first, second = (m.partial_fit(X, Y).get_weights() for m in (one, copy.deepcopy(model)))
    assert all(np.array_equal(first[name], second[name]) for name in second)


@pytest.mark.parametrize("rate", [0.02, "auto"])
def test_averaged_sgd_counts_the_updates_of_all_trainers(rate):
    """With ``average=True`` the state has the sum of the weights after each update, and their number."""
    model = begun(SGDRegressor(), average=True, learning_rate=rate)
    one, other = on_shards(model, (0, 40, 120))
    found = average_trainers([one, other], [40, 80])
    coordinates = model._fitted.state.coordinates
    sums, counts = [], []
    for trainer, share in ((one, 1 / 3), (other, 2 / 3)):
        states = trainer._fitted.state.states
        sums.append({n: share * states[n, "averaged_sum"] for n, s in states if s == "averaged_sum"})
        counts.append(share * float(next(v for (_, s), v in states.items() if s == "averaged_count")))
    means = {name: (sums[0][name] + sums[1][name]) / sum(counts) for name in sums[0]}
    means = {name: array.astype(np.float32) for name, array in means.items()}
    expected = means if coordinates is None else coordinates.as_weights(means)
    for name, array in found._fitted.stable_weights().items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-5)
    assert average_trainers([found])._fitted.state.updated is not None


def test_different_standardisation_is_rejected():
    parts = [begun(learning_rate="auto"), OrtGradientOptimizer(LinearRegression(), random_state=0)]
    parts[1].partial_fit(5 * X[20:40], Y[20:40])
    with pytest.raises(ValueError, match="Training 1 standardises features differently from training 0"):
        average_trainers(parts)


def test_different_models_are_rejected():
    with pytest.raises(ValueError, match="Part 1 has other arrays"):
        average_trainers([begun(), begun(MLPRegressor(hidden_layer_sizes=4, random_state=0))])


def test_trainers_are_not_modified():
    trainers = on_shards(begun())
    before = [trainer.get_weights() for trainer in trainers]
    average_trainers(trainers).partial_fit(X, Y)
    for trainer, weights in zip(trainers, before, strict=True):
        assert all(np.array_equal(trainer.get_weights()[name], array) for name, array in weights.items())
