"""The lines and programs of the READMEs of packages for Node and the browser work in a clone."""

import os
import re
import shutil
import subprocess

import pytest

from ortlearn.saving import load_training

from .browser import served
from .conftest import RUNTIMES, modules_of

pytestmark = pytest.mark.runtimes
ROOT = RUNTIMES.parent
PAGE = (ROOT / "docs" / "howto" / "train_anywhere.md").read_text(encoding="utf-8")
#: What the programs of the READMEs need around them.
BEFORE = """
globalThis.document = { baseURI: process.argv[2] };
const X = [[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]], y = ["low", "high"];
"""
AFTER = """
console.log(JSON.stringify({ label, probabilities }));
process.exit();
"""


def blocks(text, kind):
    """Return the blocks of code of a page."""
    return re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)


def run(command, folder, fails=False):
    """Run a line of the page with the npm cache."""
    settings = {"npm_config_prefer_offline": "true", "npm_config_audit": "false"}
    found = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **settings},
    )
    if fails:
        assert found.returncode != 0
        return found.stderr
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


@pytest.mark.parametrize("name", ["node", "web"])
def test_readme_works(name, packages, tmp_path):
    modules_of(name)
    text = (RUNTIMES / name / "README.md").read_text(encoding="utf-8")
    clone, program = tmp_path / "clone", tmp_path / "your-program"
    shutil.copytree(RUNTIMES, clone / "runtimes", ignore=shutil.ignore_patterns("node_modules"))
    shutil.copytree(packages["logistic"], program / "folder")
    (program / "package.json").write_text("{}")
    ((lines,), (code,)) = blocks(text, "bash"), blocks(text, "js")
    run("set -e\n" + lines.replace("/path/to", str(tmp_path)), clone)
    shutil.rmtree(clone)  # nothing is linked
    (program / "program.mjs").write_text(BEFORE + code + AFTER)
    with served(models=tmp_path / "models") as address:
        shutil.copytree(packages["logistic"], tmp_path / "models" / "wine")
        printed = run(f"node program.mjs {address}", program)
    answer = r'\{"label":\["\w+","\w+"\],"probabilities":\[\[(.+,){2}.+\],\[(.+,){2}.+\]\]\}\n'
    assert re.search(answer, printed)
    if name == "node":
        assert load_training(program / "other-folder").n_iter_ == 4 + 5
        assert load_training(program / "folder").n_iter_ == 4


def test_page_and_readme_have_the_same_lines():
    readme = (RUNTIMES / "node" / "README.md").read_text(encoding="utf-8")
    assert blocks(readme, "bash") == blocks(PAGE.partition("## Node")[2], "bash")


@pytest.mark.parametrize("name", ["node", "web"])
def test_nothing_is_packed_without_the_core(name, tmp_path):
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    clone = tmp_path / "runtimes"
    shutil.copytree(RUNTIMES, clone, ignore=shutil.ignore_patterns("node_modules"))
    assert "run npm install --ignore-scripts first" in run("npm pack", clone / name, fails=True)
    assert not list(clone.rglob("*.tgz"))
