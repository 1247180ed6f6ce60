"""Training on and prediction of images and sequences equal NumPy."""

import pickle

import numpy as np
import pytest
from onnx import numpy_helper, parser
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV

from ortlearn import OrtGradientOptimizer
from ortlearn.graphs import make_inputs_of
from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session
from ortlearn.saving import load, save
from tests.estimators.array_graphs import (
    FILES,
    ONE_STEP,
    RATE,
    dtype_of,
    objective,
    position_losses,
    trainer,
    weights_of,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(params=FILES)
def file(request):
    return FILES[request.param]


@pytest.mark.parametrize("weighted", ["no", "samples", "positions"])
def test_step_is_along_the_gradient(optimizer, file, weighted):
    X, y = file.samples(12, dtype_of(file))
    rng = np.random.default_rng(3)
    weight = {"no": None, "samples": rng.random(12), "positions": rng.random(y.shape)}[weighted]
    trained = trainer(optimizer, file).fit(X, y, weight)
    start = {name: array.astype(np.float64) for name, array in file.draw(dtype_of(file)).items()}
    tolerance = 2e-3 if dtype_of(file) == np.float32 else 1e-6
    assert trained.train_losses_[0] == pytest.approx(objective(file, start, X, y, weight), rel=1e-5)
    steps = {name: (start[name] - array) / RATE for name, array in trained.trained_coef_.items()}
    for name, gradient in steps.items():
        way = rng.normal(0, 1, gradient.shape)
        up, down = ({**start, name: start[name] + sign * 1e-5 * way} for sign in (1, -1))
        slope = (objective(file, up, X, y, weight) - objective(file, down, X, y, weight)) / 2e-5
        found, size = float((gradient * way).sum()), np.abs(gradient * way).sum()
        assert size > 1e-3
        assert found == pytest.approx(slope, abs=tolerance * size), name


def test_predictions_equal_numpy(optimizer, file):
    X, y = file.samples(12, dtype_of(file))
    trained = trainer(optimizer, file).fit(X, y)
    scores = file.scores(X, **weights_of(trained, file))
    written = make_session(trained.get_trained_onnx(), Device("cpu")).run(None, {"x": X})[0]
    close = {"rtol": 1e-4, "atol": 1e-5}
    if not file.n_classes:
        np.testing.assert_allclose(trained.predict(X), scores, **close)
        np.testing.assert_array_equal(trained.predict(X), written)
        flat = y.reshape(12, -1), trained.predict(X).reshape(12, -1)
        weight = np.linspace(0, 1, 12)
        assert trained.score(X, y) == pytest.approx(r2_score(*flat))
        assert trained.score(X, y, weight) == pytest.approx(r2_score(*flat, sample_weight=weight))
        assert trained.score(X, y, np.ones(y.shape)) == pytest.approx(r2_score(*flat))
    else:
        binary = file.axis is None or scores.shape[file.axis] == 1
        if binary:
            axis = -1 if file.axis is None else file.axis
            scores = scores[..., None] if file.axis is None else scores
            scores = np.concatenate([np.zeros_like(scores), scores], axis=axis)
        axis = -1 if file.axis is None else file.axis
        np.testing.assert_allclose(trained.predict_proba(X), softmax(scores, axis=axis), **close)
        np.testing.assert_array_equal(trained.predict(X), scores.argmax(axis=axis))
        if not binary and "max" in file.nodes:
            np.testing.assert_array_equal(trained.predict_proba(X), written)
        weight = np.random.default_rng(0).random(y.shape)
        known = accuracy_score(y.ravel(), trained.predict(X).ravel(), sample_weight=weight.ravel())
        assert trained.score(X, y, weight) == pytest.approx(known)
        assert trained.score(X, y) == pytest.approx(np.mean(y == trained.predict(X)))
    losses = position_losses(file, file.scores(X, **weights_of(trained, file)), y).reshape(12, -1)
    per_sample = losses.mean(axis=1) if file.n_classes else losses.sum(axis=1)
    np.testing.assert_allclose(trained.losses(X, y), per_sample, rtol=1e-4)
    assert trained.predict(X).shape == y.shape


def test_both_estimators_agree(both, file):
    X, y = file.samples(25, dtype_of(file))
    weight = np.random.default_rng(0).random(y.shape)
    options = {"batch_size": 4, "max_iter": 3, "shuffle": True}
    one, two = (trainer(kind, file, **options).fit(X, y, weight) for kind in both)
    for name, array in one.trained_coef_.items():
        np.testing.assert_allclose(array, two.trained_coef_[name], rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_tools_of_scikit_learn(optimizer, file, tmp_path):
    X, y = file.samples(90, dtype_of(file))
    model = trainer(optimizer, file, max_iter=2, early_stopping=True, batch_size=8)
    search = GridSearchCV(model, {"batch_size": [5, 10]}, cv=2).fit(X, y)
    best = search.best_estimator_
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    for same in (pickle.loads(pickle.dumps(best)), clone(best).fit(X, y)):
        np.testing.assert_array_equal(same.predict(X), best.predict(X))
    save(best, tmp_path / "model.zip")
    again = load(tmp_path / "model.zip")
    np.testing.assert_array_equal(again.predict(X), best.predict(X))
    stream = trainer(optimizer, file).partial_fit(X, y)
    save(stream, tmp_path / "stream.zip")
    continued = load(tmp_path / "stream.zip").partial_fit(X, y)
    np.testing.assert_array_equal(continued.predict(X), stream.partial_fit(X, y).predict(X))


def test_hoisted_convolutions(both):
    file = FILES["pixels"]
    X, y = file.samples(20)
    options = {"batch_size": 6, "weights_to_train": ["v", "c"]}
    for kind in both:
        one, two = (trainer(kind, file, **options, precompute=hoist).fit(X, y) for hoist in (True, False))
        np.testing.assert_allclose(one.trained_coef_["v"], two.trained_coef_["v"], rtol=1e-4)


def test_automatic_rate_for_images():
    X, y = FILES["pixels"].samples(30)
    model = trainer(OrtGradientOptimizer, FILES["pixels"], learning_rate="auto", batch_size=10).fit(X, y)
    assert type(model.learning_rate_).__name__ == "LearningRateAdam"


def test_file_with_loss(optimizer):
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (double[N,3,4] x, double[N,3,2] label) => (double loss, double[N,3,2] y) <double[4,2] w> {
          y = MatMul (x, w)
          d = Sub (y, label)
          e = Mul (d, d)
          loss = ReduceMean <keepdims = 0> (e) }"""
    )
    rng = np.random.default_rng(0)
    X, w = rng.normal(0, 1, (50, 3, 4)), rng.normal(0, 1, (4, 2))
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    y = X @ rng.normal(0, 1, (4, 2))
    trained = optimizer(model, **ONE_STEP).fit(X, y)
    assert trained.train_losses_[0] == pytest.approx(np.mean((X @ w - y) ** 2))
    gradient = 2 * np.einsum("ntd,ntk->dk", X, X @ w - y) / y.size
    np.testing.assert_allclose(trained.trained_coef_["w"], w - RATE * gradient)
    assert trained.predict(X).shape == y.shape
    known = r2_score(y.reshape(50, -1), trained.predict(X).reshape(50, -1))
    assert trained.score(X, y) == pytest.approx(known)


def recurrent():
    """Return a model that classifies time steps by an LSTM with the layout (steps, samples)."""
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[N,T,3] x) => (float[N,T,4] y)
        <int64[1] direction = {1}> {
          first = Transpose <perm = [1, 0, 2]> (x)
          states, last, cell = LSTM <hidden_size = 5> (first, w, r, b)
          squeezed = Squeeze (states, direction)
          h = Transpose <perm = [1, 0, 2]> (squeezed)
          y = MatMul (h, v) }"""
    )
    rng = np.random.default_rng(0)
    shapes = {"w": (1, 20, 3), "r": (1, 20, 5), "b": (1, 40), "v": (5, 4)}
    weights = {name: rng.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    model.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in weights.items())
    return model, weights


def test_recurrent_layer_for_time_steps(optimizer):
    model, weights = recurrent()
    rng = np.random.default_rng(1)
    X, y = rng.normal(0, 1, (6, 6, 3)).astype(np.float32), rng.integers(0, 4, (6, 6))
    mask = (np.arange(6) < np.arange(1, 7)[:, None]).astype(float)
    trained = optimizer(model, learning_loss="log_loss", **ONE_STEP).fit(X, y, mask)
    session = make_session(make_inputs_of(model, list(weights)), Device("cpu"))

    def value(arrays):
        scores = session.run(None, {"x": X, **arrays})[0].astype(np.float64)
        losses = -np.take_along_axis(log_softmax(scores, axis=2), y[..., None], 2)[..., 0]
        return (mask * losses).sum() / mask.sum()

    assert trained.train_losses_[0] == pytest.approx(value(weights), rel=1e-5)
    for name, array in trained.trained_coef_.items():
        gradient = (weights[name] - array) / RATE
        way = (gradient / np.linalg.norm(gradient)).astype(np.float32)
        up, down = ({**weights, name: weights[name] + step * way} for step in (0.02, -0.02))
        assert (value(up) - value(down)) / 0.04 == pytest.approx(np.linalg.norm(gradient), rel=0.02), name
    longer = np.concatenate([X, X], axis=1)
    np.testing.assert_allclose(trained.predict_proba(longer)[:, :6], trained.predict_proba(X), atol=1e-6)
