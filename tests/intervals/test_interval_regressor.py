"""Intervals of regressors: coverage, one file, given models, bad input."""

from functools import partial

import numpy as np
import onnxruntime
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer, OrtIntervalRegressor
from ortlearn.callbacks import ModelCheckpoint
from ortlearn.graphs import map_names

NETWORK = make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(8,), random_state=0))


def samples(n, seed=0):
    """Return samples whose spread depends on the second feature."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, 10 + 3 * X[:, 0] + np.exp(X[:, 1]) * rng.normal(size=n)


X, Y = samples(400)
X_NEW, Y_NEW = samples(2000, 1)


def inside(intervals, y):
    return (intervals[:, 0, 0] <= y) & (y <= intervals[:, 1, 0])


def run_file(model, X, **others):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    first = session.get_inputs()[0]
    X = X.astype(np.float64) if "double" in first.type else X  # of trees after a scaler
    return dict(zip(names, session.run(names, {first.name: X, **others}), strict=True))


@pytest.mark.parametrize("method", ["cqr", "residual"])
@pytest.mark.parametrize("estimator", [Ridge(), NETWORK, Ridge().fit(*samples(50, 3))], ids=type)
def test_file_and_estimator_agree(estimator, method):
    trained = OrtIntervalRegressor(estimator, method=method, random_state=0).fit(X, Y)
    points, intervals = trained.predict_interval(X_NEW)
    assert abs(inside(intervals, Y_NEW).mean() - 0.9) < 0.08
    found = run_file(trained.get_trained_onnx(), X_NEW.astype(np.float32))
    np.testing.assert_allclose(found["lower"], intervals[:, 0, 0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found["upper"], intervals[:, 1, 0], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(found["prediction"], points)
    assert np.all(np.diff(found["quantiles"], axis=1) >= 0)


def test_given_models_keep_their_predictions():
    file = OrtGradientOptimizer(Ridge(), random_state=0).fit(*samples(50, 3)).get_trained_onnx()
    trained = OrtIntervalRegressor(file, random_state=0).fit(X[100:150], Y[100:150])
    new = X_NEW.astype(np.float32)
    found, expected = run_file(trained.get_trained_onnx(), new), run_file(file, new)
    np.testing.assert_array_equal(found["prediction"], expected["variable"].ravel())
    np.testing.assert_array_equal(found["variable"], expected["variable"])
    np.testing.assert_array_equal(trained.predict(new), expected["variable"].ravel())


@pytest.mark.slow
def test_names_of_a_given_file_are_no_names_of_constants():
    file = OrtGradientOptimizer(Ridge(), random_state=0).fit(*samples(50, 3)).get_trained_onnx()
    names = iter(["calibration.interval", "quantiles.spread"])
    taken = map_names(file, {tensor.name: next(names) for tensor in file.graph.initializer[:2]})
    plain, trained = (OrtIntervalRegressor(part, random_state=0).fit(X, Y) for part in (file, taken))
    found = run_file(trained.get_trained_onnx(), X_NEW.astype(np.float32))
    np.testing.assert_array_equal(trained.predict_interval(X_NEW)[1], plain.predict_interval(X_NEW)[1])
    for end, values in zip(("lower", "upper"), trained.predict_interval(X_NEW)[1][..., 0].T, strict=True):
        np.testing.assert_allclose(found[end], values, rtol=1e-5, atol=1e-5)


class Killed(Exception):
    """The end of a process."""


class Killer:
    """Callback that ends a training after some epochs, of one member or of the next."""

    def __init__(self, epochs):
        self.left = epochs

    def setup(self, estimator, context):
        """Do nothing."""

    def teardown(self, estimator, context):
        """Do nothing."""

    def on_fit_task_begin(self, estimator, context):
        """Do nothing."""

    def on_fit_task_end(self, estimator, context):
        self.left -= context.task_name != "fit"
        if self.left == 0:
            raise Killed


def checkpointed(folder, *others, **options):
    """Return an optimizer that writes checkpoints."""
    settings = {"learning_rate": "Adam", "max_iter": 3, "batch_size": 100}
    optimizer = OrtGradientOptimizer(Ridge(), **settings)
    return optimizer.set_callbacks(ModelCheckpoint(folder, every=1, **options), *others)


@pytest.mark.slow
@pytest.mark.needs_callbacks
@pytest.mark.parametrize(
    "method, epochs, resumes",
    [("cqr", 2, "callback"), ("cv+", 2, "argument alone"), ("cv+", 4, "callback"), ("cv+", 4, "argument")],
)
def test_an_interrupted_training_is_resumed_from_its_checkpoints(method, epochs, resumes, tmp_path):
    """The weights are bitwise those of a training without interruption."""
    settings = {"method": method, "n_members": 2, "random_state": 0}
    options, folder = {"resume": resumes == "callback"}, tmp_path / "parts"
    whole = OrtIntervalRegressor(checkpointed(tmp_path / "whole"), **settings).fit(X, Y)
    killed = OrtIntervalRegressor(checkpointed(folder, Killer(epochs), **options), **settings)
    with pytest.raises(Killed):
        killed.fit(X, Y)
    own = checkpointed(folder, **options)
    resumed = OrtIntervalRegressor(own.set_callbacks() if resumes == "argument alone" else own, **settings)
    resumed.fit(X, Y, resume_from=None if resumes == "callback" else folder)
    np.testing.assert_array_equal(resumed.predict_interval(X_NEW)[1], whole.predict_interval(X_NEW)[1])
    assert [m.train_losses_ for m in resumed.estimators_] == [m.train_losses_ for m in whole.estimators_]


@pytest.mark.needs_callbacks
def test_trainings_that_cannot_be_resumed(tmp_path):
    """Other samples, other seeds and members without checkpoints are refused; the object is not changed."""
    make = partial(OrtIntervalRegressor, checkpointed(tmp_path))
    (tmp_path / "empty").mkdir()
    first = make(random_state=0).fit(X, Y)
    for model, folder, message in [
        (make(random_state=0), tmp_path, "not the training to resume: graph"),
        (make(random_state=1), tmp_path, "not the training to resume: random_state="),
        (make(), tmp_path, "takes an integer random_state"),
        (OrtIntervalRegressor(Ridge(), random_state=0), tmp_path, "an OrtGradientOptimizer"),
        (OrtIntervalRegressor(first.estimators_[0], random_state=0), tmp_path, "an OrtGradientOptimizer"),
        (make(random_state=0), tmp_path / "epoch-000003.zip", "must be the folder"),
        (make(random_state=0), first, "must be the folder"),
        (make(random_state=0), tmp_path / "empty", "no saved estimators"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(X, np.roll(Y, 1) if message.endswith("resume: graph") else Y, resume_from=folder)
        assert not hasattr(model, "levels_")


def test_width_follows_the_features():
    trained = OrtIntervalRegressor(Ridge(), random_state=0).fit(X, Y)
    width = np.diff(trained.predict_interval(X_NEW)[1][:, :, 0])[:, 0]
    assert np.corrcoef(width, X_NEW[:, 1])[0, 1] > 0.9


def test_several_coverages():
    trained = OrtIntervalRegressor(Ridge(), random_state=0).fit(X, Y)
    intervals = trained.predict_interval(X_NEW, [0.5, 0.8, 0.95])[1]
    shares = [np.mean((intervals[:, 0, k] <= Y_NEW) & (Y_NEW <= intervals[:, 1, k])) for k in range(3)]
    np.testing.assert_allclose(shares, [0.5, 0.8, 0.95], atol=0.09)
    # Ends of levels 0.275 and 0.725 are halfway between those of the model, up to the calibration.
    quantiles = trained.predict_quantiles(X_NEW)
    between = (quantiles[:, :2] + quantiles[:, 1:]) / 2
    shifts = trained.predict_interval(X_NEW, 0.45)[1][:, :, 0] - between
    assert np.all(np.ptp(shifts[np.diff(shifts + between)[:, 0] > 0], axis=0) < 1e-4)


@pytest.mark.slow
def test_clone_search_and_pipeline():
    search = GridSearchCV(
        OrtIntervalRegressor(Ridge(), random_state=0), {"estimator__alpha": [0.1, 1e4]}, cv=2
    )
    assert search.fit(X[:150], Y[:150]).best_params_ == {"estimator__alpha": 0.1}
    first = make_pipeline(StandardScaler(), OrtIntervalRegressor(Ridge(), random_state=0)).fit(
        X[:150], Y[:150]
    )
    again = clone(first).fit(X[:150], Y[:150])
    np.testing.assert_array_equal(first.predict(X_NEW), again.predict(X_NEW))


@pytest.mark.parametrize(
    "parameters, n, message",
    [
        ({"coverage": 1.0}, 400, "coverage=1.0 must be a number between 0 and 1"),
        ({"levels": [0.5, 0.2]}, 400, "must rise, each level once: pass \\[0.2, 0.5\\]"),
        ({"levels": [0.2, 0.2]}, 400, "must rise"),
        ({"levels": [0.0, 0.2]}, 400, "must be numbers between 0 and 1"),
        ({}, 40, "8 calibration samples are too few for a coverage of 0.9, which takes at least 9"),
        ({"calibration": 400}, 400, "calibration=400 leaves none of 400 samples for training"),
    ],
)
def test_bad_parameters(parameters, n, message):
    with pytest.raises(ValueError, match=message):
        OrtIntervalRegressor(Ridge(), **parameters).fit(X[:n], Y[:n])


def test_missing_values_are_refused():
    with pytest.raises(ValueError, match="y contains NaN"):
        OrtIntervalRegressor(Ridge()).fit(X, np.where(Y > 12, np.nan, Y))
    with pytest.raises(ValueError, match="X contains NaN"):
        OrtIntervalRegressor(Ridge()).fit(np.where(X > 2, np.nan, X), Y)


def test_sparse_samples_of_a_fitted_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * (rng.uniform(size=(300, 3)) < 0.5)
    y = X[:, 0] + rng.normal(size=300)
    model = Ridge().fit(X, y)
    dense, sparse = (OrtIntervalRegressor(model, random_state=0).fit(part, y) for part in (X, csr_matrix(X)))
    for one, other in zip(dense.predict_interval(X), sparse.predict_interval(csr_matrix(X)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
