"""Test records of learning rates and schedules."""

import math
from functools import partial

from ortlearn import learning_rates as lr
from tests.learning_rates import definitions

#: Parameters of learning rates by name, and the same update in numpy.
UPDATES = {
    "SGD": [({}, definitions.sgd)],
    "SGDNesterov": [
        ({}, definitions.momentum),
        ({"nesterov": False}, partial(definitions.momentum, nesterov=False)),
        ({"momentum": 0.5}, partial(definitions.momentum, momentum=0.5)),
        ({"momentum": 0.0}, definitions.sgd),
    ],
    "Adam": [
        ({}, definitions.adam),
        (
            {"beta_1": 0.5, "beta_2": 0.9, "epsilon": 0.1},
            partial(definitions.adam, beta_1=0.5, beta_2=0.9, epsilon=0.1),
        ),
        ({"beta_1": 0.0, "beta_2": 0.0}, partial(definitions.adam, beta_1=0.0, beta_2=0.0)),
    ],
    "AdamW": [
        ({}, partial(definitions.adam, weight_decay=0.01)),
        ({"weight_decay": 0.0}, definitions.adam),
        ({"weight_decay": 0.5, "beta_1": 0.5}, partial(definitions.adam, weight_decay=0.5, beta_1=0.5)),
    ],
    "RMSprop": [
        ({}, definitions.rmsprop),
        ({"rho": 0.5, "epsilon": 0.1}, partial(definitions.rmsprop, rho=0.5, epsilon=0.1)),
        ({"momentum": 0.9}, partial(definitions.rmsprop, momentum=0.9)),
        ({"centered": True}, partial(definitions.rmsprop, centered=True)),
        (
            {"centered": True, "momentum": 0.5, "rho": 0.9},
            partial(definitions.rmsprop, centered=True, momentum=0.5, rho=0.9),
        ),
    ],
    "Adagrad": [
        ({}, definitions.adagrad),
        (
            {"initial_total": 0.5, "epsilon": 0.1},
            partial(definitions.adagrad, initial_total=0.5, epsilon=0.1),
        ),
    ],
    "Adadelta": [
        ({}, definitions.adadelta),
        ({"rho": 0.5, "epsilon": 0.01}, partial(definitions.adadelta, rho=0.5, epsilon=0.01)),
    ],
    "Lion": [
        ({}, definitions.lion),
        (
            {"beta_1": 0.5, "beta_2": 0.9, "weight_decay": 0.3},
            partial(definitions.lion, beta_1=0.5, beta_2=0.9, weight_decay=0.3),
        ),
    ],
}
#: Parameters of solvers by name.
SOLVERS = {"LBFGS": [{}, {"memory": 3, "gtol": 1e-8}]}
#: Aliases.
ALIASES = {"Nesterov": "SGDNesterov"}

#: Invalid values of the parameters of learning rates, besides values that are not numbers.
NEGATIVE = [-1.0]
FROM_ZERO_TO_ONE = [-0.1, 1.0]
INVALID = {
    "SGD": {},
    "SGDNesterov": {"momentum": FROM_ZERO_TO_ONE},
    "Adam": {"beta_1": FROM_ZERO_TO_ONE, "beta_2": FROM_ZERO_TO_ONE, "epsilon": [0.0]},
    "AdamW": {
        "beta_1": FROM_ZERO_TO_ONE,
        "beta_2": FROM_ZERO_TO_ONE,
        "epsilon": [0.0],
        "weight_decay": NEGATIVE,
    },
    "RMSprop": {"rho": FROM_ZERO_TO_ONE, "momentum": FROM_ZERO_TO_ONE, "epsilon": [0.0]},
    "Adagrad": {"initial_total": NEGATIVE, "epsilon": [0.0]},
    "Adadelta": {"rho": FROM_ZERO_TO_ONE, "epsilon": [0.0]},
    "Lion": {"beta_1": FROM_ZERO_TO_ONE, "beta_2": FROM_ZERO_TO_ONE, "weight_decay": NEGATIVE},
    "LBFGS": {"memory": [0, 1.5], "max_line_search": [0], "gtol": NEGATIVE, "ftol": NEGATIVE},
}


