"""Training by a solver, on the objective of all samples."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..exceptions import ConvergenceError, warn_user
from ..learning_rates import BaseSolver
from .monitor import Monitor
from .progress import progress_bar
from .settings import LoopSettings, Observer, Validate
from .solvers.variables import Variables
from .state import Evaluations, States, TrainingState, Unfinished, Weights

__all__ = ["run_solver"]


#: Factor of ``pull`` for intercepts, which are few and follow the class frequencies.
INTERCEPTS = 0.1
#: Length of the finite difference for curvatures, relative to the weights.
PROBE = 1e-2
#: Mean relative decrease of the objective in the last iterations up to which a solver that the user did not
#: choose ends without a warning, and the number of these iterations.
SLOW, PATIENCE = 2e-4, 10
#: Decrease of the objective, relative to its first value or to one, that no objective with a minimum has.
UNBOUNDED = 1e9
#: Maximum bytes of recorded gradients of a solver; later evaluations are repeated.
MAX_BYTES = 1 << 26


class _NotFinite(Exception):
    """The objective is non-finite."""


class _Stopped(Exception):
    """The monitor ends the training."""


class EvaluationLog:
    """Records the evaluations of a solver, and replays those of an earlier run."""

    def __init__(self, known: Evaluations | None = None):
        self._known = known
        self._next = 0
        self._checks: list[int] = []
        self._values: list[float] = []
        self._gradients: list[np.ndarray] = []

    def evaluate(
        self,
        compute: Callable[[np.ndarray, float], tuple[float, np.ndarray]],
        vector: np.ndarray,
        width: float,
    ) -> tuple[float, np.ndarray]:
        """Return objective and gradient, computed if they are not known."""
        check = zlib.crc32(np.float64(width).tobytes(), zlib.crc32(np.ascontiguousarray(vector)))
        found = self._replayed(check)
        value, gradient = compute(vector, width) if found is None else found
        if len(self._values) == self._next and gradient.nbytes * (self._next + 1) <= MAX_BYTES:
            self._checks.append(check)
            self._values.append(value)
            self._gradients.append(gradient.copy())
        self._next += 1
        return value, gradient

    def _replayed(self, check: int) -> tuple[float, np.ndarray] | None:
        known, number = self._known, self._next
        if known is None or number >= len(known.checks):
            return None
        if int(known.checks[number]) != check:
            self._known = None  # the solver differs, for example in its version
            return None
        return float(known.values[number]), known.gradients[number].copy()

    def evaluations(self) -> Evaluations:
        """Return the recorded evaluations."""
        gradients = np.stack(self._gradients) if self._gradients else np.zeros((0, 0))
        return Evaluations(np.array(self._checks, dtype=np.uint32), np.array(self._values), gradients)


class _SolverRun:
    """The objective for a solver, and the last point (in the step's coordinates) at which it was finite."""

    monitor: Monitor

    def __init__(
        self,
        variables: Variables,
        weights: Weights,
        pull: float,
        toward: Weights,
        log: EvaluationLog,
        keeps_history: bool,
    ):
        self.variables, self._log, self._keeps_history = variables, log, keeps_history
        self.coordinates, self.units, self._first = variables.coordinates, variables.units, weights
        self.whitening = variables.whitening
        coordinates = self.coordinates.point(variables.pack(weights)) / self.units
        self.best = self.start = self.whitening.point(coordinates)
        self.lower = variables.lower  # coordinates of bounded weights are scaled, but not shifted
        factors = variables.absolute
        self.absolute = self.anchor = None
        if factors is not None:
            lengths = self.coordinates.lengths(len(factors))
            self.absolute = factors * lengths * self.units
            self.anchor = variables.anchor / lengths / self.units
        self._last: tuple[np.ndarray, tuple[float, np.ndarray]] | None = None
        self.pull, self.center = 0.0, self.coordinates.point(variables.pack(toward)) / self.units
        # the objective is divided by its first value, so that tolerances do not depend on the labels
        self.scale = 1.0
        first, slopes = self._evaluate(self.start)
        self.scale = abs(first) if np.isfinite(first) and first != 0 else 1.0
        self._last = np.array(self.start), (first / self.scale, slopes / self.scale)
        if self.absolute is not None:
            self.absolute = self.absolute / self.scale
        self.share = np.where(variables.intercepts, INTERCEPTS, 1.0)
        if pull:
            self.pull, self._last = pull * _curvature(self, self.center), None
        self._since = time.perf_counter()

    def read(self, copy: int | None = None) -> tuple[Weights, States]:
        """Return the last weights with a finite objective; a solver has no states."""
        if np.array_equal(self.best, self.start):
            return dict(self._first), {}  # without rounding
        coordinates = self.whitening.coordinates(self.best) * self.units
        return self.variables.unpack(self.coordinates.weights(coordinates), self._first), {}

    def __call__(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """Return objective and gradient; those of the last point are cached."""
        if self._last is None or not np.array_equal(self._last[0], point):
            self._last = np.array(point), self._evaluate(point)
        value, gradient = self._last[1]
        return value, gradient.copy()

    def _evaluate(self, point: np.ndarray, width: float = 0.0) -> tuple[float, np.ndarray]:
        """Return objective and gradient."""
        value, gradient = self.evaluate_coordinates(self.whitening.coordinates(point), width)
        return value, self.whitening.gradient(gradient)

    def evaluate_coordinates(self, point: np.ndarray, width: float = 0.0) -> tuple[float, np.ndarray]:
        """Return objective and gradient at weights for standardised features."""
        weights = self.coordinates.weights(point * self.units)
        value, slopes = self._log.evaluate(self.variables.evaluate, weights, width * self.scale)
        value, gradient = value / self.scale, self.coordinates.gradient(slopes) * self.units / self.scale
        if self.pull:
            away = point - self.center
            force = self.pull * self.share * away
            value, gradient = value + float(force @ away) / 2, gradient + force
        return value, gradient

    @property
    def has_kinks(self) -> bool:
        """Whether the objective is not differentiable everywhere."""
        return self.variables.has_kinks

    @property
    def is_of_numbers(self) -> bool:
        """Whether the loss compares numbers; those of classes may vanish without a minimum."""
        loss = self.variables.task.objective.loss
        return loss is not None and loss.tasks == {"regression"}

    def rounded(self, width: float) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        """Return the objective with rounded kinks."""
        return lambda point: self._evaluate(point, width)

    def stretches(self, point: np.ndarray, width: float) -> np.ndarray:
        """Return the steps of each variable for which rounded norms have a curvature below one."""
        weights = self.coordinates.weights(point * self.units)
        curvature = self.variables.norm_curvature(weights, width * self.scale) / self.scale
        return 1 / np.sqrt(1 + curvature * (self.coordinates.lengths(len(point)) * self.units) ** 2)

    def accept(self, point: np.ndarray) -> float:
        """Keep a point with a finite objective; return the objective including absolute values of weights."""
        value = self(point)[0]
        if self.absolute is not None:
            value += float(self.absolute @ np.abs(point - self.anchor))
        if not np.isfinite(value):
            raise _NotFinite(f"{value}")
        self.best = np.array(point)
        return value * self.scale

    def end_iteration(self, point: np.ndarray) -> None:
        """Record an iteration."""
        if self.has_kinks and not self._keeps_history:  # the solver evaluates the rounded objective only
            self.best = np.array(point)
            return
        value = self.accept(point)
        self.monitor.begin(self._since)  # solvers report only the end of an iteration
        if self.monitor.end(value, None):
            raise _Stopped
        self._since = time.perf_counter()


def run_solver(
    variables: Variables,
    weights: Weights,
    settings: LoopSettings,
    state: TrainingState,
    validate: Validate | None = None,
    observer: Observer | None = None,
    *,
    pull: float = 0.0,
    toward: Weights | None = None,
    precision: float = 0.0,
) -> TrainingState:
    """Train by a solver from some weights, and return the state afterwards.

    A solver begins anew, with the evaluations that a state to resume has recorded. ``pull`` adds a quadratic
    penalty on the distance from the weights ``toward``, relative to the curvature of the objective. The
    solver may end at a relative ``precision``, if this is above that of the graph's type.
    """
    solver: BaseSolver = variables.task.update.learning_rate
    variables.start(weights)
    precision = max(precision, float(np.finfo(variables.task.graph.dtype).eps))
    with progress_bar(settings.max_iter, settings.description, bool(settings.verbose)) as advance:
        log, center = EvaluationLog(state.evaluations), weights if toward is None else toward
        run = _SolverRun(variables, weights, pull, center, log, settings.keeps_history)
        monitor = run.monitor = Monitor(settings, state, run.read, validate, observer, advance)
        monitor.evaluations = log.evaluations
        try:
            run.accept(run.start)
            found = solver.minimize(run, run.start, settings.max_iter, run.end_iteration, precision)
            value = run.accept(found.weights)
            if value < -UNBOUNDED * max(run.scale, 1.0):
                text = f"The objective has decreased to {value:.3g}: the loss seems to have no minimum."
                warn_user(text, ConvergenceWarning)
            elif not found.converged and not (settings.chosen_rate and _is_slow(monitor.losses)):
                _warn_of_end(solver, found.message, len(monitor.history), settings.max_iter)
        except _Stopped:
            pass
        except KeyboardInterrupt as interrupt:
            raise Unfinished(monitor.state()) from interrupt
        except _NotFinite as error:
            _report(f"{error}", monitor.losses, settings)
        monitor.check_best()
    return monitor.finish()


def _is_slow(values: Sequence[float]) -> bool:
    """Return whether the last iterations lowered the objective so little that few users need more of them."""
    last = values[-PATIENCE - 1 :]
    return len(last) > 1 and last[0] - last[-1] <= SLOW * (len(last) - 1) * abs(last[-1])


def _warn_of_end(solver: BaseSolver, message: str, n_iter: int, max_iter: int) -> None:
    """Warn that a solver ended before it converged."""
    reached = f"it reached max_iter={max_iter} before it converged. Increase max_iter"
    reason = reached if n_iter >= max_iter else message
    warn_user(f"{type(solver).__name__} stopped after {n_iter} iterations: {reason}.", ConvergenceWarning)


def _curvature(run: _SolverRun, point: np.ndarray) -> float:
    """Return the second derivative of the objective along its gradient, by a finite difference, or one."""
    _, gradient = run.evaluate_coordinates(point)
    length = float(np.linalg.norm(gradient))
    if not np.isfinite(length) or length == 0:
        return 1.0
    direction = gradient / length
    size = PROBE * max(1.0, float(np.linalg.norm(point)))
    _, after = run.evaluate_coordinates(point + size * direction)
    found = float((after - gradient) @ direction) / size
    return found if np.isfinite(found) and found > 0 else 1.0


def _report(value: str, past: list[float], settings: LoopSettings) -> None:
    losses = past[-10:]
    message = (
        f"The objective is {value} after {len(past)} iterations; last values: "
        f"{', '.join(f'{loss:.6g}' for loss in losses) or 'none'}. Scale the features or the labels"
    )
    if settings.exc:
        kept = ", or keep the last finite weights with exc=False."
        raise ConvergenceError(message + kept + settings.advice(), losses=losses)
    warn_user(message + "; the last finite weights are kept." + settings.advice(), ConvergenceWarning)
