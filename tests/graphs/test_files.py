"""A file is replaced completely or not changed."""

import errno
import os
import stat
from pathlib import Path

import onnx
import pytest
from onnx import parser

from ortlearn.differentiation import onnx_derivative
from ortlearn.graphs import draw_graph, files
from ortlearn.graphs.files import save_model, write_atomically

MODEL = parser.parse_model(
    """<ir_version: 8, opset_import: ["": 18]>
    g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}> { y = MatMul (x, w) }"""
)


@pytest.fixture(autouse=True)
def program(tmp_path_factory, monkeypatch):
    """Put a fake program dot on the path."""
    program = tmp_path_factory.mktemp("bin") / "dot"
    program.write_text("#!/bin/sh\ncat > /dev/null\nprintf 'a picture'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)


#: Functions that write to a given path.
WRITERS = {
    "save_model": lambda path: save_model(MODEL, path),
    "onnx_derivative": lambda path: onnx_derivative(MODEL, path_name=path, backend="rules"),
    "draw_graph": lambda path: draw_graph(MODEL, path),
}


def test_file_is_written(tmp_path):
    write_atomically(tmp_path / "a", lambda file: file.write(b"new"))
    write_atomically(tmp_path / "a", lambda file: file.write(b"newer"))
    assert (tmp_path / "a").read_bytes() == b"newer"
    assert len(list(tmp_path.iterdir())) == 1


def test_old_file_is_kept_after_an_error(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    seen = []

    def write(file):
        file.write(b"half")
        file.flush()
        seen.extend((path.read_bytes(), len(list(tmp_path.iterdir()))))
        raise RuntimeError("full")

    with pytest.raises(RuntimeError, match="full"):
        write_atomically(path, write)
    assert seen == [b"old", 2]
    assert path.read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("call", ["open", "fsync", "replace"])
def test_old_file_is_kept_if_the_disk_is_full(call, writer, tmp_path, monkeypatch):
    path = tmp_path / "a.svg"
    path.write_bytes(b"old")

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with (
        monkeypatch.context() as patch,
        pytest.raises(OSError, match=r"write .*a\.svg: No space left"),
    ):
        patch.setattr(os, call, full)
        WRITERS[writer](path)
    assert path.read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("writer", WRITERS)
def test_links_are_followed(writer, tmp_path):
    (tmp_path / "here").mkdir()
    link, path = tmp_path / "here" / "link.svg", tmp_path / "file.svg"
    link.symlink_to(path)
    for _ in range(2):  # first a dangling link
        WRITERS[writer](link)
        assert link.is_symlink() and path.stat().st_size > 5
    assert len(list(tmp_path.rglob("*"))) == 3


@pytest.mark.parametrize("writer", WRITERS)
def test_pipe_is_written(writer, tmp_path):
    path = tmp_path / "pipe.svg"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    WRITERS[writer](path)
    assert len(os.read(reading, 10_000)) > 5 and stat.S_ISFIFO(path.stat().st_mode)
    os.close(reading)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664])
def test_permissions_are_kept(mode, tmp_path):
    path = tmp_path / "a.onnx"
    path.touch()
    path.chmod(mode)
    save_model(MODEL, path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    usual = tmp_path / "usual"
    usual.touch()
    save_model(MODEL, tmp_path / "new.onnx")
    assert (tmp_path / "new.onnx").stat().st_mode == usual.stat().st_mode


@pytest.mark.parametrize("name", ["a.onnx", "a", "a.json", "a.textproto", "n" * 250 + ".onnx"])
def test_save_model_writes_the_bytes_of_onnx(name, tmp_path):
    own, theirs = tmp_path / "own", tmp_path / "theirs"
    own.mkdir()
    theirs.mkdir()
    save_model(MODEL, own / name)
    onnx.save(MODEL, theirs / name)
    assert (own / name).read_bytes() == (theirs / name).read_bytes()
    assert onnx.load(own / name) == MODEL


def test_other_modules_do_not_write_files():
    """Files are written by functions of graphs/files.py only."""
    root = Path(files.__file__).parents[1]
    found = [
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if any(
            call in path.read_text(encoding="utf-8")
            for call in ("onnx.save(", ".write_bytes(", ".write_text(", '"wb"', "savefig(")
        )
    ]
    into_memory, temporary = ["cli/train.py", "lifecycle/cards.py"], ["evaluation/input_files.py"]
    assert sorted(found) == sorted(["graphs/files.py", *into_memory, *temporary])
