"""Create or check matplotlib axes."""

from __future__ import annotations

from typing import Any

__all__ = ["axes_for", "below", "check_axes", "new_axes"]


def new_axes(caller: str, **figure_kw: Any) -> Any:
    """Return the axes of a new figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{caller} needs matplotlib: pip install 'ortlearn[plot]'.") from error
    return plt.subplots(**figure_kw)[1]


def check_axes(ax: Any) -> Any:
    """Return the given axes; raise a TypeError if they are not axes."""
    if not (hasattr(ax, "plot") and hasattr(ax, "figure")):
        raise TypeError(f"ax must be a matplotlib Axes object, not {type(ax).__name__}.")
    return ax


def axes_for(ax: Any, caller: str, **figure_kw: Any) -> Any:
    """Return the given axes, checked, or those of a new figure."""
    return new_axes(caller, **figure_kw) if ax is None else check_axes(ax)


def below(ax: Any, points: float) -> Any:
    """Return the transform of axes coordinates, moved down by some points."""
    from matplotlib.transforms import ScaledTranslation

    return ax.transAxes + ScaledTranslation(0, -points / 72, ax.figure.dpi_scale_trans)
