"""Searches, thresholds, calibration, frozen estimators and transformed targets."""

import numpy as np
import pytest
from onnx import helper, parser
from scipy import special
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import VotingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError, FallbackWarning, NoTrainableWeightError, WriteBackError
from ortlearn.graphs import TensorType, append_nodes
from ortlearn.models import definition_of
from ortlearn.models.transformations.numeric import FUNCTIONS
from ortlearn.models.writer import ModelWriter
from ortlearn.trainable.conversion import to_trainable
from ortlearn.trainable.explanation import explain
from tests.curves import Curves

X, CLASSES = load_iris(return_X_y=True)
X = X[::2] - X.mean(axis=0)
CLASSES = CLASSES[::2]
TWO = (X[:, 0] + X[:, 1] > 0).astype(int)
Y = 4 + X[:, 2]
STILL = {"warm_start": True, "max_iter": 1, "learning_rate": 1e-30}
MOVED = {"warm_start": True, "max_iter": 4, "learning_rate": 0.01, "random_state": 0}


def search(model, **grid):
    return GridSearchCV(model, {name: [value] for name, value in grid.items()}, cv=2)


def check(model, y):
    """Compare an optimizer with scikit-learn before and after training."""
    model.fit(X, y)
    still = OrtGradientOptimizer(model, **STILL).fit(X, y)
    moved = OrtGradientOptimizer(model, **MOVED).fit(X, y)
    back = moved.to_sklearn()
    assert type(back) is type(model)
    assert any(
        np.abs(a - b).max() > 1e-4
        for a, b in zip(*(t.trained_coef_.values() for t in (still, moved)), strict=True)
    )
    for one, other in ((model, still), (back, moved)):
        expected, found = one.predict(X), other.predict(X)
        assert found.shape == expected.shape
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
        else:
            assert (found == expected).mean() > 0.98  # float32 may move a sample across the threshold
    return moved


@pytest.mark.parametrize("kind", [int, bool, str])
@pytest.mark.parametrize("positive", [None, 0, 1])
@pytest.mark.parametrize(
    "classifier, options",
    [
        (LogisticRegression(), {"threshold": 0.3}),
        (LogisticRegression(), {"threshold": 0.4, "response_method": "decision_function"}),
        (LinearSVC(), {"threshold": 0.2}),
        (DecisionTreeClassifier(max_depth=2, min_samples_leaf=8), {"threshold": 0.05}),
    ],
    ids=["probability", "decision", "without probabilities", "tree"],
)
def test_thresholds(classifier, options, positive, kind):
    y = np.array(["no", "yes"])[TWO] if kind is str else TWO.astype(kind)
    label = None if positive is None and kind is not str else y[TWO == (positive or 0)][0]
    plain = classifier.fit(X, y).predict(X)
    model = FixedThresholdClassifier(classifier, pos_label=label, **options)
    assert (check(model, y).predict(X) != plain).any()


@pytest.mark.slow
def test_a_tuned_threshold():
    model = TunedThresholdClassifierCV(LogisticRegression(), scoring="recall", cv=2)
    trained = check(model, TWO)
    assert model.best_threshold_ != 0.5 and trained.to_sklearn().best_threshold_ == model.best_threshold_


@pytest.mark.parametrize("method", ["sigmoid", "temperature"])
def test_a_calibration(method):
    if method == "temperature" and "temperature" not in str(
        CalibratedClassifierCV._parameter_constraints["method"]
    ):
        return  # scikit-learn before 1.8
    check(CalibratedClassifierCV(LogisticRegression(), method=method, cv=2), CLASSES)


TARGETS_OF = {
    "scaled": StandardScaler(),
    "of a unit interval": MinMaxScaler(),
    "logarithms": FunctionTransformer(np.log1p, inverse_func=np.expm1),
    "powers": PowerTransformer(),
    "quantiles": QuantileTransformer(n_quantiles=20),
    "in two steps": make_pipeline(FunctionTransformer(np.log, inverse_func=np.exp), RobustScaler()),
}


