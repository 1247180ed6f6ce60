"""Pictures of graphs, drawn by graphviz."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from onnx import ModelProto, helper

from ..exceptions import OrtlearnError
from .queries import node_inputs

__all__ = ["draw_graph", "graph_to_dot"]

FORMATS = ("svg", "png", "pdf")


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
        File to write; its suffix, .svg, .png or .pdf, chooses the format.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    OrtlearnError
        If graphviz, the Python package or the program ``dot``, is not installed.
    ValueError
        If the suffix is another one.

    Examples
    --------
    >>> from ortlearn.graphs import draw_graph
    >>> draw_graph(None, "graph.txt")
    Traceback (most recent call last):
    ...
    ValueError: A graph is drawn as svg, png, pdf, not as 'txt'.
    """
    path = Path(path)
    kind = path.suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise ValueError(f"A graph is drawn as {', '.join(FORMATS)}, not as {kind!r}.")
    if shutil.which("dot") is None:
        raise OrtlearnError(
            "Drawing needs the program dot: install graphviz with your system's package manager, or take the "
            "text of graph_to_dot elsewhere."
        )
    path.write_bytes(_digraph(model).pipe(format=kind))
    return path


def _digraph(model: ModelProto) -> Any:
    try:
        import graphviz
    except ImportError as error:
        raise OrtlearnError("Drawing needs graphviz: pip install 'ortlearn[plot]'.") from error
    graph = model.graph
    picture = graphviz.Digraph(graph.name or "graph", node_attr={"fontname": "sans-serif", "fontsize": "11"})
    known: dict[str, str] = {}

    def declare(name: str, label: str, **style: str) -> None:
        known[name] = f"tensor_{len(known)}"
        picture.node(known[name], graphviz.escape(label), **style)

    for value in graph.input:
        declare(value.name, _label(value), style="filled", fillcolor="#cfe2f3")
    for tensor in graph.initializer:
        shape = "x".join(map(str, tensor.dims)) or "scalar"
        declare(tensor.name, f"{tensor.name} [{shape}]", shape="note", style="filled", fillcolor="#eeeeee")
    for index, node in enumerate(graph.node):
        picture.node(f"node_{index}", graphviz.escape(_operator(node)), shape="box")
        for name in sorted(node_inputs(node) & known.keys(), key=lambda name: known[name]):
            if name in known:
                picture.edge(known[name], f"node_{index}", label=_edge(name, known))
        for name in filter(None, node.output):
            known[name] = f"node_{index}"
    for index, value in enumerate(graph.output):
        picture.node(f"output_{index}", graphviz.escape(_label(value)), style="filled", fillcolor="#d9ead3")
        if value.name in known:
            picture.edge(known[value.name], f"output_{index}")
    return picture


def _operator(node: Any) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def _edge(name: str, known: dict[str, str]) -> str:
    return "" if known[name].startswith("tensor_") else name


def _label(value: Any) -> str:
    tensor = value.type.tensor_type
    if not tensor.elem_type:
        return value.name
    dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    dims = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in tensor.shape.dim]
    return f"{value.name} {dtype}[{', '.join(dims)}]"
