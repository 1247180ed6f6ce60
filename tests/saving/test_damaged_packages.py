"""Damaged and forged training packages: a clear error of each reader, or the right result."""

import os
import random
import shutil
import signal
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import SavedFileError
from ortlearn.saving import export_training, load, load_training, merge_weights
from ortlearn.saving.tensors import unpack_tensors
from tests.runtimes.packages import write_format_1
from tests.runtimes.test_python_bare import Trainer

from .damaged_packages import FORGED_MANIFESTS, FORGED_VALUES, KINDS, damage, replace_value, reseal

X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
Y = X @ np.array([1, 2, 3], dtype=np.float32)
VALUES = "values.safetensors"
#: Files that no reader in Python opens.
UNREAD = ("record.safetensors",)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    trained = OrtGradientOptimizer(Ridge(), learning_rate="Adam", max_iter=2, batch_size=16, random_state=0)
    export_training(trained.fit(X, Y), folder)
    trainer = Trainer(folder)
    trainer.train_epoch(trainer.columns(X, Y), np.arange(40))
    trainer.save()
    return folder


@pytest.fixture
def copied(package, tmp_path):
    return shutil.copytree(package, tmp_path / "copied")


@contextmanager
def time_limit(seconds=30):
    """Raise a TimeoutError in a call that waits, as the opening of a pipe does."""

    def end(number, frame):
        raise TimeoutError("a reader waits")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def bare_losses(folder):
    trainer = Trainer(folder)
    return trainer.train_epoch(trainer.columns(X, Y), np.arange(40))


READERS = {
    "load_training": lambda folder: load_training(folder).predict(X),
    "merge_weights": lambda folder: merge_weights(folder).SerializeToString(),
    "bare": bare_losses,
}


def end_of(reader, folder, expected):
    """Return whether a reader rejects a package by a clear error; its result is right otherwise."""
    try:
        found = READERS[reader](folder)
    except (SavedFileError, OSError) as error:
        assert str(folder) in str(error), error
        return True
    except ValueError as error:
        assert reader == "bare" and ("copy the package again" in str(error) or str(folder) in str(error)), (
            error
        )
        return True
    np.testing.assert_array_equal(found, expected[reader])
    return False


@pytest.mark.sweep(3)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__.strip("_"))
def test_damaged_packages(kind, package, tmp_path):
    """Every file gets every kind of damage, and every reader meets it."""
    expected = {reader: read(package) for reader, read in READERS.items()}
    names = sorted(path.name for path in package.iterdir() if path.name not in UNREAD)
    n_rejected = 0
    for number, name in enumerate(names):
        folder = shutil.copytree(package, tmp_path / str(number))
        damage(folder, random.Random(number), [name], kind)
        with time_limit():
            ends = [end_of(reader, folder, expected) for reader in READERS]
            n_rejected += any(ends)
        shutil.rmtree(folder)
    assert n_rejected >= len(names) - 1  # some bytes of a zip file have no effect


@pytest.mark.parametrize("format_number", [1, 2])
@pytest.mark.parametrize("name", FORGED_VALUES)
def test_forged_values_are_rejected(name, format_number, copied):
    file = VALUES
    if format_number == 1:
        write_format_1(copied)
        inside = unpack_tensors((copied / "weights.safetensors").read_bytes())[0]
        file = "weights.safetensors" if "weight" in name and "state" not in name else "state.safetensors"
        assert "I0_coef" in inside
    reseal(copied, FORGED_VALUES[name], file)
    with pytest.raises(SavedFileError, match="Tensor|tensors|lacks the state|damaged"):
        load_training(copied)
    if format_number == 2 or not name.startswith("negative "):  # format 1 has no minima
        with pytest.raises(SavedFileError, match="Tensor|tensors"):
            merge_weights(copied)
        with pytest.raises(ValueError, match="[Tt]ensor"):
            Trainer(copied)


@pytest.mark.parametrize("name", FORGED_MANIFESTS)
def test_forged_manifests_are_rejected(name, copied):
    reseal(copied, FORGED_MANIFESTS[name])
    with pytest.raises(SavedFileError):
        load_training(copied)
    if name != "a state as a weight":  # which only the estimator knows
        with pytest.raises(SavedFileError):
            merge_weights(copied)
        with pytest.raises(ValueError, match="package|Tensor"):
            Trainer(copied)


@pytest.mark.slow
def test_random_manifests_with_right_checksums(package, tmp_path):
    """Any replaced value leads to a clear error, or to a training."""
    draw = random.Random(0)
    manifest = package / "training.json"
    folder = shutil.copytree(package, tmp_path / "copied")

    n_rejected = 0
    for _ in range(60):
        shutil.copy(manifest, folder)
        reseal(folder, lambda content: replace_value(content, draw))
        for reader, read in READERS.items():
            try:
                read(folder)
            except (SavedFileError, FloatingPointError):
                n_rejected += 1
            except ValueError:
                assert reader == "bare"
    assert n_rejected > 20


