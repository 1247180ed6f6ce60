"""Only one training at a time writes to a folder, and links are not followed."""

import os
import secrets
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from benchmarks.faults.simulated_training import ModelCheckpoint, Run, losses_in, train
from ortlearn.callbacks import locks

WAITING = """
import sys
from benchmarks.faults.simulated_training import ModelCheckpoint, Run
run = Run(ModelCheckpoint(sys.argv[1]))
run.epoch(1.0)
print("writing", flush=True)
sys.stdin.readline()
run.epoch(2.0)
run.end()
"""


@contextmanager
def another_process(folder):
    """Run a training in another process, which waits in its second epoch for a line of input."""
    command = [sys.executable, "-c", WAITING, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "writing\n"
        yield process
        process.kill()


@pytest.mark.parametrize("overwrite", [False, True])
def test_two_processes_in_one_folder(overwrite, tmp_path):
    (tmp_path / ".ortlearn-0123456789abcdef.tmp").touch()  # file of a killed process
    with another_process(tmp_path) as process:
        half_written = tmp_path / ".ortlearn-fedcba9876543210.tmp"
        half_written.touch()
        for _ in range(2):
            with pytest.raises(ValueError, match=rf"Another training .* \(process {process.pid}\)"):
                train(ModelCheckpoint(tmp_path, overwrite=overwrite), [3.0])
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"epoch-000001.onnx", half_written.name, locks.NAME}
        half_written.unlink()
        process.communicate("\n")
        assert process.returncode == 0
    assert losses_in(tmp_path) == [1.0, 2.0] and len(list(tmp_path.iterdir())) == 2


