"""Five epochs of a network equal those of torch.optim with the same weights and order of samples.

Run by ``make against-torch``, since the other tests do not require torch.
"""

import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import load_diabetes, load_wine
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler
from torch.optim import lr_scheduler

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn import learning_rates as lr

EPOCHS, SIZE = 5, 16
#: Updates of ortlearn and torch by name.
UPDATES = {
    "SGD": (lr.LearningRateSGD(0.05, learning_rate="constant"), lambda p: torch.optim.SGD(p, 0.05)),
    "momentum": (
        lr.LearningRateSGDNesterov(0.02, learning_rate="constant", nesterov=False),
        lambda p: torch.optim.SGD(p, 0.02, momentum=0.9),
    ),
    "Nesterov": (
        lr.LearningRateSGDNesterov(0.02, learning_rate="constant"),
        lambda p: torch.optim.SGD(p, 0.02, momentum=0.9, nesterov=True),
    ),
    "Adam": (lr.LearningRateAdam(0.01), lambda p: torch.optim.Adam(p, 0.01)),
    "Adam, other parameters": (
        lr.LearningRateAdam(0.01, beta_1=0.5, beta_2=0.9, epsilon=0.01),
        lambda p: torch.optim.Adam(p, 0.01, betas=(0.5, 0.9), eps=0.01),
    ),
    "AdamW": (lr.LearningRateAdamW(0.01), lambda p: torch.optim.AdamW(p, 0.01)),
    "AdamW, strong": (
        lr.LearningRateAdamW(0.01, weight_decay=0.5),
        lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.5),
    ),
    "RMSprop": (lr.LearningRateRMSprop(0.002), lambda p: torch.optim.RMSprop(p, 0.002)),
    "RMSprop, momentum": (
        lr.LearningRateRMSprop(0.001, momentum=0.9, rho=0.9),
        lambda p: torch.optim.RMSprop(p, 0.001, momentum=0.9, alpha=0.9),
    ),
    "RMSprop, centered": (
        lr.LearningRateRMSprop(0.002, centered=True, rho=0.9),
        lambda p: torch.optim.RMSprop(p, 0.002, centered=True, alpha=0.9),
    ),
    "Adagrad": (lr.LearningRateAdagrad(0.02), lambda p: torch.optim.Adagrad(p, 0.02)),
    "Adagrad, begun": (
        lr.LearningRateAdagrad(0.02, initial_total=0.1),
        lambda p: torch.optim.Adagrad(p, 0.02, initial_accumulator_value=0.1),
    ),
    "Adadelta": (lr.LearningRateAdadelta(), lambda p: torch.optim.Adadelta(p, 1.0)),
    "Adadelta, other parameters": (
        lr.LearningRateAdadelta(0.5, rho=0.8, epsilon=1e-3),
        lambda p: torch.optim.Adadelta(p, 0.5, rho=0.8, eps=1e-3),
    ),
}
#: Schedules of ortlearn and torch by name; torch's makes one step per epoch.
SCHEDULES = {
    "exponential": (lr.ExponentialSchedule(0.7), lambda o: lr_scheduler.ExponentialLR(o, 0.7)),
    "step": (lr.StepSchedule(period=3, factor=0.3), lambda o: lr_scheduler.StepLR(o, 3, 0.3)),
    "cosine": (
        lr.CosineSchedule(period=12, final=0.1),
        lambda o: lr_scheduler.CosineAnnealingLR(o, 12, eta_min=0.01),
    ),
    "restarts": (
        lr.CosineSchedule(period=4, final=0.1, restarts=True),
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 4, eta_min=0.01),
    ),
    "one cycle": (
        lr.OneCycleSchedule(epochs=12),
        lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=12, cycle_momentum=False),
    ),
    "warm-up": (
        lr.WarmUpSchedule(epochs=4, first=0.2),
        lambda o: lr_scheduler.LinearLR(o, start_factor=0.2, total_iters=4),
    ),
}
#: Learning rates that torch.optim lacks or defines differently.
NOT_COMPARED = {"Lion", "LBFGS"}


