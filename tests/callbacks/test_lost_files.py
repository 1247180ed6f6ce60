"""After any failure, the last valid checkpoint exists, and the next training can use the folder."""

import errno
import itertools
import json
import os
import shutil
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path

import onnx
import pytest

from benchmarks.faults.simulated_training import (
    MODEL,
    Faults,
    ModelCheckpoint,
    Run,
    Trainer,
    kill,
    losses_in,
    train,
)
from ortlearn.callbacks.checkpoint_files import read_value, write_checkpoint

OLD, NEW = [3.0, 2.0, 1.0], [6.0, 5.0, 4.0]
KEPT = {"all": {}, "best": {"save_best": 2, "monitor": "loss"}}


@contextmanager
def warned():
    """Collect the messages of warnings."""
    messages = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield messages
    messages += [str(warning.message) for warning in caught]


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def old(tmp_path):
    """Return a function that copies the folder of an earlier training."""
    train(ModelCheckpoint(tmp_path / "old", with_estimator=True), OLD)

    def copied(n_old):
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
        shutil.copytree(tmp_path / "old", tmp_path / "new")
        for epoch in range(n_old + 1, 4):
            for suffix in (".onnx", ".zip"):
                (tmp_path / "new" / f"epoch-00000{epoch}{suffix}").unlink()
        return tmp_path / "new"

    return copied


def survives(folder, n_old, options, done=()):
    """Check a folder after a failure, and that the next training removes the remains."""
    n_kept = options.get("save_best", 3)
    found = losses_in(folder)
    new = [loss for loss in found if loss in NEW]
    assert {*done[-n_kept:]} <= {*new}  # every epoch is better than the one before
    assert new or found == OLD[:n_old]
    train(ModelCheckpoint(folder, overwrite=True, **options), NEW)
    assert losses_in(folder) == NEW[-n_kept:]
    assert len(list(folder.iterdir())) == n_kept * (1 + options["with_estimator"]), sorted(folder.iterdir())


