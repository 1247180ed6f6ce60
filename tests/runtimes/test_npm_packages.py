"""The lines by which the page installs the package for Node work in a clone."""

import os
import re
import shutil
import subprocess

import pytest

from ortlearn.saving import load_training

from .conftest import RUNTIMES, modules_of
from .packages import PACKAGES

pytestmark = pytest.mark.runtimes
ROOT = RUNTIMES.parent
PAGE = (ROOT / "docs" / "howto" / "train_anywhere.md").read_text(encoding="utf-8")
PROGRAM = """
const X = [[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]];
const { load } = require("ortlearn-node");
(async () => {
  const trainer = await load(process.argv[2]);
  await trainer.fit(X, ["low", "high"], { epochs: 2 });
  const { label, probabilities } = await trainer.predict(X);
  await trainer.save(process.argv[3]);
  console.log(JSON.stringify({ label, probabilities }));
})();
"""


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


def test_package_is_packed_and_installed(packages, tmp_path):
    modules_of("node")
    clone, program = tmp_path / "clone", tmp_path / "your-program"
    shutil.copytree(RUNTIMES, clone / "runtimes", ignore=shutil.ignore_patterns("node_modules"))
    program.mkdir()
    (program / "package.json").write_text("{}")
    (program / "program.cjs").write_text(PROGRAM)
    (lines,) = re.findall(r"```bash\n(.*?)```", PAGE.partition("## Node")[2], re.DOTALL)
    run("set -e\n" + lines.replace("/path/to", str(tmp_path)), clone)
    shutil.rmtree(clone)  # nothing is linked
    text = run(f"node program.cjs {packages['logistic']} {tmp_path / 'trained'}", program)
    assert re.fullmatch(
        r'\{"label":\["\w+","\w+"\],"probabilities":\[\[(.+,){2}.+\],\[(.+,){2}.+\]\]\}\n', text
    )
    assert load_training(tmp_path / "trained").n_iter_ == 4 + 2
    assert set(PACKAGES["logistic"][3]) == {"low", "middle", "high"}


@pytest.mark.parametrize("name", ["node", "web"])
def test_nothing_is_packed_without_the_core(name, tmp_path):
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    clone = tmp_path / "runtimes"
    shutil.copytree(RUNTIMES, clone, ignore=shutil.ignore_patterns("node_modules"))
    assert "run npm install --ignore-scripts first" in run("npm pack", clone / name, fails=True)
    assert not list(clone.rglob("*.tgz"))
