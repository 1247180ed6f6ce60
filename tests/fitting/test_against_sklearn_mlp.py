"""Five epochs equal those of scikit-learn's networks, with the same weights and order of samples."""

import copy
import warnings

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier, MLPRegressor

from ortlearn.learning_rates import LearningRateAdam, LearningRateSGDNesterov
from ortlearn.penalties import L2Penalty
from tests.pairwise import pairwise

EPOCHS, SIZE, ETA = 5, 20, 0.01
SOLVERS = {
    "sgd": ({"solver": "sgd", "momentum": 0.0}, LearningRateSGDNesterov(ETA, momentum=0.0, nesterov=False)),
    "momentum": (
        {"solver": "sgd", "momentum": 0.9, "nesterovs_momentum": False},
        LearningRateSGDNesterov(ETA, momentum=0.9, nesterov=False),
    ),
    "nesterov": ({"solver": "sgd", "momentum": 0.9}, LearningRateSGDNesterov(ETA, momentum=0.9)),
    # scikit-learn adds epsilon before the bias correction of the second mean, Kingma and Ba after it, so
    # epsilon must be much smaller than all gradients.
    "adam": ({"solver": "adam", "epsilon": 1e-12}, LearningRateAdam(ETA, epsilon=1e-12)),
    "adam, defaults": ({"solver": "adam", "learning_rate_init": 0.001}, LearningRateAdam()),
}
KINDS = {"regression": "diabetes_units", "outputs": "two_outputs", "binary": "cancer", "multinomial": "wine"}


@pytest.fixture(params=list(KINDS))
def case(request):
    """Return the class of a network, samples and labels; all batches are full."""
    X, y = request.getfixturevalue(KINDS[request.param])
    X, y = X[:160], y[:160]
    kind = MLPRegressor if request.param in ("regression", "outputs") else MLPClassifier
    return kind, X, y


def sample_weights(n_samples):
    """Return weights with mean one in every batch, as required by scikit-learn's penalty."""
    weights = np.random.RandomState(0).uniform(0.1, 3, n_samples).reshape(-1, SIZE)
    return (weights / weights.mean(axis=1, keepdims=True)).ravel()


def one_epoch_then(kind, X, y, **options):
    """Return a network after one epoch, and after five more with a new optimizer."""
    options = {"learning_rate_init": ETA, "activation": "tanh", "random_state": 0, **options}
    model = kind(hidden_layer_sizes=(8, 5), batch_size=SIZE, shuffle=False, max_iter=1, **options)
    model.set_params(n_iter_no_change=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = model.fit(X, y)
        after = copy.deepcopy(begin).set_params(warm_start=True, max_iter=EPOCHS)
        return begin, after


@pytest.mark.sweep(9)
@pairwise(
    indirect=["case", "optimizer"],
    case=KINDS,
    solver=SOLVERS,
    weighted=[False, True],
    dtype=["float32", "float64"],
    optimizer=["one_graph", "two_calls"],
)
def test_weights(case, solver, weighted, dtype, optimizer):
    kind, X, y = case
    alpha = 0.5
    options, plugin = SOLVERS[solver]
    weights = sample_weights(len(X)) if weighted else None
    begin, theirs = one_epoch_then(kind, X, y, alpha=alpha, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(X, y, sample_weight=weights)
    ours = optimizer(
        begin,
        learning_rate=copy.deepcopy(plugin).set_params(learning_rate="constant"),
        # scikit-learn's penalty of a batch is alpha / 2 * |w|^2, divided by the number of its samples
        learning_penalty=L2Penalty(alpha / 2 / SIZE),
        max_iter=EPOCHS,
        batch_size=SIZE,
        shuffle=False,
        warm_start=True,
        dtype=dtype,
    ).fit(X, y, sample_weight=weights)
    got = sorted(ours.trained_coef_.items())
    layers = [array for name, array in got if array.ndim == 2 and "coef" in name]
    intercepts = [array for name, array in got if "intercept" in name]
    assert len(layers) == len(intercepts) == 3
    for array, expected in zip(layers + intercepts, theirs.coefs_ + theirs.intercepts_, strict=True):
        np.testing.assert_allclose(array.reshape(expected.shape), expected, rtol=1e-4, atol=1e-4)
    moved = np.abs(theirs.coefs_[0] - begin.coefs_[0]).max()
    assert moved > 0.01
    if theirs.n_outputs_ == 1 or kind is MLPClassifier:  # its loss is a mean over outputs
        np.testing.assert_allclose(ours.train_losses_, theirs.loss_curve_[-EPOCHS:], rtol=1e-4)
