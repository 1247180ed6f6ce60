"""The gradient check of Python losses finds wrong gradients, and accepts correct ones."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from ortlearn import OrtGradientForwardBackwardOptimizer
from ortlearn.exceptions import GradientWarning, PluginError
from ortlearn.losses import FunctionLoss
from ortlearn.losses.gradient_check import check_gradient, slope_ratio

RNG = np.random.RandomState(0)
X = RNG.normal(size=(40, 3))
Y = X @ [1.0, -2.0, 0.5] + 3.0


def summed(losses, gradient):
    return losses.sum(axis=1), gradient


def square(y, f):
    return summed((f - y) ** 2 / 2, f - y)


def absolute(y, f):
    return summed(np.abs(f - y), np.sign(f - y))


def hinge(y, f):
    sign = np.where(y > 0, 1, -1)
    return summed(np.maximum(0, 1 - sign * f), np.where(sign * f <= 1, -sign, 0).astype(f.dtype))


def quantile(y, f):
    return summed(np.where(f > y, 0.1 * (f - y), 0.9 * (y - f)), np.where(f > y, 0.1, -0.9))


def insensitive(y, f):
    outside = np.abs(f - y) - 0.1
    return summed(np.maximum(outside, 0), np.where(outside >= 0, np.sign(f - y), 0))


def huber(y, f):
    r = np.abs(f - y)
    return summed(np.where(r < 1, r**2 / 2, r - 0.5), np.clip(f - y, -1, 1))


def quartic(y, f):
    return summed((f - y) ** 4, 4 * (f - y) ** 3)


def exponential(y, f):
    return summed(np.exp(f) - y * f, np.exp(f) - y)


def logistic(y, f):
    sign = np.where(y > 0, 1, -1)
    return summed(np.logaddexp(0, -sign * f), -sign / (1 + np.exp(sign * f)))


def logarithm(y, f):
    return summed(np.abs(y) / f + np.log(f), 1 / f - np.abs(y) / f**2)


def with_offset(y, f):
    return summed((f - y) ** 2 / 2 + 100.0, f - y)


def below_zero(y, f):
    return summed((f - y) ** 2 / 2 - 1e3, f - y)


RIGHT = [
    square,
    absolute,
    hinge,
    quantile,
    insensitive,
    huber,
    quartic,
    exponential,
    logistic,
    with_offset,
    below_zero,
]


def in_float32(function):
    def rounded(y, f):
        losses, gradient = function(y.astype(np.float32), f.astype(np.float32))
        return losses.astype(np.float32), gradient.astype(np.float32)

    return rounded


def ratio_of(function, y, f):
    with np.errstate(all="ignore"):
        return slope_ratio(function, y, f, *function(y, f))


def cases(function):
    """Yield labels and predictions: of several scales, at kinks, in float32 and float64."""
    for dtype in (np.float32, np.float64):
        for n, k in ((1, 1), (10, 1), (7, 3)):
            y, noise = RNG.normal(size=(n, k)), RNG.normal(size=(n, k))
            for scale, offset in ((1, 0), (1e-4, 0), (1, 1000), (30, 0)):
                f = offset + scale * (y + noise)
                yield (offset + scale * y).astype(dtype), f.astype(dtype)
            yield y.astype(dtype), y.astype(dtype)  # at the kink of residuals
            yield y.astype(dtype), (y + np.where(noise > 0, 0, noise)).astype(dtype)
            yield np.sign(y).astype(dtype), np.sign(y).astype(dtype)  # at the kink of margins
            yield y.astype(dtype), np.zeros((n, k), dtype)


@pytest.mark.parametrize("coarse", [False, True], ids=["as_it_comes", "float32"])
@pytest.mark.parametrize("function", RIGHT, ids=lambda function: function.__name__)
def test_correct_gradients_are_accepted(function, coarse):
    function = in_float32(function) if coarse else function
    found = [ratio_of(function, y, f) for y, f in cases(function)]
    assert all(ratio is None or abs(ratio - 1) < 0.05 for ratio in found)
    ordinary = RNG.normal(size=(10, 1)), RNG.normal(size=(10, 1))
    assert ratio_of(function, *ordinary) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("factor", [-1.0, -0.1, 0.5, 2.0, 10.0, 1 / 1000], ids=str)
@pytest.mark.parametrize("function", RIGHT, ids=lambda function: function.__name__)
def test_wrong_factors_are_found(function, factor):
    def wrong(y, f):
        losses, gradient = function(y, f)
        return losses, factor * gradient

    y, f = RNG.normal(size=(10, 2)), RNG.normal(size=(10, 2))
    assert ratio_of(wrong, y, f) == pytest.approx(1 / factor, rel=0.05)


def test_undecided_cases():
    y, f = RNG.normal(size=(10, 1)), RNG.normal(size=(10, 1))
    random = np.random.RandomState(0)
    nothing = {
        "no gradient": lambda y, f: (np.ones(len(f)), 0 * f),
        "gradient of zeros": lambda y, f: (((f - y) ** 2).sum(axis=1), 0 * f),
        "random": lambda y, f: (((f - y) ** 2).sum(axis=1) + random.normal(size=len(f)), 2 * (f - y)),
        "not finite": lambda y, f: (np.full(len(f), np.nan), f),
        "outside of the domain": lambda y, f: summed(np.log(-np.abs(f)), 1 / f),
    }
    for name, function in nothing.items():
        assert ratio_of(function, y, f) is None, name
    near_zero = np.full((5, 1), 1e-6)
    assert ratio_of(logarithm, near_zero, near_zero / 2) == pytest.approx(1, abs=0.05)


def trained(function, **options):
    trainer = OrtGradientForwardBackwardOptimizer(
        LinearRegression(), learning_loss=function, learning_rate=0.01, max_iter=2, random_state=0, **options
    )
    return trainer.fit(X, Y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_training_with_wrong_sign(dtype):
    def wrong(y, f):
        return square(y, f)[0], y - f

    with pytest.raises(PluginError, match="has the wrong sign: .* change by -1 times .*check_gradient=False"):
        trained(wrong, dtype=dtype)
    with np.errstate(all="ignore"):
        assert trained(FunctionLoss(wrong, check_gradient=False), dtype=dtype).n_iter_ == 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_training_with_a_gradient_of_zero(dtype):
    def missing(y, f):
        return square(y, f)[0], np.zeros_like(f)

    with pytest.raises(PluginError, match="a gradient of zero, but the losses .*check_gradient=False"):
        trained(missing, dtype=dtype)
    assert trained(FunctionLoss(missing, check_gradient=False), dtype=dtype).n_iter_ == 2


def test_gradients_that_are_zero():
    def constant(y, f):
        return np.ones(len(f)), np.zeros_like(f)

    assert trained(constant).n_iter_ == 2
    y = np.array([[1.0], [2.0]])
    check_gradient(square, y, y, *square(y, y))  # at the minimum


def test_training_with_wrong_factor():
    def mean(y, f):
        return square(y, f)[0], (f - y) / len(f)

    with pytest.warns(GradientWarning, match="change by 10 times what the gradient") as caught:
        trained(mean)
    assert len(caught) == 1 and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trained(FunctionLoss(mean, check_gradient=False))


def test_check_makes_two_calls_in_the_first_batch():
    calls = []

    def counted(y, f):
        calls.append(f.dtype)
        return square(y, f)

    trainer = trained(counted)
    assert (
        calls.count(np.float64) == 2 and len(calls) == 2 * 4 + 1 + 2
    )  # the last weights are tried once more
    calls.clear()
    trainer.partial_fit(X, Y)
    assert np.dtype(np.float64) not in calls
    calls.clear()
    trainer.fit(X, Y)
    assert calls[1:3] == [np.float64] * 2


def test_functions_that_fail_in_float64():
    def picky(y, f):
        assert f.dtype == np.float32
        return square(y, f)

    assert trained(picky).n_iter_ == 2


@pytest.mark.parametrize("value", [None, 3, "yes"])
def test_invalid_check_gradient(value):
    with pytest.raises(PluginError, match="check_gradient="):
        trained(FunctionLoss(square, check_gradient=value))
