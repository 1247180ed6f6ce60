"""Data, scores and summary of the drift benchmark."""

import numpy as np
import pytest

from benchmarks.drift import cases, data, measurement, picture, report


def test_each_drift_changes_its_distribution():
    covariate, concept, share = (data.drifted("generated", drift, 0, 1) for drift in data.DRIFTS)
    moved = [
        (d.draws[0][0].mean(axis=0) - d.X_old.mean(axis=0)) / d.X_old.std(axis=0)
        for d in (covariate, concept)
    ]
    np.testing.assert_allclose(moved[0], [1, 0, 1.5, 0, 1, 0, 0, 0], atol=0.15)
    np.testing.assert_allclose(moved[1], np.zeros(8), atol=0.15)
    y_test = share.draws[0][3]
    assert y_test.mean() < 0.2 < 0.4 < share.y_old.mean() < 0.6 and len(y_test) == data.N_TEST


@pytest.mark.parametrize("source", ["generated", "digits"])
@pytest.mark.parametrize("drift", ["covariate", "concept", "share"])
def test_draws_have_different_samples(source, drift):
    found = data.drifted(source, drift, 0, 2)
    (X, y, *test), (X_again, y_again, *test_again) = found.draws
    assert X.shape == X_again.shape and len(X) == len(y) >= max(data.SIZES[source])
    assert not np.array_equal(X, X_again)
    for rows, (X_test, y_test) in ((X, test), (X_again, test_again)):
        assert len(X_test) == len(y_test) > 300
        assert not {row.tobytes() for row in rows} & {row.tobytes() for row in X_test}
    one = data.drifted(source, drift, 0, 1)
    np.testing.assert_array_equal(one.draws[0][0], X)
    np.testing.assert_array_equal(one.X_old, found.X_old)


def test_mean_of_draws():
    good, bad = measurement.Adapted(0.5, 0.2, 1.0, "", ["a"]), measurement.Adapted(0.7, 0.4, 3.0, "", ["b"])
    assert measurement.averaged([good, bad]) == measurement.Adapted(
        0.6, pytest.approx(0.3), 2.0, "", ["a", "b"]
    )
    failed = measurement.Adapted(float("nan"), float("nan"), 1.0, "ValueError: no", [])
    found = measurement.averaged([good, failed, bad])
    assert np.isnan(found.accuracy) and found.error == "ValueError: no"


def test_brier_score_includes_unknown_classes():

    class Model:
        classes_ = np.array([0, 2])

        def predict_proba(self, X):
            return np.tile([0.75, 0.25], (len(X), 1))

    assert measurement.brier(Model(), np.zeros((1, 1)), np.array([0])) == pytest.approx(2 * 0.25**2)
    assert measurement.brier(Model(), np.zeros((1, 1)), np.array([1])) == pytest.approx(1 + 0.75**2 + 0.25**2)


def test_summary():

    def row(*accuracies, drift="share", error=""):
        results = [measurement.Adapted(a, 1 - a, 1.0, "", []) for a in accuracies]
        results[-1].error = error
        return measurement.Row("a", drift, "raw", 50, dict(zip(measurement.CONTENDERS, results, strict=True)))

    rows = [
        row(0.7, 0.8, 0.9, 0.895),
        row(0.7, 0.8, 0.9, 0.85, drift="concept"),
        row(0.7, 0.6, 0.7, 0.67),
        row(0.7, 0.6, 0.7, float("nan"), error="ValueError: no"),
    ]
    found = report.summary(rows)
    assert report.TARGETS.keys() <= found.keys()
    assert found["warm best or within 0.01 of it"] == 0.25
    assert found["warm best or within 0.01, concept drift"] == 0.0
    assert found["warm not below the old model by 0.02"] == 0.5
    assert found["warm Brier score not above the old model's"] == 0.5
    assert found["mean accuracy, warm start"] == pytest.approx(0.805)
    assert found["errors of warm"] == 1
    assert report.table(rows).row_count == 4 and report.means(rows).row_count == 2


@pytest.mark.slow
def test_one_case():
    rows = measurement.measure(cases.Case("generated", "concept", "scaled", "LogisticRegression", 0), {})
    assert [row.n_new for row in rows] == list(data.SIZES["generated"])
    last = rows[-1].adapted
    assert last["warm start"].accuracy > last["old model"].accuracy + 0.05
    assert last["warm start"].brier < last["old model"].brier


def test_the_picture_has_every_row_of_the_tables():
    page = (picture.DOCS / "howto/adapt_to_new_data.md").read_text(encoding="utf-8")
    drawn = {drift for drifts in picture.FAMILIES.values() for drift in drifts}
    found = picture.accuracies(page)
    assert {drift for drift, _ in found} == drawn and len(found) == 3 * len(drawn)
    assert all(len(values) == 4 for values in found.values())
    assert page.count(" (0.") == 4 * len(found)  # no table of accuracies is left out
