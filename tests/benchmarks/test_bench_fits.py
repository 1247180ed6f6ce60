"""Times of whole fits: the measurement of one estimator, and its table."""

from benchmarks.bench_fits import ESTIMATORS, Fit, measure, summary, table


def test_an_estimator_is_measured_for_each_number_of_samples():
    fits = list(measure("Ridge", (60, 80)))
    assert [(fit.model, fit.n_samples) for fit in fits] == [("Ridge", 60), ("Ridge", 80)]
    assert all(min(fit.own, fit.fresh, fit.warm) > 0 for fit in fits)


def test_larger_numbers_are_left_out_after_a_long_fit():
    assert [fit.n_samples for fit in measure("Ridge", (60, 80), longest=0.0)] == [60]


def test_slow_fits_are_marked():
    fits = [Fit("A", 200, own=1.0, fresh=1.9, warm=5.1), Fit("B", 200, own=0.01, fresh=0.16, warm=0.9)]
    assert [fit.is_slow("fresh") for fit in fits] == [False, True]
    assert [fit.is_slow("warm") for fit in fits] == [True, False]
    first, second = table(fits).splitlines()[2:]
    assert first == "| A | 200 | 1.000 | 1.900 | 1.9 | **5.100** | 5.1 |"
    assert second == "| B | 200 | 0.010 | **0.160** | 16 | 0.900 | 90 |"
    assert "fresh: median 1.030 s; 1 of 2 take longer" in summary(fits)


def test_estimators_are_forty():
    assert len(set(ESTIMATORS)) == 40
