"""Texts and pictures of graphs show every node, and leave the model alone."""

import builtins
import shutil

import graphviz
import pytest
from onnx import parser

from ortlearn.exceptions import OrtlearnError
from ortlearn.graphs import draw_graph, graph_names, graph_to_dot, graph_to_text

TEXT = """<ir_version: 8, opset_import: ["": 18]>
g (float[N,2] x, bool condition) => (float[N,1] y)
<float[2,1] w = {1, 2}, float[1] b = {3}>
{
  [named] z = MatMul (x, w)
  y = If (condition) <
    then_branch = one () => (float[N,1] a) { a = Add (z, b) },
    else_branch = two () => (float[N,1] c) <float[3] large = {1, 2, 3}> { c = ReduceSum (large) }
  >
}"""


def test_text_is_read_back():
    model = parser.parse_model(TEXT)
    again = parser.parse_graph(graph_to_text(model))
    assert graph_names(again) == graph_names(model.graph) - {"named"}
    assert [list(node.input) for node in again.node] == [list(node.input) for node in model.graph.node]


@pytest.mark.parametrize("max_elements, shown", [(0, "b w large"), (1, "w large"), (2, "large"), (3, "")])
def test_large_constants_of_subgraphs(max_elements, shown):
    model = parser.parse_model(TEXT)
    before = model.SerializeToString()
    text = graph_to_text(model, max_elements)
    assert model.SerializeToString() == before
    values = {"b": "3", "w": "1,2", "large": "1,2,3"}
    for name, numbers in values.items():
        left_out = f"{name} =" not in text
        assert left_out == (name in shown.split())
        assert name in text and (left_out or numbers in text.replace(", ", ","))


def test_dot_names_every_operator_and_tensor():
    source = graph_to_dot(parser.parse_model(TEXT))
    assert source.startswith("digraph")
    for label in ("MatMul", "If", "w [2x1]", "b [1]"):
        assert label in source
    # what the branches of If capture has an edge to it: z of MatMul, and b; x, w go to MatMul
    assert source.count(" -> node_0") == 2 and source.count(" -> node_1") == 3


@pytest.mark.parametrize("kind, start", [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_drawing(tmp_path, monkeypatch, kind, start):
    # the program dot may be missing where the tests run: what it is given and where it goes counts
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(graphviz.Digraph, "pipe", lambda self, format: start + format.encode())
    path = draw_graph(parser.parse_model(TEXT), str(tmp_path / f"graph.{kind}"))
    assert path == tmp_path / f"graph.{kind}" and path.read_bytes() == start + kind.encode()


def test_missing_programs_and_packages(tmp_path, monkeypatch):
    model = parser.parse_model(TEXT)
    for name in ("graph.txt", "graph"):
        with pytest.raises(ValueError, match="Use one of svg, png, pdf"):
            draw_graph(model, tmp_path / name)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(OrtlearnError, match="requires the program dot"):
        draw_graph(model, tmp_path / "graph.svg")
    original = builtins.__import__

    def hidden(name, *args, **kwargs):
        if name == "graphviz":
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", hidden)
    with pytest.raises(OrtlearnError, match=r"ortlearn\[plot\]"):
        graph_to_dot(model)
