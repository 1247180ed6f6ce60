"""Environments with other versions of dependencies, and the tests that run in each."""

from __future__ import annotations

import configparser
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from packaging.requirements import Requirement

from tests.release.environments import ROOT, Environment, find_interpreter

__all__ = ["ENVIRONMENTS", "TESTS", "Versions", "floors", "run"]

#: What depends on dependencies most: graphs of models, gradients, columns, files, saved models, the README.
TESTS = (
    "README.md",
    "tests/test_light_import.py",
    "tests/trainable",
    "tests/learning_rates",
    "tests/losses",
    "tests/benchmarks/test_sample.py",
    "tests/onnx_files/test_loading.py",
    "tests/penalties",
    "tests/preprocessing",
    "tests/saving/test_saved_estimators.py",
    "tests/saving/test_sklearn_objects.py",
    "tests/search/test_searches.py",
)
#: Packages that run these tests, and those whose objects they pass or save.
_TOOLS = ("hypothesis", "pytest")
_OPTIONAL = ("lightgbm", "pandas", "polars", "skops")


def floors(names: Sequence[str] = ()) -> dict[str, str]:
    """Return the lowest versions in setup.cfg, of some packages or of all that an installation needs."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    needed = _lowest(parser["options"]["install_requires"])
    found = {**_lowest(parser["options.extras_require"]["test"]), **needed}
    return {name: found[name] for name in names or needed}


def _lowest(lines: str) -> dict[str, str]:
    """Return the lowest versions in a list of requirements, of those that have one."""
    found = [Requirement(line) for line in lines.split()]
    return {each.name: bound.version for each in found for bound in each.specifier}


@dataclass
class Versions:
    """An environment: pinned versions, and the newest of everything else.

    Parameters
    ----------
    name : str
        Name.
    python : str
        Versions of Python; the first one that is installed is used.
    pins : dict of str to str
        Versions of packages; ``"1.6.*"`` is the newest one of that form.
    extra : str
        Extra with an onnxruntime.
    """

    name: str
    python: str
    pins: dict[str, str] = field(default_factory=dict)
    extra: str = "training"


#: The lowest versions together and one by one, each scikit-learn from the lowest, and the newest of all.
ENVIRONMENTS = (
    Versions("floors", "3.10 3.11", {**floors(), **floors(_OPTIONAL)}),
    # scikit-learn 1.6 passes options that newer versions of scipy reject; before 1.9 it cannot select columns
    # of newer polars by name.
    Versions("scikit-learn-1.6", "3.12", {"scikit-learn": "1.6.*", "scipy": "1.15.*", **floors(["polars"])}),
    Versions("scikit-learn-1.7", "3.12", {"scikit-learn": "1.7.*", **floors(["polars"])}),
    Versions("scikit-learn-1.8", "3.12", {"scikit-learn": "1.8.*", **floors(["polars"])}),
    Versions("numpy-floor", "3.11", floors(["numpy"])),
    Versions("onnx-floor", "3.12", floors(["onnx"])),
    Versions("skl2onnx-floor", "3.12", floors(["skl2onnx"])),
    Versions("newest", "3.13", extra="onnxruntime"),
)


def run(patterns: Sequence[str]) -> list[str]:
    """Run the tests in the environments whose names match a pattern; return an error for each failure."""
    chosen = [case for case in ENVIRONMENTS if any(fnmatch(case.name, pattern) for pattern in patterns)]
    if not chosen:
        names = ", ".join(case.name for case in ENVIRONMENTS)
        return [f"No environment fits {', '.join(patterns)}. There are: {names}."]
    return [error for case in chosen if (error := _error(case))]


def _error(case: Versions) -> str:
    """Return the error of an environment, or an empty string."""
    versions = case.python.split()
    interpreter = next(filter(None, map(find_interpreter, versions)), None)
    if interpreter is None:
        missing = " or ".join(versions)
        return f"{case.name}: Python {missing} is not installed; install it, or name other environments."
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="ortlearn-matrix-") as name:
        environment = Environment(Path(name) / "environment", interpreter)
        pins = [f"{package}=={version}" for package, version in case.pins.items()]
        packages = [f".[{case.extra}]", *_TOOLS, *_OPTIONAL, *pins]
        installed = environment.install("--editable", *packages)
        # A copy: installing writes beside the sources.
        plugin = shutil.copytree(ROOT / "tests" / "example_plugin", Path(name) / "plugin")
        if not (installed and environment.install("--no-deps", str(plugin))):
            return f"{case.name}: {' '.join(pins)} cannot be installed."
        print(f"{case.name}: Python {case.python}, {' '.join(pins) or 'the newest versions'}", flush=True)
        status = environment.run(
            ["-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", *TESTS],
            ROOT,
            OMP_NUM_THREADS="1",
            OPENBLAS_NUM_THREADS="1",
        )
    print(f"{case.name}: {'failed' if status else 'passed'}, {time.perf_counter() - start:.0f} s", flush=True)
    return f"{case.name}: tests fail." if status else ""
