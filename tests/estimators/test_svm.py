"""All parameters of support vector machines are trained."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingRegressor, VotingClassifier
from sklearn.linear_model import Ridge
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from ortlearn.estimators import OrtGradientOptimizer

pytestmark = pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning")


CLASSIFIERS = {
    "SVC": (SVC(), 3),
    "SVC of pairs": (SVC(kernel="poly", coef0=1.0, decision_function_shape="ovo"), 3),
    "SVC of two classes": (SVC(C=0.1), 2),
    "NuSVC": (NuSVC(nu=0.3, kernel="sigmoid", gamma=0.02), 3),
    "calibrated": (SVC(probability=True, random_state=0), 3),
    "calibrated, two classes": (NuSVC(nu=0.3, probability=True, random_state=0), 2),
    "pipeline": (make_pipeline(StandardScaler(), SVC(kernel="linear", C=0.05)), 3),
    "one against rest": (OneVsRestClassifier(SVC()), 3),
    "one against one": (OneVsOneClassifier(SVC()), 3),
    "vote": (VotingClassifier([("a", SVC(probability=True, random_state=0))], voting="soft"), 3),
    "bagging of votes": (BaggingClassifier(SVC(), 2, random_state=0), 3),
    "calibration": (CalibratedClassifierCV(SVC(), cv=2), 3),
    "bagging": (BaggingClassifier(SVC(probability=True, random_state=0), 2, random_state=0), 3),
}


def trained(optimizer, model, X, y, rate=0.002, **settings):
    """Return an estimator that continues the training of a fitted model."""
    settings = {"warm_start": True, "random_state": 0, "max_iter": 8, **settings}
    return optimizer(model, learning_rate=rate, **settings).fit(X, y)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_improve_their_objective(run_onnx, wine, name):
    model, n_classes = CLASSIFIERS[name]
    X, y = wine
    X, y = X.astype(np.float32), y if n_classes == 3 else (y > 0).astype(int)
    model.fit(X, y)
    after = trained(OrtGradientOptimizer, model, X, y)
    # The first loss is the mean over an epoch in which the weights change.
    assert np.mean(after.losses(X, y)) < 0.9995 * after.train_losses_[0]
    exported = list(run_onnx(after.get_trained_onnx(), X).values())
    assert exported[0].ravel().tolist() == after.predict(X).tolist()
    if hasattr(after, "predict_proba"):
        np.testing.assert_allclose(exported[1], after.predict_proba(X), atol=1e-6)
    assert after.score(X, y) >= model.score(X, y) - 0.02


@pytest.mark.parametrize(
    "model, rate",
    [(SVR(), 1e-2), (NuSVR(kernel="linear", C=0.1), 1e-4), (SVR(kernel="poly", coef0=1.0), 1e-5)],
    ids=["rbf", "linear", "poly"],
)
def test_regressors_improve_their_objective(optimizer, run_onnx, diabetes_units, model, rate):
    X, y = diabetes_units
    X = X.astype(np.float32)
    model.fit(X, y)
    after = trained(optimizer, model, X, y, rate)
    assert np.mean(after.losses(X, y)) < 0.999 * after.train_losses_[0]
    (exported,) = run_onnx(after.get_trained_onnx(), X).values()
    np.testing.assert_allclose(exported.ravel(), after.predict(X), rtol=1e-5, atol=1e-5)


def test_novelty_scores_are_trained_on_labels(optimizer, run_onnx, wine):
    X, y = wine
    X, inside = X.astype(np.float32), np.where(y == 0, 1, -1)
    model = OneClassSVM(nu=0.5).fit(X)
    after = trained(optimizer, model, X, inside, 0.01)
    assert np.mean(after.losses(X, inside)) < 0.99 * after.train_losses_[0]
    label, _ = run_onnx(after.get_trained_onnx(), X).values()
    assert label.ravel().tolist() == after.predict(X).tolist()
    assert np.mean(after.predict(X) == inside) > np.mean(model.predict(X) == inside)


def test_both_estimators_give_the_same_weights(both, wine):
    X, y = wine
    model = SVC().fit(X, y)
    one, other = (trained(optimizer, model, X, y, max_iter=2).trained_coef_ for optimizer in both)
    assert set(one) == {"support_vectors", "dual_coef", "intercept"}
    for name, array in one.items():
        np.testing.assert_allclose(other[name], array, rtol=1e-4, atol=1e-6, err_msg=name)


IN_FLOAT64 = {
    "SVR": SVR(),
    "NuSVR": NuSVR(),
    "OneClassSVM": OneClassSVM(),
    "SVC": SVC(probability=True, random_state=0),
    "a stack with SVR": StackingRegressor([("svr", SVR()), ("ridge", Ridge())]),
}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", IN_FLOAT64)
def test_float64_from_end_to_end(both, wine, name):
    X, y = wine
    target = np.where(y == 0, 1, -1) if name == "OneClassSVM" else y
    model = IN_FLOAT64[name].fit(X, target)
    settings = {"max_iter": 2, "dtype": "float64", "gradient": "rules"}
    one, other = (trained(optimizer, model, X, target, **settings) for optimizer in both)
    for weight, array in one.trained_coef_.items():
        assert array.dtype == np.float64, weight
        np.testing.assert_allclose(other.trained_coef_[weight], array, rtol=1e-10, atol=1e-12, err_msg=weight)
    if name != "SVC":  # the coupling of pairs has a tolerance
        start = trained(both[0], model, X, target, rate=1e-300, max_iter=1, dtype="float64")
        method = "decision_function" if name == "OneClassSVM" else "predict"
        np.testing.assert_allclose(
            getattr(start, method)(X), getattr(model, method)(X), rtol=1e-10, atol=1e-10
        )


@pytest.mark.slow
@pytest.mark.needs_training
@pytest.mark.parametrize("probability", [False, True])
def test_both_gradients_give_the_same_weights(wine, probability):
    X, y = wine
    model = SVC(probability=probability, random_state=0).fit(X, y)
    one, other = (
        trained(OrtGradientOptimizer, model, X, y, max_iter=2, gradient=gradient).trained_coef_
        for gradient in ("rules", "ort")
    )
    assert len(one) == (5 if probability else 3)
    for name, array in one.items():
        np.testing.assert_allclose(other[name], array, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.slow
def test_weights_of_the_fitted_estimator(wine):
    X, y = wine
    model = SVC(probability=True, random_state=0).fit(X, y)
    after = OrtGradientOptimizer(model, learning_rate=1e-12, max_iter=1, warm_start=True).fit(X, y)
    coefs = after.trained_coef_
    expected = {
        "support_vectors": model.support_vectors_,
        "dual_coef": model.dual_coef_,
        "intercept": model.intercept_,
        "probA": model._probA,
        "probB": model._probB,
    }
    assert set(coefs) == set(expected)
    for name, array in expected.items():
        np.testing.assert_allclose(coefs[name], array, rtol=1e-5, atol=1e-6, err_msg=name)


def test_kernel_width_is_trained_by_name(wine):
    X, y = wine
    model = SVC(gamma=1.0).fit(X, y)
    after = OrtGradientOptimizer(
        model, "gamma", learning_rate=0.01, max_iter=5, warm_start=True, random_state=0
    ).fit(X, y)
    assert list(after.trained_coef_) == ["gamma"]
    assert after.train_losses_[-1] < after.train_losses_[0]


def test_one_machine_per_label(run_onnx, wine):
    X, y = wine
    X, labels = X.astype(np.float32), np.stack([y == 0, y == 1], axis=1).astype(int)
    model = MultiOutputClassifier(SVC()).fit(X, labels)
    after = trained(OrtGradientOptimizer, model, X, labels)
    assert np.mean(after.losses(X, labels)) < 0.9995 * after.train_losses_[0]
    assert len(after.trained_coef_) == 6
    exported = next(iter(run_onnx(after.get_trained_onnx(), X).values()))
    assert exported.tolist() == after.predict(X).tolist()
    assert np.mean(after.predict(X) == model.predict(X)) > 0.98
