"""Damaged and altered archives raise SavedFileError."""

import json
import os
import random
import zipfile

import numpy as np
import pytest

from ortlearn.exceptions import SavedFileError
from ortlearn.saving import SCHEMA, files, load
from ortlearn.saving.files import read, write
from tests.saving.archives import X, assert_rejected, members, read_without_digests, zipped


def test_every_altered_byte_is_an_error(saved, tmp_path):
    """Bytes between the members of the zip file are not read, and may change."""
    intact, path = saved.read_bytes(), tmp_path / "model.zip"
    expected, draw = load(saved).predict(X), random.Random(0)
    same, positions = 0, draw.sample(range(len(intact)), 200)
    for position in positions:
        path.write_bytes(intact[:position] + bytes([intact[position] ^ 0x41]) + intact[position + 1 :])
        try:
            found = load(path).predict(X)
        except SavedFileError:
            continue
        same += 1
        np.testing.assert_array_equal(found, expected)
    assert same < 0.05 * len(positions)


def test_truncated_files_are_rejected(saved, tmp_path):
    intact, path = saved.read_bytes(), tmp_path / "model.zip"
    for length in [*range(0, len(intact), 997), len(intact) - 1]:
        path.write_bytes(intact[:length])
        assert_rejected(path, "is not a saved estimator, or is damaged")


@pytest.mark.parametrize(
    "name", ["../outside.onnx", "/tmp/outside.onnx", "a/b.onnx", "C:\\outside.onnx", "x.pkl"]
)
def test_names_outside_of_the_folder_are_rejected(name, saved, tmp_path):
    assert_rejected(zipped(tmp_path / "model.zip", [*members(saved).items(), (name, b"x")]), "does not list")
    content = read(saved)
    manifest = {key: value for key, value in content.manifest.items() if key != "sha256"}
    manifest["files"] = {**manifest["files"], name: {"bytes": 1, "sha256": "0" * 64}}
    manifest["sha256"] = files._digest(manifest)
    parts = {**members(saved), "manifest.json": json.dumps(manifest)}
    assert_rejected(zipped(tmp_path / "model.zip", [*parts.items(), (name, b"x")]), "name in manifest.files")
    assert [path.name for path in tmp_path.iterdir()] == ["model.zip"]


@pytest.mark.slow
def test_a_zip_bomb_is_rejected_before_it_is_read(saved, tmp_path):
    parts = [*members(saved).items(), ("arrays-1.npz", b"\0" * 10**8)]
    assert_rejected(zipped(tmp_path / "model.zip", parts, zipfile.ZIP_DEFLATED), "It is compressed")


def test_repeated_names_are_rejected(saved, tmp_path):
    parts = list(members(saved).items())
    with pytest.warns(UserWarning, match="Duplicate"):
        path = zipped(tmp_path / "model.zip", [*parts, parts[0]])
    assert_rejected(path, "repeated names")


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_irregular_files_of_a_folder_are_rejected(kind, saved, tmp_path):
    write(tmp_path / "folder", read_without_digests(saved))
    path = next((tmp_path / "folder").glob("arrays-*.npz"))
    content = path.read_bytes()
    path.unlink()
    if kind == "link":
        (tmp_path / "elsewhere").write_bytes(content)
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    assert_rejected(tmp_path / "folder", "arrays")


def test_a_later_format_is_rejected(saved, tmp_path):
    manifest = {**read(saved).manifest, "format": 99}
    parts = {**members(saved), "manifest.json": json.dumps(manifest)}
    assert_rejected(zipped(tmp_path / "model.zip", parts.items()), "format 99.*install a newer version")


def test_other_files_are_rejected(tmp_path):
    (tmp_path / "model.zip").write_bytes(b"text")
    assert_rejected(tmp_path / "model.zip", "is not a saved estimator")
    assert_rejected(zipped(tmp_path / "other.zip", [("a.txt", b"x")]), "lacks manifest.json")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.zip")
    (tmp_path / "folder").mkdir()
    assert_rejected(tmp_path / "folder", "manifest.json cannot be read")


def test_the_schema_describes_the_manifest(saved):
    manifest = read(saved).manifest
    assert {*SCHEMA["required"]} == {*manifest} == {*SCHEMA["properties"]}
