"""A derivative against differences along random directions, in float32."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto

from ortlearn.conversion import find_weights
from ortlearn.differentiation import onnx_derivative
from ortlearn.differentiation.random_feed import random_feed
from ortlearn.graphs import initializer_arrays, make_inputs_of
from ortlearn.models.weight import STATISTIC
from ortlearn.training import Device, make_session

__all__ = ["Derivative", "check_derivative"]

#: Rows that a derivative is checked on, directions, and relative sizes of a step.
ROWS, DIRECTIONS, STEPS = 2, 3, tuple(10.0**-k for k in np.arange(0.5, 5.1, 0.5))
#: Two steps that agree so well tell a slope; a derivative is right within the second number.
AGREE, RIGHT = 0.01, 0.02


@dataclass(frozen=True)
class Derivative:
    """What became of a derivative.

    Attributes
    ----------
    verdict : str
        ``"right"``, ``"wrong"``, or why it could not be told.
    error : float
        Largest relative error of a direction.
    ratio : float
        Time of forward and backward over the time of a forward.
    """

    verdict: str
    error: float = float("nan")
    ratio: float = float("nan")


def check_derivative(model: ModelProto) -> Derivative:
    """Compare the gradient of a random sum of outputs with differences along random directions.

    Directions have a part along the gradient, so that the slope is clearly not zero. Of all steps, the one
    counts whose difference agrees best with that of half the step: a larger one leaves the linear part, a
    smaller one is lost in the rounding of float32.
    """
    rng = np.random.default_rng(0)
    weights, point = _point(model, rng)
    gradient = onnx_derivative(model, weights=weights)
    n_wrt = len(gradient.graph.output)
    forward, backward = _session(make_inputs_of(model, weights)), _session(gradient)
    outputs = [value.name for value in forward.get_outputs() if value.type == "tensor(float)"]
    feed = _kept(point, forward)
    values = forward.run(outputs, feed)
    seeds = {f"{name}_grad": rng.normal(size=v.shape).astype(np.float32) for name, v in zip(outputs, values)}
    seeds = _kept(seeds, backward)
    slopes = dict(
        zip([o.name[:-5] for o in backward.get_outputs()], backward.run(None, _kept(point, backward) | seeds))
    )

    def total(step: float, direction: dict[str, np.ndarray]) -> float:
        moved = {k: v + np.float32(step) * direction[k] if k in direction else v for k, v in feed.items()}
        found = forward.run(outputs, moved)
        return sum(
            np.vdot(seeds[f"{n}_grad"].astype(float), v)
            for n, v in zip(outputs, found)
            if f"{n}_grad" in seeds
        )

    errors = [_error(total, _direction(slopes, point, rng), slopes) for _ in range(DIRECTIONS)]
    clear = [error for error in errors if error is not None]
    ratio = _seconds(backward, _kept(point, backward) | seeds) / _seconds(forward, feed)
    if not n_wrt or not clear:
        flat = all(not np.any(slope) for slope in slopes.values())
        return Derivative("zero everywhere" if flat else "no clear slope in float32", ratio=ratio)
    return Derivative("right" if max(clear) < RIGHT else "wrong", max(clear), ratio)


def _point(model: ModelProto, rng: np.random.Generator) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the weights to differentiate for, and values of these and of the inputs."""
    found = find_weights(model)
    arrays = initializer_arrays(model, found)
    weights = [name for name, weight in found.items() if weight.learned]
    point = {
        name: array + rng.normal(size=array.shape).astype(array.dtype) if array.dtype.kind == "f" else array
        for name, array in random_feed(model, ROWS, 8).items()
    }
    for name in weights:
        array = arrays[name]
        if array.size > 1 and np.ptp(array) == 0:  # a placeholder
            fan_in = max(1, array.size // array.shape[0]) if array.ndim > 1 else 1
            spread = np.sqrt(2 / fan_in) if array.ndim > 1 else 0.1
            drawn = rng.normal(0, spread, array.shape) + (found[name].role == "scale")
            array = np.asarray(drawn, dtype=array.dtype)
        point[name] = array
    return weights, point


def _direction(slopes, point, rng) -> dict[str, np.ndarray]:
    """Return a random direction with a part along the gradient, in the scale of each tensor."""
    found = {}
    for name, slope in slopes.items():
        scale = np.sqrt(np.mean(np.square(point[name]))) or 1.0
        along = slope / (np.sqrt(np.mean(np.square(slope))) or 1.0)
        found[name] = np.asarray(scale * (along + rng.normal(size=slope.shape)), dtype=np.float32)
    return found


def _error(total, direction, slopes) -> float | None:
    """Return the relative error of the slope along a direction, None where differences do not tell one."""
    expected = sum(np.vdot(slopes[name].astype(float), direction[name]) for name in direction)
    best = (np.inf, 0.0)
    for step in STEPS:
        wide, narrow = ((total(h, direction) - total(-h, direction)) / (2 * h) for h in (step, step / 2))
        if wide or narrow:
            best = min(best, (abs(wide - narrow) / max(abs(wide), abs(narrow)), narrow))
        if best[0] < AGREE / 10:
            break
    disagreement, slope = best
    return abs(slope - expected) / max(abs(slope), abs(expected)) if disagreement < AGREE else None


def _session(model: ModelProto):
    return make_session(model, Device("cpu"))


def _kept(values: dict[str, np.ndarray], session) -> dict[str, np.ndarray]:
    names = {value.name for value in session.get_inputs()}
    return {name: array for name, array in values.items() if name in names}


def _seconds(session, feed) -> float:
    """Return the shortest of three runs."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        session.run(None, feed)
        times.append(time.perf_counter() - start)
    return min(times)
