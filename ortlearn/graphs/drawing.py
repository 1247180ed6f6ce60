"""Pictures of graphs, drawn by graphviz."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from onnx import ModelProto

from ..exceptions import OrtlearnError
from .elements import graph_elements
from .files import write_atomically

__all__ = ["draw_graph", "graph_to_dot"]

FORMATS = ("svg", "png", "pdf")
#: Style of each kind of element in graphviz.
STYLES = {
    "input": {"style": "filled", "fillcolor": "#cfe2f3"},
    "weight": {"shape": "note", "style": "filled", "fillcolor": "#eeeeee"},
    "operator": {"shape": "box"},
    "output": {"style": "filled", "fillcolor": "#d9ead3"},
}


def graph_to_dot(model: ModelProto) -> str:
    """Return a graph in the DOT language.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.

    Returns
    -------
    str
        Inputs and outputs as ellipses, initializers as notes, nodes as boxes.

    Raises
    ------
    OrtlearnError
        If the Python package graphviz is not installed.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.graphs import graph_to_dot
    >>> model = parser.parse_model(
    ...     '<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[N] y) { y = Neg (x) }'
    ... )
    >>> "Neg" in graph_to_dot(model)
    True
    """
    return _digraph(model).source


def draw_graph(model: ModelProto, path: str | Path) -> Path:
    """Draw a graph to a file.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.
    path : str or pathlib.Path
        File to write; its suffix, .svg, .png or .pdf, determines the format.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    OrtlearnError
        If graphviz, the Python package or the program ``dot``, is not installed.
    ValueError
        If the suffix is not supported.

    Examples
    --------
    >>> from ortlearn.graphs import draw_graph
    >>> draw_graph(None, "graph.txt")
    Traceback (most recent call last):
    ...
    ValueError: Graphs cannot be drawn as 'txt'. Use one of svg, png, pdf.
    """
    path = Path(path)
    kind = path.suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise ValueError(f"Graphs cannot be drawn as {kind!r}. Use one of {', '.join(FORMATS)}.")
    if shutil.which("dot") is None:
        raise OrtlearnError(
            "Drawing requires the program dot: install graphviz with the package manager of the system, or "
            "use the text of graph_to_dot."
        )
    content = _digraph(model).pipe(format=kind)
    write_atomically(path, lambda file: file.write(content))
    return path


def _digraph(model: ModelProto) -> Any:
    try:
        import graphviz
    except ImportError as error:
        raise OrtlearnError("Drawing requires graphviz: pip install 'ortlearn[plot]'.") from error
    picture = graphviz.Digraph(
        model.graph.name or "graph", node_attr={"fontname": "sans-serif", "fontsize": "11"}
    )
    elements, arrows = graph_elements(model)
    for element in elements:
        label = f"{element.name} {element.detail}".rstrip()
        picture.node(element.key, graphviz.escape(label), **STYLES[element.kind])
    for arrow in arrows:
        picture.edge(arrow.source, arrow.target, label=arrow.name)
    return picture
