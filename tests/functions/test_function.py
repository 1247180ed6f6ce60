"""Fitted models as functions: values of scikit-learn, and derivatives of central differences."""

import pickle

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVR, OneClassSVM

from ortlearn import OrtGradientOptimizer
from ortlearn.conversion import sklearn_to_onnx
from ortlearn.exceptions import ConversionError, GradientError
from ortlearn.functions import differentiable

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
BINARY, CLASSES = (Y > 0).astype(int), np.digitize(Y, [-0.5, 0.5])
P = X[:5] + 0.1
NETWORK = {"hidden_layer_sizes": (8,), "activation": "tanh", "max_iter": 20, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def differences(function, points, step=1e-5):
    """Return central differences along each feature, in a last axis."""
    steps = step * np.eye(points.shape[1])
    return np.stack([(function(points + d) - function(points - d)) / (2 * step) for d in steps], axis=-1)


CASES = {
    "linear": (Ridge(), Y, "predict"),
    "linear, two outputs": (Ridge(), np.c_[Y, BINARY], "predict"),
    "linear, a column": (Ridge(), Y[:, None], "predict"),
    "network": (MLPRegressor(**NETWORK), Y, "predict"),
    "pipeline": (make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge()), Y, "predict"),
    "process": (GaussianProcessRegressor(alpha=0.01), Y, "predict"),
    "two classes": (LogisticRegression(), BINARY, "predict_proba"),
    "decisions": (LogisticRegression(), BINARY, "decision_function"),
    "three classes": (MLPClassifier(**NETWORK), CLASSES, "predict_proba"),
    "logarithms": (LogisticRegression(), CLASSES, "predict_log_proba"),
    "density": (GaussianMixture(2, random_state=0), None, "score_samples"),
    "normality": (OneClassSVM(nu=0.5), None, "score_samples"),
    "discriminants": (LinearDiscriminantAnalysis(), CLASSES, "transform"),
    "partial least squares": (make_pipeline(StandardScaler(), PLSRegression()), Y, "transform"),
    "votes": (VotingRegressor([("a", Ridge()), ("b", SVR())]), Y, "transform"),
    "soft votes": (
        make_pipeline(StandardScaler(), VotingClassifier([("a", LogisticRegression())], voting="soft")),
        CLASSES,
        "transform",
    ),
    "stack": (StackingRegressor([("a", Ridge()), ("b", SVR())], passthrough=True), Y, "transform"),
    "stacked classes": (StackingClassifier([("a", LogisticRegression())], cv=2), BINARY, "transform"),
    "components": (PCA(2), None, "score_samples"),
    "all components": (make_pipeline(StandardScaler(), PCA(whiten=True)), None, "score_samples"),
    "transform": (make_pipeline(StandardScaler(), PolynomialFeatures(3)), None, "transform"),
}


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name):
    model, y, output = CASES[name]
    model.fit(X, y)
    f, expected = differentiable(model, output), getattr(model, output)(P)
    np.testing.assert_allclose(f(P), expected, rtol=1e-9, atol=1e-11)
    assert f(P).shape == expected.shape and f.dtype == np.float64
    jacobian = f.jacobian(P)
    np.testing.assert_allclose(jacobian, differences(f, P), rtol=1e-6, atol=1e-7)
    u, v = RNG.normal(size=expected.shape), RNG.normal(size=P.shape)
    along = (jacobian * v.reshape(len(P), *[1] * (jacobian.ndim - 2), -1)).sum(axis=-1)
    np.testing.assert_allclose(f.jvp(P, v), along, rtol=1e-9, atol=1e-11)
    weighted = (jacobian * u[..., None]).reshape(len(P), -1, P.shape[1]).sum(axis=1)
    np.testing.assert_allclose(f.vjp(P, u), weighted, rtol=1e-9, atol=1e-11)
    output = None if expected.shape[1:] in ((), (1,)) else 1
    column = jacobian.reshape(len(P), -1, P.shape[1])[:, output or 0]
    np.testing.assert_allclose(f.gradient(P, output), column, rtol=1e-9, atol=1e-11)
    second = (f.vjp(P + 1e-5 * v, u) - f.vjp(P - 1e-5 * v, u)) / 2e-5
    np.testing.assert_allclose(f.hessian_vector(P, v, u), second, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["linear, two outputs", "network", "pipeline", "three classes"])
