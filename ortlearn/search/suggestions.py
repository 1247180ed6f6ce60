"""Parameters of a trial of Optuna, within the limits that estimators and plugins declare."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

__all__ = ["suggest"]


class _Limits:
    """Mixin that records what the checks of a plugin require, instead of checking its values."""

    def __init__(self, plugin: Any):
        self.__dict__.update(vars(plugin))
        self.limits: dict[str, Any] = {}

    def check_number(
        self, parameter: str, *, low: float = 0.0, high: float = math.inf, closed: bool = False
    ) -> None:
        """Record the bounds of a number."""
        self.limits[parameter] = (float, low, high)

    def check_count(self, parameter: str, *, low: int = 1) -> None:
        """Record the lowest value of a whole number."""
        self.limits[parameter] = (int, low, math.inf)

    check_length = check_count

    def check_flag(self, parameter: str) -> None:
        """Record that a parameter is True or False."""
        self.limits[parameter] = [True, False]

    def check_choice(self, parameter: str, choices: Sequence[str]) -> None:
        """Record the names that a parameter may be."""
        self.limits[parameter] = list(choices)


def suggest(
    trial: Any,
    estimator: Any,
    names: Sequence[str],
    *,
    ranges: Mapping[str, Any] | None = None,
    factor: float = 100.0,
) -> Any:
    """Return a copy of an estimator with parameters that a trial of Optuna suggests.

    The range of a parameter is that which its estimator or plugin accepts: names, True and False, or an
    interval. If a bound is infinite, the range begins at the value that the parameter has, divided by
    ``factor``, and ends at ``factor`` times the value. An interval whose ends have a ratio of 100 or more is
    searched on a logarithmic scale.

    Parameters
    ----------
    trial : optuna.Trial
        Trial of an objective.
    estimator : estimator
        Estimator, which is not changed. Plugins are objects, as in ``learning_rate=LearningRateAdam()``.
    names : sequence of str
        Parameters as ``set_params`` names them, such as ``"learning_rate__eta0"`` or ``"batch_size"``.
    ranges : mapping of str to tuple or list, default=None
        Other ranges: ``(low, high)``, or a list of values.
    factor : float, default=100.0
        Ratio of an end of a range to the value, above 1.

    Returns
    -------
    estimator
        Copy with the suggested parameters, also those of plugins.

    Raises
    ------
    ValueError
        If a parameter has no known range, such as one of a plugin that is given by its name.

    See Also
    --------
    ortlearn.callbacks.OptunaPruner : Ends trials that are not promising.

    Examples
    --------
    >>> from ortlearn.learning_rates import LearningRateAdam
    >>> from ortlearn.search import suggest
    >>> def objective(trial):
    ...     rate, model = LearningRateAdam(), MLPRegressor()
    ...     given = OrtGradientOptimizer(model, learning_rate=rate, early_stopping=True)
    ...     names = ["learning_rate__eta0", "learning_rate__beta_1", "batch_size"]
    ...     own = suggest(trial, given, names, ranges={"batch_size": (8, 256)})
    ...     return max(own.fit(X, y).validation_scores_)
    >>> optuna.create_study(direction="maximize").optimize(objective, n_trials=20)  # doctest: +SKIP
    """
    if not factor > 1:
        raise ValueError(f"factor={factor!r} must be above 1.")
    found, ranges = clone(estimator), ranges or {}
    for name in names:
        given = ranges.get(name)
        limits = _limits(estimator, name) if given is None else given
        value = None if given is not None else estimator.get_params(deep=True)[name]
        estimator_value = _suggested(trial, name, limits, value, factor)
        found.set_params(**{name: estimator_value})
    return found


def _limits(estimator: Any, name: str) -> Any:
    """Return a list of values, or the type and the bounds of a number."""
    path, _, parameter = name.rpartition("__")
    parameters = estimator.get_params(deep=True)
    if name not in parameters:
        advice = "" if not path else f" Pass {path} as an object, not as a name."
        raise ValueError(f"{type(estimator).__name__} has no parameter {name!r}.{advice}")
    owner = parameters[path] if path else estimator
    if hasattr(owner, "check_number"):
        recorder = type(type(owner).__name__, (_Limits, type(owner)), {})(owner)
        recorder.check()
        limits = recorder.limits.get(parameter)
    else:
        known = getattr(owner, "_parameter_constraints", {}).get(parameter, [])
        limits = _of_constraints(known if isinstance(known, list) else [])
    if limits is None:
        raise ValueError(f"{name!r} has no range that is known: pass it in ranges.")
    return limits


def _of_constraints(constraints: list[Any]) -> Any:
    """Return the limits that scikit-learn's constraints of a parameter mean, or None."""
    for item in sorted(constraints, key=lambda item: not isinstance(item, Interval)):
        if isinstance(item, Interval):
            low = -math.inf if item.left is None else item.left
            return (
                int if item.type is Integral else float,
                low,
                math.inf if item.right is None else item.right,
            )
        if isinstance(item, StrOptions):
            return sorted(item.options)
        if item == "boolean":
            return [True, False]
    return None


def _suggested(trial: Any, name: str, limits: Any, value: Any, factor: float) -> Any:
    """Return the value that a trial suggests."""
    if isinstance(limits, list):
        return trial.suggest_categorical(name, limits)
    if len(limits) == 2:
        low, high = limits
        kind = int if isinstance(low, Integral) and isinstance(high, Integral) else float
    else:
        kind, low, high = _bounded(name, limits, value, factor)
    log = low > 0 and high / low >= 100
    if kind is int:
        return trial.suggest_int(name, int(low), int(high), log=log)
    return trial.suggest_float(name, float(low), float(high), log=log)


def _bounded(name: str, limits: tuple[type, float, float], value: Any, factor: float) -> Any:
    """Return type and finite bounds of a parameter, all of which are allowed."""
    kind, low, high = limits
    needs_value = high == math.inf or low == -math.inf
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if needs_value and not (is_number and value > 0):
        raise ValueError(f"{name}={value!r}, and the range is infinite: pass a positive value, or ranges.")
    if kind is int:
        return kind, max(low, round(value / factor)), min(high, math.ceil(value * factor))
    if not needs_value:
        margin = (high - low) / 1000  # bounds may be excluded
        return kind, low + margin, high - margin
    return kind, max(value / factor, low), min(value * factor, high)