def test_a_terabyte_of_zeros_is_not_read(package, copied):
    """The memory that a reader takes is bounded by what a header says."""
    os.truncate(copied / VALUES, 2**40)
    for read in (load_training, merge_weights, lambda folder: merge_weights(package, folder / VALUES)):
        with pytest.raises(SavedFileError, match="does not describe its content"):
            read(copied)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.parametrize("kind", ["pipe", "device", "loop", "folder"])
def test_paths_that_are_not_files(kind, package, tmp_path):
    path = tmp_path / "model.zip"
    {
        "pipe": lambda: os.mkfifo(path),
        "device": lambda: path.symlink_to("/dev/zero"),
        "loop": lambda: path.symlink_to(path),
        "folder": lambda: path.mkdir(),
    }[kind]()
    for read in (load, lambda path: merge_weights(package, path)):
        with time_limit(), pytest.raises((SavedFileError, OSError), match=r"model\.zip"):
            read(path)


@pytest.mark.parametrize(
    "weights, text",
    [
        ({}, "Weights are missing: .'I0_coef'"),
        ({"I0_coef": np.zeros((3, 1), dtype=np.float32)}, "Weights are missing"),
        ({"other": np.zeros(3)}, "Weights are missing"),
        ({"I0_coef": np.full((3, 1), np.nan, dtype=np.float32)}, "NaN or infinite"),
        ({"I0_coef": np.zeros((3, 1))}, "must be float32"),
        ({"I0_coef": np.zeros(3, dtype=np.float32)}, "must be float32 of shape"),
        ({"I0_coef": "text"}, "must be float32"),
        ({"I0_coef": None}, "must be float32"),
        ({"x": 1}, "Weights are unknown: .'x'"),
    ],
)
def test_wrong_weights_are_not_merged(weights, text, copied):
    before, given = (copied / VALUES).read_bytes(), dict(weights)
    if "missing" not in text:
        values, _ = unpack_tensors(before)
        given = {**{name: values[name] for name in ("I0_coef", "I1_intercept")}, **weights}
    with pytest.raises(SavedFileError, match=text):
        merge_weights(copied, given)
    with pytest.raises(TypeError, match="mapping of arrays or a path, not list"):
        merge_weights(copied, [1.0])
    assert (copied / VALUES).read_bytes() == before


@pytest.mark.parametrize(
    "read, name",
    [
        (load_training, "training.json"),
        (load_training, VALUES),
        (load_training, "estimator.zip"),
        (merge_weights, VALUES),
        (merge_weights, "predict.onnx"),
    ],
)
def test_missing_files_are_named(read, name, copied):
    (copied / name).unlink()
    with pytest.raises(SavedFileError, match=f"copied lacks {name}: copy or export it again"):
        read(copied)


@pytest.mark.parametrize("read", [load_training, merge_weights])
def test_paths_that_are_not_folders(read, package, tmp_path):
    with pytest.raises(SavedFileError, match="nothing is missing, and a training package is a folder"):
        read(tmp_path / "nothing")
    with pytest.raises(SavedFileError, match=r"estimator\.zip is a file, and a training package is a folder"):
        read(package / "estimator.zip")


def test_values_of_another_copy_are_merged(package, copied):
    """Weights of the file are taken, and states and epochs of the package stay."""
    trainer = Trainer(copied)
    trainer.fit(X, Y, epochs=3, on_epoch=str)
    trainer.save()
    target = shutil.copytree(package, copied.parent / "target")
    merge_weights(target, copied / VALUES)
    found, old = Trainer(target).values, Trainer(package).values
    for item in trainer.carried:
        expected = trainer.values if item["state"] is None else old
        np.testing.assert_array_equal(found[item["name"]], expected[item["name"]])
    assert found["ortlearn_epoch"] == 1


def test_packages_of_format_1(package, copied):
    """Packages of ortlearn 0.2.0 are read, trained, merged and replaced."""
    write_format_1(copied)
    np.testing.assert_array_equal(load_training(copied).predict(X), load_training(package).predict(X))
    assert bare_losses(copied) == bare_losses(package)
    trainer = Trainer(copied)
    trainer.fit(X, Y, epochs=2, on_epoch=str)
    trainer.save()
    later = load_training(copied)
    np.testing.assert_allclose(later.predict(X), np.ravel(trainer.predict(X)["prediction"]), rtol=1e-4)
    assert later.n_iter_ == 2 + 1 + 2
    weights = {name: 2 * trainer.values[name] for name in ("I0_coef", "I1_intercept")}
    merge_weights(copied, weights)
    np.testing.assert_allclose(load_training(copied).predict(X), 2 * later.predict(X), rtol=1e-5)
    export_training(later, copied)
    assert not (copied / "weights.safetensors").exists() and Trainer(copied).manifest["format"] == 2
    np.testing.assert_array_equal(load_training(copied).predict(X), later.predict(X))
