"""Compare derivatives with finite differences along random directions, in float32 or float64."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from onnx import ModelProto

from ortlearn.differentiation import onnx_derivative, random_feed
from ortlearn.graphs import initializer_arrays, make_inputs_of
from ortlearn.onnx_files.weights import find_weights
from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session

from .double import Evaluator, in_double

__all__ = ["Derivative", "check_derivative", "inputs_that_run"]

#: Number of directions, and relative sizes of steps in float32.
DIRECTIONS, STEPS = 2, tuple(10.0**-k for k in (6, 5.5, 5, 4.5, 4, 3.5, 3, 2.5, 2, 1))
#: Steps in float64.
DOUBLE_STEPS = tuple(10.0**-k for k in (10, 9, 8, 7, 6, 5))
#: Tolerances of the agreement of two steps, and of the derivative, and limit of the standard error of a
#: slope, so that rounding errors exceed the second tolerance once in millions.
AGREE, RIGHT, NOISE = 0.01, 0.02, 0.004
#: Maximum ratio of the slope along the gradient to the slope along the random part of a direction.
ALONG = 30
#: Minimum and maximum number of timed runs, and seconds after which the minimum is sufficient.
RUNS, SECONDS = (5, 200), 0.5
#: Numbers of samples and sizes of dynamic dimensions to try one after the other; one sample of large inputs.
SIZES = ((2, 8), (2, 64), (1, 64), (1, 256))
LARGE = 50_000


@dataclass(frozen=True)
class Derivative:
    """Result of a check.

    Attributes
    ----------
    verdict : str
        ``"right"``, ``"wrong"``, or the reason why it is unknown.
    error : float
        Largest relative error of a direction.
    ratio : float
        Time of forward and backward divided by the time of a forward pass.
    """

    verdict: str
    error: float = float("nan")
    ratio: float = float("nan")


def check_derivative(
    model: ModelProto,
    file: ModelProto,
    random_state: int = 0,
    derivative: Callable[..., ModelProto] = onnx_derivative,
) -> Derivative:
    """Compare the gradient of a random sum of outputs with differences along random directions.

    Directions have a part along the gradient, so that the slope is clearly not zero. The step is the smallest
    one whose difference is far above the rounding error of float32 and agrees with that of half the step. If
    there is none, outputs are computed in float64. ``file`` declares the sizes of inputs.
    """
    rng = np.random.default_rng(random_state)
    weights = [name for name, weight in find_weights(model).items() if weight.learned]
    gradient = derivative(model, weights=weights)
    forward, backward = (
        make_session(graph, Device("cpu")) for graph in (make_inputs_of(model, weights), gradient)
    )
    outputs = [
        value.name for value in forward.get_outputs() if value.type in ("tensor(float)", "tensor(double)")
    ]
    point = _weights(model, weights, rng)
    own = {**point}
    point.update(
        inputs_that_run(
            model, file, lambda values: forward.run(outputs, _kept(own | values, forward)), SIZES, rng
        )
    )
    values = forward.run(outputs, _kept(point, forward))
    if not all(np.isfinite(value).all() for value in values):  # such as powers of negative numbers
        point.update({name: abs(value) for name, value in point.items() if value.dtype.kind == "f"})
        values = forward.run(outputs, _kept(point, forward))
    seeds = {
        f"{name}_grad": rng.normal(size=value.shape).astype(value.dtype)
        for name, value in zip(outputs, values, strict=True)
    }
    feed = _kept({**point, **seeds}, backward)
    names = [value.name.removesuffix("_grad") for value in backward.get_outputs()]
    slopes = dict(zip(names, backward.run(None, feed), strict=True))

    def total(moved: dict[str, np.ndarray], evaluator: Any = forward) -> float:
        found = evaluator.run(outputs, _kept({**point, **moved}, forward))
        pairs = zip(outputs, found, strict=True)
        return sum(float(np.vdot(seeds[f"{name}_grad"].astype(float), value)) for name, value in pairs)

    ratio = _ratio(backward, feed, forward, _kept(point, forward))
    if not all(np.isfinite(slope).all() for slope in slopes.values()):
        return Derivative("its activations overflow in float32", ratio=ratio)
    directions = [_direction(slopes, point, rng) for _ in range(DIRECTIONS)]
    errors = [_error(total, point, direction, slopes) for direction in directions]
    if errors == [None] * DIRECTIONS:
        wide = partial(total, evaluator=Evaluator(make_inputs_of(model, weights)))
        point, *directions = ({n: in_double(a) for n, a in values.items()} for values in (point, *directions))
        errors = [_error(wide, point, direction, slopes, DOUBLE_STEPS) for direction in directions]
    clear = [error for error in errors if error is not None]
    if not clear:
        flat = all(not np.any(slope) for slope in slopes.values())
        return Derivative("zero everywhere" if flat else "no clear slope", ratio=ratio)
    return Derivative("right" if max(clear) < RIGHT else "wrong", float(max(clear)), ratio)


def inputs_that_run(
    model: ModelProto,
    file: ModelProto,
    run: Callable[[dict[str, np.ndarray]], Any],
    sizes: Sequence[tuple[int, int]],
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Return random inputs of the first sizes that a model runs with; raise the error of the last sizes."""
    inputs: dict[str, np.ndarray] = {}
    for rows, length in sizes[:-1]:
        inputs = _inputs(model, file, rows, length, rng)
        if rows == 2 and sum(array.size for array in inputs.values()) > 2 * LARGE:
            continue
        with suppress(Exception):
            run(inputs)
            return inputs
    inputs = _inputs(model, file, *sizes[-1], rng)
    run(inputs)
    return inputs


