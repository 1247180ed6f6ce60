"""Build the archives, compare their content with the checkout, and use the wheel in fresh environments."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

from tests.release.environments import ROOT, Environment, find_interpreter
from tests.release.extras import extra_of

__all__ = ["SUPPORTED", "build", "check_metadata", "check_sdist", "check_wheel", "smoke"]

#: Versions of Python, and the extra whose onnxruntime is there for each.
SUPPORTED = {f"3.{minor}": extra_of((3, minor)) for minor in range(10, 15)}
#: Files of an sdist that are not part of the package.
_BESIDE = {"CHANGELOG.md", "LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"}
_FIELDS = (
    "Author",
    "Classifier",
    "Description-Content-Type",
    "Keywords",
    "License-Expression",
    "License-File",
    "Provides-Extra",
    "Requires-Dist",
    "Requires-Python",
    "Summary",
)


def build(folder: Path) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it, into a folder; check both with twine; return their paths."""
    shutil.rmtree(folder, ignore_errors=True)
    _run("build", "--outdir", str(folder), str(ROOT))
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    _run("twine", "check", "--strict", str(sdist), str(wheel))
    return sdist, wheel


def _run(module: str, *arguments: str) -> None:
    """Run a module; if it fails, print its output and exit."""
    done = subprocess.run([sys.executable, "-m", module, *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}{module} fails.")


def _package_files() -> set[str]:
    """Return the files of the package in the checkout."""
    files = (path for path in (ROOT / "ortlearn").rglob("*") if path.is_file())
    return {path.relative_to(ROOT).as_posix() for path in files if "__pycache__" not in path.parts}


def _compare(found: set[str], kind: str) -> list[str]:
    """Return an error for each file of the package that is missing, and for each other file."""
    expected = _package_files()
    missing = [f"{kind}: {name} is missing" for name in sorted(expected - found)]
    return missing + [f"{kind}: {name} does not belong there" for name in sorted(found - expected)]


def check_sdist(path: Path) -> list[str]:
    """Return the errors of an sdist: it has the package, its metadata, and no tests or documentation."""
    with tarfile.open(path) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    missing = [f"sdist: {name} is missing" for name in sorted(_BESIDE - names)]
    package = {name for name in names if not name.startswith("ortlearn.egg-info/")} - _BESIDE
    return missing + _compare(package, "sdist")


def check_wheel(path: Path) -> list[str]:
    """Return the errors of a wheel: it has the package, the licence, entry points and complete metadata."""
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        (info,) = {name.partition("/")[0] for name in names if ".dist-info/" in name}
        metadata = archive.read(f"{info}/METADATA").decode()
    required = {f"{info}/{name}" for name in ("licenses/LICENSE", "entry_points.txt", "METADATA", "RECORD")}
    missing = [f"wheel: {name} is missing" for name in sorted(required - names)]
    package = {name for name in names if not name.startswith(f"{info}/")}
    return missing + _compare(package, "wheel") + check_metadata(metadata)


def check_metadata(text: str) -> list[str]:
    """Return the errors of the metadata of a distribution."""
    metadata = HeaderParser().parsestr(text)
    errors = [f"metadata: {field} is missing" for field in _FIELDS if not metadata.get(field)]
    if not metadata.get_payload():
        errors.append("metadata: the description is empty")
    declared = metadata.get_all("Classifier", [])
    for version in SUPPORTED:
        if f"Programming Language :: Python :: {version}" not in declared:
            errors.append(f"metadata: Python {version} is supported, and no classifier says so")
    return errors


def smoke(wheel: Path, versions: list[str], required: bool) -> tuple[list[str], list[str]]:
    """Install the wheel on versions of Python and use it there; return the failed and the missing versions.

    A version that is not installed counts as failed if it is ``required``.
    """
    failed, missing = [], []
    for version in versions:
        interpreter = find_interpreter(version)
        if interpreter is None:
            (failed if required else missing).append(version)
            continue
        with tempfile.TemporaryDirectory(prefix="ortlearn-dist-") as name:
            environment = Environment(Path(name) / "environment", interpreter)
            # A copy in a separate folder: the checkout is not on the path.
            program = shutil.copy(ROOT / "tests" / "release" / "smoke.py", name)
            installed = environment.install(f"{wheel.resolve()}[{SUPPORTED[version]}]")
            if not installed or environment.run([program], Path(name)):
                failed.append(version)
    return failed, missing
