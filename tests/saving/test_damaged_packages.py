"""Damaged and forged training packages: a clear error of each reader, or the right result."""

import json
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
from ortlearn.saving.package_files import sealed
from ortlearn.saving.tensors import pack_tensors, unpack_tensors
from tests.runtimes.packages import write_format_1
from tests.runtimes.test_python_bare import Trainer

from .damaged_packages import KINDS, damage

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


def reseal(folder, change, name="training.json"):
    """Change a manifest or values, and write the right checksum."""
    path = folder / name
    if name == "training.json":
        content = json.loads(path.read_text())
        change(content)
        path.write_bytes(sealed(json.dumps(content, indent=1).encode()))
    else:
        values, metadata = unpack_tensors(path.read_bytes())
        change(values)
        path.write_bytes(sealed(pack_tensors(values, metadata)))
    return folder


def state(values, text):
    return next(name for name in values if text in name)


def put(values, name, value):
    values[name] = np.full_like(values[name], value)


FORGED_VALUES = {
    "NaN weight": lambda v: put(v, "I0_coef", np.nan),
    "infinite weight": lambda v: put(v, "I0_coef", np.inf),
    "NaN state": lambda v: put(v, state(v, "mean"), np.nan),
    "negative square": lambda v: put(v, state(v, "square"), -1.0),
    "negative power": lambda v: put(v, state(v, "power_2"), -0.5),
    "missing state": lambda v: v.pop(state(v, "square")),
    "missing weight": lambda v: v.pop("I0_coef"),
    "missing epoch": lambda v: v.pop("ortlearn_epoch"),
    "renamed state": lambda v: v.update(other=v.pop(state(v, "mean"))),
    "renamed weight": lambda v: v.update(other=v.pop("I0_coef")),
    "additional": lambda v: v.update(other=np.zeros(3)),
    "misshaped state": lambda v: v.update({state(v, "mean"): np.zeros(7, dtype=np.float32)}),
    "misshaped weight": lambda v: v.update(I0_coef=np.zeros((1, 3), dtype=np.float32)),
    "type of a weight": lambda v: v.update(I0_coef=v["I0_coef"].astype(np.float64)),
    "negative epoch": lambda v: put(v, "ortlearn_epoch", -1),
    "type of the epoch": lambda v: v.update(ortlearn_epoch=np.array(1.0)),
    "no tensors": lambda v: v.clear(),
}


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
    for read in (load_training, merge_weights):
        with pytest.raises(SavedFileError, match="Tensor|tensors|lacks the state|damaged"):
            read(copied)
    if not (format_number == 1 and name in ("negative square", "negative power")):
        with pytest.raises(ValueError, match="[Tt]ensor"):
            Trainer(copied)


def drop(manifest, key):
    del manifest[key]


FORGED_MANIFESTS = {
    "no carried names": lambda m: m.update(carried=[]),
    "a name twice": lambda m: m["carried"].append(m["carried"][0]),
    "a name missing": lambda m: m["carried"].pop(),
    "a state as a weight": lambda m: next(i for i in m["carried"] if i["state"]).update(state=None),
    "a shape": lambda m: m["carried"][0].update(shape=[9]),
    "a negative shape": lambda m: m["carried"][0].update(shape=[-1]),
    "a type": lambda m: m["carried"][0].update(type="complex64"),
    "no rates": lambda m: m["schedule"].update(rates=[]),
    "no files": lambda m: drop(m, "files"),
    "other tensors": lambda m: m.update(tensors=["weights.safetensors"]),
    "tensors elsewhere": lambda m: m.update(tensors=["../values.safetensors"]),
    "no tensors": lambda m: m.update(tensors=[]),
    "batch size": lambda m: m.update(batch_size=0),
    "format": lambda m: m.update(format=99),
    "format as text": lambda m: m.update(format="2"),
    "no format": lambda m: drop(m, "format"),
}


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


def test_random_manifests_with_right_checksums(package, tmp_path):
    """Any replaced value leads to a clear error, or to a training."""
    draw = random.Random(0)
    values = [None, 0, -1, 2**70, 1.5, "", "X", [], [None], {}, True, ["X"], 10**400]
    manifest = package / "training.json"
    folder = shutil.copytree(package, tmp_path / "copied")

    def change(content):
        owners = [content]
        for owner in owners:
            inside = owner.values() if isinstance(owner, dict) else owner
            owners += [item for item in inside if isinstance(item, dict | list) and item]
        owner = draw.choice(owners)
        owner[draw.choice(list(owner) if isinstance(owner, dict) else range(len(owner)))] = draw.choice(
            values
        )

    n_rejected = 0
    for _ in range(60):
        shutil.copy(manifest, folder)
        reseal(folder, change)
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
