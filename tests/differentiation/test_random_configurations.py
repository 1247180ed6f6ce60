"""Each random configuration of an operator has a right gradient or a clear error."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from ortlearn.differentiation import onnx_derivative
from ortlearn.exceptions import OrtlearnError
from tests.differentiation.random_configurations import OPERATORS, attention, configuration

#: Parts of errors that a rule raises by mistake.
UNCLEAR = ("raised", "NoneType", "not supported between", "unsupported operand", "object is not")
STEPS = (1e-2, 3e-3, 1e-3)


def session(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def results(made, feeds):
    names = {value.name for value in made.get_inputs()}
    found = made.run(None, {name: array for name, array in feeds.items() if name in names})
    return dict(zip((value.name for value in made.get_outputs()), found, strict=True))


def moved(feeds, direction, step):
    return feeds | {name: np.asarray(feeds[name] + step * d, np.float32) for name, d in direction.items()}


def outcome(operator, seed):
    """Return "right", "wrong", "refused", or "not run" if onnxruntime rejects the model itself."""
    case, rng = configuration(operator, seed), np.random.default_rng(seed)
    try:  # first, since onnxruntime terminates on some models that are refused
        derivative = onnx_derivative(case.model, backend="rules")
    except OrtlearnError as error:
        assert not any(text in str(error) for text in UNCLEAR), f"seed {seed}: {error}"
        return "refused"
    try:
        forward = session(case.model)
        outputs = results(forward, case.feeds)
    except Exception:
        return "not run"
    if not all(np.isfinite(array).all() for array in outputs.values()):
        return "not run"
    seeds = {f"{name}_grad": rng.normal(size=a.shape).astype(np.float32) for name, a in outputs.items()}
    gradients = results(session(derivative), case.feeds | seeds)
    for name, gradient in gradients.items():
        assert gradient.shape == case.feeds[name.removesuffix("_grad")].shape, f"seed {seed}: {name}"
    direction = {name: rng.normal(size=case.feeds[name].shape) for name in case.smooth}

    def total(step):
        found = results(forward, moved(case.feeds, direction, step))
        return sum(float(np.vdot(seeds[f"{n}_grad"].astype(float), array)) for n, array in found.items())

    expected = sum(float(np.vdot(gradients[f"{n}_grad"].astype(float), d)) for n, d in direction.items())
    # From both sides and from each, since activations and maxima have kinks and jumps.
    sides = [(total(-step), total(0), total(step), step) for step in STEPS]
    found = [slope for a, b, c, h in sides for slope in ((c - a) / (2 * h), (c - b) / h, (b - a) / h)]
    errors = [abs(number - expected) / max(1, abs(number), abs(expected)) for number in found]
    return "right" if min(errors) < 0.03 else "wrong"


def check(operator, seeds, least):
    found = {seed: outcome(operator, seed) for seed in seeds}
    assert [seed for seed, kind in found.items() if kind == "wrong"] == []
    n_right = sum(kind == "right" for kind in found.values())
    runs_attention = tuple(map(int, onnxruntime.__version__.split(".")[:2])) >= (1, 23)
    assert n_right >= (least if operator is not attention or runs_attention else 0)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.__name__)
def test_configurations(operator):
    check(operator, range(12), 3)


@pytest.mark.slow
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.__name__)
def test_many_configurations(operator):
    check(operator, range(12, 60), 12)