def test_lock_of_a_dead_process_is_released(tmp_path):
    with another_process(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert (tmp_path / locks.NAME).exists()
    (tmp_path / ".ortlearn-0123456789abcdef.tmp").touch()
    train(ModelCheckpoint(tmp_path, overwrite=True), [3.0])
    assert losses_in(tmp_path) == [3.0] and len(list(tmp_path.iterdir())) == 1


def test_two_trainings_of_one_process(tmp_path):
    first = Run(ModelCheckpoint(tmp_path))
    first.epoch(1.0)
    for overwrite in (False, True):
        with pytest.raises(ValueError, match=f"Another training is writing .*process {os.getpid()}"):
            Run(ModelCheckpoint(tmp_path, overwrite=overwrite))
    second = Run(first.checkpoint)  # as for a clone
    second.epoch(2.0)
    first.epoch(3.0)
    for run in (first, second):
        run.end()
        run.end()
    names = [str(path.relative_to(tmp_path)) for path in first.checkpoint.paths()]
    assert names == ["epoch-000001.onnx", "epoch-000002.onnx", "fit-2/epoch-000001.onnx"]
    assert losses_in(tmp_path) == [1.0, 3.0, 2.0] and not list(tmp_path.rglob(".*"))


def in_a_child(function):
    """Return the output of a forked process, and wait until it ends."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(writing, str(function()).encode())
        except Exception as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    with open(reading) as file:
        return file.read()


def test_forked_child_does_not_inherit_the_lock(tmp_path):
    run = Run(ModelCheckpoint(tmp_path))
    run.epoch(1.0)
    assert in_a_child(lambda: run.epoch(9.0)).startswith("RuntimeError: ModelCheckpoint writes")
    assert in_a_child(run.end) == "None" and (tmp_path / locks.NAME).exists()
    again = in_a_child(lambda: train(ModelCheckpoint(tmp_path), [9.0]))
    assert again.startswith(f"ValueError: Another training is writing to {tmp_path} (process {os.getpid()})")
    run.epoch(2.0)
    run.end()
    assert losses_in(tmp_path) == [1.0, 2.0]


def test_child_that_outlives_its_parent_does_not_keep_the_lock(tmp_path):
    """The parent forks during its training and is killed; the child survives."""
    ready, done = os.pipe(), os.pipe()
    parent = os.fork()
    if not parent:
        Run(ModelCheckpoint(tmp_path)).epoch(1.0)
        if os.fork():
            signal.pause()
        os.write(ready[1], b"x")
        os.close(done[1])
        os.read(done[0], 1)  # waits until the test closes the pipe
        os._exit(0)
    os.read(ready[0], 1)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    train(ModelCheckpoint(tmp_path, overwrite=True), [2.0])
    for end in (*ready, *done):
        os.close(end)
    assert losses_in(tmp_path) == [2.0]


@pytest.mark.parametrize("kind", ["link", "dangling", "hard link", "folder", "pipe"])
def test_links_and_special_files_with_the_name_of_the_lock(kind, tmp_path):
    mine, lock, folder = tmp_path / "mine", tmp_path / "run" / locks.NAME, tmp_path / "run"
    mine.write_text("mine")
    folder.mkdir()
    match kind:
        case "link":
            lock.symlink_to(mine)
        case "dangling":
            lock.symlink_to(tmp_path / "new")
        case "hard link":
            lock.hardlink_to(mine)
        case "folder":
            lock.mkdir()
        case "pipe":
            os.mkfifo(lock)
    with pytest.raises(OSError, match="Cannot lock the folder"):
        train(ModelCheckpoint(folder), [1.0])
    assert mine.read_text() == "mine" and sorted(os.listdir(tmp_path)) == ["mine", "run"]
    assert os.listdir(folder) == [locks.NAME]


def test_links_with_the_names_of_checkpoints(tmp_path, monkeypatch):
    """A link with a temporary name is not used; a link with the name of a checkpoint is replaced."""
    mine, folder = tmp_path / "mine.onnx", tmp_path / "run"
    train(ModelCheckpoint(folder), [1.0])
    (folder / "epoch-000001.onnx").rename(mine)
    before = mine.read_bytes()
    (folder / "epoch-000001.onnx").symlink_to(mine)
    planted = folder / f".ortlearn-{'0' * 16}.tmp"
    taken, real = iter(["0" * 16] * 2), secrets.token_hex
    monkeypatch.setattr(secrets, "token_hex", lambda n: next(taken, None) or real(n))
    run = Run(ModelCheckpoint(folder, overwrite=True))
    planted.symlink_to(mine)
    run.epoch(5.0)
    run.end()
    assert next(taken, None) is None, "the name was not tried"
    assert mine.read_bytes() == before and planted.is_symlink()
    assert losses_in(folder) == [5.0] and not (folder / "epoch-000001.onnx").is_symlink()
    train(ModelCheckpoint(folder, overwrite=True), [6.0])
    assert mine.read_bytes() == before and not os.path.lexists(planted)


def test_links_to_folders_of_clones_are_rejected(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "run").symlink_to(outside)  # links chosen by the user are followed
    first = Run(ModelCheckpoint(tmp_path / "run"))
    (outside / "fit-2").symlink_to(tmp_path)
    with pytest.raises(OSError, match="does not follow the symbolic link in .*fit-2. Pass another folder"):
        Run(first.checkpoint)
    first.epoch(1.0)
    first.end()
    assert losses_in(outside) == [1.0] and not list(tmp_path.glob("epoch*"))


def test_disk_without_locks(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def no_locks(descriptor, operation):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_locks)  # no such disk is here
    with pytest.raises(OSError, match="Cannot lock .*: Function not implemented.*on a disk with file locks"):
        Run(ModelCheckpoint(tmp_path))


def test_lock_file_that_is_removed_while_it_is_locked(tmp_path, monkeypatch):
    """The previous owner removes the file after it was opened here: the new file is locked."""
    fcntl = pytest.importorskip("fcntl")
    lock, n_removed = fcntl.flock, []

    def removed(descriptor, operation):
        lock(descriptor, operation)
        if len(n_removed) < 3:
            n_removed.append((tmp_path / locks.NAME).unlink())

    monkeypatch.setattr(fcntl, "flock", removed)  # just at this time
    run = Run(ModelCheckpoint(tmp_path))
    assert len(n_removed) == 3 and (tmp_path / locks.NAME).exists()
    run.end()
