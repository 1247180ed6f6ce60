"""Folders of versions: the version in use survives kills, damage and several operators."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from ortlearn import OrtGradientOptimizer
from ortlearn.callbacks.locks import RunLock
from ortlearn.exceptions import SavedFileError
from ortlearn.lifecycle import ModelFolder

X = np.random.default_rng(0).normal(size=(30, 2))


@pytest.fixture(scope="module")
def content():
    trainer = OrtGradientOptimizer(Ridge()).fit(X, X[:, 0])
    return trainer.get_trained_onnx().SerializeToString()


@pytest.fixture
def folder(tmp_path, content):
    folder = ModelFolder(tmp_path / "models")
    folder.switch(folder.add(content, about={"outcome": "first"}))
    return folder


def test_add_switch_and_roll_back(folder, content):
    assert folder.current == 1
    assert folder.add(content) == 2
    assert folder.current == 1
    folder.switch(2)
    assert folder.current_path.read_bytes() == content
    assert [(item["number"], item["current"], item["parent"]) for item in folder.history()] == [
        (1, False, None),
        (2, True, 1),
    ]
    assert (folder.path / "current").read_text() == "model-0002.onnx\nmodel-0001.onnx\n"
    assert folder.rollback() == 1
    with pytest.raises(ValueError, match="no version was in use before"):
        folder.rollback()
    with pytest.raises(ValueError, match=r"has no version 7, but \[1, 2\]"):
        folder.switch(7)
    assert folder.model().kind == "ONNX"


@pytest.mark.parametrize("change", [lambda path: path.write_bytes(b"junk"), lambda path: path.unlink()])
def test_damaged_versions_are_not_put_into_use(folder, content, change):
    folder.switch(folder.add(content))
    change(folder.path / "model-0001.onnx")
    for switch in (folder.rollback, lambda: folder.switch(1)):
        with pytest.raises((SavedFileError, FileNotFoundError), match="model-0001.onnx"):
            switch()
    assert folder.current == 2 and folder.model().kind == "ONNX"


def test_models_with_another_interface_are_refused(tmp_path):
    folder, y = ModelFolder(tmp_path), np.where(X[:, 0] > 0, "yes", "no")

    def contents(X, y):
        return OrtGradientOptimizer(LogisticRegression()).fit(X, y).get_trained_onnx().SerializeToString()

    folder.switch(folder.add(contents(X, y)))
    assert folder.add(contents(-X, y)) == 2
    for other, kind in ((contents(X[:, :1], y), "inputs"), (contents(X, np.char.upper(y)), "classes")):
        with pytest.raises(ValueError, match=f"The {kind} of the model .* differ from those of model-0001"):
            folder.add(other)
    assert len(folder.history()) == 2


def test_empty_folder(tmp_path):
    folder = ModelFolder(tmp_path)
    assert (folder.current, folder.history()) == (None, [])
    with pytest.raises(ValueError, match="no version in use: add one"):
        folder.model()


@pytest.mark.parametrize("name", ["model-0001.onnx", "version-0001.json", "current"])
@pytest.mark.parametrize("damage", ["empty", "half", "bits", "folder", "pipe", "text"])
def test_damage_is_an_error(folder, name, damage):
    path = folder.path / name
    content = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage == "pipe":
        os.mkfifo(path)
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]
        changes = {"empty": b"", "half": content[:middle], "bits": flipped, "text": b"[1, 2]\n../../etc\n"}
        path.write_bytes(changes[damage])
    with pytest.raises((SavedFileError, ValueError, OSError)):
        folder.model()


def test_lock_names_the_holder(folder, content):
    lock = RunLock(folder.path, "adaptation")
    try:
        with pytest.raises(ValueError, match=f"is being changed by process {os.getpid()}"):
            folder.add(content)
        with pytest.raises(ValueError, match="is being changed"):
            folder.rollback()
    finally:
        lock.release()
    assert folder.add(content) == 2


PROGRAM = """
import sys
from ortlearn.lifecycle import ModelFolder
folder, content = ModelFolder(sys.argv[1]), open(sys.argv[2], "rb").read()
print("ready", flush=True)
while True:
    folder.switch(folder.add(content, content * 50))
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_kill_leaves_a_version_in_use(folder, content, tmp_path, seed):
    source = tmp_path / "source.onnx"
    source.write_bytes(content)
    child = subprocess.Popen([sys.executable, "-c", PROGRAM, folder.path, source], stdout=subprocess.PIPE)
    child.stdout.readline()
    time.sleep(np.random.default_rng(seed).uniform(0.01, 0.3))
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert folder.current_path.read_bytes() == content
    assert json.loads((folder.path / f"version-{folder.current:04d}.json").read_text())["bytes"] == len(
        content
    )
    number = folder.add(content)  # the lock of a dead process is free
    folder.switch(number)
    assert folder.current == number == len(folder.history())
