"""A file is replaced as a whole."""

import pytest

from ortlearn.graphs.files import write_atomically


def test_a_file_is_written(tmp_path):
    write_atomically(tmp_path / "a", lambda file: file.write(b"new"))
    write_atomically(tmp_path / "a", lambda file: file.write(b"newer"))
    assert (tmp_path / "a").read_bytes() == b"newer"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_failure_leaves_the_old_file(tmp_path):
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
