"""Environments with other versions of dependencies, and the tests that run in each."""

from __future__ import annotations

import configparser
import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatch
from pathlib import Path

from packaging.requirements import Requirement

from tests.release.environments import ROOT, QuickEnvironment, commit, find_interpreter

__all__ = ["ENVIRONMENTS", "TESTS", "Outcome", "Versions", "floors", "passed", "run", "summary", "write_page"]

#: What depends on dependencies most, in half a minute: weights, opsets, columns, files, saved objects.
TESTS = (
    "README.md",
    "tests/trainable",
    "tests/losses/test_losses.py",
    "tests/penalties/test_penalties.py",
    "tests/estimators/test_opsets.py",
    "tests/onnx_files/test_loading.py",
    "tests/onnx_files/test_opsets.py",
    "tests/preprocessing/test_converted_steps.py",
    "tests/preprocessing/test_inputs.py",
    "tests/preprocessing/test_pipeline_split.py",
    "tests/saving/test_sklearn_objects.py",
    "tests/search/test_searches.py::test_attributes_equal_grid_search",
)
#: Packages that run these tests, and those whose objects they pass or save.
_TOOLS = ("hypothesis", "pytest")
_OPTIONAL = ("lightgbm", "pandas", "polars", "skops")
#: Packages whose versions the page shows.
_SHOWN = ("onnx", "numpy", "scipy", "scikit-learn", "skl2onnx", "protobuf")
#: Folder of the output of pytest, a file per environment.
LOGS = ROOT / "build" / "matrix"
_BEGIN, _END = "<!-- matrix -->", "<!-- end -->"


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
    return {each.name: bound.version for each in found for bound in each.specifier if bound.operator == ">="}


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
    optional : tuple of str
        Packages whose objects the tests pass or save, where they have wheels.
    options : tuple of str
        Options of ``pip install``.
    tests : tuple of str
        Files and folders to run.
    """

    name: str
    python: str
    pins: dict[str, str] = field(default_factory=dict)
    extra: str = "training"
    optional: tuple[str, ...] = _OPTIONAL
    options: tuple[str, ...] = ()
    tests: tuple[str, ...] = TESTS


def _on(python: str) -> dict[str, str]:
    """Return the pins of a Python: the newest scikit-learn of 3.10, which is 1.7, cannot read polars 2."""
    return {"polars": "1.*"} if python == "3.10" else {}


def _floor(name: str) -> Versions:
    """Return an environment with the lowest version of one package, on a Python that it has wheels for."""
    python = "3.10" if name == "scipy" else "3.11" if name == "numpy" else "3.12"
    return Versions(f"{name}-floor", python, {**floors([name]), **_on(python)})


#: Packages without wheels for free-threaded Python, or whose wheels turn the lock on again.
_LOCKED = ("lightgbm", "polars")
#: The lowest versions together and one by one, each scikit-learn from the lowest, the newest of all with each
#: build of onnxruntime and Python, pre-releases, and Python without the global lock.
ENVIRONMENTS = (
    Versions("floors", "3.10 3.11", {**floors(), **floors(_OPTIONAL)}),
    # scikit-learn 1.6 passes options that newer versions of scipy reject; before 1.9 it cannot select columns
    # of newer polars by name.
    Versions("scikit-learn-1.6", "3.12", {"scikit-learn": "1.6.*", "scipy": "1.15.*", **floors(["polars"])}),
    Versions("scikit-learn-1.7", "3.12", {"scikit-learn": "1.7.*", **floors(["polars"])}),
    Versions("scikit-learn-1.8", "3.12", {"scikit-learn": "1.8.*", **floors(["polars"])}),
    *(_floor(name) for name in floors() if name != "scikit-learn"),
    Versions("onnxruntime-floor", "3.12", {"onnxruntime": "1.19.2"}, extra="onnxruntime"),
    *(Versions(f"newest-training-3.{minor}", f"3.{minor}", _on(f"3.{minor}")) for minor in (10, 11, 12)),
    *(
        Versions(f"newest-onnxruntime-3.{minor}", f"3.{minor}", _on(f"3.{minor}"), extra="onnxruntime")
        for minor in range(10, 15)
    ),
    Versions("pre-releases", "3.13 3.12", extra="onnxruntime", options=("--pre",)),
    Versions(
        "free-threaded",
        "3.14t 3.13t",
        extra="onnxruntime",
        optional=tuple(name for name in _OPTIONAL if name not in _LOCKED),
        tests=(
            "tests/estimators/test_threads.py",
            "tests/losses",
            "tests/onnx_files/test_opsets.py",
            "tests/runtime",
            "tests/trainable",
            "tests/training/steps",
        ),
    ),
)


@dataclass
class Outcome:
    """Outcome of an environment: a line of the page."""

    name: str
    python: str
    versions: str
    result: str
    seconds: float = 0

    @property
    def passed(self) -> bool:
        """Whether all tests passed."""
        return bool(_PASSED.fullmatch(self.result))


def run(patterns: Sequence[str], page: Path, resume: bool = False) -> list[str]:
    """Run the tests in the environments whose names match a pattern; return an error for each failure.

    Each outcome is written into the page at once, and replaces that of the same environment. ``resume``
    leaves out those that passed at this commit. Without patterns, environments whose Python is not
    installed are named and left out.
    """
    chosen = [case for case in ENVIRONMENTS if any(fnmatch(case.name, each) for each in patterns or ["*"])]
    if not chosen:
        names = ", ".join(case.name for case in ENVIRONMENTS)
        return [f"No environment fits {', '.join(patterns)}. There are: {names}."]
    errors, done = [], passed(page, commit()) if resume else set()
    for case in chosen:
        if case.name in done:
            continue
        interpreter = next(filter(None, map(find_interpreter, case.python.split())), None)
        if interpreter is None:
            missing = " or ".join(case.python.split())
            print(f"{case.name}: Python {missing} is not installed", flush=True)
            if patterns:
                errors.append(f"{case.name}: Python {missing} is not installed; install it, or name others.")
            continue
        outcome = _outcome(case, interpreter)
        print(f"{case.name}: {outcome.result}, {outcome.seconds:.0f} s", flush=True)
        if not outcome.passed:
            errors.append(f"{case.name}: {outcome.result}; see {LOGS.relative_to(ROOT)}/{case.name}.txt")
        write_page(outcome, page)
    return errors


def _outcome(case: Versions, interpreter: str) -> Outcome:
    """Install an environment, run its tests, and return what happened."""
    start = time.perf_counter()
    LOGS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ortlearn-matrix-") as name:
        environment = QuickEnvironment(Path(name) / "environment", interpreter)
        pins = [f"{package}=={version}" for package, version in case.pins.items()]
        print(f"{case.name}: {interpreter}, {' '.join(pins) or 'the newest versions'}", flush=True)
        packages = [f".[{case.extra}]", *_TOOLS, *case.optional, *pins]
        installed = environment.install(*case.options, "--editable", *packages)
        # A copy: installing writes beside the sources.
        plugin = shutil.copytree(ROOT / "tests" / "example_plugin", Path(name) / "plugin")
        if not (installed and environment.install("--no-deps", str(plugin))):
            return Outcome(case.name, case.python, "", f"{' '.join(pins)} cannot be installed")
        command = ["-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", *case.tests]
        with (LOGS / f"{case.name}.txt").open("w+", encoding="utf-8") as log:
            environment.run(command, ROOT, log, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
            log.seek(0)
            result = summary(log.read())
        versions = environment.versions("Python", case.extra, *_SHOWN)
    python, found = versions.pop("Python"), " ".join(versions.values())
    return Outcome(case.name, python, found, result, time.perf_counter() - start)


def summary(text: str) -> str:
    """Return the numbers at the end of pytest's output; only those that passed if no test failed."""
    last = text.strip().rpartition("\n")[2]
    return ", ".join(re.findall(r"\d+ (?:failed|passed|errors?)\b", last)) or "tests did not run"


