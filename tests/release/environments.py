"""Interpreters of this machine, and fresh environments made with them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

__all__ = ["ROOT", "Environment", "QuickEnvironment", "commit", "find_interpreter"]

ROOT = Path(__file__).parents[2]


def commit() -> str:
    """Return the short name of the commit of the sources."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def find_interpreter(version: str) -> str | None:
    """Return the path of an interpreter of a version such as ``"3.12"``, or None."""
    name = f"python{version}"
    installed = sorted(Path.home().glob(f".pyenv/versions/{version.removesuffix('t')}.*/bin/{name}"))
    for program in (shutil.which(name), *map(str, reversed(installed))):
        # What pyenv puts on the path exists for versions that are not active, too.
        if program and subprocess.run([program, "-c", ""], capture_output=True).returncode == 0:
            return program
    return None


class Environment:
    """A virtual environment in a folder that is empty or missing.

    Parameters
    ----------
    folder : pathlib.Path
        Folder of the environment.
    interpreter : str
        Path of the interpreter.
    """

    #: Options of ``python -m venv``.
    options: tuple[str, ...] = ()

    def __init__(self, folder: Path, interpreter: str):
        subprocess.run([interpreter, "-m", "venv", *self.options, str(folder)], check=True)
        scripts = "Scripts" if os.name == "nt" else "bin"
        self.python = folder / scripts / "python"
        self.folder = folder

    def install(self, *arguments: str) -> bool:
        """Call pip install, and return whether it succeeded."""
        pip = ["-m", "pip", "install", "-qq", "--no-compile", "--disable-pip-version-check"]
        return subprocess.run([self.python, *pip, *arguments], cwd=ROOT).returncode == 0

    def run(
        self, arguments: Sequence[str], cwd: Path, output: int | IO | None = None, **variables: str
    ) -> int:
        """Run the interpreter and return its exit status; ``output`` is the file of what it prints."""
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command, kept = [self.python, *arguments], {**environment, **variables}
        return subprocess.run(command, cwd=cwd, env=kept, stdout=output, stderr=output).returncode

    def versions(self, *names: str) -> dict[str, str]:
        """Return the installed versions of packages, of the extra ``"training"``, and of ``"Python"``."""
        program = (
            "import importlib.metadata as m, platform, sys\n"
            "for n in sys.argv[1:]:\n"
            "    found = {d.metadata['Name'].lower(): d.version for d in m.distributions()}\n"
            "    own = 'onnxruntime-training-cpu' if n == 'training' else n\n"
            "    print(n, platform.python_version() if n == 'Python' else found.get(own, '-'))\n"
        )
        done = subprocess.run(
            [self.python, "-c", program, *names], capture_output=True, text=True, check=True
        )
        return dict(line.split() for line in done.stdout.splitlines())


class QuickEnvironment(Environment):
    """An environment that uv fills: it unpacks each wheel once for all environments."""

    options = ("--without-pip",)

    def install(self, *arguments: str) -> bool:
        """Call uv pip install, and return whether it succeeded."""
        uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", self.python]
        return subprocess.run([*uv, *arguments], cwd=ROOT).returncode == 0
