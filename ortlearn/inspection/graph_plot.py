"""Plot ONNX graphs with matplotlib."""

from __future__ import annotations

from typing import Any

from onnx import ModelProto

from ..graphs.elements import Element, graph_elements
from .axes import check_axes, new_axes
from .graph_layout import Layout, lay_out

__all__ = ["plot_graph"]

MOST_ELEMENTS = 250
FONT_SIZE = 9
CHARACTER, LAYER = 0.085, 0.72  # inches
#: Colour and corners of each kind of element.
BOXES = {
    "input": {"boxstyle": "round,pad=0.4", "facecolor": "#cfe2f3"},
    "weight": {"boxstyle": "square,pad=0.4", "facecolor": "#eeeeee"},
    "operator": {"boxstyle": "square,pad=0.4", "facecolor": "white"},
    "output": {"boxstyle": "round,pad=0.4", "facecolor": "#d9ead3"},
}


def plot_graph(model: ModelProto, ax: Any = None) -> Any:
    """Draw an ONNX graph.

    Inputs are blue, weights grey, operators white and outputs green. For large graphs,
    :func:`ortlearn.graphs.draw_graph` writes a file with graphviz.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; by default a new figure, large enough for all names.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with the picture.

    Raises
    ------
    ValueError
        If the graph has more than 250 inputs, weights, operators and outputs.
    TypeError
        If ``ax`` is not a matplotlib Axes object.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.inspection import plot_graph
    >>> model = parser.parse_model(
    ...     '<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[N] y) { y = Neg (x) }'
    ... )
    >>> ax = plot_graph(model)
    >>> [text.get_text() for text in ax.texts[:3]]
    ['x\\nfloat32[N]', 'Neg', 'y\\nfloat32[N]']
    """
    if ax is not None:
        check_axes(ax)
    elements, arrows = graph_elements(model)
    if len(elements) > MOST_ELEMENTS:
        raise ValueError(
            f"The graph has {len(elements)} elements, but plot_graph draws at most {MOST_ELEMENTS}. Write it "
            "to a file with ortlearn.graphs.draw_graph."
        )
    layout = lay_out(elements, arrows, {element.key: _width(element) for element in elements})
    left, right, layers = _extent(elements, layout)
    if ax is None:
        ax = new_axes("plot_graph", figsize=((right - left) * CHARACTER, layers * LAYER))
        ax.figure.subplots_adjust(left=0, right=1, bottom=0, top=1)
    for element in elements:
        box = {**BOXES[element.kind], "edgecolor": "#555555", "linewidth": 0.8}
        style = {"ha": "center", "va": "center", "fontsize": FONT_SIZE, "color": "black"}
        ax.text(*layout.places[element.key], _text(element), bbox=box, zorder=3, **style)
    kinds = {element.key: element.kind for element in elements}
    for arrow, path in zip(arrows, layout.paths, strict=True):
        _draw_arrow(ax, path, 0.2 if kinds[arrow.target] == "operator" else 0.3)
    ax.set(xlim=(left, right), ylim=(layers - 0.5, -0.5))
    ax.set_axis_off()
    return ax


def _draw_arrow(ax: Any, path: list[tuple[float, float]], half_height: float) -> None:
    """Draw an arrow below the boxes, with its head at the edge of the target's box."""
    *before, (x, y) = path
    end = (x, y - half_height)
    style = {"color": "#555555", "linewidth": 0.8}
    ax.plot(*zip(*before, end, strict=True), zorder=1, **style)
    ax.annotate(
        "", end, before[-1], arrowprops={"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, **style}, zorder=2
    )


def _text(element: Element) -> str:
    return f"{element.name}\n{element.detail}" if element.detail else element.name


def _width(element: Element) -> float:
    return max(len(element.name), len(element.detail)) + 2.0


def _extent(elements: list[Element], layout: Layout) -> tuple[float, float, int]:
    """Return the left and right end of the drawing, and the number of layers."""
    sides = [
        layout.places[element.key][0] + sign * _width(element) / 2 for element in elements for sign in (-1, 1)
    ]
    sides += [x for path in layout.paths for x, _ in path]
    layers = 1 + max((y for _, y in layout.places.values()), default=0.0)
    return min(sides, default=0.0) - 1, max(sides, default=0.0) + 1, int(layers)
