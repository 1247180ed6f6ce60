"""Check a learning rate: parameters, schedule, and update or solver."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..exceptions import PluginError
from ..learning_rates import BaseLearningRate, BaseSolver, Rates
from .parameters import check_parameters
from .running import Run, run_reference
from .updates import RATE, SHAPES, Updates

__all__ = ["check_learning_rate"]


#: Largest rate in the descent of a quadratic of curvature 1.
MAX_RATE = 0.1


def check_learning_rate(
    learning_rate: BaseLearningRate,
    *,
    epochs: int = 200,
    steps: int = 50,
    run: Run | None = None,
    random_state: int = 0,
) -> None:
    """Check that a learning rate fulfils its contract.

    Parameters survive ``clone`` and pickle. Rates are finite and positive for all losses, and training does
    not change the object. The update is valid ONNX with standard operators, keeps shapes and types (float32
    and float64), and decreases a convex quadratic. If it is ``elementwise``, the weights packed in one vector
    give the same result; if it has ``scales_gradient``, so does a gradient multiplied by the rate. A solver
    must minimise the quadratic.

    Parameters
    ----------
    learning_rate : BaseLearningRate
        Plugin to check.
    epochs : int, default=200
        Number of epochs of the schedule to check.
    steps : int, default=50
        Number of updates of the quadratic, with the rates of the schedule, limited to 0.1.
    run : callable, default=None
        ``run(model, feeds)`` returns the outputs of a model; onnx's reference evaluator by default.
    random_state : int, default=0
        Seed of weights and gradients.

    Raises
    ------
    AssertionError
        If the contract is violated; the message says how.
    PluginError
        If a parameter is invalid.

    Examples
    --------
    >>> from ortlearn.learning_rates import LearningRateAdam
    >>> from ortlearn.testing import check_learning_rate
    >>> check_learning_rate(LearningRateAdam(eta0=0.01))
    """
    name = type(learning_rate).__name__
    learning_rate.check()
    check_parameters(learning_rate)
    hash(learning_rate.graph_key())
    rng = np.random.default_rng(random_state)
    if isinstance(learning_rate, BaseSolver):
        _check_solver(learning_rate, name, rng)
        return
    before = repr(vars(learning_rate))
    for losses in (np.ones(epochs), np.linspace(1, 0, epochs), np.linspace(0, 1, epochs)):
        _check_schedule(learning_rate, name, losses)
    run = run or run_reference
    for dtype in (np.float32, np.float64):
        for shape in SHAPES:
            _check_descent(learning_rate, name, rng.normal(size=shape).astype(dtype), steps, run)
    if learning_rate.elementwise:
        _check_elementwise(learning_rate, name, rng, run)
    if learning_rate.scales_gradient:
        _check_scale(learning_rate, name, rng, run)
    assert repr(vars(learning_rate)) == before, f"{name}: training changed the object"


def _check_schedule(learning_rate: BaseLearningRate, name: str, losses: np.ndarray) -> None:
    rates = Rates(learning_rate)
    for epoch, loss in enumerate(losses.tolist()):
        try:
            rate = rates.of(epoch)
        except PluginError as error:
            raise AssertionError(f"{name}: {error}") from error
        assert rate > 0, f"{name}: the rate of epoch {epoch} is {rate!r}, it must be positive"
        assert rates.of(epoch) == rate, f"{name}: the rate of an epoch changes between two calls"
        rates.note(loss)


def _check_descent(
    learning_rate: BaseLearningRate, name: str, weight: np.ndarray, steps: int, run: Run
) -> None:
    target = np.full_like(weight, 3.0)  # far from all starting points
    start, updates, rates = weight.copy(), Updates(learning_rate, weight, run), Rates(learning_rate)
    for step in range(steps):
        loss = float(((updates.weight - target) ** 2).sum() / 2)
        updates.apply(updates.weight - target, min(rates.of(step), MAX_RATE))
        rates.note(loss)
    first, last = (float(((w - target) ** 2).sum() / 2) for w in (start, updates.weight))
    assert np.array_equal(weight, start), f"{name}: init changes the weight"
    assert math.isfinite(last) and last < first, (
        f"{name}: {steps} updates change a convex quadratic from {first:.6g} to {last:.6g}, they must "
        "decrease it"
    )


def _check_elementwise(learning_rate: BaseLearningRate, name: str, rng: Any, run: Run) -> None:
    weights = [rng.normal(size=shape) for shape in SHAPES]
    apart = [Updates(learning_rate, weight, run) for weight in weights]
    packed = Updates(learning_rate, _pack(weights), run)
    for _ in range(3):
        gradients = [rng.normal(size=shape) for shape in SHAPES]
        for updates, gradient in zip(apart, gradients, strict=True):
            updates.apply(gradient, RATE)
        packed.apply(_pack(gradients), RATE)
    expected = _pack([updates.weight for updates in apart])
    assert np.allclose(packed.weight, expected, rtol=1e-12, atol=1e-12), (
        f"{name}: elementwise is True, but updates of one vector of all weights differ from separate updates"
    )
    for key, value in packed.state.items():
        fine = value.ndim == 0 or value.shape == expected.shape
        assert fine, f"{name}: elementwise is True, but the state {key!r} has the shape {value.shape}"


def _check_scale(learning_rate: BaseLearningRate, name: str, rng: Any, run: Run) -> None:
    weight = rng.normal(size=SHAPES[0])
    plain, scaled = Updates(learning_rate, weight, run), Updates(learning_rate, weight, run)
    for rate in (RATE, 2 * RATE, RATE / 2):
        gradient = rng.normal(size=weight.shape)
        plain.apply(gradient, rate)
        scaled.apply(gradient * rate, 1.0)
    assert np.allclose(plain.weight, scaled.weight, rtol=1e-12, atol=1e-12), (
        f"{name}: scales_gradient is True, but the update depends on the rate other than by rate * gradient"
    )


class _Quadratic:
    """Convex quadratic as the objective of a solver; it is smooth."""

    has_kinks = False
    lower = None

    def __init__(self, name: str, absolute: np.ndarray | None = None) -> None:
        self.name = name
        self.scales = np.linspace(0.5, 2.0, 5)
        self.absolute = absolute
        self.anchor = None if absolute is None else np.full(5, 0.5)

    def __call__(self, weights: Any) -> Any:
        assert weights.shape == (5,), f"{self.name}: evaluates weights of shape {weights.shape}, not (5,)"
        return float(self.scales @ (weights - 1.0) ** 2 / 2), self.scales * (weights - 1.0)

    def rounded(self, width: Any) -> Any:
        """Return the object itself, since it has no kinks."""
        return self


def _check_solver(solver: BaseSolver, name: str, rng: Any) -> None:
    start, noted = rng.normal(size=5), []
    objective = _Quadratic(name)
    before, given = repr(vars(solver)), start.copy()
    eps = float(np.finfo(np.float64).eps)
    found = solver.minimize(objective, given, 100, lambda weights: noted.append(np.array(weights)), eps)
    assert np.array_equal(given, start), f"{name}: minimize changes the weights it starts from"
    assert repr(vars(solver)) == before, f"{name}: minimize changes the object"
    first, last = objective(start)[0], objective(found.weights)[0]
    assert last < 1e-3 * first, f"{name}: decreases a quadratic only from {first:.6g} to {last:.6g}"
    assert found.converged, f"{name}: converged is False after minimising a quadratic: {found.message}"
    assert 0 < len(noted) <= 100, f"{name}: calls back after {len(noted)} iterations, not 1 to 100"
    if solver.takes_absolute_values:
        # argmin of s / 2 (w - 1)^2 + a |w - 1/2| is 1/2 if s / 2 <= a, else 1 - a / s
        factors = np.full(5, 0.4)
        sparse = _Quadratic(name, factors)
        found = solver.minimize(sparse, given, 100, lambda weights: None, eps)
        expected = np.maximum(1.0 - factors / sparse.scales, 0.5)
        assert np.allclose(found.weights, expected, atol=1e-4), (
            f"{name}: takes_absolute_values is True, but the minimum is {found.weights}, not {expected}"
        )


def _pack(arrays: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([array.ravel() for array in arrays])
