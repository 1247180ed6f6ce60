"""A legend that hides no line."""

from __future__ import annotations

from typing import Any

from .axes import below

__all__ = ["draw_legend"]

#: Points below the axes: room for the numbers and the name of the axis.
BELOW = 36


def draw_legend(ax: Any, beside: list) -> None:
    """Draw the legend of axes, and of those that share their place.

    matplotlib looks for a free corner by the lines of one axes. With others on the right it would hide
    theirs, so the legend is below then, and a figure without a layout gets the one that makes room for it.
    """
    lines = [line for axes in (ax, *beside) for line in axes.get_legend_handles_labels()[0]]
    if not beside:
        ax.legend(handles=lines)
        return
    figure = ax.figure
    if hasattr(figure, "set_layout_engine") and figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    ax.legend(
        handles=lines,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=below(ax, BELOW),
        borderaxespad=0,
        ncols=2,
    )
