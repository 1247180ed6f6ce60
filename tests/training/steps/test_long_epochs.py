"""Epochs that take seconds are split into calls, with the same results and interrupts between calls."""

import signal

import numpy as np
import pytest
import scipy.sparse
from onnx import parser
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateSGD
from ortlearn.penalties import ElasticPenalty, GroupLassoPenalty, L1Penalty, MaxNormPenalty
from tests.pairwise import pairwise

X = np.random.RandomState(0).normal(size=(407, 4)).astype(np.float32)
Y = X[:, 0] - X[:, 1] ** 2
NETWORK = MLPRegressor(hidden_layer_sizes=(5, 3))
HOISTED = make_pipeline(StandardScaler(), PCA(3), MLPRegressor(hidden_layer_sizes=(4,)))


SETTINGS = {
    **{rate: {"learning_rate": rate} for rate in ("SGD", "Nesterov", "Adam", "AdamW", "RMSprop", "Adagrad")},
    "Adadelta": {"learning_rate": "Adadelta", "clip_value": 0.1},
    "Lion": {"learning_rate": "Lion", "clip_norm": 0.5},
    "average": {"average": True},
    "average later": {"average": 700, "learning_rate": "Adam"},
    "l1 step": {"learning_penalty": L1Penalty(0.01)},
    "elastic step": {"learning_penalty": ElasticPenalty(l1=0.01, l2=0.02, proximal=True)},
    "group": {"learning_penalty": GroupLassoPenalty(0.02), "learning_rate": "Nesterov"},
    "max norm": {"learning_penalty": MaxNormPenalty(0.5)},
    "float64": {"dtype": "float64", "clip_norm": 0.5},
    "single samples": {"batch_size": 1},
    "no short batch": {"batch_size": 11},
    "few batches": {"batch_size": 100},
    "adaptive": {"learning_rate": LearningRateSGD(learning_rate="adaptive")},
}
MODELS = {
    "hoisted": (HOISTED, X, Y),
    "classes": (LogisticRegression(), X, Y > 0),
    "sparse": (LogisticRegression(), scipy.sparse.csr_matrix(np.where(X > 0, X, 0)), Y > 0),
}


def fit(clock, seconds, model, X, y, **settings):
    """Return weights, states and losses of a training with simulated seconds per batch."""
    clock.seconds = seconds
    clock.calls.clear()
    weights = np.random.RandomState(1).uniform(0, 2, size=len(y)) if settings.pop("weighted", True) else None
    options = {"batch_size": 10, "max_iter": 3, "random_state": 0, **settings}
    trained = OrtGradientOptimizer(model, **options).fit(X, y, sample_weight=weights)
    states = trained._fitted.state.states
    arrays = {**trained.trained_coef_, **states, "losses": np.array(trained.train_losses_)}
    return {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    "settings, name",
    [(settings, "network") for settings in SETTINGS]
    + [(settings, name) for settings in ("SGD", "average", "elastic step") for name in MODELS],
)
def test_several_calls_give_bitwise_the_results_of_one(settings, name, clock):
    model, samples, y = MODELS.get(name, (NETWORK, X, Y))
    expected = fit(clock, 0.0, model, samples, y, **SETTINGS[settings])
    longest = max(clock.calls)
    for seconds in (0.4, 5.0):
        assert fit(clock, seconds, model, samples, y, **SETTINGS[settings]) == expected
        assert max(clock.calls[len(clock.calls) // 2 :]) < longest
    assert fit(clock, 0.0, model, samples, y, **SETTINGS[settings]) == expected


@pytest.mark.slow
@pairwise(
    model=[LinearRegression(), LogisticRegression(), NETWORK],
    dtype=["float32", "float64"],
    batch_size=[1, 3, 7, 10],
)
def test_joined_losses_are_bitwise_the_same(model, dtype, batch_size, clock):
    y = Y > 0 if isinstance(model, LogisticRegression) else Y
    settings = {"batch_size": batch_size, "dtype": dtype, "weighted": False, "learning_penalty": None}
    expected = fit(clock, 0.0, model, X, y, **settings)
    for seconds in (0.3, 0.6, 5.0):
        assert fit(clock, seconds, model, X, y, **settings) == expected


@pytest.mark.parametrize("seconds, calls", [(0, 1), (2**-6, 1), (2**-5, 2), (2**-3, 5), (0.5, 20), (2, 40)])
@pytest.mark.parametrize("n_samples", [400, 407])
def test_calls_take_about_a_second(seconds, calls, n_samples, clock):
    fit(clock, seconds, NETWORK, X[:n_samples], Y[:n_samples], max_iter=5)
    trials = 1 if 16 * seconds > 0.01 else 2
    run = clock.calls[trials:-1]  # the last one checks the final weights
    assert len(run) == 5 * calls
    assert sum(run) == 5 * 40
    assert max(run) * seconds <= max(1.0, seconds)


def test_only_new_graphs_have_a_trial(clock):
    fit(clock, 0.125, NETWORK, X, Y, max_iter=1)
    assert len(clock.calls) == 1 + 5 + 1
    fit(clock, 0.125, NETWORK, X, Y, max_iter=1)
    assert len(clock.calls) == 5 + 1


def test_calls_grow_again_when_batches_are_faster(clock):
    fit(clock, 0.5, NETWORK, X, Y, max_iter=2)
    fit(clock, 0.001, NETWORK, X, Y, max_iter=10)
    assert clock.calls[-2] == 40


@pytest.fixture
def interrupts():
    """Let interrupts raise KeyboardInterrupt, since processes in the background ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("number", [2, 3, 7, 9])
def test_interrupts_between_calls(number, clock):
    fitted = OrtGradientOptimizer(NETWORK, max_iter=3, random_state=0).fit(X, Y)
    before = fitted.predict(X)
    clock.seconds = 0.125  # five calls an epoch
    fitted.set_params(random_state=1).fit(X, Y)
    whole = fitted.get_weights()
    clock.calls.clear()

    def interrupt():
        if len(clock.calls) == number:
            signal.raise_signal(signal.SIGINT)

    clock.before = interrupt
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X, Y)
    assert len(clock.calls) == number
    clock.before = lambda: None
    for name, array in fitted.fit(X, Y, resume_from=fitted).get_weights().items():
        np.testing.assert_array_equal(array, whole[name])
    np.testing.assert_array_equal(fitted.set_params(random_state=0).fit(X, Y).predict(X), before)


@pytest.mark.parametrize("eta0, batch_size", [(1.0, 3), (10.0, 10), (1e3, 50), (1e19, 3), (1e19, 50)])
@pytest.mark.filterwarnings("ignore:The training diverged")
def test_divergence_in_several_calls(eta0, batch_size, clock):
    rate = LearningRateSGD(eta0=eta0, learning_rate="constant")
    settings = {"learning_rate": rate, "exc": False, "max_iter": 20, "batch_size": batch_size}
    expected = fit(clock, 0.0, LinearRegression(), X, 10 * Y, **settings)
    for seconds in (0.05, 0.4, 2.0):
        assert fit(clock, seconds, LinearRegression(), X, 10 * Y, **settings) == expected


def test_graphs_that_draw_numbers_have_no_trial(clock):
    noisy = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,4] x) => (float[N,1] score) <float[4,1] w = {1.0, 2.0, 3.0, 4.0}>
        { fit = MatMul (x, w) noise = RandomNormalLike <seed = 1.0> (fit) score = Add (fit, noise) }""")
    fit(clock, 0.125, noisy, X, Y.reshape(-1, 1), max_iter=2)
    assert clock.calls[0] == 40
    assert len(clock.calls) == 1 + 5 + 1