@pytest.fixture(params=["regression", "classification"])
def case(request):
    """Return a network after one epoch, samples, labels and torch's loss."""
    regression = request.param == "regression"
    X, y = (load_diabetes if regression else load_wine)(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:170]
    y = (y - y.mean()) / y.std() if regression else y
    order = np.random.RandomState(0).permutation(len(X))
    X, y = X[order], y[order]
    kind = MLPRegressor if regression else MLPClassifier
    model = kind(hidden_layer_sizes=(8, 5), activation="tanh", max_iter=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return model, X, y, half_squares if regression else torch.nn.functional.cross_entropy


def half_squares(scores, y):
    return ((scores[:, 0] - y) ** 2).mean() / 2


def torch_layers(model, dtype):
    """Return the network of a scikit-learn model in torch."""
    layers = []
    for coef, intercept in zip(model.coefs_, model.intercepts_, strict=True):
        layer = torch.nn.Linear(*coef.shape, dtype=dtype)
        with torch.no_grad():
            layer.weight[:] = torch.from_numpy(coef.T)
            layer.bias[:] = torch.from_numpy(intercept)
        layers += [layer, torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


def train_torch(model, X, y, loss, make, dtype):
    network = torch_layers(model, dtype)
    optimizer = make(network.parameters())
    samples = torch.from_numpy(X).to(dtype)
    labels = torch.from_numpy(y).to(dtype) if y.dtype.kind == "f" else torch.from_numpy(y)
    for _ in range(EPOCHS):
        for start in range(0, len(X), SIZE):
            optimizer.zero_grad()
            loss(network(samples[start : start + SIZE]), labels[start : start + SIZE]).backward()
            optimizer.step()
    linear = [layer for layer in network if isinstance(layer, torch.nn.Linear)]
    return [layer.weight.detach().numpy().T for layer in linear], [
        layer.bias.detach().numpy() for layer in linear
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", list(UPDATES))
@pytest.mark.parametrize("optimizer", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
def test_weights(case, name, dtype, optimizer):
    model, X, y, loss = case
    ours, make = UPDATES[name]
    coefs, intercepts = train_torch(model, X, y, loss, make, getattr(torch, dtype))
    trained = optimizer(
        model,
        learning_rate=ours,
        max_iter=EPOCHS,
        batch_size=SIZE,
        shuffle=False,
        warm_start=True,
        keep_better=False,
        learning_penalty=None,
        dtype=dtype,
    ).fit(X, y)
    got = sorted(trained.trained_coef_.items())
    found = [array for key, array in got if "coef" in key] + [
        array for key, array in got if "intercept" in key
    ]
    assert len(found) == 6
    for array, expected in zip(found, coefs + intercepts, strict=True):
        np.testing.assert_allclose(array.reshape(expected.shape), expected, rtol=1e-4, atol=1e-4)
    assert np.abs(coefs[0] - model.coefs_[0]).max() > 1e-3


@pytest.mark.parametrize("name", list(SCHEDULES))
def test_schedules(name):
    ours, make = SCHEDULES[name]
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)
    scheduler = make(optimizer)
    expected = []
    for _ in range(12):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if len(expected) < 12:
            scheduler.step()
    np.testing.assert_allclose([ours.rate(e, 0.1) for e in range(12)], expected, rtol=1e-6)


@pytest.mark.parametrize("options", [{"patience": 0}, {"patience": 2, "cooldown": 3}, {"threshold": 0.2}])
def test_plateau(options):
    losses = np.random.RandomState(1).uniform(0.5, 1, 25).tolist()
    options = {"factor": 0.5, "patience": 3, **options}
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, **options)
    rates = lr.Rates(lr.LearningRateSGD(0.1, learning_rate=lr.PlateauSchedule(**options)))
    for epoch, loss in enumerate(losses):
        assert rates.of(epoch) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9)
        rates.note(loss)
        scheduler.step(loss)
    assert optimizer.param_groups[0]["lr"] < 0.1


def test_every_learning_rate_is_compared():
    from ortlearn import plugins

    infos = plugins.list_plugins(plugins.LEARNING_RATES)
    kinds = {plugins.get(info.group, info.name) for info in infos if info.distribution == "ortlearn"}
    compared = {type(ours) for ours, _ in UPDATES.values()}
    assert {kind.__name__.removeprefix("LearningRate") for kind in kinds - compared} == NOT_COMPARED
