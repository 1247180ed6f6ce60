"""Gradients against finite differences in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto

from benchmarks.model_zoo.evaluate import runner
from benchmarks.model_zoo.in_float64 import in_float64
from ortlearn.differentiation import gradient_of_loss
from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session

__all__ = ["Slopes", "gradient_errors", "gradients_at", "measure_slopes"]

#: Random directions along which every weight is moved.
DIRECTIONS = 2
ATTEMPTS = 12
#: Lengths of a step, relative to the size of the weight, in pairs that must give the same slope. The shorter
#: ones are for weights with kinks close by, such as tables that are searched.
STEPS = ((2e-5, 5e-6), (1e-6, 2.5e-7))
#: How much two slopes may differ, relative to the slope, where there is no kink between.
SAME = 1e-5
#: How much the slopes ahead and behind may differ, relative to the largest: more is a kink at the point.
ONE_SIDED = 1e-2
#: Shares of the largest sum of products below which a weight's own does not count.
FLOOR = {np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-7}

Feeds = dict[str, np.ndarray]


@dataclass(frozen=True)
class Slopes:
    """Slopes of an objective along random directions of single weights.

    Attributes
    ----------
    value : float
        Objective.
    found : list of (str, ndarray, float, float)
        Weight, direction, slope and its rounding error.
    kinks : list of str
        Weights without any direction that is smooth within a step.
    """

    value: float
    found: list[tuple[str, np.ndarray, float, float]]
    kinks: list[str]


def measure_slopes(objective: ModelProto, feeds: Feeds, weights: Mapping[str, np.ndarray]) -> Slopes:
    """Return slopes of an objective, by central differences in float64.

    Parameters
    ----------
    objective : onnx.ModelProto
        Graph of one float32 or float64 scalar.
    feeds : dict of str to ndarray
        What it takes besides the weights.
    weights : mapping of str to ndarray
        Where to differentiate.
    """
    graph = in_float64(objective)
    run = runner(graph)
    inputs = {value.name for value in graph.graph.input}
    fixed = {name: _double(array) for name, array in feeds.items() if name in inputs}
    point = {name: _double(array) for name, array in weights.items() if name in inputs}

    def value(name: str | None = None, moved: np.ndarray | None = None) -> float:
        changed = {} if name is None else {name: moved}
        return float(run({**fixed, **point, **changed})[0])

    center = value()
    rng = np.random.default_rng(0)
    found, kinks = [], []
    for name, array in point.items():
        smooth = 0
        for _ in range(ATTEMPTS):
            if smooth == DIRECTIONS:
                break
            direction = rng.normal(size=array.shape) * _size(array)
            slope = _slope(lambda moved, name=name: value(name, moved), array, direction, center)
            if slope is not None:
                found.append((name, direction, *slope))
                smooth += 1
        if not smooth:
            kinks.append(name)
    return Slopes(center, found, kinks)


def _double(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if array.dtype == np.float32 else array


def _size(array: np.ndarray) -> np.ndarray:
    """Return the magnitudes of the values of a weight."""
    mean = float(np.sqrt(np.mean(array**2))) if array.size else 0.0
    return np.maximum(np.abs(array), 0.1 * mean) if mean else np.ones(array.shape)


def _slope(
    value: Callable[[np.ndarray], float], array: np.ndarray, direction: np.ndarray, center: float
) -> tuple[float, float] | None:
    """Return the slope along a direction and its rounding error; None at a kink."""
    for steps in STEPS:
        slopes, gaps = [], []
        noise = 0.0
        for step in steps:
            ahead, behind = (value(np.asarray(array + sign * step * direction)) for sign in (1, -1))
            slopes.append((ahead - behind) / (2 * step))
            gaps.append(abs(ahead + behind - 2 * center) / step)
            noise = 8 * np.finfo(float).eps * max(abs(ahead), abs(behind)) / step
        if _is_smooth(slopes, gaps, noise):
            return slopes[1], noise
    return None


def _is_smooth(slopes: list[float], gaps: list[float], noise: float) -> bool:
    """Return whether two step sizes give the same slope, forward and backward."""
    size = max(map(abs, slopes))
    if not np.isfinite(slopes).all() or abs(slopes[0] - slopes[1]) > SAME * size + 4 * noise:
        return False
    # Ahead and behind differ by curvature, which shrinks with the step, or by a kink, which does not.
    return gaps[1] <= ONE_SIDED * size + 4 * noise or gaps[1] <= 0.6 * gaps[0]


def gradients_at(
    objective: ModelProto, output: str, feeds: Feeds, weights: Feeds, backend: str
) -> dict[str, np.ndarray]:
    """Return the gradient of an objective with respect to each weight.

    Parameters
    ----------
    objective : onnx.ModelProto
        Graph of the objective, the weights among its inputs; it is computed in its own type.
    output : str
        Its output.
    feeds, weights : dict of str to ndarray
        What it takes.
    backend : {"rules", "ort"}
        What builds the gradient.

    Raises
    ------
    GradientError
        If there is no gradient.
    """
    model = gradient_of_loss(objective, output, list(weights), backend)
    inputs = {value.name for value in model.graph.input}
    given = {name: array for name, array in {**feeds, **weights}.items() if name in inputs}
    single = any(array.dtype == np.float32 for array in weights.values())
    values = make_session(model, Device("cpu")).run(None, given) if single else runner(model)(given)
    return dict(zip(weights, values[-len(weights) :], strict=True))


def gradient_errors(gradients: Mapping[str, np.ndarray], slopes: Slopes) -> dict[str, float]:
    """Return the largest error of each gradient along the directions of the slopes."""
    products = [gradients[name].astype(np.float64) * direction for name, direction, *_ in slopes.found]
    sizes = [float(np.abs(product).sum()) for product in products]
    sizes = [max(size, abs(slope)) for size, (_, _, slope, _) in zip(sizes, slopes.found, strict=True)]
    largest = max(sizes, default=0.0)
    errors: dict[str, float] = {}
    for product, size, (name, _, slope, noise) in zip(products, sizes, slopes.found, strict=True):
        floor = FLOOR[gradients[name].dtype] * largest + np.finfo(float).tiny
        error = max(0.0, abs(float(product.sum()) - slope) - noise) / (size + floor)
        errors[name] = max(errors.get(name, 0.0), error if np.isfinite(error) else np.inf)
    return errors
