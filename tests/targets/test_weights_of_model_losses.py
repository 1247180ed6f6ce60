"""sample_weight of graphs with a loss."""

import numpy as np
import pytest
from onnx import parser
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.exceptions import ConversionError
from ortlearn.learning_rates import LearningRateSGD
from ortlearn.losses import add_loss_output
from ortlearn.trainable.from_estimator import sklearn_to_onnx

BACKENDS = ["rules", pytest.param("ort", marks=pytest.mark.needs_training)]


@pytest.fixture(scope="module")
def weighted_samples(diabetes_units):
    X, y = diabetes_units
    return X[:200], y[:200], np.random.RandomState(0).uniform(0, 3, 200)


@pytest.fixture(scope="module")
def base(weighted_samples):
    X, y, _ = weighted_samples
    return sklearn_to_onnx(LinearRegression().fit(X[:30], y[:30]), 10)


def constant(rate):
    return LearningRateSGD(eta0=rate, learning_rate="constant")


@pytest.mark.parametrize("gradient", BACKENDS)
def test_weighted_updates(gradient, optimizer, base, weighted_samples):
    X, y, weights = weighted_samples
    source = add_loss_output(base, "squared_error", weight_name="sample_weight")
    model = optimizer(source, learning_rate=constant(1e-3), max_iter=3, shuffle=False, warm_start=True)
    model.set_params(gradient=gradient, batch_size=30).fit(X, y, sample_weight=weights)
    begin = LinearRegression().fit(X[:30], y[:30])
    coef, intercept = begin.coef_, begin.intercept_
    for _ in range(3):
        for start in range(0, 200, 30):
            samples = slice(start, start + 30)
            error = 2 * weights[samples] * (X[samples] @ coef + intercept - y[samples])
            coef, intercept = coef - 1e-3 * error @ X[samples], intercept - 1e-3 * error.sum()
    np.testing.assert_allclose(model.trained_coef_["coef"].ravel(), coef, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(model.trained_coef_["intercept"].ravel(), [intercept], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("gradient", BACKENDS)
def test_solver_reaches_the_weighted_optimum(gradient, optimizer, base, weighted_samples):
    X, y, weights = weighted_samples
    source = add_loss_output(base, "squared_error", weight_name="sample_weight")
    model = optimizer(source, learning_rate="LBFGS", max_iter=200, random_state=0, gradient=gradient)
    expected = LinearRegression().fit(X, y, sample_weight=weights).predict(X)
    np.testing.assert_allclose(model.fit(X, y, sample_weight=weights).predict(X), expected, atol=0.01)
    assert np.abs(model.predict(X) - LinearRegression().fit(X, y).predict(X)).max() > 0.1


def test_default_weights_are_ones(optimizer, base, weighted_samples):
    X, y, _ = weighted_samples
    options = {"learning_rate": constant(1e-3), "max_iter": 2, "random_state": 0}
    plain = optimizer(add_loss_output(base), **options).fit(X, y)
    source = add_loss_output(base, weight_name="sample_weight")
    ones = optimizer(source, **options).fit(X, y, sample_weight=np.ones(len(X)))
    none = optimizer(source, **options).fit(X, y)
    for model in (ones, none):
        np.testing.assert_allclose(model.trained_coef_["coef"], plain.trained_coef_["coef"], rtol=1e-5)
        np.testing.assert_allclose(model.train_losses_, plain.train_losses_, rtol=1e-5)
        np.testing.assert_allclose(model.losses(X, y), plain.losses(X, y), rtol=1e-4, atol=1e-6)
    assert [value.name for value in none.onnx_.graph.input] == ["X"]


def test_weights_are_passed_unchanged(optimizer, base, weighted_samples):
    X, y, weights = weighted_samples
    source = add_loss_output(base, weight_name="sample_weight")
    options = {"max_iter": 1, "random_state": 0, "batch_size": 1000}
    once = optimizer(source, learning_rate=constant(1e-4), **options).fit(X, y, sample_weight=weights)
    tenfold = optimizer(source, learning_rate=constant(1e-5), **options).fit(X, y, sample_weight=10 * weights)
    np.testing.assert_allclose(tenfold.trained_coef_["coef"], once.trained_coef_["coef"], rtol=1e-5)
    np.testing.assert_allclose(tenfold.train_losses_, 10 * np.array(once.train_losses_), rtol=1e-5)


def test_partial_fit(optimizer, base, weighted_samples):
    X, y, weights = weighted_samples
    source = add_loss_output(base, weight_name="sample_weight")
    options = {"learning_rate": 1e-4, "shuffle": False, "warm_start": True}
    whole = optimizer(source, max_iter=3, **options).fit(X, y, sample_weight=weights)
    steps = optimizer(source, **options)
    for _ in range(3):
        steps.partial_fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(steps.trained_coef_["coef"], whole.trained_coef_["coef"])


def test_validation(optimizer, base, weighted_samples):
    X, y, weights = weighted_samples
    source = add_loss_output(base, weight_name="sample_weight")
    model = optimizer(source, learning_rate=1e-30, max_iter=1)
    model.fit(X[:100], y[:100], X_val=X[100:], y_val=y[100:], sample_weight_val=weights[100:])
    expected = weights[100:] @ model.losses(X[100:], y[100:])
    np.testing.assert_allclose(model.validation_losses_, [expected], rtol=1e-4)
    model.fit(X[:100], y[:100], sample_weight=weights[:100], X_val=X[100:], y_val=y[100:])
    np.testing.assert_allclose(model.validation_losses_, [model.losses(X[100:], y[100:]).sum()], rtol=1e-4)


def test_score(optimizer, base, weighted_samples):
    X, y, weights = weighted_samples
    source = add_loss_output(base, weight_name="sample_weight")
    model = optimizer(source, learning_rate="LBFGS", max_iter=50).fit(X, y, sample_weight=weights)
    expected = LinearRegression().fit(X, y, sample_weight=weights).score(X, y, weights)
    assert model.score(X, y, weights) == pytest.approx(expected, abs=1e-4)


def test_another_name_and_frozen_layers(optimizer, weighted_samples):
    X, y, weights = weighted_samples
    pipeline = make_pipeline(StandardScaler(), LinearRegression()).fit(X * 5 + 1, y)
    source = add_loss_output(
        sklearn_to_onnx(pipeline, 10), label_name="truth", loss_name="cost", weight_name="importance"
    )
    model = optimizer(source, weights_to_train=["coef", "intercept"], learning_rate="LBFGS", max_iter=200)
    model.set_params(label_name="truth", loss_output_name="cost", weight_name="importance", random_state=0)
    model.fit(X * 5 + 1, y, sample_weight=weights)
    expected = LinearRegression().fit(X, y, sample_weight=weights).predict(X)
    np.testing.assert_allclose(model.predict(X * 5 + 1), expected, atol=2e-3)
    assert model.n_features_in_ == 10


def written(x, weight, shape):
    """Return a model of the weighted squared error of a line, with these types of inputs."""
    return parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": 18]>
        g ({x}[N,1] x, {x}[N,1] label, {weight}[{shape}] sample_weight) => ({x} loss, {x}[N,1] y)
        <{x}[1,1] slope = {{1}}, {x}[1] start = {{0}}, int64[2] column = {{-1, 1}}>
        {{ z = MatMul (x, slope) y = Add (z, start) d = Sub (y, label) s = Mul (d, d)
          w = Cast <to = {1 if x == "float" else 11}> (sample_weight) c = Reshape (w, column)
          r = Mul (s, c) loss = ReduceSum <keepdims = 0> (r) }}""")


@pytest.mark.parametrize(
    "x, weight, shape",
    [
        ("float", "float", "N"),
        ("float", "float", "N,1"),
        ("double", "double", "N,1"),
        ("float", "double", "N"),
        ("double", "float", "N,1"),
        ("float", "int64", "N"),
    ],
)
def test_inputs_of_other_types_and_shapes(x, weight, shape, optimizer):
    rng = np.random.RandomState(0)
    X, counts = rng.normal(size=(60, 1)), rng.randint(0, 4, 60)
    y = 2 * X[:, 0] + 1 + rng.normal(size=60)
    model = optimizer(written(x, weight, shape), learning_rate="LBFGS", max_iter=100, random_state=0)
    model.fit(X, y, sample_weight=counts)
    expected = LinearRegression().fit(X, y, sample_weight=counts)
    np.testing.assert_allclose(model.trained_coef_["slope"].ravel(), expected.coef_, rtol=1e-4)
    by_batch = optimizer(written(x, weight, shape), max_iter=2, random_state=0, learning_rate=1e-3)
    before = by_batch.fit(X, y, sample_weight=counts).train_losses_
    assert before[1] < before[0]


def test_weights_with_two_columns_are_rejected(optimizer, weighted_samples):
    X, y, _ = weighted_samples
    source = written("float", "float", "N,2")
    with pytest.raises(ConversionError, match=r"'sample_weight'.* must have shape \(n,\) or \(n, 1\), got"):
        optimizer(source, max_iter=1).fit(X[:, :1], y)


def test_graph_without_weight_input(optimizer, base, weighted_samples, unchanged):
    X, y, weights = weighted_samples
    fitted = optimizer(add_loss_output(base), learning_rate=1e-4, max_iter=1).fit(X, y)

    def fails():
        for call in (
            lambda: fitted.fit(X, y, sample_weight=weights),
            lambda: fitted.partial_fit(X, y, sample_weight=weights),
            lambda: fitted.fit(X, y, X_val=X, y_val=y, sample_weight_val=weights),
        ):
            with pytest.raises(ConversionError, match="weight_name .*or add one with add_loss_output"):
                call()

    unchanged(fitted, X, fails)
