"""Tests of drift have the level that they claim, and name the columns that moved."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ortlearn.evaluation.data_files import Table
from ortlearn.evaluation.predictions import Predictions
from ortlearn.lifecycle.drift import adjusted, column_drift, drifts_of, prediction_drift
from ortlearn.lifecycle.two_samples import two_sample_test


def table(seed, n_samples=300, **changes):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({f"x{i}": rng.normal(size=n_samples) for i in range(4)})
    frame["kind"] = rng.choice(list("abc"), n_samples, p=[0.6, 0.3, 0.1])
    return Table("data", frame.assign(**{name: function(frame) for name, function in changes.items()}))


def names_of(found):
    return {item.name for item in found if item.drifted}


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("x1", lambda frame: frame["x1"] + 0.5),
        ("x2", lambda frame: frame["x2"] * 2),
        ("x0", lambda frame: frame["x0"].where(np.arange(len(frame)) % 5 > 0)),
        ("kind", lambda frame: frame["kind"].replace("b", "c")),
        ("kind", lambda frame: frame["kind"].replace("c", "d")),
    ],
)
def test_changed_column_is_named(column, change):
    found = drifts_of(table(0), table(1, **{column: change}), 0.01)
    assert names_of(found) == {column}
    assert found[0].name == column
    assert found[0].stability > 0.1


@pytest.mark.slow
def test_level_of_unchanged_columns():
    named = [bool(names_of(drifts_of(table(2 * i), table(2 * i + 1), 0.1))) for i in range(60)]
    # Under the null, the probability of any name is at most the level; 13 or more of 60 has probability 0.007
    assert sum(named) <= 12


def test_adjusted_p_values_equal_those_of_scipy():
    p_values = np.random.default_rng(0).uniform(size=20) ** 3
    np.testing.assert_allclose(adjusted(p_values), stats.false_discovery_control(p_values))
    with_gaps = adjusted([*p_values[:5], np.nan, *p_values[5:]])
    assert np.isnan(with_gaps[5])
    np.testing.assert_allclose(np.delete(with_gaps, 5), stats.false_discovery_control(p_values))


def test_stability_index_by_hand():
    old, new = pd.Series(["a"] * 80 + ["b"] * 20), pd.Series(["a"] * 50 + ["b"] * 50)
    expected = (0.5 - 0.8) * np.log(0.5 / 0.8) + (0.5 - 0.2) * np.log(0.5 / 0.2)
    assert column_drift("kind", old, new).stability == pytest.approx(expected)


def test_column_without_values():
    empty = pd.Series(np.full(50, np.nan))
    found = column_drift("x", pd.Series(np.arange(50.0)), empty)
    assert np.isnan(found.p_value)
    assert found.missing == (0.0, 1.0)
    assert found.missing_p_value < 1e-10


def test_predictions_are_compared_by_probability():
    rng = np.random.default_rng(0)
    first, second = (rng.beta(2, b, 200) for b in (2, 3))
    labels = np.full(200, "yes")  # equal labels, other probabilities
    old, new = (Predictions(labels, np.column_stack([1 - p, p])) for p in (first, second))
    assert prediction_drift(old, new).p_value == pytest.approx(stats.ks_2samp(first, second).pvalue)


def test_classifier_finds_a_changed_relation():
    old = table(0, x1=lambda frame: frame["x0"] + 0.1 * frame["x1"])
    new = table(1, x1=lambda frame: -frame["x0"] + 0.1 * frame["x1"])
    assert not names_of(drifts_of(old, new, 0.01))  # each column alone is as before
    found = two_sample_test(old, new, 0)
    assert found.p_value < 1e-3
    assert set(list(found.columns)[:2]) == {"x0", "x1"}
    assert sum(found.columns.values()) == pytest.approx(1)


@pytest.mark.slow
def test_classifier_cannot_tell_equal_samples_apart():
    p_values = [two_sample_test(table(2 * i, 60), table(2 * i + 1, 60), i).p_value for i in range(8)]
    assert sum(p < 0.05 for p in p_values) <= 2  # 3 or more of 8 has probability 0.006


def test_few_samples_show_no_drift():
    assert two_sample_test(table(0, 19), table(1, 19), 0) is None
