"""Batch normalization in training mode updates running statistics, which predictions use."""

import numpy as np
import pytest
from onnx import numpy_helper, parser
from onnx.reference import ReferenceEvaluator
from sklearn.exceptions import ConvergenceWarning

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.callbacks import ModelCheckpoint
from ortlearn.exceptions import PluginError
from ortlearn.functions import differentiable
from ortlearn.learning_rates import LearningRateLBFGS, LearningRateSGD
from ortlearn.losses import FunctionLoss
from ortlearn.onnx_files.running_statistics import for_evaluation
from ortlearn.saving import load, save
from ortlearn.trainable.explanation import explain

TRAINERS = [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer]
MOMENTUM, EPSILON, RATE, SIZE = 0.8, 1e-3, 0.05, 8
STATISTICS = ["mean", "variance"]
NETWORK = """<ir_version: 8, opset_import: ["": 17]> g (float[N,3] x) => (float[N,1] y) {
    h = MatMul (x, w)
    z, new_mean, new_variance = BatchNormalization
        <training_mode = 1, momentum = 0.8, epsilon = 0.001> (h, scale, shift, mean, variance)
    y = MatMul (z, v) }"""


def network(text=NETWORK, **replaced):
    rng = np.random.default_rng(0)
    arrays = {
        "w": rng.normal(size=(3, 4)),
        "scale": rng.uniform(0.5, 1.5, 4),
        "shift": rng.normal(size=4),
        "mean": rng.normal(size=4),
        "variance": rng.uniform(0.5, 2, 4),
        "v": rng.normal(size=(4, 1)),
        **replaced,
    }
    model = parser.parse_model(text)
    model.graph.initializer.extend(
        numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()
    )
    return model


def samples(n=36):
    rng = np.random.default_rng(1)
    X = rng.normal(2.0, 3.0, size=(n, 3)).astype(np.float32)
    return X, (X[:, :1] - X[:, 1:2] * 0.5 + rng.normal(size=(n, 1))).astype(np.float32)


def arrays_of(model):
    return {t.name: numpy_helper.to_array(t).astype(np.float64) for t in model.graph.initializer}


def batch(state, X, y):
    """Update arrays by an SGD step with the biased variance of BatchNormalization."""
    h = X @ state["w"]
    mean, variance = h.mean(axis=0), h.var(axis=0)
    divisor = np.sqrt(variance + EPSILON)
    n = (h - mean) / divisor
    z = state["scale"] * n + state["shift"]
    error = (z @ state["v"] - y) / len(X)
    dz = error @ state["v"].T
    dn = dz * state["scale"]
    dh = (dn - dn.mean(axis=0) - n * (dn * n).mean(axis=0)) / divisor
    gradients = {
        "w": X.T @ dh,
        "scale": (dz * n).sum(axis=0),
        "shift": dz.sum(axis=0),
        "v": z.T @ error,
    }
    state |= {name: state[name] - RATE * gradient for name, gradient in gradients.items()}
    state["mean"] = MOMENTUM * state["mean"] + (1 - MOMENTUM) * mean
    state["variance"] = MOMENTUM * state["variance"] + (1 - MOMENTUM) * variance


def expected(X, y, n_epochs, size=SIZE):
    state = arrays_of(network())
    for _ in range(n_epochs):
        for start in range(0, len(X), size):
            batch(state, X[start : start + size].astype(np.float64), y[start : start + size])
    return state


def trainer(cls, model=None, **options):
    options = {
        "learning_rate": LearningRateSGD(RATE, learning_rate="constant"),
        "learning_loss": "squared_error",
        "learning_penalty": None,
        "max_iter": 3,
        "batch_size": SIZE,
        "shuffle": False,
        "warm_start": True,
        "keep_better": False,
        **options,
    }
    return cls(network() if model is None else model, **options)