@pytest.mark.parametrize("shape", [(-1,), (-1, 1), (-1, 2)])
@pytest.mark.parametrize("name", TARGETS_OF)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_transformed_targets(name, shape):
    y = (np.column_stack([Y, Y**2]) if shape[-1] == 2 else Y).reshape(shape)
    check(TransformedTargetRegressor(Ridge(), transformer=TARGETS_OF[name]), y)


def test_transformed_targets_in_transformed_targets():
    inner = TransformedTargetRegressor(Ridge(), func=np.arcsinh, inverse_func=np.sinh)
    trained = check(TransformedTargetRegressor(inner, transformer=StandardScaler()), Y)
    outer, within = trained._fitted.problem.trainable.scores.target_transformers
    assert isinstance(outer, StandardScaler) and within.func is np.arcsinh


def test_a_log_link_under_transformed_targets():
    trained = check(TransformedTargetRegressor(PoissonRegressor(), transformer=MaxAbsScaler()), Y)
    assert trained._fitted.problem.trainable.scores.link == "log"
    other = TransformedTargetRegressor(Ridge(), transformer=MaxAbsScaler()).fit(X, Y)
    other = OrtGradientOptimizer(other, learning_loss="poisson", **MOVED).fit(X, Y)
    assert (other.predict(X) > 0).all() and other.train_losses_[-1] < other.train_losses_[0]
    with pytest.raises(WriteBackError, match="cannot represent an exponential"):
        other.to_sklearn()


SPLINES = make_pipeline(Curves(n_knots=3), Ridge())
FROZEN = FrozenEstimator(make_pipeline(Curves(n_knots=3), Ridge()).fit(X, Y))
#: Models with a nested step that stays in scikit-learn.
FALLBACK = {
    "search": search(SPLINES, ridge__alpha=1.0),
    "search in a pipeline": make_pipeline(StandardScaler(), search(SPLINES, ridge__alpha=1.0)),
    "step before a search": make_pipeline(Curves(), search(Ridge(), alpha=1.0)),
    "search of searches": search(search(SPLINES, ridge__alpha=1.0), estimator__ridge__alpha=[2.0]),
    "targets": TransformedTargetRegressor(SPLINES, transformer=StandardScaler()),
    "step before targets": make_pipeline(
        Curves(), TransformedTargetRegressor(Ridge(), transformer=StandardScaler())
    ),
    "search of targets": search(TransformedTargetRegressor(SPLINES), regressor__ridge__alpha=2.0),
    "frozen": FROZEN,
    "frozen step": make_pipeline(FrozenEstimator(Curves(n_knots=3).fit(X)), Ridge()),
    "threshold": FixedThresholdClassifier(make_pipeline(Curves(), LogisticRegression()), threshold=0.3),
    "tuned threshold": TunedThresholdClassifierCV(make_pipeline(Curves(), LogisticRegression()), cv=2),
}


@pytest.mark.sweep(9)
@pytest.mark.parametrize("name", FALLBACK)
def test_a_nested_step_stays_in_scikit_learn(name):
    with pytest.warns(FallbackWarning, match="curves|frozenestimator") as caught:
        trained = check(FALLBACK[name], TWO if "threshold" in name else Y)
    assert len(caught) == 2  # one for each fit
    assert trained._fitted.problem.trainable.entry.sklearn_steps is not None


def test_frozen_estimators_are_trained_if_selected_or_outermost():
    half = FrozenEstimator(make_pipeline(StandardScaler(), Ridge()).fit(X, Y))
    trained = check(FrozenEstimator(half), Y)
    assert set(trained.weights_to_train_.values()) == {"ridge: coef_", "ridge: intercept_"}
    votes = VotingRegressor([("frozen", half), ("free", Ridge(alpha=3))]).fit(X, Y)
    frozen = [f"estimators_[0].estimator['ridge'].{name}" for name in ("coef_", "intercept_")]
    assert set(to_trainable(votes).origins().values()) == {
        "estimators_[1].coef_",
        "estimators_[1].intercept_",
    }
    assert set(to_trainable(votes, "*['ridge']*").origins().values()) == set(frozen)
    reasons = {row.attribute: row.reason for row in explain(votes).rows}
    assert {reasons[name] for name in frozen} == {"it is part of a FrozenEstimator"}
    with pytest.raises(NoTrainableWeightError, match="it is part of a FrozenEstimator"):
        to_trainable(VotingRegressor([("frozen", half)]).fit(X, Y))