_PASSED = re.compile(r"\d+ passed")
_ROW = re.compile(r"^(\| ([\w.-]+) \| (?:\d[^\n]*))$", re.MULTILINE)


def _rows(page: Path) -> dict[str, str]:
    """Return the lines of a page by the names of their environments."""
    table = page.read_text(encoding="utf-8").partition(_BEGIN)[2].partition(_END)[0]
    return {name: line for line, name in _ROW.findall(table)}


def passed(page: Path, at: str) -> set[str]:
    """Return the environments that passed at a commit, from the lines of a page."""
    columns = {name: line.split(" | ") for name, line in _rows(page).items()}
    return {name for name, row in columns.items() if _PASSED.fullmatch(row[3]) and row[-1] == f"{at} |"}


def write_page(outcome: Outcome, page: Path) -> None:
    """Write an outcome into its line of the page, with date and commit; other lines stay."""
    columns = (outcome.name, outcome.python, outcome.versions, outcome.result, f"{outcome.seconds:.0f}")
    line = f"| {' | '.join(columns)} | {date.today():%d %B %Y} | {commit()} |"
    lines = {**_rows(page), outcome.name: line}
    ordered = [lines[case.name] for case in ENVIRONMENTS if case.name in lines]
    head = [
        f"| environment | Python | onnxruntime {' '.join(_SHOWN)} | tests | seconds | date | commit |",
        "|---|---|---|---|---|---|---|",
    ]
    before, _, rest = page.read_text(encoding="utf-8").partition(_BEGIN)
    table = "\n".join(["\n", *head, *ordered, "\n"])
    page.write_text(f"{before}{_BEGIN}{table}{_END}{rest.partition(_END)[2]}", encoding="utf-8")
