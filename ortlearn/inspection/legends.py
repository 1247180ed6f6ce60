"""Legend that does not cover lines."""

from __future__ import annotations

from typing import Any

from .axes import below

__all__ = ["draw_legend"]

#: Distance below the axes in points: space for tick labels and the axis label.
BELOW = 36


def draw_legend(ax: Any, beside: list) -> None:
    """Draw one legend for axes and for their twins on the right.

    matplotlib finds a free corner for the lines of one Axes only, and would cover lines of the twins. With
    twins, the legend is below the axes, and a figure without a layout engine gets ``"constrained"``.
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