def check(found, state, rtol=1e-4):
    for name, array in arrays_of(found).items():
        np.testing.assert_allclose(array, state[name], rtol=rtol, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("cls", TRAINERS)
@pytest.mark.parametrize("n", [32, 36, 5, 200])  # full, short, single and joined batches
def test_statistics_follow_the_batches(cls, n):
    X, y = samples(n)
    found = trainer(cls).fit(X, y)
    check(found.get_trained_onnx(), expected(X, y, 3))


@pytest.mark.parametrize("cls", TRAINERS)
def test_exported_file_predicts_by_the_running_statistics(cls, run_onnx):
    X, y = samples()
    trained = trainer(cls).fit(X, y)
    found, given = trained.get_trained_onnx(), network()
    for model in (found, trained.get_trained_onnx(keep_upgrade=True)):
        for part in (X, X[:1]):
            predicted = trained.predict(part)
            np.testing.assert_allclose(run_onnx(model, part)["y"], predicted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(differentiable(trained)(X), trained.predict(X), rtol=1e-5, atol=1e-5)
    assert not np.allclose(arrays_of(found)["variance"], arrays_of(given)["variance"])
    for model in (found, given):
        for tensor in model.graph.initializer:
            tensor.ClearField("raw_data")
    assert found == for_evaluation(given)  # other differences are in values only


@pytest.mark.parametrize("cls", TRAINERS)
def test_predictions_and_scores_use_the_running_statistics(cls):
    X, y = samples()
    found = trainer(cls, validation_fraction=0.25, early_stopping=False).fit(X, y)
    state = arrays_of(found.get_trained_onnx())
    n = (X @ state["w"] - state["mean"]) / np.sqrt(state["variance"] + EPSILON)
    predicted = (state["scale"] * n + state["shift"]) @ state["v"]
    np.testing.assert_allclose(found.predict(X), predicted, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.losses(X, y), (predicted - y)[:, 0] ** 2 / 2, rtol=1e-3, atol=1e-4)
    alone = np.concatenate([found.predict(X[i : i + 1]) for i in range(len(X))])
    np.testing.assert_allclose(alone, predicted, rtol=1e-4, atol=1e-4)


def test_validation_uses_the_running_statistics():
    X, y = samples()
    found = trainer(OrtGradientOptimizer, max_iter=1).fit(X, y, X_val=X[:5], y_val=y[:5])
    np.testing.assert_allclose(found.validation_losses_[-1], found.losses(X[:5], y[:5]).mean(), rtol=1e-5)


@pytest.mark.parametrize("cls", TRAINERS)
def test_partial_fit_continues(cls):
    X, y = samples(32)
    found = trainer(cls)
    for start in range(0, 32, 16):
        found.partial_fit(X[start : start + 16], y[start : start + 16])
    check(found.get_trained_onnx(), expected(X, y, 1))


@pytest.mark.parametrize("cls", TRAINERS)
def test_streams(cls):
    X, y = samples()
    parts = [(X[start : start + 10], y[start : start + 10]) for start in range(0, 36, 10)]
    found = trainer(cls, max_iter=2).fit_stream(lambda: iter(parts))
    whole = trainer(cls, max_iter=2).fit(X, y)
    check(found.get_trained_onnx(), arrays_of(whole.get_trained_onnx()), rtol=1e-5)


def test_python_loss():
    X, y = samples()

    def squares(labels, scores):
        return ((scores - labels) ** 2 / 2).sum(axis=1), scores - labels

    found = trainer(OrtGradientForwardBackwardOptimizer, learning_loss=FunctionLoss(squares)).fit(X, y)
    check(found.get_trained_onnx(), expected(X, y, 3))


@pytest.mark.parametrize("options", [{"clip_norm": 0.5}, {"average": True}, {"learning_rate": "adamw"}])
def test_statistics_of_frozen_layers(options):
    # Earlier layers are frozen, so the statistics depend on X alone.
    X, y = samples()
    found = trainer(OrtGradientOptimizer, weights_to_train=["v"], learning_penalty="l2", **options).fit(X, y)
    state, trained = expected(X, y, 0), arrays_of(found.get_trained_onnx())
    for _ in range(3):
        for start in range(0, 36, SIZE):
            h = X[start : start + SIZE].astype(np.float64) @ state["w"]
            state["mean"] += (1 - MOMENTUM) * (h.mean(axis=0) - state["mean"])
            state["variance"] += (1 - MOMENTUM) * (h.var(axis=0) - state["variance"])
    for name in ("w", "scale", "shift"):
        np.testing.assert_array_equal(trained[name], state[name])
    for name in STATISTICS:
        np.testing.assert_allclose(trained[name], state[name], rtol=1e-5, atol=1e-6)


def test_shared_statistics_are_updated_in_sequence():
    text = NETWORK.replace(
        "y = MatMul (z, v)",
        """u = MatMul (z, v) k = BatchNormalization
        <training_mode = 1, momentum = 0.8, epsilon = 0.001> (x2, scale2, shift2, mean, variance)
        t = MatMul (k, v) y = Add (u, t)""",
    ).replace("h = MatMul (x, w)", "h = MatMul (x, w) x2 = Mul (h, two)")
    ones = np.ones(4)
    model = network(text, two=np.array(2.0), scale2=ones, shift2=ones)
    X, y = samples(SIZE)
    found = trainer(OrtGradientOptimizer, model, max_iter=1).fit(X, y)
    state, h = arrays_of(model), X.astype(np.float64) @ arrays_of(model)["w"]
    for part in (h, 2 * h):
        state["mean"] = MOMENTUM * state["mean"] + (1 - MOMENTUM) * part.mean(axis=0)
        state["variance"] = MOMENTUM * state["variance"] + (1 - MOMENTUM) * part.var(axis=0)
    for name in STATISTICS:
        np.testing.assert_allclose(arrays_of(found.get_trained_onnx())[name], state[name], rtol=1e-5)


@pytest.mark.parametrize("cls", TRAINERS)
def test_statistics_of_a_file_for_inference_are_kept(cls):
    text = NETWORK.replace("training_mode = 1, ", "").replace("z, new_mean, new_variance", "z")
    X, y = samples()
    trained = arrays_of(trainer(cls, network(text)).fit(X, y).get_trained_onnx())
    for name in STATISTICS:
        np.testing.assert_array_equal(trained[name], arrays_of(network())[name])
    assert not np.allclose(trained["scale"], arrays_of(network())["scale"])


def test_statistics_as_outputs_of_the_graph():
    text = NETWORK.replace("(float[N,1] y)", "(float[N,1] y, float[4] new_mean)")
    model = network(text)
    evaluated = ReferenceEvaluator(for_evaluation(model)).run(None, {"x": samples()[0]})
    np.testing.assert_array_equal(evaluated[1], arrays_of(model)["mean"].astype(np.float32))
    X, y = samples()
    found = trainer(OrtGradientOptimizer, model, output_name="y").fit(X, y)
    check(found.get_trained_onnx(), expected(X, y, 3))


def test_solvers_are_not_supported():
    X, y = samples()
    with pytest.raises(PluginError, match="training_mode=0"):
        trainer(OrtGradientOptimizer, learning_rate=LearningRateLBFGS()).fit(X, y)
    with pytest.warns(ConvergenceWarning):
        automatic = trainer(OrtGradientOptimizer, learning_rate="auto").fit(X, y)
    assert not automatic.learning_rate_.full_batch


def test_explanation():
    (row,) = [row for row in explain(network()).rows if set(row.weights) == set(STATISTICS)]
    assert "batches update" in row.reason and row.trainable


@pytest.mark.needs_callbacks
@pytest.mark.parametrize("cls", TRAINERS)
def test_resumed_trainings_have_the_same_statistics(cls, tmp_path):
    X, y = samples()
    checkpoint = ModelCheckpoint(tmp_path, with_estimator=True, every=2)
    whole = trainer(cls, max_iter=4).set_callbacks(checkpoint).fit(X, y)
    later = load(tmp_path / "epoch-000002.zip").partial_fit(X, y).partial_fit(X, y)
    for name, array in whole.trained_coef_.items():
        np.testing.assert_array_equal(later.trained_coef_[name], array)


def test_saving_and_warm_starts(tmp_path):
    X, y = samples()
    found = trainer(OrtGradientOptimizer).fit(X, y)
    save(found, tmp_path / "model.ortl")
    again = load(tmp_path / "model.ortl")
    np.testing.assert_array_equal(again.predict(X), found.predict(X))
    check(again.fit(X, y).get_trained_onnx(), expected(X, y, 6))
