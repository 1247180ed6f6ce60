"""Two epochs equal those of an implementation in numpy."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from ortlearn.data.orders import epoch_order
from ortlearn.fitting.trainer import draw_seed
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD, LearningRateSGDNesterov
from ortlearn.penalties import ElasticPenalty
from tests.pairwise import pairwise

EPOCHS, SIZE = 2, 10
ETA, POWER, MOMENTUM = 0.03, 0.25, 0.9


class Sgd:
    reach = 1.0  # steps, in units of the rate, that a constant gradient causes

    def step(self, key, w, g, rate):
        return w - rate * g


class Momentum:
    reach = 1 / (1 - MOMENTUM)

    def __init__(self, nesterov):
        self.nesterov, self.velocity = nesterov, {}

    def step(self, key, w, g, rate):
        v = self.velocity[key] = MOMENTUM * self.velocity.get(key, 0.0) - rate * g
        return w + (MOMENTUM * v - rate * g if self.nesterov else v)


class Adam:
    reach = None

    def __init__(self):
        self.memory = {}

    def step(self, key, w, g, rate):
        m, v, t = self.memory.get(key, (0.0, 0.0, 0))
        m, v, t = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g, t + 1
        self.memory[key] = m, v, t
        return w - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)


RATES = {
    "SGD": (LearningRateSGD(eta0=ETA, power_t=POWER), Sgd),
    "Nesterov": (LearningRateSGDNesterov(eta0=ETA), lambda: Momentum(True)),
    "momentum": (LearningRateSGDNesterov(eta0=ETA, nesterov=False), lambda: Momentum(False)),
    "Adam": (LearningRateAdam(eta0=ETA, learning_rate="invscaling"), Adam),
}


def squared_error(scores, y):
    difference = scores - y.reshape(len(y), -1)
    return (difference**2).sum(axis=1) / 2, difference


def log_loss(scores, y):
    if scores.shape[1] == 1:
        p = 1 / (1 + np.exp(-scores[:, 0]))
        return -(y * np.log(p) + (1 - y) * np.log(1 - p)), (p - y)[:, None]
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    hot = np.eye(scores.shape[1])[y]
    return -np.log(p[hot > 0]), p - hot


def train(loss, X, y, weights, rule, sample_weight=None, l1=0.0, l2=0.0, proximal=False):
    """Return coefficients, intercepts and the mean loss of each epoch."""
    coef, intercept = weights
    sample_weight = np.ones(len(X)) if sample_weight is None else sample_weight
    means = []
    for epoch in range(EPOCHS):
        rate = ETA / (epoch + 1) ** POWER
        total = 0.0
        for start in range(0, len(X), SIZE):
            samples = slice(start, start + SIZE)
            w = sample_weight[samples]
            values, slopes = loss(X[samples] @ coef + intercept, y[samples])
            objective = w @ values / w.sum() + l1 * np.abs(coef).sum() + l2 * (coef**2).sum()
            slopes = slopes * (w / w.sum())[:, None]
            steps = proximal and rule.reach is not None
            gradient = X[samples].T @ slopes + (not steps) * l1 * np.sign(coef) + 2 * l2 * coef
            coef = rule.step("coef", coef, gradient, rate)
            if steps:
                coef = np.sign(coef) * np.maximum(np.abs(coef) - rule.reach * rate * l1, 0)
            intercept = rule.step("intercept", intercept, slopes.sum(axis=0), rate)
            total += objective * w.sum()
        means.append(total / sample_weight.sum())
    return coef, intercept, means


def as_stored(model):
    """Round the weights of a linear model to float32, as stored in ONNX."""
    model.coef_ = model.coef_.astype(np.float32).astype(np.float64)
    model.intercept_ = np.asarray(model.intercept_, np.float32).astype(np.float64)
    return model


CASES = ["regression", "outputs", "binary", "multinomial"]


@pytest.fixture(params=CASES)
def case(request):
    """Return a linear model, samples, labels and the loss."""
    name = {"outputs": "two_outputs", "binary": "cancer", "multinomial": "wine"}.get(
        request.param, "diabetes"
    )
    X, y = request.getfixturevalue(name)
    X, y = X[::4], y[::4]
    X, y = X[: len(X) // SIZE * SIZE - 7], y[: len(X) // SIZE * SIZE - 7]
    assert len(X) % SIZE == 3
    if name in ("cancer", "wine"):
        return as_stored(LogisticRegression(C=0.1).fit(X, y)), X, y, log_loss
    y = y / 100 if request.param == "regression" else y
    return as_stored(LinearRegression().fit(X[::2], y[::2])), X, y, squared_error


@pytest.mark.sweep(11)
@pairwise(
    indirect=["case", "optimizer"],
    case=CASES,
    rate=RATES,
    option=["plain", "weighted", "penalty", "proximal"],
    optimizer=["one_graph", "two_calls"],
)
def test_two_epochs(case, rate, option, optimizer):
    model, X, y, loss = case
    plugin, rule = RATES[rate]
    weights = np.random.RandomState(0).uniform(0.1, 3, len(X)) if option == "weighted" else None
    penalised, proximal = option in ("penalty", "proximal"), option == "proximal"
    l1, l2 = (0.02, 0.03) if penalised else (0.0, 0.0)
    trained = optimizer(
        model,
        learning_rate=plugin,
        learning_penalty=ElasticPenalty(l1=l1, l2=l2, proximal=proximal) if penalised else None,
        max_iter=EPOCHS,
        batch_size=SIZE,
        shuffle=False,
        warm_start=True,
        dtype="float64",
    ).fit(X, y, sample_weight=weights)
    begin = np.atleast_2d(model.coef_).T, np.atleast_1d(model.intercept_)
    coef, intercept, means = train(loss, X, y, begin, rule(), weights, l1, l2, proximal)
    got = trained.trained_coef_
    near = {"rtol": 1e-7, "atol": 1e-7}
    np.testing.assert_allclose(got["coef"], coef, **near)
    np.testing.assert_allclose(np.ravel(got["intercept"]), intercept, **near)
    np.testing.assert_allclose(trained.train_losses_, means, **near)


def test_order_of_shuffled_samples(optimizer, diabetes):
    X, y = diabetes
    X, y = X[:53], y[:53] / 100
    model = as_stored(LinearRegression().fit(X[::2], y[::2]))
    trained = optimizer(
        model,
        learning_rate=ETA,
        max_iter=1,
        batch_size=SIZE,
        random_state=5,
        warm_start=True,
        dtype="float64",
    ).fit(X, y)
    order = epoch_order(len(X), draw_seed(np.random.RandomState(5)), epoch=0)
    coef, intercept = model.coef_.reshape(-1, 1), np.atleast_1d(model.intercept_)
    for start in range(0, len(X), SIZE):
        samples = order[start : start + SIZE]
        slopes = squared_error(X[samples] @ coef + intercept, y[samples])[1] / len(samples)
        coef, intercept = coef - ETA * X[samples].T @ slopes, intercept - ETA * slopes.sum(axis=0)
    np.testing.assert_allclose(trained.trained_coef_["coef"], coef, rtol=1e-7)
    np.testing.assert_allclose(trained.trained_coef_["intercept"], intercept, rtol=1e-7)
