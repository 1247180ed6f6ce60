"""Damaged and forged packages in Node: an error that names the file, or the right result."""

import json
import random
import shutil

import pytest

from tests.saving.damaged_packages import (
    FORGED_MANIFESTS,
    FORGED_VALUES,
    KINDS,
    damage,
    replace_value,
    reseal,
)

from .conftest import modules_of, node
from .packages import write_format_1, write_package

pytestmark = pytest.mark.runtimes
#: Files that Node reads.
NAMES = [
    "training.json",
    "values.safetensors",
    *(f"{g}.onnx" for g in ("step", "epoch", "evaluate", "infer")),
]
SOURCE = """
import { readFileSync } from "node:fs";
import { load } from "./index.mjs";
const folders = JSON.parse(readFileSync(process.argv[1], "utf8"));
const X = [[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]], found = [];
for (const folder of folders) {
  try {
    const trainer = await load(folder);
    found.push(await trainer.trainEpoch(trainer.columns(X, [1, 2]), [0, 1]));
  } catch (error) {
    found.push(`${error.constructor.name}: ${error.message}`);
  }
}
console.log(JSON.stringify(found));
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    write_package("boosting", folder)
    (folder / "estimator.zip").unlink()
    return folder


def results(folders, tmp_path):
    """Return the objectives of an epoch in each folder, or its error."""
    (tmp_path / "folders.json").write_text(json.dumps([str(folder) for folder in folders]))
    command = ("--input-type=module", "-e", SOURCE, tmp_path / "folders.json")
    return json.loads(node(*command, folder=modules_of("node")))


def is_clear(error):
    """Return whether an error is our own, and names a file, the package or a tensor."""
    named = any(name in error for name in (*NAMES, "The package", "Tensor"))
    return error.startswith("Error: ") and named


def test_damaged_packages(package, tmp_path):
    folders, what = [package], []
    for number, (kind, name) in enumerate((kind, name) for kind in KINDS for name in NAMES):
        folders.append(shutil.copytree(package, tmp_path / str(number)))
        what.append(damage(folders[-1], random.Random(number), [name], kind))
    right, *found = results(folders, tmp_path)
    n_rejected = sum(isinstance(end, str) for end in found)
    for description, end in zip(what, found, strict=True):
        assert end == right or is_clear(end), (description, end)
    assert len(found) == len(KINDS) * len(NAMES) and n_rejected > 0.9 * len(found)


@pytest.mark.parametrize("format_number", [1, 2])
def test_forged_packages(format_number, package, tmp_path):
    """Checksums are right, or the format has none; the boosting of the package has one weight."""
    intact = shutil.copytree(package, tmp_path / "intact")
    folders, file = [], "values.safetensors"
    if format_number == 1:
        write_format_1(intact)
        file = "state.safetensors"
    for name, change in FORGED_VALUES.items():
        if "weight" not in name and not (format_number == 1 and name.startswith("negative ")):
            folders.append(shutil.copytree(intact, tmp_path / f"values {name}"))
            reseal(folders[-1], change, file)
    for name, change in FORGED_MANIFESTS.items():
        if format_number == 2 and name != "a state as a weight":
            folders.append(shutil.copytree(intact, tmp_path / f"manifest {name}"))
            reseal(folders[-1], change)
    for folder, end in zip(folders, results(folders, tmp_path), strict=True):
        assert isinstance(end, str) and is_clear(end), (folder.name, end)


def test_random_manifests(package, tmp_path):
    """Any replaced value of a manifest with a right checksum leads to an error of ours, or a training."""
    draw, folders = random.Random(1), []
    for number in range(120):
        folders.append(shutil.copytree(package, tmp_path / str(number)))
        reseal(folders[-1], lambda content: replace_value(content, draw))
    found = results(folders, tmp_path)
    assert not [end for end in found if isinstance(end, str) and not end.startswith("Error: ")]
    assert sum(isinstance(end, str) for end in found) > 20
