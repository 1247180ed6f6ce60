"""Methods of intervals: coverage, files, groups, streams, saved files."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import make_friedman1
from sklearn.ensemble import BaggingRegressor, GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from ortlearn import OrtGradientOptimizer, OrtIntervalRegressor
from ortlearn.conversion import get_train_initializer
from ortlearn.exceptions import CalibrationWarning, ConversionError, PrecisionWarning
from ortlearn.graphs import extract_model
from ortlearn.intervals.arguments import sample_keys
from ortlearn.intervals.conformal import conformal_quantile, needed, rank
from ortlearn.saving import load, save
from tests.intervals.test_interval_regressor import NETWORK, X_NEW, Y_NEW, X, Y, inside, run_file, samples

FOREST = make_pipeline(StandardScaler(), RandomForestRegressor(10, random_state=0))
GIVEN = Ridge().fit(*samples(50, 3))
CASES = [
    (Ridge(), {"method": "cv+", "n_members": 3}),
    (GIVEN, {"method": "cv+", "n_members": 2}),
    (NETWORK, {"method": "ensemble", "n_members": 2}),
    (GIVEN, {"method": "ensemble", "n_members": 2}),
    (Ridge(), {"method": "laplace"}),
    (NETWORK, {"method": "laplace"}),
    (Ridge(), {"method": "residual", "normalize": True}),
    (FOREST, {}),
    (GradientBoostingRegressor(n_estimators=10), {}),
    (OrtGradientOptimizer(Ridge(), learning_rate="Adam", max_iter=20), {}),
]


@pytest.mark.parametrize("estimator, parameters", CASES, ids=[f"{type(e).__name__}-{p}" for e, p in CASES])
def test_coverage_file_and_saved_file(estimator, parameters, tmp_path):
    samples = X_NEW[:600]
    trained = OrtIntervalRegressor(estimator, random_state=0, **parameters).fit(X, Y)
    points, intervals = trained.predict_interval(samples)
    assert abs(inside(intervals, Y_NEW[:600]).mean() - 0.9) < 0.08
    found = run_file(trained.get_trained_onnx(), samples.astype(np.float32))
    for name, values in (
        ("prediction", points),
        ("lower", intervals[:, 0, 0]),
        ("upper", intervals[:, 1, 0]),
    ):
        np.testing.assert_allclose(found[name], values, rtol=1e-4, atol=2e-2 if estimator is FOREST else 1e-4)
    save(trained, tmp_path / "model.zip")
    later = load(tmp_path / "model.zip")
    np.testing.assert_array_equal(later.predict_interval(samples)[1], intervals)


@pytest.mark.slow
@pytest.mark.parametrize("model", [SVR(), BaggingRegressor(random_state=0)], ids=["SVR", "bagging"])
def test_single_outputs_and_bagging_train_a_model_per_level(model):
    trained = OrtIntervalRegressor(model, random_state=0).fit(X[:150], Y[:150])
    quantiles = trained.predict_quantiles(X_NEW)
    assert len(trained.estimators_) == 3 and np.all(np.diff(quantiles, axis=1) >= 0)
    np.testing.assert_allclose((Y_NEW[:, None] <= quantiles).mean(axis=0), trained.levels_, atol=0.12)


def test_forest_has_the_weights_of_quantile_forests():
    """Weights of Meinshausen (2006), by the leaves that samples share, at the stored labels."""
    model = RandomForestRegressor(7, min_samples_leaf=5, random_state=0)
    trained = OrtIntervalRegressor(model, random_state=0, calibration=100).fit(X, Y)
    forest, base = trained.estimators_[0].estimator, trained._fitted.base
    train = np.flatnonzero(np.isin(sample_keys(X, Y), trained._fitted.trained_on))
    leaves, new = forest.apply(X[train]), forest.apply(X_NEW[:50])
    shared = (new[:, None, :] == leaves[None, :, :]).astype(float)
    weights = (shared / shared.sum(axis=1, keepdims=True)).mean(axis=2)
    below = np.searchsorted(base.thresholds, Y[train])[:, None] <= np.arange(len(base.thresholds))
    below[:, 0] = False
    found = trained._fitted.measured(X_NEW[:50], Y_NEW[:50], np.zeros(50, int), ()).values
    rows = (weights @ below)[:, None]
    share = (trained.levels_[:, None] - rows[..., :-1]) / np.maximum(np.diff(rows), 1e-3)
    expected = base.thresholds[0] + np.clip(share, 0, 1) @ np.diff(base.thresholds)
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_boosting_adds_quantiles_of_residuals_to_its_own_prediction(loss):
    """A tree of one split: quantiles of residuals of other folds on either side, as in its leaves."""
    model = GradientBoostingRegressor(n_estimators=1, max_depth=1, loss=loss, subsample=0.5)
    settings = {"levels": [0.25], "random_state": 0}
    trained = OrtIntervalRegressor(model, **settings).fit(X, Y, X_cal=X_NEW[:200], y_cal=Y_NEW[:200])
    again = OrtIntervalRegressor(model, **settings).fit(X, Y, X_cal=X_NEW[:200], y_cal=Y_NEW[:200])
    (own,), values = trained.estimators_, trained._fitted.measured(X, Y, np.zeros(400, int), ()).values
    shifts = values - own.predict(X)[:, None]
    sides = own.estimator.apply(X).ravel()
    assert len(np.unique(shifts.round(5), axis=0)) == len(np.unique(sides)) == 2
    residuals = Y - own.predict(X)
    for side in np.unique(sides):
        shares = (residuals[sides == side, None] <= shifts[sides == side]).mean(axis=0)
        np.testing.assert_allclose(shares, trained.levels_, atol=0.06)
    np.testing.assert_array_equal(again.predict_quantiles(X_NEW), trained.predict_quantiles(X_NEW))


def test_laplace_has_the_posterior_of_bayesian_regression():
    """The variance of the prediction is that of a Bayesian linear model with the same noise and prior."""
    trained = OrtIntervalRegressor(Ridge(), method="laplace", random_state=0).fit(X, Y)
    base = trained._fitted.base
    with_ones = np.hstack([X_NEW, np.ones((len(X_NEW), 1))])
    scale = np.sqrt(base.noise**2 + ((with_ones @ base.factor) ** 2).sum(axis=1))
    measured = trained._fitted.measured(X_NEW, Y_NEW, np.zeros(len(X_NEW)), ())
    np.testing.assert_allclose(measured.scale[:, 0], scale, rtol=1e-4)
    train = np.flatnonzero(np.isin(sample_keys(X, Y), trained._fitted.trained_on))
    points = np.hstack([X[train], np.ones((len(train), 1))])
    inverse = np.linalg.inv(base.factor @ base.factor.T) * base.noise**2 - points.T @ points
    np.testing.assert_allclose(inverse, np.eye(4) * inverse[0, 0], atol=1e-6 * len(train))


def test_labels_that_float32_rounds_are_trained_in_float64():
    with pytest.warns(PrecisionWarning, match="rounds y"):
        far = OrtIntervalRegressor(Ridge(), random_state=0).fit(X, Y + 1e8)
    near = OrtIntervalRegressor(Ridge(), random_state=0).fit(X, Y)
    found, expected = (model.predict_interval(X_NEW)[1] for model in (far, near))
    np.testing.assert_allclose(found - 1e8, expected, atol=0.02 * np.diff(expected, axis=1).mean())


def test_levels_are_interpolated():
    trained = OrtIntervalRegressor(Ridge(), levels=[0.25, 0.75], random_state=0).fit(X, Y)
    known = trained.predict_quantiles(X_NEW)
    np.testing.assert_allclose(trained.levels_, [0.05, 0.25, 0.5, 0.75, 0.95])
    between = trained.predict_quantiles(X_NEW, [0.25, 0.3, 0.95])
    share = (norm.ppf(0.3) - norm.ppf(0.25)) / -norm.ppf(0.25)
    expected = np.stack([known[:, 1], known[:, 1] + share * (known[:, 2] - known[:, 1]), known[:, 4]], axis=1)
    np.testing.assert_allclose(between, expected, rtol=1e-6)
    ends = OrtIntervalRegressor(Ridge(), random_state=0).fit(X, Y).predict_quantiles(X_NEW, [0.25, 0.75])
    below = (Y_NEW[:, None] < ends).mean(axis=0)  # 0.17 and 0.86 by straight lines between levels
    np.testing.assert_allclose(below, [0.25, 0.75], atol=0.06)
    with pytest.raises(ValueError, match="are not all between 0.05 and 0.95"):
        trained.predict_quantiles(X_NEW, [0.01, 0.5])


def test_groups_have_their_own_constants():
    rng = np.random.default_rng(0)
    groups, new = (np.where(rng.uniform(size=len(x)) < 0.5, "wide", "narrow") for x in (X, X_NEW))
    y, y_new = (10 + np.where(g == "wide", 5, 0.5) * rng.normal(size=len(g)) for g in (groups, new))
    settings = {"method": "residual", "calibration": 200, "group_min_size": 30, "random_state": 0}
    trained = OrtIntervalRegressor(Ridge(), **settings).fit(X, y, groups=groups)
    intervals = trained.predict_interval(X_NEW, groups=new)[1]
    for name in ("wide", "narrow"):
        assert abs(inside(intervals[new == name], y_new[new == name]).mean() - 0.9) < 0.08
    assert trained.groups_ == ["narrow", "wide"]
    for predict in (trained.predict_interval, trained.predict_quantiles):
        with pytest.raises(ValueError, match="pass groups of X, too"):
            predict(X_NEW)
    assert trained.predict(X_NEW).shape == Y_NEW.shape
    model = trained.get_trained_onnx()
    assert [value.name for value in model.graph.input] == ["X", "group"]
    found = run_file(model, X_NEW.astype(np.float32), group=np.where(new == "wide", "wide", "unknown"))
    np.testing.assert_allclose(found["lower"][new == "wide"], intervals[new == "wide", 0, 0], rtol=1e-4)
    other = trained.predict_interval(X_NEW, groups=np.full(len(X_NEW), "unknown"))[1]
    np.testing.assert_allclose(found["upper"][new != "wide"], other[new != "wide", 1, 0], rtol=1e-4)


def test_recalibration_changes_numbers_only():
    trained = OrtIntervalRegressor(Ridge(), random_state=0).fit(X, Y)
    before = trained.get_trained_onnx()
    X_cal, y_cal = samples(300, 5)
    after = trained.recalibrate(X_cal, 3 * y_cal).get_trained_onnx()
    assert [str(node) for node in before.graph.node] == [str(node) for node in after.graph.node]
    changed = {
        old.name
        for old, new in zip(before.graph.initializer, after.graph.initializer, strict=True)
        if old.SerializeToString() != new.SerializeToString()
    }
    assert changed == {"calibration.interval", "calibration.quantiles"}
    assert inside(trained.predict_interval(X_NEW)[1], 3 * Y_NEW).mean() > 0.85


@pytest.mark.slow
def test_streams_keep_the_coverage_under_drift():
    """The share of misses approaches the wanted one whatever the stream does (Gibbs and Candes 2021)."""
    trained = OrtIntervalRegressor(Ridge(), method="residual", step=0.05, window=200, random_state=0).fit(
        X, Y
    )
    X_new, y_new = samples(1000, 7)
    y_new = y_new + np.linspace(0, 60, 1000)  # labels drift away from the model
    misses = []
    for start in range(0, 1000, 10):
        part = slice(start, start + 10)
        misses.append(~inside(trained.predict_interval(X_new[part])[1], y_new[part]))
        trained.partial_fit(X_new[part], y_new[part])
    assert abs(np.mean(misses) - 0.1) < 0.05
    fixed = OrtIntervalRegressor(Ridge(), method="residual", random_state=0).fit(X, Y)
    assert inside(fixed.predict_interval(X_new)[1], y_new).mean() < 0.3
    assert trained.n_calibration_ == 200


def test_stream_bound():
    """The share of misses is within (max(a, 1 - a) + step) / (T step) of the wanted one, for any labels."""
    rng = np.random.default_rng(0)
    trained = OrtIntervalRegressor(Ridge(), method="residual", step=0.2, random_state=0).fit(X, Y)
    X_new, y_new = samples(120, 7)
    y_new = np.where(rng.uniform(size=120) < 0.3, 1e3, y_new)
    count = 0
    for number in range(120):
        intervals = trained.predict_interval(X_new[number : number + 1])[1]
        count += not inside(intervals, y_new[number : number + 1])[0]
        trained.partial_fit(X_new[number : number + 1], y_new[number : number + 1])
    assert abs(count / 120 - 0.1) <= (0.9 + 0.2) / (120 * 0.2) + 1e-9


def test_calibration_samples_that_were_trained_on():
    with pytest.warns(CalibrationWarning, match="100% of the calibration samples are training samples"):
        OrtIntervalRegressor(Ridge(), random_state=0).fit(X, Y, X_cal=X[:100], y_cal=Y[:100])
    trained = OrtIntervalRegressor(Ridge(), random_state=0).fit(X, Y)
    with pytest.warns(CalibrationWarning, match="are training samples"):
        trained.recalibrate(X, Y)


@pytest.mark.parametrize("coverage, n", [(0.9, 9), (0.95, 19), (0.99, 99), (0.8, 4), (0.5, 1)])
def test_smallest_number_of_samples(coverage, n):
    assert needed(coverage) == n and rank(n, coverage) == n
    scores = np.random.default_rng(0).normal(size=n)
    assert conformal_quantile(scores, coverage) == scores.max()
    assert conformal_quantile(scores[1:], coverage) == np.inf


@pytest.mark.parametrize(
    "estimator, parameters, arguments, message",
    [
        (Ridge(), {"method": "cv+"}, {"groups": np.ones(400, int)}, "without groups"),
        (Ridge(), {"center": "model"}, {}, "center='model' takes a fitted model"),
        (Ridge(), {}, {"groups": np.ones(400)}, "groups must be all texts or all integers"),
        (Ridge(), {}, {"groups": np.ones(3, int)}, "groups has 3 values for 400 samples"),
        (Ridge(), {}, {"y_cal": Y_NEW}, "X_cal is missing"),
        (
            Ridge(),
            {},
            {"X_cal": X_NEW, "y_cal": Y_NEW, "groups": np.ones(400, int)},
            "groups_cal is missing",
        ),
        (LogisticRegression(), {}, {}, "takes a regressor: use OrtSetClassifier"),
        (Ridge(), {"method": "cv+", "n_members": 500}, {}, "number of samples"),
        (SVR(), {"method": "laplace"}, {}, "ends with a linear layer"),
    ],
)
def test_refusals(estimator, parameters, arguments, message):
    with pytest.raises(ValueError, match=message):
        OrtIntervalRegressor(estimator, **parameters).fit(X, Y, **arguments)


def test_files_are_not_trained_anew():
    file = OrtGradientOptimizer(Ridge(), random_state=0).fit(X[:50], Y[:50]).get_trained_onnx()
    for parameters in ({"method": "cv+"}, {"method": "ensemble"}, {"method": "residual", "normalize": True}):
        with pytest.raises(ValueError, match="use method='cqr'"):
            OrtIntervalRegressor(file, **parameters).fit(X, Y)


def test_constants_of_a_file_are_no_weights():
    file = OrtIntervalRegressor(Ridge(), random_state=0).fit(X, Y).get_trained_onnx()
    trainer = OrtGradientOptimizer(file, warm_start=True, keep_better=False, random_state=0)
    with pytest.warns(CalibrationWarning, match="lose their coverage"):
        trained = trainer.fit(X, -Y)
    weights = {"interval_constant_0", "interval_constant_1", "calibration.interval"}
    known, found = (get_train_initializer(part) for part in (file, trained.get_trained_onnx()))
    assert weights <= {name for name in known if np.array_equal(known[name][0], found[name][0])}


def test_files_with_intervals():
    file = OrtIntervalRegressor(Ridge(), random_state=0).fit(X, Y).get_trained_onnx()
    advice = r"extract_model\(file, \['prediction'\]\)"
    with pytest.raises(ConversionError, match=advice):
        OrtIntervalRegressor(file).fit(X, Y)
    part = extract_model(file, ["prediction"])
    found = OrtIntervalRegressor(part).fit(X, Y).predict(X_NEW.astype(np.float32))
    np.testing.assert_array_equal(found, run_file(file, X_NEW.astype(np.float32))["prediction"])


def test_errors_leave_the_object_unchanged():
    trained = OrtIntervalRegressor(Ridge(), random_state=0).fit(X, Y)
    before = trained.predict_interval(X_NEW)[1]
    with pytest.raises(ValueError, match="too few"):
        trained.recalibrate(X_NEW[:5], Y_NEW[:5])
    with pytest.raises(ValueError, match="too few"):
        trained.fit(X[:20], Y[:20])
    np.testing.assert_array_equal(trained.predict_interval(X_NEW)[1], before)


@pytest.mark.parametrize("kind", [RandomForestRegressor, GradientBoostingRegressor])
def test_copies_of_an_ensemble_differ_although_the_model_has_a_seed(kind):
    X, y = make_friedman1(300, noise=1.0, random_state=0)
    model = kind(n_estimators=10, random_state=0, **({"subsample": 0.5} if "Boost" in kind.__name__ else {}))
    trainer = OrtIntervalRegressor(model, method="ensemble", n_members=3, random_state=0).fit(X, y)
    widths = np.ptp(trainer.predict_interval(X)[1], axis=1)
    assert widths.max() > 1.01 * widths.min()