def test_a_frozen_transformer_of_selected_columns():
    scaler = FrozenEstimator(StandardScaler().fit(X[:, :2]))
    check(make_pipeline(ColumnTransformer([("f", scaler, [0, 1]), ("p", "passthrough", [3])]), Ridge()), Y)


def test_a_search_without_an_estimator():
    model = GridSearchCV(Ridge(), {"alpha": [1.0]}, cv=2, refit=False).fit(X, Y)
    with pytest.raises(ConversionError, match="refit=True"):
        OrtGradientOptimizer(model, warm_start=True).fit(X, Y)


TARGETS = np.array([[0.5, 2.0], [1.5, -3.0], [4.0, 1.0]])


@pytest.mark.parametrize(
    "transformer",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
        RobustScaler(),
        MaxAbsScaler(),
        MinMaxScaler((-1, 3)),
        make_pipeline(StandardScaler(), MinMaxScaler()),
        PowerTransformer(),
        PowerTransformer(standardize=False),
        QuantileTransformer(n_quantiles=3),
        QuantileTransformer(n_quantiles=3, output_distribution="normal"),
        PCA(),
        PCA(whiten=True),
        FunctionTransformer(np.arcsinh, inverse_func=np.sinh),
        FunctionTransformer(),
    ],
)
def test_inverses_of_targets(transformer, run_onnx):
    transformed = transformer.fit_transform(TARGETS)
    np.testing.assert_allclose(
        _inverse(transformer, run_onnx, transformed), transformer.inverse_transform(transformed), rtol=1e-5
    )


def _inverse(transformer, run_onnx, values):
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N,2] x) => (float[N,2] y) { y = Identity (x) }'
    )
    op = ModelWriter(inputs={"x": TensorType(1), "y": TensorType(1)})
    result = op.Identity(definition_of(transformer).write_inverse(op, transformer, "y"))
    outputs = [helper.make_tensor_value_info(result, 1, ["N", 2])]
    return run_onnx(append_nodes(model, op, outputs=outputs), values.astype(np.float32))[0]


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f is not None], ids=lambda f: f.__name__)
def test_every_inverse_function(function, run_onnx):
    values = np.array([[0.1, 0.2], [0.4, 0.9]])
    transformer = FunctionTransformer(inverse_func=function, check_inverse=False).fit(values)
    np.testing.assert_allclose(_inverse(transformer, run_onnx, values), function(values), rtol=1e-5)


@pytest.mark.parametrize("rates", [(0.0, 2.0), (0.5, -1.0), (2.0, 0.0), (0.0, 0.0), (2.0, 2.0)])
def test_inverses_of_powers(rates, run_onnx):
    transformer = PowerTransformer(standardize=False).fit(TARGETS)
    transformer.lambdas_ = np.array(rates)
    values = transformer.transform(TARGETS)
    np.testing.assert_allclose(_inverse(transformer, run_onnx, values), TARGETS, rtol=1e-4)
    positive = PowerTransformer(method="box-cox", standardize=False).fit(np.abs(TARGETS))
    positive.lambdas_ = np.array(rates)
    values = positive.transform(np.abs(TARGETS))
    np.testing.assert_allclose(_inverse(positive, run_onnx, values), np.abs(TARGETS), rtol=1e-4)


def test_unsupported_inverses_are_refused():
    products = PolynomialFeatures().fit(TARGETS)
    for transformer in (products, FunctionTransformer(special.erf, inverse_func=special.erfinv)):
        with pytest.raises(ConversionError, match="inverse .*is not"):
            definition_of(transformer).write_inverse(ModelWriter(), transformer, "y")
