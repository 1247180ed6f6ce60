"""An epoch in one call, compared with a call per batch."""

import gc
import warnings
import weakref

import numpy as np
import pytest
import scipy.sparse
from onnx import parser
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

from ortlearn.data.orders import batch_sizes
from ortlearn.data.samples import Data
from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.exceptions import ConvergenceError
from ortlearn.graphs import TensorType
from ortlearn.learning_rates import LearningRateSGD
from ortlearn.penalties import ElasticPenalty, NoPenalty
from ortlearn.runtime.devices import Device
from ortlearn.training.loop import run_training
from ortlearn.training.settings import LoopSettings
from ortlearn.training.state import TrainingState
from ortlearn.training.steps.epoch_step import EpochStep
from ortlearn.training.steps.single_graph_step import SingleGraphStep
from tests.pairwise import pairwise
from tests.training.examples import MODELS, RATES

CPU = Device("cpu")
START = {"coef": np.array([[0.5], [0.5]], np.float32)}
RTOL = {"float32": 1e-6, "float64": 1e-12}
#: Number of samples, and of samples of a batch.
SIZES = {
    "short": (23, 5),
    "exact": (20, 5),
    "larger": (7, 30),
    "one sample": (1, 4),
    "ones": (6, 1),
    "half": (7, 6),
}


TURNS = [1, 2, 3]


def with_batches(count, **attributes):
    """Return a kind of EpochStep with some batches per iteration of the loop, for epochs of any length."""
    return type("Step", (EpochStep,), {"min_iterations": {count: 1}, **attributes})


@pytest.fixture(scope="module")
def trained():
    """Return a function that returns task, samples and weights of a model, cached."""
    made = {}

    def train(name, dtype):
        if (name, dtype) not in made:
            model, labels = MODELS[name]
            X = np.random.RandomState(0).normal(size=(23, 3)).astype(dtype)
            fitted = OrtGradientOptimizer(model, dtype=dtype, max_iter=1, random_state=0).fit(X, labels(X))
            task = fitted._fitted.step.task
            weights = {
                name: np.random.RandomState(1).normal(0, 0.5, size=_shape(task, name)).astype(dtype)
                for name in task.graph.weights
            }
            encoded = fitted._fitted.problem.encoder.encode(labels(X), len(X))
            made[name, dtype] = task, Data(X, encoded), weights
        return made[name, dtype]

    return train


def _shape(task, name):
    value = next(v for v in task.graph.model.graph.input if v.name == name)
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim]


def epochs(step, data, weights, batch_size, count=3, rate=0.02):
    """Return the objectives, and weights and states, after some epochs with shuffling."""
    buffers = step.start(data, batch_sizes(len(data), batch_size), weights)
    rng = np.random.RandomState(5)
    values = []
    for epoch in range(count):
        step.set_rate(rate / (epoch + 1))
        values.append(step.run_epoch(rng.permutation(len(data)), batch_size, buffers))
    return np.concatenate(values), buffers.read()


def assert_same_epochs(step_class, task, data, weights, batch_size, rtol):
    expected_values, expected = epochs(SingleGraphStep(task, CPU), data, weights, batch_size)
    values, carried = epochs(step_class(task, CPU), data, weights, batch_size)
    np.testing.assert_allclose(values, expected_values, rtol=10 * rtol, atol=rtol)
    assert carried.keys() == expected.keys()
    for key, array in expected.items():
        scale = max(1.0, np.abs(array).max())
        np.testing.assert_allclose(carried[key], array, rtol=0, atol=rtol * scale, err_msg=str(key))
    assert any(np.abs(carried[name, None] - weights[name]).max() > 1e-3 for name in weights)


