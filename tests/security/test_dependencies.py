"""The requirements of setup.cfg exclude versions with security advisories or crashes."""

import configparser
import importlib.metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

SETUP = Path(__file__).parents[2] / "setup.cfg"
#: Last affected versions of packages that read untrusted files or objects.
AFFECTED = {
    # To 1.20.1 CVE-2026-27489, CVE-2026-34445, CVE-2026-28500: external data, onnx.hub. The shape inference
    # of 1.21.0 stops the process in test_hostile_models.py::test_operators_that_crash_onnxruntime.
    "onnx": "1.21.0",
    "protobuf": "6.33.4",  # CVE-2026-0994: depth of messages from JSON
    "skops": "0.12.0",  # CVE-2025-54886: fallback to another reader
    "joblib": "1.4.2",  # CVE-2024-34997: cached arrays
    "pyarrow": "23.0.0",  # CVE-2026-25087: use after free in Arrow files
    "lightgbm": "4.5.0",  # CVE-2024-43598: model files
    "scikit-learn": "1.4.2",  # CVE-2024-5206: tokens in vectorizers
    "scipy": "1.9.3",  # CVE-2023-25399: memory leak
}


def requirements():
    """Return all requirements of the package and its extras."""
    parser = configparser.ConfigParser()
    parser.read(SETUP, encoding="utf-8")
    lines = [parser["options"]["install_requires"], *parser["options.extras_require"].values()]
    return [Requirement(line) for text in lines for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("name", AFFECTED)
def test_no_version_with_an_advisory_is_allowed(name):
    found = [requirement for requirement in requirements() if requirement.name == name]
    assert found, f"{name} is not required"
    for requirement in found:
        assert not requirement.specifier.contains(AFFECTED[name], prereleases=True), str(requirement)


def test_installed_versions_meet_the_requirements():
    for requirement in requirements():
        if requirement.name in AFFECTED:
            version = importlib.metadata.version(requirement.name)
            assert requirement.specifier.contains(version, prereleases=True), f"{requirement}, not {version}"
            assert Version(version) > Version(AFFECTED[requirement.name])
