"""Prediction sets and calibrated probabilities: definitions, coverage, one file, given models, bad input."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer, OrtSetClassifier
from ortlearn.exceptions import CalibrationWarning, SavedFileError
from ortlearn.intervals.sets import fit_isotonic, fit_scaling
from ortlearn.saving import load, save
from tests.intervals.test_interval_regressor import run_file

NAMES = np.array(["ash", "beech", "cedar"])


def samples(n, seed=0):
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 3, size=n)
    return 1.2 * np.eye(3, 4)[classes] + rng.normal(size=(n, 4)), NAMES[classes]


X, Y = samples(600)
X_NEW, Y_NEW = samples(2000, 1)
NUMBERS = np.searchsorted(NAMES, Y_NEW)
FILE = OrtGradientOptimizer(LogisticRegression(), random_state=0).fit(*samples(60, 2)).get_trained_onnx()
ESTIMATORS = [
    make_pipeline(StandardScaler(), LogisticRegression()),
    RandomForestClassifier(8, min_samples_leaf=5, random_state=0).fit(*samples(200, 2)),
    FILE,
]


def covered(sets):
    return sets[np.arange(len(NUMBERS)), NUMBERS, 0].mean()


@pytest.mark.parametrize("probabilities", [None, "temperature", "vector", "isotonic"])
@pytest.mark.parametrize("method", ["lac", "aps"])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=["pipeline", "forest", "file"])
def test_coverage_file_and_saved_file(estimator, method, probabilities, tmp_path):
    settings = {"method": method, "probabilities": probabilities, "calibration": 300, "random_state": 0}
    trained = OrtSetClassifier(estimator, **settings).fit(X, Y)
    labels, sets = trained.predict_set(X_NEW)
    assert abs(covered(sets) - 0.9) < 0.07
    found = run_file(trained.get_trained_onnx(), X_NEW.astype(np.float32))
    assert np.mean(found["set"] != sets[:, :, 0]) < 1e-3
    np.testing.assert_array_equal(found["prediction"], labels)
    shares = trained.predict_proba(X_NEW)
    name = "probabilities" if probabilities is None else "calibrated"
    np.testing.assert_allclose(found[name], shares, atol=1e-5)
    save(trained, tmp_path / "model.zip")
    np.testing.assert_array_equal(load(tmp_path / "model.zip").predict_set(X_NEW)[1], sets)


def test_given_models_keep_their_predictions():
    trained = OrtSetClassifier(FILE, probabilities="isotonic", calibration=300, random_state=0).fit(X, Y)
    samples = X_NEW.astype(np.float32)
    found, own = run_file(trained.get_trained_onnx(), samples), run_file(FILE, samples)
    np.testing.assert_array_equal(found["prediction"], own["label"])
    np.testing.assert_array_equal(found["probabilities"], own["probabilities"])
    np.testing.assert_array_equal(trained.predict(samples), own["label"])


@pytest.mark.parametrize("method", ["lac", "aps"])
def test_sets_are_those_of_their_definition(method):
    trained = OrtSetClassifier(ESTIMATORS[0], method=method, calibration=150, random_state=0).fit(X, Y)
    largest = trained._fitted.constants(None).largest[0, 0]
    shares = trained.predict_proba(X_NEW)
    if method == "lac":
        scores = 1 - shares
    else:
        scores = ((shares[:, None, :] > shares[:, :, None]) * shares[:, None, :]).sum(axis=2)
    np.testing.assert_array_equal(trained.predict_set(X_NEW)[1][:, :, 0], scores <= largest)
    assert method == "lac" or trained.predict_set(X_NEW)[1].sum(axis=1).min() == 1


def test_temperature_minimises_the_log_loss():
    shares = ESTIMATORS[1].predict_proba(X)
    numbers = np.searchsorted(NAMES, Y)
    scale = fit_scaling(shares, numbers, False).scale[0]

    def loss(factor):
        scaled = np.maximum(shares, 1e-7) ** factor
        return log_loss(numbers, scaled / scaled.sum(axis=1, keepdims=True)) + (factor - 1) ** 2 / 1200

    assert all(loss(scale) < loss(scale + step) for step in (-1e-2, 1e-2))


def test_vector_scaling_has_a_prior():
    """Three samples of the same class leave factors near one."""
    found = fit_scaling(np.full((3, 2), 0.5), np.zeros(3, dtype=int), True)
    assert np.abs(found.scale - 1).max() < 1 and np.abs(found.shift).max() < 2


def test_isotonic_functions_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet([1, 1, 1], size=200)
    numbers = np.array([rng.choice(3, p=own) for own in shares])
    fitted = fit_isotonic(shares, numbers)
    for number in range(3):
        model = IsotonicRegression(out_of_bounds="clip", y_min=1 / 202, y_max=201 / 202)
        expected = model.fit(shares[:, number], numbers == number).predict(shares[:, number])
        found = np.interp(shares[:, number], fitted.knots[number], fitted.values[number])
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_calibrated_probabilities_are_better():
    overfitted = LogisticRegression(C=1e5).fit(*samples(25, 4))
    trained = OrtSetClassifier(overfitted, probabilities="temperature", calibration=400, random_state=0)
    trained.fit(X, Y)
    own, calibrated = overfitted.predict_proba(X_NEW), trained.predict_proba(X_NEW)
    assert log_loss(Y_NEW, calibrated) < 0.9 * log_loss(Y_NEW, own)
    np.testing.assert_allclose(calibrated.sum(axis=1), 1)


def test_groups_streams_and_recalibration():
    groups = np.where(X[:, 3] > 0, 1, 2)
    trained = OrtSetClassifier(ESTIMATORS[0], calibration=300, random_state=0).fit(X, Y, groups=groups)
    assert trained.groups_ == [1, 2]
    new = np.where(X_NEW[:, 3] > 0, 1, 2)
    with pytest.raises(ValueError, match="fit had groups, such as 1: pass groups of X, too"):
        trained.predict_set(X_NEW)
    sets = trained.predict_set(X_NEW, groups=new)[1]
    found = run_file(trained.get_trained_onnx(), X_NEW.astype(np.float32), group=new)
    np.testing.assert_array_equal(found["set"], sets[:, :, 0])
    trained.partial_fit(X_NEW[:500], np.roll(Y_NEW, 1)[:500], groups=new[:500])  # labels of other samples
    assert trained.coverage_ > 0.95 and trained.n_calibration_ == 800
    trained.recalibrate(X_NEW[:500], Y_NEW[:500], groups=new[:500])
    assert trained.coverage_ == 0.9 and trained.n_calibration_ == 500


def test_every_class_is_trained_if_possible():
    y = Y.copy()
    y[:2] = "oak"
    for seed in range(5):
        trained = OrtSetClassifier(LogisticRegression(), random_state=seed).fit(X, y)
        assert trained.classes_.tolist() == [*NAMES, "oak"]


def test_searches_and_scores():
    assert cross_val_score(OrtSetClassifier(LogisticRegression(), random_state=0), X, Y, cv=2).mean() > 0.6


@pytest.mark.parametrize(
    "parameters, arguments, message",
    [
        (
            {},
            {"X_cal": X_NEW, "y_cal": np.full(2000, "oak")},
            "y has classes \\['oak'\\] that the model does not know",
        ),
        ({"coverage": 90}, {}, "coverage=90 must be a number between 0 and 1"),
        ({"calibration": 8}, {}, "8 calibration samples are too few for a coverage of 0.9"),
        ({"calibration": 17, "probabilities": "temperature"}, {}, "8 calibration samples are too few"),
    ],
)
def test_refusals(parameters, arguments, message):
    with pytest.raises(ValueError, match=message):
        OrtSetClassifier(LogisticRegression(), **parameters).fit(X, Y, **arguments)


def test_missing_classes_of_calibration():
    model = OrtSetClassifier(LogisticRegression(), probabilities="isotonic", random_state=0)
    with pytest.raises(ValueError, match="lack the classes \\['ash'\\]"):
        model.fit(X, Y, X_cal=X_NEW[Y_NEW != "ash"], y_cal=Y_NEW[Y_NEW != "ash"])


def test_calibration_samples_that_were_trained_on():
    with pytest.warns(CalibrationWarning, match="training samples"):
        OrtSetClassifier(LogisticRegression(), random_state=0).fit(X, Y, X_cal=X[:100], y_cal=Y[:100])


@pytest.mark.parametrize(
    "name, change",
    [
        ("y", lambda part: part[:5]),
        ("y", lambda part: part + 9),
        ("values", lambda part: part[0, 0]),
        ("values", lambda part: part * np.nan),
        ("rows", lambda part: part + 1),
        ("scale", np.zeros_like),
    ],
)
def test_damaged_files(name, change, tmp_path):
    trained = OrtSetClassifier(LogisticRegression(), random_state=0).fit(X, Y)
    samples = trained._fitted.calibrated
    damaged = replace(samples, **{name: np.asarray(change(getattr(samples, name)))})
    object.__setattr__(trained._fitted, "samples", damaged)
    save(trained, tmp_path / "model.zip")
    with pytest.raises(SavedFileError, match="calibration samples do not match"):
        load(tmp_path / "model.zip")
