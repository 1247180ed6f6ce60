"""New axes, for whoever draws without being given some."""

from __future__ import annotations

from typing import Any

__all__ = ["new_axes"]


def new_axes(caller: str, **figure_kw: Any) -> Any:
    """Return the axes of a new figure.

    Parameters
    ----------
    caller : str
        Who draws, for the error.
    **figure_kw
        Arguments of matplotlib's ``subplots``.

    Returns
    -------
    matplotlib.axes.Axes
        Axes.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{caller} needs matplotlib: pip install 'ortlearn[plot]'.") from error
    return plt.subplots(**figure_kw)[1]