def half_cosine(share):
    return (1 + math.cos(math.pi * share)) / 2


def _optimal(e, alpha=1e-4):
    t0 = 1 / (math.sqrt(1 / math.sqrt(alpha)) * alpha)
    return 1 / (alpha * (t0 + e))


#: Schedules by name, and their rates in epoch e for an initial rate of 1 and without losses.
SCHEDULES = {
    "constant": [(lr.ConstantSchedule(), lambda e: 1)],
    "invscaling": [
        (lr.InvScalingSchedule(), lambda e: (e + 1) ** -0.25),
        (lr.InvScalingSchedule(power_t=0.5), lambda e: 1 / math.sqrt(e + 1)),
        (lr.InvScalingSchedule(power_t=0.0), lambda e: 1),
    ],
    "optimal": [
        (lr.OptimalSchedule(), _optimal),
        (lr.OptimalSchedule(alpha=0.01), lambda e: _optimal(e, 0.01)),
    ],
    "adaptive": [(lr.AdaptiveSchedule(), lambda e: 1)],
    "exponential": [
        (lr.ExponentialSchedule(), lambda e: 0.95**e),
        (lr.ExponentialSchedule(decay=0.5), lambda e: 0.5**e),
    ],
    "step": [
        (lr.StepSchedule(), lambda e: 10.0 ** -(e // 30)),
        (lr.StepSchedule(period=1, factor=0.5), lambda e: 0.5**e),
    ],
    "cosine": [
        (lr.CosineSchedule(), lambda e: 0.01 + 0.99 * half_cosine(min(e / 100, 1))),
        (lr.CosineSchedule(period=7, final=0.5), lambda e: 0.5 + 0.5 * half_cosine(min(e / 7, 1))),
        (
            lr.CosineSchedule(period=7, final=1e-9, restarts=True),
            lambda e: 1e-9 + (1 - 1e-9) * half_cosine((e % 7) / 7),
        ),
    ],
    "one_cycle": [
        (
            lr.OneCycleSchedule(epochs=11, peak=5 / 11),
            lambda e: (
                1 - 0.96 * half_cosine(e / 4)
                if e < 4
                else 4e-6 + (1 - 4e-6) * half_cosine(min((e - 4) / 6, 1))
            ),
        ),
        (
            lr.OneCycleSchedule(epochs=3, peak=0.1, final=0.5),
            lambda e: 0.5 + 0.5 * half_cosine(min(e / 2, 1)),
        ),
    ],
    "warmup": [
        (lr.WarmUpSchedule(), lambda e: min(0.1 + 0.9 * e / 5, 1)),
        (
            lr.WarmUpSchedule(epochs=2, first=0.5, then="invscaling"),
            lambda e: 0.5 + e / 4 if e < 2 else (e - 1) ** -0.25,
        ),
        (
            lr.WarmUpSchedule(epochs=3, then=lr.OptimalSchedule(alpha=0.01)),
            lambda e: _optimal(0, 0.01) * (0.1 + 0.3 * e) if e < 3 else _optimal(e - 3, 0.01),
        ),
    ],
    "plateau": [(lr.PlateauSchedule(), lambda e: 1)],
}
#: Invalid values of the parameters of schedules.
INVALID_BY_SCHEDULE = {
    "constant": {},
    "invscaling": {"power_t": [math.inf]},
    "optimal": {"alpha": [0.0]},
    "adaptive": {"tol": NEGATIVE, "patience": [0, 1.5], "divisor": [1.0], "minimum": [0.0]},
    "exponential": {"decay": [0.0, 1.0]},
    "step": {"period": [0, 2.5], "factor": [0.0, 1.0]},
    "cosine": {"period": [0, True], "final": [0.0, 1.0], "restarts": [1, "no"]},
    "one_cycle": {"epochs": [1], "peak": [0.0, 1.0], "first": [0.0, 1.0], "final": [0.0, 1.0]},
    "warmup": {"epochs": [0], "first": [0.0, 1.0]},
    "plateau": {
        "factor": [0.0, 1.0],
        "patience": [-1],
        "threshold": NEGATIVE,
        "cooldown": [-1],
        "minimum": [0.0],
    },
}
