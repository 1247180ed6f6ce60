"""Array labels: masks, weights, losses and classes of pixels, time steps and elements."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.metrics import r2_score

from ortlearn.estimators import OrtGradientForwardBackwardOptimizer
from ortlearn.fitting.scoring import r2_of_positions
from tests.estimators.array_graphs import FILES, ONE_STEP, RATE, dtype_of, objective, trainer, weights_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("name", ["steps", "transposed_steps", "forecast"])
def test_labels_of_weight_zero_have_no_effect(optimizer, name):
    file = FILES[name]
    X, y = file.samples(20, np.float64)
    weight = (np.random.default_rng(0).random(y.shape) > 0.3).astype(float)
    hidden = np.where(weight > 0, y, -100 if file.n_classes else np.nan)
    options = {"batch_size": 5, "max_iter": 2}
    one, two = (trainer(optimizer, file, **options).fit(X, labels, weight) for labels in (y, hidden))
    for array, other in zip(one.trained_coef_.values(), two.trained_coef_.values(), strict=True):
        np.testing.assert_array_equal(array, other)
    assert one.score(X, y, weight) == two.score(X, hidden, weight)
    np.testing.assert_allclose(one.losses(X, y, weight), two.losses(X, hidden, weight))
    validated = trainer(optimizer, file, **options, early_stopping=True)
    validated.fit(X, hidden, weight, X_val=X, y_val=hidden, sample_weight_val=weight)
    known = objective(file, weights_of(validated, file), X, y, weight)
    assert validated.validation_losses_[-1] == pytest.approx(known)


@pytest.mark.parametrize(
    "name, options",
    [
        ("pixels", {"learning_loss": "focal"}),
        ("pixels", {"learning_loss": "hinge"}),
        ("pixels", {"class_weight": "balanced"}),
        ("mask", {"class_weight": {0: 1.0, 1: 3.0}}),
        ("forecast", {"learning_loss": "huber"}),
        ("forecast", {"learning_loss": "absolute_error"}),
        ("forecast", {"learning_rate": "LBFGS"}),
        ("steps", {"learning_rate": "LBFGS"}),
        ("steps", {"learning_rate": "auto"}),
        ("pixels", {"learning_rate": "auto"}),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_and_updates(optimizer, name, options, weighted):
    file = FILES[name]
    X, y = file.samples(40, dtype_of(file))
    weight = np.random.default_rng(0).random(y.shape) if weighted else None
    model = trainer(optimizer, file, **{"batch_size": 10, "max_iter": 20, **options}).fit(X, y, weight)
    assert model.train_losses_[-1] < model.train_losses_[0]


def test_class_weights_apply_to_pixels(optimizer):
    file = FILES["pixels"]
    X, y = file.samples(12)
    table = {0: 1.0, 1: 3.0, 2: 0.5, 3: 0.0}
    weight = np.random.default_rng(0).random(12)
    one = trainer(optimizer, file, class_weight=table).fit(X, y, weight)
    two = trainer(optimizer, file).fit(X, y, np.vectorize(table.get)(y) * weight[:, None, None])
    np.testing.assert_allclose(one.train_losses_, two.train_losses_, rtol=1e-6)
    balanced = trainer(optimizer, file, class_weight="balanced").fit(X, y)
    counts = np.bincount(y.ravel())
    three = trainer(optimizer, file).fit(X, y, (1 / counts)[y])
    np.testing.assert_allclose(balanced.train_losses_, three.train_losses_, rtol=1e-6)


@pytest.mark.parametrize("name", ["steps", "forecast"])
def test_python_loss_of_each_position(name):
    file = FILES[name]
    X, y = file.samples(15, np.float64)
    model = file.model(np.float64)
    if file.n_classes:  # a function does not declare its task, so integer labels determine it
        model.graph.node.append(helper.make_node("ArgMax", ["y"], ["label"], axis=2, keepdims=0))
        model.graph.output.append(helper.make_tensor_value_info("label", TensorProto.INT64, ["N", 5]))

    def squares(expected, predicted):
        return ((predicted - expected) ** 2 / 2).sum(axis=1), predicted - expected

    def multinomial(expected, predicted):
        losses = -(expected * log_softmax(predicted, axis=1)).sum(axis=1)
        return losses, softmax(predicted, axis=1) - expected

    weight = np.random.default_rng(0).random(y.shape)
    options = {"batch_size": 4, "max_iter": 2}
    known = trainer(OrtGradientForwardBackwardOptimizer, file, **options, estimator=model)
    found = clone(known).set_params(learning_loss=multinomial if file.n_classes else squares)
    known, found = (one.fit(X, y, weight) for one in (known, found))
    for name, array in known.trained_coef_.items():
        np.testing.assert_allclose(array, found.trained_coef_[name], rtol=1e-9)
    np.testing.assert_allclose(known.losses(X, y), found.losses(X, y))


def test_labels_with_a_class_axis(optimizer):
    file = FILES["mask"]
    X, y = file.samples(12)
    one, two = trainer(optimizer, file).fit(X, y), trainer(optimizer, file).fit(X, y[:, None])
    np.testing.assert_array_equal(one.predict(X)[:, None], two.predict(X))
    assert two.score(X, y[:, None]) == one.score(X, y)


def test_new_samples_without_some_classes(optimizer):
    file = FILES["pixels"]
    X, y = file.samples(12)
    model = trainer(optimizer, file).fit(X, np.minimum(y, 1))
    assert model.classes_.tolist() == [0, 1, 2, 3]
    names = np.array(["sky", "road", "car", "tree"])
    named = trainer(optimizer, file).fit(X, names[np.minimum(y, 1)], classes=names)
    np.testing.assert_array_equal(names[model.predict(X)], named.predict(X))


def test_loss_is_required_for_classes_of_time_steps(optimizer):
    X, y = FILES["steps"].samples(12, np.float64)
    with pytest.raises(ValueError, match="integers of shape.*learning_loss='log_loss'"):
        trainer(optimizer, FILES["steps"], learning_loss="auto").fit(X, y)


def test_weights_of_matrix_elements(optimizer):
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (double[N,4] x) => (double[N,2] y)
        { y = MatMul (x, w) }"""
    )
    rng = np.random.default_rng(0)
    X, y, weight, w = (rng.normal(0, 1, shape) for shape in ((50, 4), (50, 2), (50, 2), (4, 2)))
    weight = np.abs(weight)
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    trained = optimizer(model, **ONE_STEP).fit(X, y, weight)
    gradient = 2 * X.T @ (weight * (X @ w - y)) / weight.sum()
    np.testing.assert_allclose(trained.trained_coef_["w"], w - RATE * gradient)
    parts = [r2_score(y[:, k], trained.predict(X)[:, k], sample_weight=weight[:, k]) for k in (0, 1)]
    assert trained.score(X, y, weight) == pytest.approx(np.mean(parts))
    assert trained.partial_fit(X, y).partial_fit(X, y, sample_weight=weight).predict(X).shape == (50, 2)
    with pytest.raises(ValueError, match="if the first call has such weights"):
        optimizer(model, **ONE_STEP).partial_fit(X, y).partial_fit(X, y, sample_weight=weight)


