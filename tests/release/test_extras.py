"""make installs the onnxruntime that an interpreter has, and says which."""

import subprocess
import sys

import pytest

from tests.release import distribution
from tests.release.environments import ROOT
from tests.release.extras import extra_of


@pytest.mark.parametrize(
    "system, machine, last",
    [("linux", "x86_64", 12), ("win32", "AMD64", 12), ("darwin", "arm64", 12), ("linux", "aarch64", 0)],
)
def test_extra_of_each_version(system, machine, last):
    found = {minor: extra_of((3, minor), system, machine) for minor in range(10, 16)}
    assert found == {minor: "training" if minor <= last else "onnxruntime" for minor in found}


def planned(tmp_path, *variables):
    """Return the commands that make would run in an environment that does not exist."""
    command = ["make", "--dry-run", "test", f"VENV={tmp_path / 'none'}", *variables]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_make_takes_the_extra_of_the_interpreter(tmp_path):
    extra = extra_of(sys.version_info)
    assert f'".[{extra},test,' in planned(tmp_path, f"PYTHON={sys.executable}")
    assert '".[gpu,test,' in planned(tmp_path, f"PYTHON={sys.executable}", "EXTRA=gpu")
    newer = tmp_path / "python"  # an interpreter for which onnxruntime-training has no wheels
    newer.write_text(
        f'#!/bin/sh\n[ "$1" = tests/release/extras.py ] && echo onnxruntime || exec {sys.executable} "$@"'
    )
    newer.chmod(0o755)
    assert '".[onnxruntime,test,' in planned(tmp_path, f"PYTHON={newer}")


def test_supported_versions_have_both_builds():
    assert set(distribution.SUPPORTED.values()) <= {"training", "onnxruntime"}
    assert distribution.SUPPORTED["3.14"] == "onnxruntime"
