"""Names of curves that share axes, for the legend."""

from __future__ import annotations

from collections import Counter
from typing import Any
from weakref import WeakKeyDictionary

__all__ = ["name_curves", "trained_model"]

#: Axes, and the curves that were drawn on them: lines, name or None, name of the model.
DRAWN: WeakKeyDictionary[Any, list[tuple[list, str | None, str]]] = WeakKeyDictionary()


def trained_model(estimator: Any) -> str:
    """Return the class of the model that an estimator trains."""
    inside = getattr(estimator, "estimator", None)
    return type(inside if hasattr(inside, "get_params") else estimator).__name__


def name_curves(ax: Any, lines: list, name: str | None, model: str) -> None:
    """Put names before the labels of lines; earlier lines get one when the second curve is drawn."""
    # Lines that clear() or remove() deleted have no axes.
    curves = [curve for curve in DRAWN.get(ax, []) if any(line.axes is not None for line in curve[0])]
    if name is not None:
        _put_before(lines, name)
    DRAWN[ax] = curves = [*curves, (lines, name, model)]
    if len(curves) == 1:
        return
    how_often = Counter(model for _, asked, model in curves if asked is None)
    numbers: Counter[str] = Counter()
    for lines, asked, model in curves:
        if asked is None:
            numbers[model] += 1
            _put_before(lines, model if how_often[model] == 1 else f"{model} {numbers[model]}")


def _put_before(lines: list, name: str) -> None:
    for line in lines:
        line.set_label(f"{name}: {line.get_label().rpartition(': ')[2]}")
