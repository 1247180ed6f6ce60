"""Processes of contenders, controlled by the benchmark."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.cases import Case, write_data
from benchmarks.contenders import CONTENDERS

__all__ = ["Failed", "Process"]

ROOT = Path(__file__).parent.parent


class Failed(Exception):
    """Error: a contender could not be loaded, or its process ended."""


def environment(threads: int, folder: Path | None = None) -> dict[str, str]:
    """Return environment variables: the number of threads of all libraries, and a folder of packages."""
    count = str(threads)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    eigen = "true" if threads > 1 else "false"
    paths = [str(folder)] if folder else []
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")]),
        **dict.fromkeys(names, count),
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={eigen}",
        "PYTHONWARNINGS": "ignore",
    }


class Process:
    """Contender in a separate process, which is stopped while it is idle.

    Parameters
    ----------
    name : str
        Contender.
    threads : int
        Threads and cores it may use.
    data : Path
        Folder of the data sets.
    """

    def __init__(self, name: str, threads: int, data: Path):
        self.name, self.data = name, data
        self.child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", name, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment(threads, CONTENDERS[name].folder if name in CONTENDERS else None),
        )
        try:
            self.loaded = self.ask("load")
        except Failed:
            self.close()
            raise

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def ask(self, do: str, **question) -> dict[str, Any]:
        """Send a question and wait for the answer.

        Raises
        ------
        Failed
            If there is none.
        """
        assert self.child.stdin is not None and self.child.stdout is not None
        self._signal("SIGCONT")
        try:
            self.child.stdin.write(json.dumps({"do": do, **question}) + "\n")
            self.child.stdin.flush()
        except BrokenPipeError as error:
            raise Failed(f"{self.name}: the process ended") from error
        line = self.child.stdout.readline()
        if not line:
            raise Failed(f"{self.name}: the process ended with {self.child.wait()}")
        self._signal("SIGSTOP")  # waiting threads must not use processor time
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(f"{self.name}: {answer['error']}")
        return answer

    def prepare(self, case: Case) -> dict[str, Any]:
        """Set up a case."""
        return self.ask("prepare", case=asdict(case), data=str(write_data(case, self.data)))

    def seconds(self, epochs: int) -> float:
        """Return the seconds of a fit, samples shuffled."""
        return self.ask("fit", epochs=epochs)["seconds"]

    def close(self) -> None:
        """End the process."""
        self._signal("SIGCONT")
        if self.child.stdin is not None:
            try:
                self.child.stdin.close()
            except BrokenPipeError:
                pass
        self.child.wait()
        if self.child.stdout is not None:
            self.child.stdout.close()

    def _signal(self, name: str) -> None:
        if hasattr(signal, name) and self.child.poll() is None:
            self.child.send_signal(getattr(signal, name))
