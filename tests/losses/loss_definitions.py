"""Definitions of the losses in numpy, SciPy and scikit-learn."""

from dataclasses import dataclass, field

import numpy as np
import scipy.special
from sklearn._loss.loss import HalfGammaLoss, HalfPoissonLoss, HalfTweedieLoss

RNG = np.random.default_rng(0)
SCORES = RNG.normal(scale=2.0, size=(6, 3))
TARGETS = RNG.normal(size=(6, 3))
BINARY = np.array([0, 1, 1, 0, 1, 0])
CLASSES = np.array([0, 2, 1, 1, 0, 2])
LABELS = RNG.integers(0, 2, size=(6, 3)).astype(float)


def softplus(z):
    return np.logaddexp(0.0, z)


def noncrossing(levels, middle):
    """Return the sum of the pinball losses of quantiles whose distances are softplus of the scores."""

    def losses(f, y):
        above = np.cumsum(softplus(f[:, middle + 1 :]), axis=1)
        below = np.cumsum(softplus(f[:, :middle])[:, ::-1], axis=1)[:, ::-1]
        centre = f[:, middle : middle + 1]
        residual = y - np.hstack([centre - below, centre, centre + above])
        return np.maximum(residual * levels, residual * (np.array(levels) - 1)).sum(1)

    return losses


def multinomial(f, y):
    return np.logaddexp.reduce(f, axis=1) - f[np.arange(len(y)), y]


def smoothed(share):
    """Return the log loss of smoothed labels."""

    def losses(f, y):
        logs = f - np.logaddexp.reduce(f, axis=1, keepdims=True)
        target = np.eye(f.shape[1])[y] * (1 - share) + share / f.shape[1]
        return -(target * logs).sum(1)

    return losses


def smoothed_binary(share):
    return lambda f, y: softplus(f[:, 0]) - (y * (1 - share) + share / 2) * f[:, 0]


def focal(gamma):
    def losses(f, y):
        loss = multinomial(f, y)
        return (1 - np.exp(-loss)) ** gamma * loss

    return losses


def focal_binary(gamma):
    def losses(f, y):
        margins = np.where(y == 1, f[:, 0], -f[:, 0])
        return scipy.special.expit(-margins) ** gamma * softplus(-margins)

    return losses


def of_scipy(function, threshold, residuals):
    return function(threshold, residuals).sum(1)


def of_sklearn(loss, f, y):
    """Return the losses of samples by scikit-learn, summed over outputs."""
    pairs = zip(f.T.astype(np.float64), y.T.astype(np.float64), strict=True)
    columns = [loss.loss(np.ascontiguousarray(b), np.ascontiguousarray(a)) for a, b in pairs]
    return np.sum(columns, axis=0)


def of_margin(function, f, y):
    return function(f * (2 * y - 1)).sum(1)


@dataclass
class Case:
    """Predictions, labels and the definition of a loss."""

    definition: object
    predicted: np.ndarray = field(default_factory=lambda: SCORES)
    expected: np.ndarray = field(default_factory=lambda: TARGETS)
    params: dict = field(default_factory=dict)

    @property
    def losses(self):
        return self.definition(self.predicted, self.expected)


def softplus_of(op, y, f):
    return op.Softplus(op.Neg(op.Abs(op.Sub(f, y))))


