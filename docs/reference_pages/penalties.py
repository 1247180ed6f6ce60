"""Penalties: pictures of their value, their slope and their proximal step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto

from docs.reference_pages.pictures import Line, Panel, Picture
from docs.reference_pages.running import runner, write_model
from ortlearn.differentiation import gradient_of_loss
from ortlearn.penalties import BasePenalty

__all__ = ["penalty_facts", "penalty_picture"]

WEIGHTS = np.linspace(-4, 4, 161, dtype=np.float32)
#: Rates of the proximal step; the first one whose step can be seen is shown.
RATES = (1.0, 10.0, 100.0, 1000.0)
VISIBLE = 0.5


def penalty_facts(penalty: BasePenalty) -> Iterator[str]:
    """Yield how a penalty acts, in sentences."""
    if penalty.is_proximal():
        yield _how_it_acts(penalty)
    elif _model(penalty, "forward", 1) is None:
        yield "Its value is zero."
    else:
        yield "Applied by its gradient."
    if not penalty.smooth:
        yield f"It is not smooth: L-BFGS {_by_a_solver(penalty)}."


def _by_a_solver(penalty: BasePenalty) -> str:
    rest = penalty.without_absolute_values()
    if rest.smooth:
        return "writes each weight as a difference of two non-negative parts, which is exact"
    return "smooths its norms" if rest.roundable else "does not support it"


def _how_it_acts(penalty: BasePenalty) -> str:
    if penalty.projects:
        return "Applied by a projection after each update."
    if penalty.needs_step:
        return "Applied by a proximal step after updates that support it, such as SGD; others raise an error."
    return "The non-smooth part is applied by a proximal step after updates that support it, such as SGD."


def penalty_picture(penalty: BasePenalty) -> Picture | None:
    """Return value, gradient of the smooth part and proximal step, whatever there is of them."""
    panels, shown = [], []
    value = _scalar(penalty, "forward", 1)
    if value is not None:
        rows = np.array([value({"weight": w.reshape(1, 1)})["value"] for w in WEIGHTS])
        panels += [Panel("value", "weight w", "", [Line(WEIGHTS, rows)]), _contours(penalty)]
        shown.append("value")
    slope = _scalar(penalty, "smooth_part", 1, gradient=True)
    if slope is not None:
        slopes = np.array([slope({"weight": w.reshape(1, 1)})["weight_grad"].item() for w in WEIGHTS])
        title = "gradient of the smooth part" if penalty.is_proximal() else "gradient"
        panels.append(Panel(title, "weight w", "", [Line(WEIGHTS, slopes)]))
        shown.append("gradient")
    if penalty.is_proximal():
        panels.append(_step(penalty))
        shown.append("proximal step")
    return Picture(panels, ", ".join(shown)) if panels else None


def _scalar(penalty: BasePenalty, part: str, width: int, gradient: bool = False):
    """Return a function from a row of weights to a part of the penalty, None where there is none."""
    model = _model(penalty, part, width)
    if model is None:
        return None
    return runner(gradient_of_loss(model, "value", ["weight"], backend="rules") if gradient else model)


def _model(penalty: BasePenalty, part: str, width: int) -> ModelProto | None:
    """Return the graph from a row of weights to a part of the penalty, None where there is none."""
    missing = []

    def write(op):
        found = getattr(penalty, part)(op, "weight")
        missing.append(found is None)
        return {} if found is None else {"value": found}

    model = write_model(write, {"weight": np.zeros((1, width), np.float32)}, {"value": ()})
    return None if missing[0] else model


def _contours(penalty: BasePenalty) -> Panel:
    value, ticks = _scalar(penalty, "forward", 2), WEIGHTS[::5]
    rows = [[value({"weight": np.array([[x, y]])})["value"] for x in ticks] for y in ticks]
    return Panel("value over a row", "weight 1", "weight 2", contours=(ticks, ticks, np.array(rows)))


def _step(penalty: BasePenalty) -> Panel:
    feeds = {"weight": np.zeros((1, 1), np.float32), "rate": np.zeros((), np.float32)}
    model = write_model(
        lambda op: {"new": penalty.proximal_step(op, "weight", "rate")}, feeds, {"new": (1, 1)}
    )
    step = runner(model)
    for rate in RATES:
        given = np.array(rate, np.float32)
        new = np.array([step({"weight": w.reshape(1, 1), "rate": given})["new"].item() for w in WEIGHTS])
        if np.abs(new - WEIGHTS).max() >= VISIBLE:
            break
    lines = [Line(WEIGHTS, new, f"rate {rate:g}"), Line(WEIGHTS, WEIGHTS, "no step")]
    return Panel("proximal step", "weight before", "weight after", lines)
