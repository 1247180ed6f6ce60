"""Constrained parameters stay valid during training."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from ortlearn.differentiation import gradient_of_loss
from ortlearn.estimators import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.graphs import (
    GraphBuilder,
    append_nodes,
    graph_names,
    initializer_arrays,
    make_inputs_of,
    set_initializers,
)
from ortlearn.models.constraints.reparametrisation import Reparametrisation
from ortlearn.models.constraints.sets import Increasing, LogProbability, Rising, Simplex, Triangular
from ortlearn.models.constraints.signs import NotNegative, Positive
from ortlearn.trainable.conversion import to_trainable

RNG = np.random.RandomState(0)
X = RNG.randn(60, 3).astype(np.float32)
LABELS = np.digitize(X @ [1.0, -2.0, 0.5] + 0.5 * RNG.randn(60), [-1.0, 1.0])
COUNTS = RNG.poisson(3.0, (60, 3)).astype(np.float32)

#: A constraint, and an array that satisfies it.
HELD = {
    "positive": (Positive(), np.array([[0.3, 2.0], [1e-3, 40.0]])),
    "negative": (Positive(-1), np.array(-0.7)),
    "positive below a bound": (Positive(high=41.0), np.array([[0.3, 2.0], [1e-3, 40.0]])),
    "not negative": (NotNegative(), np.array([[0.3, 2.0], [1e-3, 40.0]])),
    "shares": (Simplex(), np.array([0.2, 0.5, 0.3])),
    "shares of rows": (Simplex(1), np.array([[0.2, 0.8], [0.6, 0.4]])),
    "logarithms": (Simplex(0, logarithm=True), np.log([[0.2, 0.8], [0.8, 0.2]])),
    "log probability": (LogProbability(), np.log([[0.2, 0.9], [0.01, 0.5]])),
    "increasing": (Increasing(), np.array([0.1, 0.15, 0.6, 0.9])),
    "between bounds": (Increasing(-2.0, 3.0), np.array([-1.5, 0.0, 0.4, 2.9])),
    "rising": (Rising(), np.array([[-3.0, 1.0], [0.5, 1.5], [0.75, 9.0]])),
    "rising vector": (Rising(), np.array([-3.0, 0.5, 0.75])),
    "rising above": (Rising(-4.0), np.array([-3.0, 0.5, 0.75])),
    "triangular": (Triangular(), np.triu(np.abs(RNG.randn(2, 3, 3)) + 0.1)),
    "triangular below a bound": (Triangular(9.0), np.triu(np.abs(RNG.randn(2, 3, 3)) + 0.1)),
}


def only_constraint(constraint, values, dtype):
    """Return a graph that adds a constrained array to its input."""
    dims = ",".join(map(str, values.shape))
    kind = "double" if dtype == np.float64 else "float"
    value = f"{kind}[{dims}]" if dims else kind
    text = f"g ({value} x) => ({value} y) {{ y = Add (x, w) }}"
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')
    model.graph.initializer.append(numpy_helper.from_array(values.astype(dtype), "w"))
    return Reparametrisation.of(model, {"w": constraint})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", HELD)
def test_the_graph_computes_the_parameter_from_free_values(kind, dtype, run_onnx):
    constraint, values = HELD[kind]
    assert constraint.holds(values)
    tolerance = 1e-5 if dtype == np.float32 else 1e-9
    model, put = only_constraint(constraint, values, dtype)
    zeros = np.zeros(values.shape, dtype)
    np.testing.assert_allclose(run_onnx(model, zeros)[0], values, rtol=tolerance, atol=tolerance)
    free = initializer_arrays(model)["w"]
    np.testing.assert_allclose(constraint.values(free), values, rtol=tolerance, atol=tolerance)
    back = put.undone(model)
    assert [node.op_type for node in back.graph.node] == ["Add"]
    np.testing.assert_allclose(initializer_arrays(back)["w"], values, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", HELD)
def test_all_free_values_satisfy_the_constraint(kind, run_onnx):
    constraint, values = HELD[kind]
    model, put = only_constraint(constraint, values, np.float64)
    free = initializer_arrays(model)["w"]
    for seed in range(3):
        moved = free + 3 * np.random.RandomState(seed).randn(*free.shape)
        moved_model = set_initializers(model, {"w": np.asarray(moved, np.float64)})
        result = run_onnx(moved_model, np.zeros(values.shape))[0]
        assert constraint.holds(result) and result.shape == values.shape
        released = put.undone(moved_model)
        np.testing.assert_allclose(initializer_arrays(released)["w"], result, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize(
    "constraint, values",
    [
        (Positive(), [1.0, 0.0]),
        (Positive(-1), [0.5]),
        (Positive(high=2.0), [2.5]),
        (NotNegative(), [1.0, -0.1]),
        (Simplex(), [0.5, 0.6]),
        (Simplex(), [1.5, -0.5]),
        (Simplex(logarithm=True), [-np.inf, 0.0]),
        (LogProbability(), [0.1]),
        (Increasing(), [0.2, 0.1]),
        (Increasing(), [0.2, 1.1]),
        (Increasing(), [-0.1, 1.0]),
        (Increasing(-2.0, 3.0), [-2.5, 1.0]),
        (Rising(), [[1.0], [0.0]]),
        (Rising(0.5), [0.0, 1.0]),
        (Triangular(), [[1.0, 0.0], [0.1, 1.0]]),
        (Triangular(), [[1.0, 0.0], [0.0, -1.0]]),
        (Triangular(2.0), [[1.0, 0.0], [0.0, 3.0]]),
    ],
)
def test_arrays_that_violate_the_constraint(constraint, values):
    assert not constraint.holds(np.array(values))


@pytest.mark.parametrize(
    "constraint, values, tolerance",
    [
        (NotNegative(), [0.0, 2.0], 0),
        (Simplex(), [0.0, 1.0], 1e-12),
        (LogProbability(), [0.0, -40.0], 2e-6),
        (Increasing(), [0.0, 0.3, 0.3, 1.0], 0),
        (Rising(), [[0.0], [0.0], [2.0]], 1e-5),
    ],
)
def test_boundary_values_have_finite_free_values(constraint, values, tolerance):
    values = np.array(values)
    assert constraint.holds(values)
    free = constraint.free(values)
    assert np.isfinite(free).all()
    np.testing.assert_allclose(constraint.values(free), values, atol=tolerance)


@pytest.mark.parametrize("kind", HELD)
def test_gradients_of_free_values(kind, run_onnx):
    constraint, values = HELD[kind]
    model, _ = only_constraint(constraint, values, np.float64)
    free = initializer_arrays(model)["w"]
    op = GraphBuilder(dtype=np.float64, existing_names=graph_names(model.graph))
    op.node("ReduceSum", op.Mul("y", op.Tanh("y")), outputs=["loss"], keepdims=0)
    output = helper.make_tensor_value_info("loss", TensorProto.DOUBLE, [])
    loss = append_nodes(make_inputs_of(model, ["w"]), op, outputs=[output])
    gradient = gradient_of_loss(loss, "loss", ["w"])
    zeros = np.zeros(values.shape)
    names = [value.name for value in gradient.graph.output]
    found = dict(zip(names, run_onnx(gradient, x=zeros, w=free), strict=True))["w_grad"]
    expected = np.zeros_like(free)
    for index in np.ndindex(free.shape):
        step = np.zeros_like(free)
        step[index] = 1e-6
        moved = (np.asarray(free + sign * step) for sign in (1, -1))
        up, down = (run_onnx(loss, x=zeros, w=array)[0] for array in moved)
        expected[index] = (up - down) / 2e-6
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


#: Estimators, samples, and constraints of their attributes.
CONSTRAINED = {
    "gaussian": (GaussianNB(), X, {"var_": Positive(), "class_prior_": Simplex(logarithm=True)}),
    "multinomial": (
        MultinomialNB(),
        COUNTS,
        {"feature_log_prob_": Simplex(0, logarithm=True), "class_log_prior_": Simplex(logarithm=True)},
    ),
    "bernoulli": (BernoulliNB(), X, {"feature_log_prob_": LogProbability()}),
    "qda": (QuadraticDiscriminantAnalysis(), X, {"priors_": Simplex(), "scalings_": Positive()}),
    "sigmoid": (CalibratedClassifierCV(GaussianNB(), cv=2), X, {"a_": Positive(-1)}),
}


@pytest.mark.parametrize("kind", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
@pytest.mark.parametrize("case", CONSTRAINED)
def test_constraints_hold_during_training(case, kind, run_onnx):
    estimator, features, constraints = CONSTRAINED[case]
    model = estimator.fit(features, LABELS)
    trained = kind(model, learning_rate=0.3, warm_start=True, max_iter=3, random_state=0)
    trained.fit(features, LABELS)
    names = {
        name: origin.rpartition(".")[2].partition("[")[0].removeprefix("log(").removesuffix(")")
        for name, origin in trained.weights_to_train_.items()
    }
    assert set(names.values()) >= set(constraints)
    stored = initializer_arrays(trained.onnx_)
    for name, attribute in names.items():
        np.testing.assert_array_equal(stored[name], trained.trained_coef_[name])
        if attribute in constraints:
            assert constraints[attribute].holds(trained.trained_coef_[name])
    outputs = run_onnx(trained.onnx_, features)
    np.testing.assert_array_equal(np.ravel(outputs[0]), trained.predict(features))
    np.testing.assert_allclose(outputs[1], trained.predict_proba(features), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("case", CONSTRAINED)
def test_warm_starts_begin_at_the_parameters_of_the_model(case, run_onnx):
    estimator, features, _ = CONSTRAINED[case]
    model = estimator.fit(features, LABELS)
    trained = OrtGradientOptimizer(model, learning_rate=1e-30, warm_start=True, max_iter=1).fit(
        features, LABELS
    )
    probabilities = run_onnx(trained.onnx_, features)[1]
    np.testing.assert_allclose(probabilities, model.predict_proba(features), rtol=2e-3, atol=1e-4)
    before = {name: array.copy() for name, array in trained.trained_coef_.items()}
    trained.fit(features, LABELS)  # from the last solution
    for name, array in before.items():
        np.testing.assert_allclose(trained.trained_coef_[name], array, rtol=1e-5, atol=1e-6)


def test_scales_keep_their_sign_and_free_values_have_no_penalty():
    scaler = StandardScaler().fit(X)
    trained = OrtGradientOptimizer(
        scaler, learning_rate=0.1, learning_penalty="l2", warm_start=True, max_iter=2, random_state=0
    )
    trained.fit(X, -5 * scaler.transform(X))
    (scale,) = (n for n, origin in trained.weights_to_train_.items() if origin == "scale_")
    assert (trained.trained_coef_[scale] > 0).all()
    task = trained._fitted.problem.task(False)
    assert [name.partition("_")[2] for name, left_out in task.graph.intercepts.items() if left_out] == [
        "mean",
        scale,
    ]


def test_a_calibration_that_falls_is_trained_freely():
    model = CalibratedClassifierCV(LinearSVC(), cv=2).fit(X, LABELS == 1)
    for fitted in model.calibrated_classifiers_:
        fitted.calibrators[0].a_ = 0.8
    assert to_trainable(model).constraints == {}
