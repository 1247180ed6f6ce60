"""Written estimators have the predictions of the graph, or an error is raised."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler, TargetEncoder
from sklearn.svm import SVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

from ortlearn.exceptions import WriteBackError
from ortlearn.models import ModelWriter, write_parameters
from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session
from ortlearn.trainable.conversion import to_trainable
from ortlearn.trainable.from_estimator import write_weights

RNG = np.random.RandomState(0)
X = RNG.normal(size=(60, 3)).astype(np.float32)
Y = X @ [1.0, -2.0, 0.5] + 0.1 * RNG.normal(size=60)
CLASSES = np.digitize(Y, [-1, 1])
TWO = (Y > 0).astype(int)


def write(model, change, **options):
    """Return the model with changed weights, and the outputs of the graph with these."""
    trainable = to_trainable(model, **options)
    free = {name: change(array) for name, array in trainable.initial_weights().items()}
    written = write_weights(model, trainable, trainable.coefficients(free))
    session = make_session(trainable.with_weights(free), Device("cpu"))
    return written, session.run(None, {trainable.input_name: X})


def shifted(array):
    return (array * 1.1 + 0.05).astype(array.dtype)


@pytest.mark.parametrize(
    "y", [TWO, CLASSES, np.stack([TWO, CLASSES], axis=1)], ids=["two", "three", "outputs"]
)
def test_leaves_of_classes_are_normalized(y):
    model = DecisionTreeClassifier(max_depth=3).fit(X, y)
    before = model.tree_.value.copy()
    written, (label, *probabilities) = write(
        model, lambda a: a - RNG.uniform(size=a.shape).astype(a.dtype) / 3
    )
    leaves = written.tree_.children_left < 0
    np.testing.assert_allclose(written.tree_.value[leaves].sum(axis=-1), 1, rtol=1e-6)
    assert written.tree_.value[leaves].min() >= 0
    np.testing.assert_array_equal(written.predict(X), label)
    found = written.predict_proba(X)
    for theirs, ours in zip(found if y.ndim > 1 else [found], probabilities, strict=True):
        np.testing.assert_allclose(theirs, ours, atol=1e-6)
    np.testing.assert_array_equal(model.tree_.value, before)


def test_leaf_of_zeros_keeps_its_class():
    model = DecisionTreeClassifier(max_depth=2).fit(X, CLASSES)
    written, (label, probabilities) = write(model, lambda a: a - 2)
    np.testing.assert_array_equal(written.predict(X), label)
    np.testing.assert_allclose(written.predict_proba(X), probabilities, atol=1e-6)
    np.testing.assert_allclose(probabilities, 1 / 3, atol=1e-6)


@pytest.mark.parametrize("y", [TWO, CLASSES], ids=["two", "three"])
def test_forest_with_arbitrary_values(y):
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, y)
    written, (label, probabilities) = write(model, lambda a: a - np.float32(0.1))
    np.testing.assert_array_equal(written.predict(X), label)
    np.testing.assert_allclose(written.predict_proba(X), probabilities, atol=1e-6)


@pytest.mark.parametrize(
    ("y", "loss"),
    [(TWO, "log_loss"), (CLASSES, "log_loss"), (TWO, "exponential")],
    ids=["two", "three", "exp"],
)
def test_boosting_starts_from_trained_scores(y, loss):
    model = GradientBoostingClassifier(n_estimators=3, loss=loss, random_state=0).fit(X, y)
    written, (label, probabilities) = write(model, shifted)
    assert np.abs(written.init_.class_prior_ - model.init_.class_prior_).max() > 1e-3
    np.testing.assert_array_equal(written.predict(X), label)
    np.testing.assert_allclose(written.predict_proba(X), probabilities, atol=1e-6)


def test_boosting_keeps_the_common_part_of_decisions():
    model = GradientBoostingClassifier(n_estimators=2, random_state=0).fit(X, CLASSES)
    trainable = to_trainable(model)
    weights = trainable.coefficients(trainable.initial_weights())
    name = next(name for name in weights if name.startswith("base_values"))
    weights[name] = weights[name] + np.float32(1.5)
    written = write_weights(model, trainable, weights)
    np.testing.assert_allclose(
        written.decision_function(X), model.decision_function(X) + 1.5, rtol=1e-5, atol=1e-5
    )


def test_derived_attributes_of_mixtures():
    for kind in ("full", "tied", "diag", "spherical"):
        model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
        written, _ = write(model, lambda a: (a * 1.1).astype(a.dtype))
        factor = written.precisions_cholesky_
        if kind in ("diag", "spherical"):
            precisions, identity = factor**2, np.ones_like(factor)
            product = written.precisions_ * written.covariances_
        else:
            precisions = factor @ np.swapaxes(factor, -1, -2)
            product = written.precisions_ @ written.covariances_
            identity = np.broadcast_to(np.eye(3), product.shape)
        np.testing.assert_allclose(written.precisions_, precisions, rtol=1e-6)
        np.testing.assert_allclose(product, identity, atol=1e-6)
        assert np.abs(written.precisions_ - model.precisions_).max() > 1e-2


@pytest.mark.parametrize("algorithm", ["brute", "kd_tree", "ball_tree"])
def test_neighbours_of_trained_samples(algorithm):
    model = KNeighborsRegressor(3, weights="distance", algorithm=algorithm).fit(X, Y)
    written, (values,) = write(model, shifted)
    samples = (X * 1.1 + 0.05).astype(np.float64)
    distances = np.linalg.norm(samples[:, None] - X[None, :].astype(np.float64), axis=2)
    np.testing.assert_allclose(written.kneighbors(X)[0], np.sort(distances, axis=0)[:3].T, rtol=1e-4)
    np.testing.assert_allclose(written.predict(X), values.ravel(), rtol=1e-4)


@pytest.mark.parametrize("y", [TWO, CLASSES], ids=["two", "three"])
def test_public_and_private_coefficients_of_support_vectors_agree(y):
    written, (label, _) = write(SVC(kernel="linear").fit(X, y), shifted)
    sign = -1 if y is TWO else 1
    np.testing.assert_array_equal(written._dual_coef_, sign * written.dual_coef_)
    np.testing.assert_array_equal(written._intercept_, sign * written.intercept_)
    np.testing.assert_array_equal(written.predict(X), label)


def test_offset_of_an_outlier_detector():
    written, (_, scores) = write(OneClassSVM(nu=0.3).fit(X), shifted)
    np.testing.assert_allclose(written.offset_, -written.intercept_, rtol=1e-6)
    np.testing.assert_allclose(written.score_samples(X) - written.offset_, scores.ravel(), atol=1e-5)


def rising(array):
    return array + np.linspace(0, 1, array.size, dtype=array.dtype).reshape(array.shape)


def test_calibration_is_recomputed():
    model = CalibratedClassifierCV(LogisticRegression(), method="isotonic", cv=2).fit(X, TWO)
    written, (_, probabilities) = write(model, rising, weights_to_train="*y_thresholds_")
    was, new = (fitted.calibrated_classifiers_[0].calibrators[0] for fitted in (model, written))
    assert isinstance(new, IsotonicRegression)
    assert np.abs(was.y_thresholds_ - new.y_thresholds_).max() > 0.01
    np.testing.assert_allclose(new.predict(new.X_thresholds_), new.y_thresholds_, rtol=1e-6)
    np.testing.assert_allclose(written.predict_proba(X), probabilities, atol=1e-5)


def test_deviations_of_a_gaussian_process():
    model = GaussianProcessRegressor(alpha=0.1, optimizer=None).fit(X, Y)
    written, (values, *_) = write(model, shifted)
    np.testing.assert_allclose(written.predict(X), values.ravel(), rtol=1e-4, atol=1e-4)
    again = GaussianProcessRegressor(alpha=0.1, optimizer=None).fit(written.X_train_, Y)
    np.testing.assert_allclose(
        written.predict(X, return_std=True)[1], again.predict(X, return_std=True)[1], rtol=1e-6
    )


@pytest.mark.parametrize(
    ("scaler", "other", "power"), [(StandardScaler(), "var_", 2), (MaxAbsScaler(), "max_abs_", 1)]
)
def test_scales_agree_with_variances(scaler, other, power):
    model = scaler.fit(X)
    written, (values,) = write(model, lambda a: (a * 1.1).astype(a.dtype))
    assert np.abs(written.scale_ - model.scale_).max() > 1e-3
    np.testing.assert_allclose(getattr(written, other), written.scale_**power)
    np.testing.assert_allclose(written.transform(X), values, rtol=1e-5, atol=1e-6)


def test_frozen_weights_are_not_changed():
    model = LogisticRegression().fit(X, CLASSES)
    written, _ = write(model, shifted, weights_to_train="coef_")
    np.testing.assert_array_equal(written.intercept_, model.intercept_)
    assert np.abs(written.coef_ - model.coef_).max() > 0.01


def test_model_without_exponential_is_rejected():
    with pytest.raises(WriteBackError, match="Ridge cannot represent an exponential"):
        write(Ridge().fit(X, Y), shifted, link="log")
    written, (values,) = write(PoissonRegressor().fit(X, np.exp(Y)), shifted, link="log")
    np.testing.assert_allclose(written.predict(X), values.ravel(), rtol=1e-5)


def test_encodings_of_categories():
    codes = (CLASSES[:, None] + 1).astype(float)
    model = TargetEncoder(random_state=0).fit(codes, Y)
    trainable = to_trainable(model)
    weights = trainable.coefficients(trainable.initial_weights())
    (name,) = weights
    written = write_weights(model, trainable, {name: weights[name] + np.float32(1)})
    np.testing.assert_allclose(written.transform(codes), model.transform(codes) + 1, rtol=1e-5)
    np.testing.assert_allclose(written.transform([[17.0]]), model.target_mean_)


def test_shared_initializer_is_written_into_each_member():
    model = CalibratedClassifierCV(LogisticRegression(), method="isotonic", cv=2).fit(X, TWO)
    tables = [c.calibrators[0].y_thresholds_ for c in model.calibrated_classifiers_]
    np.testing.assert_array_equal(*tables)
    written, (_, probabilities) = write(model, rising, weights_to_train="*y_thresholds_")
    changed = [c.calibrators[0].y_thresholds_ for c in written.calibrated_classifiers_]
    np.testing.assert_array_equal(*changed)
    assert np.abs(changed[0] - tables[0]).max() > 0.01
    np.testing.assert_allclose(written.predict_proba(X), probabilities, atol=1e-5)


def test_a_part_without_a_path_is_not_written():
    op, part = ModelWriter(), Ridge().fit(X, Y)
    model = make_pipeline(part)
    op.write(model, "X")
    lost = op.parameter(Ridge().fit(X, Y), "coef_")
    assert write_parameters(model, op.parameters, {"coef": np.zeros((1, X.shape[1]))})[-1].coef_.max() == 0
    with pytest.raises(WriteBackError, match="No path leads to coef_: its model definition"):
        write_parameters(model, op.parameters, {lost: np.zeros(X.shape[1])})


def test_writing_back_needs_no_graph():
    model = make_pipeline(FunctionTransformer(np.abs), Ridge()).fit(X, Y)
    trainable = to_trainable(model)
    weights = trainable.coefficients(trainable.initial_weights())
    model[0].func = np.spacing  # without a form in ONNX
    written = write_weights(model, trainable, {name: 2 * array for name, array in weights.items()})
    np.testing.assert_allclose(written[-1].coef_, 2 * model[-1].coef_, rtol=1e-6)


@pytest.mark.parametrize(
    "change", [lambda model: setattr(model, "steps", model.steps[1:]), lambda model: model.fit(X, -Y)]
)
def test_changed_estimators_are_rejected(change):
    model = make_pipeline(StandardScaler(), Ridge()).fit(X, Y)
    trainable = to_trainable(model)
    change(model)
    with pytest.raises(WriteBackError, match="changed since it was converted"):
        write_weights(model, trainable, {})