@pytest.mark.sweep(10)
@pairwise(
    sizes=SIZES,
    name=MODELS,
    rate=RATES,
    batches_per_iteration=TURNS,
    gradient=[
        "rules float32",
        "rules float64",
        pytest.param("ort float32", marks=pytest.mark.needs_training),
    ],
    penalty=[NoPenalty(), ElasticPenalty(l1=0.01, l2=0.02)],
    weighted=[False, True],
)
def test_epoch_equals_its_batches(
    sizes, name, rate, batches_per_iteration, gradient, penalty, weighted, trained
):
    gradient, dtype = gradient.split()
    task, data, weights = trained(name, dtype)
    n_samples, batch_size = SIZES[sizes]
    sample_weights = (
        np.random.RandomState(2).uniform(0, 2, size=n_samples).astype(dtype) if weighted else None
    )
    if weighted and sizes in ("short", "ones"):
        sample_weights[n_samples // 2 :] = 0  # some batches may have only zero weights
    some = Data(data.X[:n_samples], data.y[:n_samples], sample_weights)
    task = task.changed(learning_rate=RATES[rate], gradient=gradient, penalty=penalty, weighted=weighted)
    assert_same_epochs(with_batches(batches_per_iteration), task, some, weights, batch_size, RTOL[dtype])


OWN_LOSS = """<ir_version: 8, opset_import: ["": 18]>
    g (float[N,2] x, float[2,1] coef, float[N,1] label) => (float{shape} loss)
    <int64[1] first = {{0}}, int64[1] columns = {{1}}>
    {{ score = MatMul (x, coef) d = Sub (score, label) s = Mul (d, d)
       fit = ReduceMean <keepdims = {keep}> (s) column = Gather <axis = 1> (x, first)
       logs = Log (column) own = ReduceMean <keepdims = {keep}> (logs) loss = Add (fit, own) }}"""


@pytest.fixture
def own_loss(make_task):
    """A graph with a loss: mean of squares plus mean of the logarithms of the first column."""

    def make(shape="", keep=0):
        return make_task(
            model=parser.parse_model(OWN_LOSS.format(shape=shape, keep=keep)),
            output="loss",
            output_type=TensorType(1, (1, 1) if keep else ()),
            loss=None,
            label="label",
            learning_rate=LearningRateSGD(eta0=0.1),
        )

    return make


@pairwise(batches_per_iteration=TURNS, keep=[0, 1], batch_size=[5, 23])
def test_a_graph_with_its_own_loss(batches_per_iteration, keep, batch_size, own_loss, samples):
    shape = "[1,1]" if keep else ""
    data = Data(np.abs(samples.X) + 1, samples.y)
    step_class = with_batches(batches_per_iteration)
    assert_same_epochs(step_class, own_loss(shape, keep), data, START, batch_size, 1e-6)


def train(step, data, exc=False, **settings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = run_training(step, data, TrainingState(START), LoopSettings(exc=exc, **settings))
    return result, any(issubclass(w.category, ConvergenceWarning) for w in caught)


@pairwise(
    eta0=[1e2, 1e3, 1e6, 1e12, 1e19, 1e25],
    batch_size=[5, 10, 23, 30],
    batches_per_iteration=TURNS,
    sparse=[False, True],
)
def test_weights_after_a_divergence_equal_single_batches(
    eta0, batch_size, batches_per_iteration, sparse, make_task, samples
):
    """In the middle of an epoch, at its first batch, and after the last batch of the training."""
    step_class = with_batches(batches_per_iteration, chunk_bytes=16)  # several chunks of sparse samples
    task = make_task(learning_rate=LearningRateSGD(eta0=eta0, learning_rate="constant"))
    data = Data(scipy.sparse.csr_matrix(samples.X), samples.y) if sparse else samples
    expected, warned = train(SingleGraphStep(task, CPU), samples, max_iter=40, batch_size=batch_size)
    result, too = train(step_class(task, CPU), data, max_iter=40, batch_size=batch_size)
    assert warned and too
    assert result.n_iter == expected.n_iter
    np.testing.assert_allclose(result.weights["coef"], expected.weights["coef"], rtol=1e-4)
    np.testing.assert_allclose(result.train_losses, expected.train_losses, rtol=1e-4)


@pairwise(
    max_iter=[1, 2, 3, 4],
    batches_per_iteration=TURNS,
    batch_size=[10, 23],
)
def test_divergence_after_the_last_batch(max_iter, batches_per_iteration, batch_size, make_task, samples):
    task = make_task(learning_rate=LearningRateSGD(eta0=1e10, learning_rate="constant"))
    expected, warned = train(SingleGraphStep(task, CPU), samples, max_iter=max_iter, batch_size=batch_size)
    step = with_batches(batches_per_iteration)(task, CPU)
    result, too = train(step, samples, max_iter=max_iter, batch_size=batch_size)
    assert (result.n_iter, too) == (expected.n_iter, warned)
    np.testing.assert_allclose(result.weights["coef"], expected.weights["coef"], rtol=1e-4)
    assert np.isfinite(result.weights["coef"]).all()


def test_an_error_names_the_losses(make_task, samples):
    task = make_task(learning_rate=LearningRateSGD(eta0=1e12, learning_rate="constant"))
    errors = []
    for step_class in (SingleGraphStep, EpochStep):
        with pytest.raises(ConvergenceError) as caught:
            train(step_class(task, CPU), samples, exc=True, max_iter=3, batch_size=4)
        errors.append(caught.value)
    np.testing.assert_allclose(errors[1].losses, errors[0].losses, rtol=1e-4)
    assert errors[0].args[0].split("last losses")[0] == errors[1].args[0].split("last losses")[0]


@pytest.mark.parametrize("bad", [0, 7, 22])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_bad_label(bad, value, make_task, samples):
    y = samples.y.copy()
    y[bad] = value
    order = np.arange(23)
    found = []
    for step_class in (SingleGraphStep, EpochStep):
        step = step_class(make_task(), CPU)
        buffers = step.start(Data(samples.X, y), [5, 3], START)
        step.set_rate(0.1)
        found.append((step.run_epoch(order, 5, buffers), buffers.read()["coef", None]))
    (expected, weights), (values, own) = found
    assert len(values) == len(expected) == bad // 5 + 1
    np.testing.assert_allclose(values, expected, rtol=1e-6)
    np.testing.assert_allclose(own, weights, rtol=1e-6)


@pytest.mark.parametrize("bad", [0, 7, 22])
def test_minus_infinity_is_caught(bad, own_loss, samples):
    X = np.abs(samples.X) + 1
    X[bad, 0] = 0  # the gradient does not depend on its logarithm, so weights stay finite
    step = EpochStep(own_loss(), CPU)
    buffers = step.start(Data(X, samples.y), [5, 3], START)
    step.set_rate(0.1)
    values = step.run_epoch(np.arange(23), 5, buffers)
    assert len(values) == bad // 5 + 1
    assert values[-1] == -np.inf and np.isfinite(values[:-1]).all()


def test_training_after_a_divergence(make_task, samples):
    step = EpochStep(make_task(learning_rate=LearningRateSGD(eta0=1e12)), CPU)
    train(step, samples, max_iter=9, batch_size=5)
    good = EpochStep(make_task(), CPU)
    expected, _ = train(good, samples, max_iter=2, batch_size=5)
    step.task = make_task()
    result, warned = train(step, samples, max_iter=2, batch_size=5)
    assert not warned
    np.testing.assert_array_equal(result.weights["coef"], expected.weights["coef"])


def test_another_size_of_data(make_task, samples):
    step = EpochStep(make_task(), CPU)
    for n_samples in (23, 20, 4, 23):
        some = Data(samples.X[:n_samples], samples.y[:n_samples])
        values, carried = epochs(step, some, START, 5)
        expected_values, expected = epochs(EpochStep(make_task(), CPU), some, START, 5)
        np.testing.assert_array_equal(values, expected_values)
        np.testing.assert_array_equal(carried["coef", None], expected["coef", None])


@pytest.mark.slow
@pytest.mark.sweep(1)
@pytest.mark.parametrize("diverges", [False, True])
def test_release_frees_the_data(diverges, make_task):
    X = np.random.RandomState(0).normal(size=(23, 2)).astype(np.float32)
    y = X[:, :1] * 2
    alive = weakref.ref(X)
    step = EpochStep(make_task(learning_rate=LearningRateSGD(eta0=1e12 if diverges else 0.1)), CPU)
    train(step, Data(X, y), max_iter=3, batch_size=5)
    del X
    gc.collect()
    assert alive() is not None
    step.release()
    gc.collect()
    assert alive() is None


@pytest.mark.slow
def test_a_fitted_estimator_keeps_no_data():
    X = np.random.RandomState(0).normal(size=(23, 2)).astype(np.float32)
    alive = weakref.ref(X)
    fitted = OrtGradientOptimizer(LinearRegression(), max_iter=2, random_state=0).fit(X, X[:, 0])
    del X
    gc.collect()
    assert alive() is None and fitted.n_iter_ == 2


def test_one_call_for_each_epoch(make_task, samples, clock):
    step = EpochStep(make_task(), CPU)
    for trials in (2, 0):  # only for a new graph
        clock.calls.clear()
        train(step, samples, max_iter=7, batch_size=2)
        assert len(clock.calls) == trials + 7 + 1  # the last one checks the final weights
    assert step._single is None