def test_gradients_of_parameters(name):
    model, y, output = CASES[name]
    f = differentiable(model.fit(X, y), output)
    u = RNG.normal(size=f(X).shape)
    total, single = f.parameter_gradient(X, u), f.parameter_gradient(X, u, per_sample=True)
    assert f.parameters and total.keys() == single.keys() == f.parameters.keys()
    assert f._parameter_gradients._size  # by a batched graph
    for key, value in f.parameters.items():
        assert total[key].shape == value.shape and single[key].shape == (len(X), *value.shape)
        np.testing.assert_allclose(single[key].sum(axis=0), total[key], rtol=1e-9, atol=1e-11)
        one = f.parameter_gradient(X[-1:], u[-1:])[key]
        np.testing.assert_allclose(single[key][-1], one, rtol=1e-9, atol=1e-11)


def test_gradients_of_parameters_are_those_of_a_linear_model():
    f = differentiable(Ridge().fit(X, Y))
    found = f.parameter_gradient(P, [1.0, 0, 0, 0, 2])
    np.testing.assert_allclose(found["coef"].ravel(), P[0] + 2 * P[4], rtol=1e-12)
    np.testing.assert_allclose(found["intercept"], [3.0], rtol=1e-12)


def test_closed_forms_of_kernels():
    """f(x) = sum of a_i exp(-g |x - x_i|^2): its gradient is that sum times -2 g (x - x_i)."""
    process = GaussianProcessRegressor(RBF(1.5), alpha=0.1, optimizer=None).fit(X, Y)
    machine = SVR(gamma=0.3).fit(X, Y)
    for model, centres, weights, gamma in (
        (process, X, process.alpha_, 1 / (2 * 1.5**2)),
        (machine, machine.support_vectors_, machine.dual_coef_[0], 0.3),
    ):
        steps = P[:, None] - centres
        shares = weights * np.exp(-gamma * (steps**2).sum(axis=2))
        slopes = -2 * gamma * (shares[..., None] * steps).sum(axis=1)
        np.testing.assert_allclose(differentiable(model).gradient(P), slopes, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("model", [LogisticRegression(), MLPClassifier(**NETWORK), GaussianNB()], ids=str)
@pytest.mark.parametrize("y", [BINARY, CLASSES], ids=["two", "three"])
def test_logarithms_of_small_probabilities(model, y):
    """Probabilities of certain models are zero, or one, in floats, their logarithms are not."""
    model.fit(X, y)
    if hasattr(model, "coefs_"):
        model.coefs_[-1] *= 1e4
    elif hasattr(model, "coef_"):
        model.coef_ *= 1e4
    f, far = differentiable(model, "predict_log_proba"), 300 * P if hasattr(model, "theta_") else P
    jacobian = np.stack([f.gradient(far, output) for output in range(len(np.unique(y)))], axis=1)
    slopes = [(f(far + step) - f(far - step)) / 2e-5 for step in 1e-5 * np.eye(4)]
    assert f(far).min() < -750
    if hasattr(model, "theta_"):  # of logarithms; others of probabilities
        np.testing.assert_allclose(f(far), model.predict_log_proba(far), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(jacobian, np.stack(slopes, axis=2), rtol=1e-4, atol=1e-3)


def test_hessians_are_symmetric():
    f = differentiable(MLPRegressor(**NETWORK).fit(X, Y))
    columns = [f.hessian_vector(P, np.tile(v, (len(P), 1))) for v in np.eye(4)]
    hessian = np.stack(columns, axis=2)
    np.testing.assert_allclose(hessian, hessian.transpose(0, 2, 1), rtol=1e-9, atol=1e-12)
    assert np.abs(hessian).max() > 1e-3


def test_trained_models_and_files():
    trainer = OrtGradientOptimizer(MLPClassifier(**NETWORK), max_iter=3, random_state=0).fit(X, CLASSES)
    f, exact = differentiable(trainer, "predict_proba"), differentiable(trainer, "predict_proba", dtype=float)
    assert f.dtype == np.float32 and exact.dtype == np.float64
    np.testing.assert_allclose(f(P), trainer.predict_proba(P), rtol=1e-5)
    np.testing.assert_allclose(f.gradient(P, 2), exact.gradient(P, 2), rtol=1e-3, atol=1e-6)
    assert f.classes_.tolist() == [0, 1, 2] and f.parameters.keys() == trainer.trained_coef_.keys()
    file = sklearn_to_onnx(trainer.to_sklearn(), dtype=np.float64)
    of_file = differentiable(file, "probabilities")
    np.testing.assert_allclose(of_file.gradient(P, 2), exact.gradient(P, 2), rtol=1e-9)
    np.testing.assert_allclose(
        differentiable(file, "predict_proba").jacobian(P), exact.jacobian(P), rtol=1e-9
    )


def test_classes_by_name():
    model = LogisticRegression().fit(X, np.array(["low", "middle", "high"])[CLASSES])
    f = differentiable(model, "predict_proba")
    np.testing.assert_array_equal(f.gradient(P, "low"), f.gradient(P, list(f.classes_).index("low")))
    with pytest.raises(ValueError, match="one of the classes"):
        f.gradient(P, "absent")
    with pytest.raises(ValueError, match="choose one by output=0"):
        f.gradient(P)
    with pytest.raises(ValueError, match="out of range"):
        f.gradient(P, 3)


def test_probabilities_of_several_labels_are_joined():
    X = np.random.default_rng(0).normal(size=(60, 3))
    Y = np.column_stack([X[:, :3].argmax(axis=1), X[:, 0] > 0])
    model = MultiOutputClassifier(LogisticRegression()).fit(X, Y)
    f = differentiable(model, "predict_proba")
    np.testing.assert_allclose(f(X), np.hstack(model.predict_proba(X)), rtol=1e-6)


def test_frames_with_text():
    frame = pd.DataFrame(P, columns=list("abcd")).assign(city=list("xyxyx"))
    steps = [("numbers", StandardScaler(), list("abcd")), ("city", OneHotEncoder(), ["city"])]
    model = make_pipeline(ColumnTransformer(steps), MLPRegressor(**NETWORK)).fit(frame, Y[:5])
    f = differentiable(model, X=frame)
    np.testing.assert_allclose(f(frame), model.predict(frame), rtol=1e-9)
    gradient = f.gradient(frame)
    assert list(gradient) == list(frame) and gradient["city"] is None
    step = 1e-5
    moved = [model.predict(frame.assign(b=frame["b"] + sign * step)) for sign in (1, -1)]
    np.testing.assert_allclose(gradient["b"], (moved[0] - moved[1]) / (2 * step), rtol=1e-6)
    np.testing.assert_allclose(f.jvp(frame, {"b": np.ones(5)}), gradient["b"], rtol=1e-9)
    np.testing.assert_allclose(f.jacobian(frame)["b"], gradient["b"], rtol=1e-9)
    assert "column 'city': no gradient" in f.explain() and "column 'b': gradient" in f.explain()
    with pytest.raises(ValueError, match=r"columns \['city'\] have no gradient"):
        f.jvp(frame, {"city": np.ones(5)})


def test_steps_in_sklearn():
    model = make_pipeline(FunctionTransformer(lambda x: np.sort(x, axis=1)), StandardScaler(), Ridge()).fit(
        X, Y
    )
    with (
        pytest.warns(UserWarning, match="stays in scikit-learn"),
        pytest.raises(GradientError, match="wrt='trans"),
    ):
        differentiable(model, X=X)
    with pytest.warns(UserWarning, match="stays in scikit-learn"):
        f = differentiable(model, wrt="transformed", X=X)
    np.testing.assert_allclose(f(P), model.predict(P), rtol=1e-9)
    slopes = model[-1].coef_ / model[1].scale_
    np.testing.assert_allclose(f.gradient(P), np.tile(slopes, (5, 1)), rtol=1e-9)
    assert "run in scikit-learn" in f.explain()


def test_errors():
    with pytest.raises(GradientError, match="piecewise constant.*predict_proba"):
        differentiable(LogisticRegression().fit(X, BINARY))
    with pytest.raises(GradientError, match=r"piecewise constant.*smooth=width"):
        differentiable(RandomForestRegressor(3).fit(X, Y))
    with pytest.raises(ConversionError, match="not fitted"):
        differentiable(Ridge())
    with pytest.raises(ValueError, match="has no predict_proba: use one of"):
        differentiable(Ridge().fit(X, Y), "predict_proba")
    with pytest.raises(ValueError, match="is unknown"):
        differentiable(Ridge().fit(X, Y), "scores")
    with pytest.raises(ConversionError, match="not ABCMeta"):
        differentiable(Ridge)
    with pytest.raises(ValueError, match="must be numpy.float32 or numpy.float64"):
        differentiable(Ridge().fit(X, Y), dtype=int)
    file = sklearn_to_onnx(LogisticRegression().fit(X, BINARY))
    with pytest.raises(GradientError, match=r"\['predict_proba', 'decision_function', 'raw_score'\]"):
        differentiable(file)
    f = differentiable(Ridge().fit(X, Y))
    with pytest.raises(ValueError, match="v has the shape"):
        f.jvp(P, P[:2])
    with pytest.raises(ValueError, match="u has the shape"):
        f.vjp(P, P)
    with pytest.raises(ValueError, match="4 features"):
        f(P[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        f.gradient(np.full((1, 4), np.nan))
    with pytest.raises(ValueError, match="infinity"):
        f.jvp(np.full((1, 4), np.inf), P[:1])
    with pytest.raises(ValueError, match="kind="):
        f.to_onnx("third")


def test_saved_files(tmp_path):
    f = differentiable(MLPClassifier(**NETWORK).fit(X, CLASSES), "predict_proba")
    u, v = RNG.normal(size=(5, 3)), RNG.normal(size=P.shape)
    cases = {
        "gradient": ({"X": P}, [f(P), f.gradient(P, 1)]),
        "vjp": ({"X": P, "predict_proba_grad": u}, [f.vjp(P, u)]),
        "jvp": ({"X": P, "X_direction": v}, [f.jvp(P, v)]),
        "hessian_vector": ({"X": P, "predict_proba_grad": u, "X_direction": v}, [f.hessian_vector(P, v, u)]),
        "parameter_gradient": ({"X": P, "predict_proba_grad": u}, list(f.parameter_gradient(P, u).values())),
        "value": ({"X": P}, [f(P)]),
    }
    for kind, (feeds, expected) in cases.items():
        f.save(tmp_path / "file.onnx", kind, output=1)
        session = onnxruntime.InferenceSession(tmp_path / "file.onnx", providers=["CPUExecutionProvider"])
        for found, wanted in zip(session.run(None, feeds), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def trained():
    return OrtGradientOptimizer(Ridge(), max_iter=2, learning_rate="Adam", random_state=0).fit(X, Y)


def test_bare_functions_and_copies():
    f = differentiable(Ridge().fit(X, Y))
    copies = pickle.loads(pickle.dumps(f)), pickle.loads(pickle.dumps(differentiable(trained(), dtype=None)))
    np.testing.assert_array_equal(copies[0].gradient(P), f.gradient(P))
    np.testing.assert_array_equal(copies[1].gradient(P), differentiable(trained()).gradient(P))
    for bare in (f.bare, copies[0].bare):
        np.testing.assert_array_equal(bare(P), f(P))
        np.testing.assert_array_equal(bare.value_and_gradient(P)[1], f.gradient(P))
    one = P[:1]
    np.testing.assert_allclose(f.gradient(one), f.gradient(P)[:1])


def test_columns_of_texts_need_samples():
    frame = pd.DataFrame({"number": [1.0, 2.0, 3.0, 4.0], "text": ["x", "y", "x", "y"]})
    columns = ColumnTransformer(
        [("scaler", StandardScaler(), ["number"]), ("codes", OneHotEncoder(), ["text"])]
    )
    model = make_pipeline(columns, Ridge()).fit(frame, [0.0, 1.0, 2.0, 3.0])
    with pytest.raises(ConversionError, match="pass some samples as X="):
        differentiable(model)
    assert differentiable(model, X=frame).gradient(frame)["text"] is None