def _weights(model: ModelProto, names: list[str], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the values of weights; placeholders are replaced by random values."""
    found, roles = initializer_arrays(model, names), find_weights(model)
    for name, array in found.items():
        if array.size > 1 and np.ptp(array) == 0:
            fan_in = array.size // array.shape[0]
            spread = np.sqrt(2 / fan_in) if array.ndim > 1 else 0.1
            drawn = rng.normal(0, spread, array.shape) + (roles[name].role == "scale")
            found[name] = np.asarray(drawn, dtype=array.dtype)
    return found


def _inputs(
    model: ModelProto, file: ModelProto, rows: int, length: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return random inputs with the sizes in the file and the types in the model."""
    given = random_feed(file, rows, length)
    types = {name: array.dtype for name, array in random_feed(model, rows, length).items()}
    return {
        name: (array + rng.normal(size=array.shape)).astype(types[name]) if types[name].kind == "f" else array
        for name, array in given.items()
        if name in types
    }


def _direction(slopes, point, rng) -> dict[str, np.ndarray]:
    """Return a random direction with a part along the gradient, in the scale of each tensor.

    This part decreases with the size of the tensor, so that steps stay in the linear range.
    """
    found = {}
    for name, slope in slopes.items():
        scale = np.sqrt(np.mean(np.square(point[name]))) or 1.0
        along = slope / (np.sqrt(np.mean(np.square(slope))) or 1.0) * min(1, ALONG / np.sqrt(slope.size))
        found[name] = np.asarray(scale * (along + rng.normal(size=slope.shape)), dtype=slope.dtype)
    return found


def _moved(point, direction, step: float) -> dict[str, np.ndarray]:
    """Return a point moved along a direction, rounded to its type."""
    return {name: point[name] + point[name].dtype.type(step) * own for name, own in direction.items()}


def _error(total, point, direction, slopes, steps=STEPS) -> float | None:
    """Return the relative error of the slope along a direction, None if differences are too inaccurate.

    The slope is that between the rounded points, since rounding changes small steps by several percent.
    """
    noise = _noise(total, point, direction)
    for step in steps:
        wide, narrow = (_slopes(total, point, direction, slopes, h) for h in (step, step / 2))
        largest = max(abs(wide[0]), abs(narrow[0]))
        clear = abs(narrow[0]) * step * NOISE > noise * np.sqrt(2)
        if clear and abs((wide[0] - wide[1]) - (narrow[0] - narrow[1])) < AGREE * largest:
            return abs(narrow[0] - narrow[1]) / max(abs(narrow[0]), abs(narrow[1]))
    return None


def _slopes(total, point, direction, slopes, step: float) -> tuple[float, float]:
    """Return the slope by central differences, and the slope by the gradient."""
    ends = [_moved(point, direction, sign * step) for sign in (1, -1)]
    found = total(ends[0]) - total(ends[1])
    expected = sum(
        np.vdot(slopes[name].astype(float), ends[0][name].astype(float) - ends[1][name].astype(float))
        for name in direction
    )
    return found / (2 * step), float(expected) / (2 * step)


def _noise(total, point, direction) -> float:
    """Return the rounding error in differences: the deviation of nearby values from a line."""
    dtypes = [array.dtype for array in direction.values()]
    steps = np.array([-3, -2, -1, 1, 2, 3]) * max(float(np.finfo(dtype).eps) for dtype in dtypes)
    values = np.array([total(_moved(point, direction, step)) for step in steps])
    slope = np.dot(steps, values) / np.dot(steps, steps)
    return float(np.std(values - slope * steps, ddof=2))


def _kept(values: dict[str, np.ndarray], session) -> dict[str, np.ndarray]:
    names = {value.name for value in session.get_inputs()}
    return {name: array for name, array in values.items() if name in names}


def _ratio(longer, longer_feed, shorter, shorter_feed) -> float:
    """Return the ratio of the shortest times of two sessions, which run alternately."""
    times: dict[int, list[float]] = {0: [], 1: []}
    while len(times[0]) < RUNS[0] or (len(times[0]) < RUNS[1] and sum(map(sum, times.values())) < SECONDS):
        for which, (session, feed) in enumerate(((longer, longer_feed), (shorter, shorter_feed))):
            start = time.perf_counter()
            session.run(None, feed)
            times[which].append(time.perf_counter() - start)
    return min(times[0]) / min(times[1])