@pytest.mark.sweep(2)
@pytest.mark.parametrize("kept", ["all", pytest.param("best", marks=pytest.mark.slow)])
@pytest.mark.parametrize("with_estimator", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("n_old", [1, 3])
@pytest.mark.parametrize("number, lasting", [(errno.ENOSPC, True), (errno.EACCES, False)])
def test_every_call_that_can_fail(number, lasting, n_old, with_estimator, kept, old, monkeypatch):
    def strike(name, path):
        raise OSError(number, os.strerror(number), path)

    options = {"with_estimator": with_estimator, **KEPT[kept]}
    raised = 0
    for at in itertools.count(1):
        folder = old(n_old)
        with monkeypatch.context() as patch:
            faults = Faults(patch, at, strike, lasting)
            done = []
            try:
                train(ModelCheckpoint(folder, overwrite=True, **options), NEW, done)
            except OSError as error:
                assert error.errno == number
                assert os.strerror(number) in str(error) and str(folder) in str(error)
                raised += 1
        if not faults.struck:
            break
        if not set(losses_in(folder)) & {*NEW}:
            assert len(list(folder.glob("*.zip"))) == n_old, "an estimator was lost"
        assert not with_estimator or list(folder.glob("*.zip")), "no checkpoint can be resumed"
        survives(folder, n_old, options, done)
    assert raised > 15


@pytest.mark.slow
@pytest.mark.parametrize("with_estimator", [True, False])
@pytest.mark.parametrize("n_old", [1, 3])
def test_every_call_at_which_the_process_can_be_killed(n_old, with_estimator, old, monkeypatch):
    options = {"with_estimator": with_estimator}
    for at in itertools.count(1):
        folder = old(n_old)
        pid = os.fork()
        if not pid:
            Faults(monkeypatch, at, kill)
            train(ModelCheckpoint(folder, overwrite=True, **options), NEW)
            os._exit(0)
        if os.waitpid(pid, 0)[1] == 0:
            break
        survives(folder, n_old, options)
    assert at > 20


def test_real_limit_of_the_system(tmp_path):
    """With a limit on the size of files, existing files are kept and no others appear."""
    resource = pytest.importorskip("resource")
    path = tmp_path / "epoch-000001.onnx"
    trainer = Trainer()
    trainer.history_.append({"epoch": 1, "loss": 3.0})
    model = trainer.get_trained_onnx()
    write_checkpoint(path, model, trainer.history_[-1], "somebody", json.dumps(trainer.history_).encode())
    size, (soft, hard) = path.stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in range(0, size, 7):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            with pytest.raises(OSError, match="Cannot write .*: File too large. Earlier files are kept."):
                write_checkpoint(path, trainer.get_trained_onnx(), {"epoch": 1, "loss": 9.0}, "somebody")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert losses_in(tmp_path) == [3.0] and len(list(tmp_path.iterdir())) == 2


@pytest.mark.slow
def test_damaged_files_are_ignored(tmp_path):
    """A truncated or changed file gives a warning, unless its model is intact."""
    good, bad = tmp_path / "epoch-000001.onnx", tmp_path / "epoch-000002.onnx"
    train(ModelCheckpoint(tmp_path), [2.0, 1.0])
    whole, graph = bad.read_bytes(), onnx.load(bad).graph
    ranked = ModelCheckpoint(tmp_path, monitor="loss")
    assert ranked.best_path() == bad
    damaged = [whole[:i] for i in range(len(whole))]
    damaged += [whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in range(len(whole))]
    n_left_out = 0
    for content in damaged:
        bad.write_bytes(content)
        with warned() as messages:
            best = ranked.best_path()
        if best == good:
            assert f"{bad} is ignored" in messages[0]
            n_left_out += 1
        else:
            assert not messages and onnx.load(bad).graph == graph and read_value(bad, "loss") == 1.0
    assert n_left_out > 0.8 * len(damaged)


@pytest.mark.parametrize("position", [1, 2, 3])
@pytest.mark.parametrize("content", [b"", b"\0" * 500, b"no model", 0.5, "folder", "pipe", "link"])
def test_fit_in_a_folder_with_a_damaged_file(content, position, tmp_path):
    """A damaged file is renamed with a warning if its name is needed; valid ones are an error."""
    train(ModelCheckpoint(tmp_path, with_estimator=True), OLD)
    path = tmp_path / f"epoch-00000{position}.onnx"
    whole = path.read_bytes()
    path.unlink()
    outside = tmp_path.parent / "outside"
    outside.write_text("mine")
    match content:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "link":
            path.symlink_to(outside)
        case _:
            path.write_bytes(whole[: int(len(whole) * content)] if isinstance(content, float) else content)
    best = 3 if position < 3 else 2
    with warned() as messages:
        assert ModelCheckpoint(tmp_path, monitor="loss").best_path() == tmp_path / f"epoch-00000{best}.onnx"
    assert [f"{path} is ignored" in message for message in messages] == [True]
    with warned() as messages, pytest.raises(ValueError, match="already has 2 checkpoints of an earlier fit"):
        train(ModelCheckpoint(tmp_path), NEW)
    assert [f"{path} is not a valid checkpoint" in message for message in messages] == [True]
    for other in {1, 2, 3} - {position}:
        (tmp_path / f"epoch-00000{other}.onnx").unlink()
        (tmp_path / f"epoch-00000{other}.zip").unlink()
    with warned() as messages:
        train(ModelCheckpoint(tmp_path), NEW)
    assert messages[1:] == [f"{path} is not a valid checkpoint and was moved to {path.name}.1."]
    assert losses_in(tmp_path) == NEW and outside.read_text() == "mine"
    assert os.path.lexists(f"{path}.1") and (tmp_path / f"epoch-00000{position}.zip.1").exists()


def test_files_of_the_user_are_kept(tmp_path):
    mine = ["epoch-best.onnx", "epoch-1.onnx", "best.onnx", ".ortlearn-notes.tmp", "epoch-000009.onnx.bak"]
    train(ModelCheckpoint(tmp_path), OLD)
    for name in mine:
        shutil.copy(tmp_path / "epoch-000003.onnx", tmp_path / name)
    onnx.save(MODEL, tmp_path / "epoch-000007.onnx")  # a model that is not a checkpoint
    with pytest.warns(UserWarning, match="epoch-000007.onnx is not a valid checkpoint"):
        train(ModelCheckpoint(tmp_path, overwrite=True), NEW[:1])
    names = ["epoch-000001.onnx", "epoch-000007.onnx", *mine]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_estimators_without_models_keep_an_earlier_fit(tmp_path):
    train(ModelCheckpoint(tmp_path, with_estimator=True), OLD)
    for path in tmp_path.glob("*.onnx"):
        path.unlink()
    with pytest.raises(ValueError, match="already has estimators as checkpoints of an earlier fit"):
        train(ModelCheckpoint(tmp_path), NEW)
    assert len(list(tmp_path.iterdir())) == 3


def test_continued_trainings_do_not_replace_files_of_others(tmp_path):
    """Two copies of an estimator, both continued from the second epoch."""
    train(ModelCheckpoint(tmp_path), OLD)
    trainer = Trainer()
    trainer.history_, trainer.onnx_ = [{}, {}], MODEL
    run = Run(ModelCheckpoint(tmp_path), "partial_fit", trainer)
    with pytest.raises(ValueError, match="epoch-000003.onnx already exists, from another training"):
        run.epoch(9.0)
    run.end()
    assert losses_in(tmp_path) == OLD
    trainer.history_ = [{}, {}]
    run = Run(ModelCheckpoint(tmp_path, overwrite=True), "partial_fit", trainer)
    run.epoch(9.0)
    run.end()
    assert losses_in(tmp_path) == [3.0, 2.0, 9.0]


def test_epochs_of_more_than_six_digits(tmp_path):
    names = ["epoch-000002.onnx", "epoch-999999.onnx", "epoch-1000000.onnx"]
    for name in names:
        (tmp_path / name).touch()
    assert [path.name for path in ModelCheckpoint(tmp_path).paths()] == names


@pytest.fixture
def unprivileged(tmp_path):
    """Return a folder, as a user other than root."""
    if os.geteuid():
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp())
    os.chown(folder, 65534, 65534)
    os.seteuid(65534)
    yield folder
    os.seteuid(0)
    shutil.rmtree(folder)


def test_read_only_folder(unprivileged):
    folder = unprivileged / "run"
    train(ModelCheckpoint(folder), OLD)
    folder.chmod(0o500)
    for options in ({}, {"overwrite": True}):
        with pytest.raises(PermissionError, match="Cannot lock the folder .*run: Permission denied. Make it"):
            train(ModelCheckpoint(folder, **options), NEW)
    with pytest.raises(PermissionError, match="cannot create the folder .*inside: Permission denied. Pass"):
        train(ModelCheckpoint(folder / "inside"), NEW)
    assert losses_in(folder) == OLD
    folder.chmod(0o700)
    (folder / "epoch-000003.onnx").chmod(0)
    with pytest.warns(UserWarning, match="epoch-000003.onnx is ignored.*Permission denied"):
        assert ModelCheckpoint(folder, monitor="loss").best_path() == folder / "epoch-000002.onnx"
