"""Fresh weights are drawn by their role, and reproducibly."""

import numpy as np
import pytest

from ortlearn.models.parameters import Weight
from ortlearn.trainable.initial_weights import draw_weights

WEIGHTS = {
    "a": Weight("a", "weight", True, (300, 100)),
    "b": Weight("b", "intercept", True),
    "c": Weight("c", "scale", True),
    "d": Weight("d", "weight", True, (4, 1)),
    "e": Weight("e", "other", True),
}
ARRAYS = {
    "d": np.full((4, 1), 9.0),
    "a": np.full((300, 100), 9.0, np.float32),
    "b": np.full((1, 100), 9.0, np.float32),
    "c": np.full(7, 9.0, np.float32),
    "e": np.full((2, 2), 9.0, np.float32),
}


def draw(seed, arrays=ARRAYS):
    return draw_weights(arrays, WEIGHTS, np.random.RandomState(seed))


def test_shapes_types_and_constants():
    drawn = draw(0)
    assert {n: (a.shape, a.dtype) for n, a in drawn.items()} == {
        n: (a.shape, a.dtype) for n, a in ARRAYS.items()
    }
    assert np.all(drawn["b"] == 0) and np.all(drawn["c"] == 1) and np.all(drawn["e"] == 0)
    assert all(np.all(array == 9) for array in ARRAYS.values())


@pytest.mark.parametrize("name", ["a", "d"])
def test_weights_are_uniform_within_bounds(name):
    bound = np.sqrt(6 / sum(WEIGHTS[name].fans))
    values = np.concatenate([draw(seed)[name].ravel() for seed in range(300 if name == "d" else 1)])
    assert np.abs(values).max() <= bound * (1 + 1e-6)
    # uniform: the whole interval is used, the mean is near zero and the variance a third of the bound's
    assert np.abs(values).max() > 0.98 * bound
    assert abs(values.mean()) < 0.05 * bound
    np.testing.assert_allclose(values.var(), bound**2 / 3, rtol=0.1)


def test_weights_are_not_standard_normal():
    values = draw(0)["a"]
    assert np.abs(values).max() < 0.2 and values.std() < 0.1


def test_equal_seeds_give_equal_weights_in_any_order():
    backwards = dict(reversed(ARRAYS.items()))
    for name, array in draw(3).items():
        np.testing.assert_array_equal(array, draw(3, backwards)[name])
    assert not np.array_equal(draw(3)["a"], draw(4)["a"])


def test_other_weights_are_not_drawn():
    assert set(draw(0, {"b": ARRAYS["b"]})) == {"b"}


def test_weights_that_keep_their_values():
    weights = {"a": Weight("a", "table", True, drawn=False), "b": Weight("b", "weight", True, drawn=False)}
    arrays = {"a": np.arange(3.0), "b": np.full((2, 2), 7.0, np.float32)}
    drawn = draw_weights(arrays, weights, np.random.RandomState(0))
    for name, array in arrays.items():
        np.testing.assert_array_equal(drawn[name], array)
        assert drawn[name].dtype == array.dtype and drawn[name] is not array
