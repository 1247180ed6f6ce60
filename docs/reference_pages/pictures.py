"""Pictures: what they show, and how they are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Line", "Panel", "Picture", "draw"]

COLOURS = ("#1f4e9c", "#e08214", "#2e8b57", "#8e6bbf")
DASHES = ("-", "--", "-.", ":")
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "ortlearn",  # the same names of parts in every run
    "svg.fonttype": "none",
    "font.size": 9,
    "path.simplify": True,
}


@dataclass(frozen=True)
class Line:
    """Points joined by a line; with a marker where each point counts."""

    x: Any
    y: Any
    label: str = ""
    marker: str = ""


@dataclass(frozen=True)
class Panel:
    """Lines over one pair of axes, and the contours ``(x, y, values)`` behind them."""

    title: str
    xlabel: str
    ylabel: str
    lines: Sequence[Line] = ()
    contours: tuple[Any, Any, Any] | None = None
    log: bool = False
    from_zero: bool = False

    def __post_init__(self) -> None:
        arrays = [part for line in self.lines for part in (line.x, line.y)] + list(self.contours or ())
        if not all(np.isfinite(np.asarray(array, float)).all() for array in arrays):
            raise ValueError(f"{self.title}: not all values are finite")


@dataclass(frozen=True)
class Picture:
    """Panels side by side, and what they show in words."""

    panels: Sequence[Panel]
    alt: str


def draw(picture: Picture, path: Path) -> None:
    """Write a picture as SVG, the same bytes for the same values."""
    import matplotlib
    from matplotlib.figure import Figure

    count = len(picture.panels)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(3.4 * count, 2.8), layout="constrained")
        for axis, panel in zip(np.ravel(figure.subplots(1, count)), picture.panels, strict=True):
            _draw_panel(axis, panel)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def _draw_panel(axis: Any, panel: Panel) -> None:
    if panel.contours is not None:
        axis.contour(*panel.contours, levels=8, colors="#b0b0b0", linewidths=0.7)
        axis.set_aspect("equal")
    for number, line in enumerate(panel.lines):
        colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
        axis.plot(line.x, line.y, dash, color=colour, marker=line.marker, markersize=2.5, label=line.label)
    if any(line.label for line in panel.lines):
        axis.legend(fontsize="small", frameon=False)
    if panel.log:
        axis.set_yscale("log")
    if panel.from_zero:
        axis.set_ylim(bottom=0)
    axis.set(title=panel.title, xlabel=panel.xlabel, ylabel=panel.ylabel)
    axis.spines[["top", "right"]].set_visible(False)
