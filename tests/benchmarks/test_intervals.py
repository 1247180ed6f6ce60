"""The measurement of coverage recognises exact calibration, and coverage that is too low or too high."""

import numpy as np
import pytest

from benchmarks.intervals.__main__ import _coverage_line, _fits, _score_lines
from benchmarks.intervals.promises import line
from ortlearn.intervals.conformal import rank


def simulated(shift):
    """Return what counts labels inside of intervals by the scores ``shift`` ranks above the right one."""

    def count(name, seed, n_cal=99, n_test=300):
        rng = np.random.default_rng([seed, len(name)])
        ends = np.sort(rng.uniform(size=(200, n_cal)), axis=1)[:, rank(n_cal, 0.9) - 1 + shift]
        return [(int(inside), n_test, n_cal) for inside in rng.binomial(n_test, ends)]

    return count


def shares(text):
    """Return coverage and share of draws inside of the band of a line."""
    cells = text.split("|")
    return float(cells[-5]), float(cells[-3].rstrip(" %")) / 100


def record(data, seed, counts, **others):
    return {
        "data": data,
        "seed": seed,
        "n_cal": counts[0][2],
        "n_test": counts[0][1],
        "covered": [inside for inside, _, _ in counts],
        **others,
    }


@pytest.mark.parametrize("shift, above, expected", [(0, False, 0.99), (0, True, 0.995), (9, True, 1.0)])
def test_exact_and_larger_coverage(shift, above, expected):
    coverage, inside = shares(line("sets", ("a", "bb"), 5, simulated(shift), above))
    assert coverage == pytest.approx(0.9 + shift / 100, abs=0.005)
    assert inside == pytest.approx(expected, abs=0.007)


@pytest.mark.parametrize("shift", [-8, 8])
def test_wrong_coverage_is_outside_of_the_band(shift):
    assert shares(line("groups", ("a", "bb"), 5, simulated(shift), False))[1] < 0.9
    records = [record("a", seed, simulated(shift)("a", seed)) for seed in range(5)]
    assert shares(_coverage_line("linear", "cqr", records))[1] < 0.9
    right = [record("a", seed, simulated(0)("a", seed)) for seed in range(5)]
    assert shares(_coverage_line("linear", "cqr", right))[1] == pytest.approx(0.99, abs=0.009)


def test_numbers_of_fits():
    assert _fits([{"data": "a"}] * 3 + [{"data": "b"}] * 3) == "2 x 3"
    assert _fits([{"data": "a"}] * 3 + [{"data": "b"}]) == "1 x 1 + 1 x 3"


def test_scores_are_relative_to_the_best_peers():
    """One peer is the best on average; on the second set, the other one has the least score."""
    scores = {"own": (1.0, 4.0), "first": (2.0, 4.0), "second": (8.0, 2.0)}
    records = [
        {"family": "linear", "own": name == "own", "method": name, "data": data, "width": 1.0, "score": score}
        for name, values in scores.items()
        for data, score in zip("ab", values, strict=True)
    ]
    found = {cells[2]: cells[4:7] for cells in (text.split("|") for text in _score_lines(records))}
    values = {name.strip(): [cell.strip() for cell in cells] for name, cells in found.items()}
    assert values["`own`"] == ["0.707", "2 of 2", "1.000"]
    assert values["first"] == ["1.000", "2 of 2", "1.414"]
    assert values["second"] == ["1.414", "1 of 2", "2.000"]
