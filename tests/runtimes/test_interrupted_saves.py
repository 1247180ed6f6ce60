"""A save that fails or is killed leaves the values before it or after it, and nothing else."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from ortlearn import OrtGradientOptimizer
from ortlearn.saving import export_training, load_training

from .conftest import modules_of, node
from .packages import PACKAGES, write_format_1
from .test_python_bare import SOURCE, Trainer

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
_, _, WIDE, Y, _ = PACKAGES["network"]
PYTHON = f"""
import sys
sys.path.insert(0, {str(SOURCE.parent)!r})
import numpy as np
from ortlearn_trainer import Trainer
trainer = Trainer(sys.argv[1])
X = np.zeros((4, 100), dtype=np.float32)
columns = trainer.columns(X, np.arange(4.0))
while True:
    trainer.train_epoch(columns, np.arange(4))
    trainer.save()
    print("saved", flush=True)
"""
NODE = """
import { load } from "./index.mjs";
const trainer = await load(process.argv[1]);
const columns = trainer.columns(new Float32Array(400), [0, 1, 2, 3]);
for (;;) {
  await trainer.trainEpoch(columns, [0, 1, 2, 3]);
  await trainer.save();
  console.log("saved");
}
"""


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "package"
    trained = OrtGradientOptimizer(Ridge(), learning_rate="Adam", max_iter=1, batch_size=4, random_state=0)
    export_training(trained.fit(WIDE, Y), folder)
    return folder


def check_kills(command, folder, start, tries, **options):
    """Kill a program that saves in a loop; its values are those of one epoch, and Python continues."""
    draw, epochs = random.Random(0), [0]
    for _ in range(tries):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
        for _ in range(draw.randint(1, 20)):
            assert process.stdout.readline() == "saved\n"
        time.sleep(draw.uniform(0, 0.005))
        process.kill()
        process.communicate()
        epochs.append(int(Trainer(folder).values["ortlearn_epoch"]))
    assert epochs == sorted(epochs) and epochs[-1] >= tries
    expected, found = Trainer(start), Trainer(folder)
    columns = expected.columns(np.zeros((4, 100)), range(4))
    for _ in range(epochs[-1]):
        expected.train_epoch(columns, np.arange(4))
    for name, array in expected.values.items():
        np.testing.assert_allclose(found.values[name], array, rtol=1e-3, atol=1e-5)
    assert load_training(folder).n_iter_ == 1 + epochs[-1]


@pytest.mark.slow
def test_kills_of_the_runner_in_python(package, tmp_path):
    start = shutil.copytree(package, tmp_path / "start")
    check_kills([sys.executable, "-c", PYTHON, package], package, start, 3)


@pytest.mark.runtimes
def test_kills_of_the_runner_in_node(package, tmp_path):
    start = shutil.copytree(package, tmp_path / "start")
    command = ["node", "--input-type=module", "-e", NODE, package]
    check_kills(command, package, start, 5, cwd=modules_of("node"))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_every_system_call_of_a_save(package):
    """The process is killed at each call that changes the folder."""
    trainer = Trainer(package)
    old = (package / "values.safetensors").read_bytes()
    trainer.fit(WIDE, Y, on_epoch=str)
    n_calls = killed_at(trainer, package, 10**9)
    new = (package / "values.safetensors").read_bytes()
    assert n_calls >= 4 and new != old
    for number in range(1, n_calls + 1):
        (package / "values.safetensors").write_bytes(old)
        killed_at(trainer, package, number)
        found = (package / "values.safetensors").read_bytes()
        assert found in (old, new)
        Trainer(package)


def killed_at(trainer, folder, number):
    """Save in a forked process that is killed before a call; return the number of calls."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        count = 0

        def trace(event, arguments):
            nonlocal count
            if event in ("open", "os.rename", "os.remove", "os.chmod") and str(folder) in str(arguments[0]):
                count += 1
                if count == number:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(trace)
        trainer.save()
        os.write(writing, str(count).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    with open(reading) as file:
        return int(file.read() or 0)


def left_files(folder):
    """Write what killed saves leave, and return the files that the next save must keep."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    running, other = (folder / f"values.safetensors.{name}.new" for name in (os.getpid(), "notes"))
    for path in (folder / f"values.safetensors.{ended.pid}.new", running, other):
        path.write_text("left")
    return {running, other}


SAVE = """
import sys
sys.path.insert(0, sys.argv[2])
from ortlearn_trainer import Trainer
Trainer(sys.argv[1]).save()
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="no signal 0")
def test_files_of_killed_saves_are_removed_in_python(package):
    kept = {*package.iterdir()} | left_files(package)
    subprocess.run([sys.executable, "-c", SAVE, package, SOURCE.parent], check=True, timeout=60)
    assert {*package.iterdir()} == kept


@pytest.mark.runtimes
def test_files_of_killed_saves_are_removed_in_node(package):
    kept = {*package.iterdir()} | left_files(package)
    source = 'import { load } from "./index.mjs"; await (await load(process.argv[1])).save();'
    node("--input-type=module", "-e", source, package, folder=modules_of("node"))
    assert {*package.iterdir()} == kept


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no limits of file sizes")
@pytest.mark.parametrize("format_number", [1, 2])
def test_a_limit_of_file_sizes(format_number, package):
    """A disk that is full in the middle of a save: the error is raised, and the old values stay."""
    if format_number == 1:
        write_format_1(package)
    before = {path: path.read_bytes() for path in package.iterdir()}
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100));"
    source = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);" + limit + PYTHON
    found = subprocess.run(
        [sys.executable, "-c", source, package], capture_output=True, text=True, timeout=60
    )
    assert "OSError: [Errno 27] File too large" in found.stderr
    assert {path: path.read_bytes() for path in package.iterdir()} == before


SAVES = """
import { load } from "./index.mjs";
const [folder, target] = process.argv.slice(1);
const trainer = await load(folder);
const before = trainer.values;
await trainer.fit(new Float32Array(400), [0, 1, 2, 3]);
try {
  await trainer.save(target);
  console.log((await load(target)).epoch);
} catch (error) {
  console.log(error.message);
}
"""


@pytest.mark.runtimes
def test_folders_that_the_runner_in_node_writes(package, tmp_path):
    """A new or an empty folder, or one with this package; others are refused before a file is changed."""

    def saved(target):
        command = ("--input-type=module", "-e", SAVES, package, target)
        return node(*command, folder=modules_of("node")).strip()

    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "training.json").write_text("{}")
    for target in ("new", "empty", "new"):
        assert saved(tmp_path / target) == "1"
        assert {p.name for p in (tmp_path / target).iterdir()} == {p.name for p in package.iterdir()}
        assert load_training(tmp_path / target).n_iter_ == 2
    assert "has other files: pass a new folder" in saved(tmp_path / "other")
    assert (tmp_path / "other" / "training.json").read_text() == "{}"
    assert load_training(package).n_iter_ == 1
    assert {path.name for path in tmp_path.iterdir()} == {"new", "empty", "other", "package"}
