"""Where numbers of an initializer come from, whatever a converter does with them."""

import numpy as np
import pytest

from ortlearn.conversion.write_back.correspondence import WAYS, correspondence, moved

RNG = np.random.RandomState(3)
BEFORE = np.abs(RNG.normal(size=40)) + 0.1
AFTER = moved(BEFORE, np.random.RandomState(0))
ORDER = RNG.permutation(40)


def as_stored(values, way, factor=1.0, order=ORDER):
    return (factor * WAYS[way][0](values)[order]).astype(np.float32)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("way", list(WAYS))
def test_numbers_go_there_and_back(way, sign):
    first, second = as_stored(BEFORE, way, sign), as_stored(AFTER, way, sign)
    found = correspondence(BEFORE, AFTER, first, second)
    np.testing.assert_array_equal(found.source, ORDER)
    trained = as_stored(BEFORE * 1.7, way, sign)
    np.testing.assert_allclose(found.back(trained, BEFORE), 1.7 * BEFORE[ORDER], rtol=1e-5)
    np.testing.assert_allclose(found.forward(1.7 * BEFORE, first), trained, rtol=1e-5)


@pytest.mark.parametrize("factor", [0.1, 1 / 7, 30.0])
def test_a_factor_is_found_where_only_some_of_the_numbers_are_there(factor):
    some = ORDER[:11]
    found = correspondence(
        BEFORE, AFTER, as_stored(BEFORE, "identity", factor, some), as_stored(AFTER, "identity", factor, some)
    )
    np.testing.assert_array_equal(found.source, some)
    np.testing.assert_allclose(found.factor, factor, rtol=1e-5)


def test_signs_are_those_of_each_number():
    signs = np.where(np.arange(40) % 3 == 0, -1, 1)
    found = correspondence(BEFORE, AFTER, signs * BEFORE, signs * AFTER)
    np.testing.assert_array_equal(found.factor, signs)


def test_equal_numbers_and_zeros_are_told_apart():
    before = np.array([0.0, 0.0, 2.0, 2.0, -2.0])
    after = moved(before, np.random.RandomState(0))
    order = np.array([3, 1, 4, 0, 2])
    found = correspondence(before, after, before[order], after[order])
    np.testing.assert_array_equal(found.source, order)


def test_what_does_not_move_is_constant():
    first, second = np.append(BEFORE[:3], [0.5, 0.0]), np.append(AFTER[:3], [0.5, 0.0])
    found = correspondence(BEFORE, AFTER, first, second)
    np.testing.assert_array_equal(found.source, [0, 1, 2, -1, -1])
    back = found.back(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), BEFORE)
    np.testing.assert_array_equal(back, [1, 2, 3, np.nan, np.nan])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (BEFORE + 1, AFTER + 1),
        (BEFORE * BEFORE[::-1], AFTER * AFTER[::-1]),
        (np.cumsum(BEFORE), np.cumsum(AFTER)),
        (np.ones(3), np.ones(3)),
    ],
    ids=["shifted", "products", "sums", "constant"],
)
def test_other_formulas_are_not_guessed(first, second):
    assert correspondence(BEFORE, AFTER, first, second) is None


def test_every_number_is_moved_by_a_share_of_its_own():
    values = np.array([[1.0, -1.0], [0.0, 1e6]])
    new = moved(values, np.random.RandomState(0))
    shares = np.where(values == 0, new, new / np.where(values == 0, 1, values) - 1)
    assert len(np.unique(shares)) == 4
    assert (np.sign(new[values != 0]) == np.sign(values[values != 0])).all()
    assert (shares > 0.01).all() and (shares <= 1).all()
