"""scikit-learn's checks of estimators, metadata routing, and feature names."""

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from scipy.sparse import dok_matrix
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from ortlearn import OrtIntervalRegressor, OrtSetClassifier
from ortlearn.compress import prune
from ortlearn.conversion import explain
from ortlearn.functions import differentiable
from ortlearn.inspection import input_gradient, weight_changes
from tests.intervals.test_interval_regressor import X_NEW, X, Y, inside

WEIGHTS = "a repeated sample may be a calibration sample, which a weight is not"
FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
    "check_dtype_object": "arrays of objects are refused, as by the other estimators",
}
ESTIMATORS = [
    OrtIntervalRegressor(Ridge(), coverage=0.5, calibration=0.5, random_state=0),
    OrtSetClassifier(LogisticRegression(), coverage=0.5, calibration=0.3, random_state=0),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_checks_of_scikit_learn(estimator):
    failed = {}
    for own, check in estimator_checks_generator(estimator):
        name = getattr(check, "func", check).__name__
        try:
            check(own)
        except Exception as error:
            if name not in FAILURES and "SkipTest" not in type(error).__name__:
                failed[name] = repr(error)
    assert not failed


def test_groups_are_routed():
    groups = np.where(X[:, 0] > 0, 1, 2)
    with config_context(enable_metadata_routing=True):
        inner = OrtIntervalRegressor(Ridge(), calibration=200, random_state=0).set_fit_request(groups=True)
        trained = make_pipeline(StandardScaler(), inner).fit(X, Y, groups=groups)
    assert trained[-1].groups_ == [1, 2]


@pytest.mark.slow
def test_frames_and_sparse_matrices():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    trained = OrtIntervalRegressor(Ridge(), random_state=0).fit(frame, Y)
    assert trained.feature_names_in_.tolist() == ["a", "b", "c"] and trained.n_features_in_ == 3
    with pytest.raises(ValueError, match="feature names"):
        trained.predict(pd.DataFrame(X_NEW, columns=["a", "b", "d"]))
    sparse = OrtIntervalRegressor(Ridge(), random_state=0).fit(dok_matrix(X), Y)
    expected = trained.predict(pd.DataFrame(X_NEW, columns=["a", "b", "c"]))
    np.testing.assert_allclose(sparse.predict(dok_matrix(X_NEW)), expected, rtol=1e-2, atol=1e-2)


def test_boosting_with_categories():
    """Its trees compare float64 samples, in an estimator of float32."""
    frame = pd.DataFrame(X, columns=list("abc")).assign(kind=pd.Categorical(np.where(X[:, 0] > 0, "u", "v")))
    trained = OrtIntervalRegressor(HistGradientBoostingRegressor(max_iter=5), random_state=0).fit(frame, Y)
    feeds = {name: frame[[name]].to_numpy() for name in "abc"}
    feeds["kind"] = frame[["kind"]].to_numpy(object)
    model = trained.get_trained_onnx()
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(["lower"], {value.name: feeds[value.name] for value in session.get_inputs()})[0]
    intervals = trained.predict_interval(frame)[1]
    np.testing.assert_allclose(found, intervals[:, 0, 0], rtol=1e-5)
    assert 0.8 < inside(intervals, Y).mean() < 1


def test_streams_begin_with_all_classes():
    labels = np.where(Y > 10, "b", "a")
    with pytest.raises(ValueError, match="classes \\['c'\\]"):
        OrtSetClassifier(LogisticRegression()).partial_fit(X, labels, classes=["a", "b", "c"])
    trained = OrtSetClassifier(LogisticRegression(), random_state=0)
    trained.partial_fit(X, labels, classes=["a", "b"]).partial_fit(X_NEW[:5], ["a"] * 5)
    assert trained.n_calibration_ == 85


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.PrecisionWarning")
@pytest.mark.parametrize(
    "model",
    [HistGradientBoostingRegressor(max_iter=5), make_pipeline(StandardScaler(), Ridge())],
    ids=lambda model: type(model).__name__,
)
def test_files_of_models_in_float64(model):
    inputs, new = X + [1e6, *np.zeros(X.shape[1] - 1)], X_NEW + [1e6, *np.zeros(X.shape[1] - 1)]
    model.fit(inputs[:100], Y[:100])
    trained = OrtIntervalRegressor(model, random_state=0).fit(inputs[100:], Y[100:])
    session = onnxruntime.InferenceSession(trained.get_trained_onnx().SerializeToString())
    (lower,) = session.run(["lower"], {session.get_inputs()[0].name: new})
    expected = trained.predict_interval(new)[1][:, 0, 0]
    np.testing.assert_allclose(lower, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
@pytest.mark.parametrize(
    "function",
    [
        differentiable,
        explain,
        lambda model: prune(model, X, Y > 0, sparsity=0.5),
        lambda model: input_gradient(model, X[:2]),
        lambda model: weight_changes(model, model),
    ],
)
def test_functions_of_models_take_a_model_inside(estimator, function):
    fitted = clone(estimator).fit(X, Y > 0)
    with pytest.raises(TypeError, match=r"attribute estimators_, such as estimators_\[0\]"):
        function(fitted)
    explain(fitted.estimators_[0])