CASES = {
    "expression": [
        Case(lambda f, y: ((f - y) ** 2).sum(1) / 2),
        Case(
            lambda f, y: (np.where(y > f, 5, 1) * (y - f) ** 2).sum(1),
            params={"expression": "where(label > score, 5, 1) * (label - score)**2"},
        ),
        Case(
            lambda f, y: (np.log1p(np.exp(-np.abs(f - y))) + np.abs(f) ** 1.5).sum(1),
            params={"expression": lambda op, y, f: op.Add(softplus_of(op, y, f), op.Pow(op.Abs(f), 1.5))},
        ),
    ],
    "squared_error": [
        Case(lambda f, y: ((f - y) ** 2).sum(1)),
        Case(lambda f, y: 3 * ((f - y) ** 2).sum(1), params={"factor": 3.0}),
    ],
    "absolute_error": [Case(lambda f, y: np.abs(f - y).sum(1))],
    "cross_entropy": [
        Case(
            lambda f, y: (
                -(y * np.log(np.clip(f, 1e-6, 1)) + (1 - y) * np.log(np.clip(1 - f, 1e-6, 1))).sum(1)
            ),
            scipy.special.expit(SCORES),
            scipy.special.expit(TARGETS),
        )
    ],
    "elastic": [
        Case(lambda f, y: (0.5 * np.abs(f - y) + 0.5 * (f - y) ** 2).sum(1)),
        Case(
            lambda f, y: (0.1 * np.abs(f - y) + 2.0 * (f - y) ** 2).sum(1),
            params={"l1_weight": 0.1, "l2_weight": 2.0},
        ),
    ],
    "log_loss": [
        Case(multinomial, SCORES, CLASSES),
        Case(lambda f, y: softplus(f[:, 0]) - y * f[:, 0], SCORES[:, :1], BINARY),
        Case(smoothed(0.2), SCORES, CLASSES, {"label_smoothing": 0.2}),
        Case(smoothed_binary(0.2), SCORES[:, :1], BINARY, {"label_smoothing": 0.2}),
    ],
    "huber": [
        Case(lambda f, y: of_scipy(scipy.special.huber, 1.0, f - y)),
        Case(lambda f, y: of_scipy(scipy.special.huber, 0.3, f - y), params={"delta": 0.3}),
    ],
    "quantile": [
        Case(lambda f, y: np.maximum(0.5 * (y - f), -0.5 * (y - f)).sum(1)),
        Case(lambda f, y: np.maximum(0.9 * (y - f), -0.1 * (y - f)).sum(1), params={"quantile": 0.9}),
    ],
    "quantiles": [
        Case(noncrossing([0.05, 0.5, 0.95], 1)),
        Case(noncrossing([0.1, 0.2, 0.3], 2), params={"levels": (0.1, 0.2, 0.3)}),
        Case(noncrossing([0.6, 0.7, 0.9], 0), params={"levels": [0.6, 0.7, 0.9]}),
    ],
    "epsilon_insensitive": [
        Case(lambda f, y: np.maximum(0, np.abs(f - y) - 0.1).sum(1)),
        Case(lambda f, y: np.maximum(0, np.abs(f - y) - 1).sum(1), params={"epsilon": 1.0}),
    ],
    "squared_epsilon_insensitive": [Case(lambda f, y: (np.maximum(0, np.abs(f - y) - 0.1) ** 2).sum(1))],
    "poisson": [Case(lambda f, y: of_sklearn(HalfPoissonLoss(), f, y), expected=np.abs(TARGETS))],
    "gamma": [Case(lambda f, y: of_sklearn(HalfGammaLoss(), f, y), expected=np.abs(TARGETS) + 0.1)],
    "tweedie": [
        Case(
            lambda f, y, p=p: of_sklearn(HalfTweedieLoss(power=p), f, y),
            expected=np.abs(TARGETS),
            params={"power": p},
        )
        for p in (1, 1.5, 2, 3, -1)
    ],
    "hinge": [Case(lambda f, y: of_margin(lambda m: np.maximum(0, 1 - m), f, y), expected=LABELS)],
    "squared_hinge": [
        Case(lambda f, y: of_margin(lambda m: np.maximum(0, 1 - m) ** 2, f, y), expected=LABELS)
    ],
    "modified_huber": [
        Case(
            lambda f, y: of_margin(lambda m: np.where(m >= -1, np.maximum(0, 1 - m) ** 2, -4 * m), f, y),
            expected=LABELS,
        )
    ],
    "perceptron": [Case(lambda f, y: of_margin(lambda m: np.maximum(0, -m), f, y), expected=LABELS)],
    "focal": [
        Case(focal(2.0), SCORES, CLASSES),
        Case(focal(0.0), SCORES, CLASSES, {"gamma": 0.0}),
        Case(focal_binary(2.0), SCORES[:, :1], BINARY),
        Case(focal_binary(1.5), SCORES[:, :1], BINARY, {"gamma": 1.5}),
    ],
}