def test_scores_with_zero_weights_of_an_element():
    y = np.array([[1.0, 5.0], [2.0, 7.0], [4.0, 9.0]])
    predicted, weight = y + np.array([[0.5, 0], [0, 0], [0, 0]]), np.array([[1, 0], [1, 0], [1, 0]])
    known = r2_score(y[:, 0], predicted[:, 0])
    assert r2_of_positions(y, predicted, weight) == pytest.approx(known)
    constant = np.ones((3, 2))
    assert r2_of_positions(constant, constant, None) == 1.0
    assert r2_of_positions(constant, constant + 1, None) == 0.0


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", ["pixels", "steps", "forecast", "mask"])
def test_fit_stream(optimizer, name):
    file = FILES[name]
    X, y = file.samples(40, dtype_of(file))
    y = np.minimum(y, 1) if file.n_classes else y
    weight = (np.random.default_rng(0).random(y.shape) > 0.4).astype(float)
    hidden = np.where(weight > 0, y, -1 if file.n_classes else np.nan)
    options = {"batch_size": 7, "max_iter": 3, "shuffle": True}
    options |= {"class_weight": "balanced"} if file.n_classes else {}
    known = trainer(optimizer, file, **options).fit(X, y, weight)
    streamed = trainer(optimizer, file, **options).fit_stream(X, hidden, weight)
    for weights, other in zip(known.trained_coef_.values(), streamed.trained_coef_.values(), strict=True):
        np.testing.assert_array_equal(weights, other)

    def batches():
        for samples in (slice(0, 15), slice(15, 40)):
            yield X[samples], hidden[samples], weight[samples]

    options["shuffle"] = False
    known = trainer(optimizer, file, **options).fit(X, y, weight)
    streamed = trainer(optimizer, file, **options).fit_stream(batches, shuffle_buffer=14)
    for weights, other in zip(known.trained_coef_.values(), streamed.trained_coef_.values(), strict=True):
        np.testing.assert_allclose(weights, other, rtol=1e-5, atol=1e-7)
    if file.n_classes:
        assert streamed.classes_.tolist() == list(range(file.n_classes))


@pytest.mark.parametrize("name", ["steps", "forecast"])
def test_score_rejects_labels_of_another_shape(optimizer, name):
    file = FILES[name]
    X, y = file.samples(12, np.float64)
    trained = trainer(optimizer, file).fit(X, y)
    for labels in (y[:, :1], y[:6]):
        with pytest.raises(ValueError, match="y must have one label per prediction|inconsistent numbers"):
            trained.score(X, labels)
