"""Pictures of graphs: dot source, file formats, missing programs and packages."""

import shutil
import subprocess
import sys
from xml.etree import ElementTree

import graphviz
import pytest
from onnx import parser

from ortlearn.exceptions import OrtlearnError
from ortlearn.graphs import draw_graph, graph_to_dot
from tests.graphs.branches import BRANCHES


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Put a fake program dot on the path if none is installed."""
    if shutil.which("dot") is None:
        folder = tmp_path / "bin"
        folder.mkdir()
        (folder / "dot").write_text(FAKE)
        (folder / "dot").chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=":")


#: Program that writes a minimal file of the requested format.
FAKE = r"""#!/bin/sh
cat > /dev/null
case "$*" in
  *png*) printf '\211PNG\r\n\032\n' ;;
  *pdf*) printf '%%PDF-1.4' ;;
  *) printf '<svg xmlns="http://www.w3.org/2000/svg"><title>branches</title></svg>' ;;
esac
"""


def test_dot_text():
    lines = [line.strip() for line in graph_to_dot(BRANCHES).splitlines()]
    assert lines[0] == "digraph branches {" and lines[-1] == "}"
    nodes = {line.split(" ", 1)[0]: line for line in lines if "[label=" in line and "->" not in line}
    assert {name for name in nodes if name.startswith("node_")} == {"node_0", "node_1", "node_2"}
    assert 'label="x float32[N, 2]"' in nodes["tensor_0"] and 'label="condition bool[]"' in nodes["tensor_1"]
    assert 'label="w [2x1]"' in nodes["tensor_2"] and 'label="bias [scalar]"' in nodes["tensor_3"]
    assert "ai.onnx.ml.Scaler" in nodes["node_1"] and "label=If" in nodes["node_2"]
    assert 'label="scaled float32[N, 2]"' in nodes["output_1"]
    edges = {tuple(line.split(" [")[0].split(" -> ")) for line in lines if "->" in line}
    assert edges == {
        ("tensor_0", "node_0"), ("tensor_2", "node_0"), ("tensor_0", "node_1"),
        ("tensor_1", "node_2"), ("tensor_3", "node_2"), ("node_0", "node_2"),
        ("node_2", "output_0"), ("node_1", "output_1"),
    }  # fmt: skip


def test_special_names_in_dot():
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[N] y) { y = Neg (x) }'
    )
    odd = 'a:b"c\\N<d>'
    model.graph.input[0].name = model.graph.node[0].input[0] = odd
    source = graph_to_dot(model)
    assert source.count(" -> ") == 2
    assert 'a:b\\"c\\\\N<d>' in source  # escaped, and not replaced by the name of the node


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_files(kind, tmp_path, program):
    path = draw_graph(BRANCHES, str(tmp_path / f"graph.{kind}"))
    assert path == tmp_path / f"graph.{kind}"
    content = path.read_bytes()
    if kind == "svg":
        root = ElementTree.fromstring(content)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        titles = [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]
        assert "branches" in titles
    else:
        assert content.startswith({"png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-"}[kind])


def test_missing_program(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    for kind in ("svg", "png", "pdf"):
        with pytest.raises(OrtlearnError, match="requires the program dot: install graphviz .* graph_to_dot"):
            draw_graph(BRANCHES, tmp_path / f"graph.{kind}")
    assert list(tmp_path.iterdir()) == []
    assert "MatMul" in graph_to_dot(BRANCHES)  # needs no program


def test_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "graphviz", None)
    with pytest.raises(OrtlearnError, match=r"ortlearn\[plot\]"):
        graph_to_dot(BRANCHES)


def test_failing_program(tmp_path, monkeypatch, program):
    def fails(self, format):
        raise subprocess.CalledProcessError(1, "dot")

    monkeypatch.setattr(graphviz.Digraph, "pipe", fails)
    with pytest.raises(subprocess.CalledProcessError):
        draw_graph(BRANCHES, tmp_path / "graph.svg")
    assert not (tmp_path / "graph.svg").exists()


@pytest.mark.parametrize("name", ["graph.txt", "graph", "graph.svg.gz", ".svg"])
def test_suffix(name, tmp_path):
    with pytest.raises(ValueError, match="Use one of svg, png, pdf"):
        draw_graph(BRANCHES, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_suffix_in_capitals(tmp_path, program):
    assert draw_graph(BRANCHES, tmp_path / "graph.SVG").read_bytes().rstrip().endswith(b"</svg>")
