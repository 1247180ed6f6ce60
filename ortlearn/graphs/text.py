"""Text view of a graph."""

from __future__ import annotations

from onnx import ModelProto, printer

__all__ = ["graph_to_text"]


def graph_to_text(model: ModelProto) -> str:
    """Return a model in onnx's textual syntax.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.

    Returns
    -------
    str
        Text that ``onnx.parser.parse_model`` reads back.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.graphs import graph_to_text
    >>> text = '<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[N] y) { y = Neg (x) }'
    >>> "y = Neg (x)" in graph_to_text(parser.parse_model(text))
    True
    """
    return printer.to_text(model)
