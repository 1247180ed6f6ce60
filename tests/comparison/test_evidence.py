"""The rule of evidence: which candidate is kept, given losses of samples."""

import warnings

import numpy as np
import pytest

from ortlearn.comparison.evidence import best_of, bounded, improves

NOISE = np.random.default_rng(0).normal(size=400)


def losses(*gains, spread=1.0):
    """Return losses of a start and of candidates with these mean gains and some spread."""
    noise = spread * (NOISE - NOISE.mean()) / NOISE.std()
    return np.array([noise * 0 + 5, *(5 - gain - noise for gain in gains)])


def test_log_loss_is_bounded_by_that_of_chance():
    p = np.array([1.0, 0.5, 1e-30])
    np.testing.assert_allclose(bounded(-np.log(p)), -np.log(0.05 + 0.95 * p))
    assert bounded(np.array([np.inf])) == -np.log(0.05)


def test_candidate_is_selected_if_its_gain_exceeds_the_standard_error():
    ones, error = np.ones(400), 1 / np.sqrt(399)
    assert best_of(losses(0.9 * error), ones, [0], 1.0) is None
    assert best_of(losses(1.1 * error), ones, [0], 1.0) == 0
    assert best_of(losses(-1.0, np.nan), ones, [0, 0], 1.0) is None
    assert best_of(losses(0.2, 0.5, np.nan), ones, [0, 0, 0], 1.0) == 1


def test_first_of_nearly_equal_candidates_is_selected():
    table = losses(0.5, 0.5, 0.5)
    table[2] -= 0.01 + NOISE * 0.1 - 0.1 * NOISE.mean()  # better by two standard errors
    assert best_of(table, np.ones(400), [0, 0, 0], 1.0) == 1
    table[2] += 0.009
    assert best_of(table, np.ones(400), [0, 0, 0], 1.0) == 0
    assert best_of(table, np.ones(400), [0, 1, 1], 1.0) == 1


def test_samples_are_weighted():
    table = np.array([[1.0, 1.0, 1.0, 1.0], [0.5, 0.6, 3.0, 3.0], [1.5, 1.6, 0.0, 0.1]])
    assert best_of(table, np.array([1.0, 1.0, 0.01, 0.01]), [0, 1], 1.0) == 0
    assert best_of(table, np.array([0.01, 0.01, 1.0, 1.0]), [0, 1], 1.0) == 1


def test_candidates_that_were_left_out_give_no_warning():
    table, weights = losses(0.0, 0.5), np.arange(400) % 2
    table[1] = np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert best_of(table, weights, [0, 0], 1.0) == 1


@pytest.mark.parametrize(("evidence", "limit"), [(2.0, 2.0), (0.0, 0.0), (-2.0, -2.0)])
def test_gain_must_exceed_the_evidence(evidence, limit):
    error = 1 / np.sqrt(399)
    for gain, expected in ((limit - 0.1, None), (limit + 0.1, 0)):
        assert best_of(losses(gain * error), np.ones(400), [0], evidence) == expected


@pytest.mark.parametrize("evidence", [0.0, -2.0])
def test_losses_that_are_not_finite_are_no_improvement(evidence):
    one = np.ones(1)
    for before, after in ((1.0, np.inf), (1.0, np.nan), (np.nan, 1.0), (np.inf, np.inf)):
        assert best_of(np.array([[before], [after]]), one, [0], evidence) is None
    assert best_of(np.array([[np.inf], [1.0]]), one, [0], evidence) == 0


@pytest.mark.parametrize("evidence", [-2.0, 0.0, 1.0])
def test_a_mean_alone_improves_if_it_decreases(evidence):
    for before, after in ((1.0, 1.0), (1.0, 1.5), (np.inf, np.inf), (1.0, np.nan)):
        assert not improves(before - after, evidence=evidence)
    for before, after in ((1.0, np.nextafter(1.0, 0.0)), (np.inf, 1.0), (1e-320, 0.0)):
        assert improves(before - after, evidence=evidence)
