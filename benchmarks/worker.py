"""Process of a contender: it reads questions and writes answers, one line of JSON each."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

__all__ = ["Worker", "main"]


def peak_memory() -> int:
    """Return the largest resident memory of this process so far, in bytes.

    A process starts with its parent's ``ru_maxrss`` on Linux, so the kernel's own account is read where
    there is one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def keep_to_cores(threads: int) -> None:
    """Restrict this process to as many cores as threads, if the system supports it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


class Hidden:
    """Finder that denies some packages; onnxruntime-training imports torch, which takes a second, if it can.

    Parameters
    ----------
    packages : set of str
        Their names.
    """

    def __init__(self, packages: set[str]):
        self.packages = packages

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raise ModuleNotFoundError for a module of these packages."""
        if name.partition(".")[0] in self.packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class Worker:
    """Answers questions about one contender.

    Parameters
    ----------
    name : str
        Name of the contender.
    threads : int
        Threads it may use.
    """

    def __init__(self, name: str, threads: int):
        self.name, self.threads = name, threads
        self.contenders: dict[Any, Any] = {}

    def load(self) -> dict[str, Any]:
        """Import scikit-learn, then the library; return the seconds of both."""
        start = time.perf_counter()
        import sklearn.linear_model
        import sklearn.neural_network  # noqa: F401

        middle = time.perf_counter()
        from benchmarks.contenders import CONTENDERS

        sys.meta_path.insert(0, Hidden({"torch"} - set(CONTENDERS[self.name].needs)))
        self.kind = CONTENDERS[self.name].load()
        end = time.perf_counter()
        return {
            "sklearn_import": middle - start,
            "import": end - middle,
            "same_updates": self.kind.same_updates,
        }

    def prepare(self, case: dict[str, Any], data: str) -> dict[str, Any]:
        """Create the contender of a case, which the next questions are about."""
        import numpy as np

        from benchmarks.cases import Case

        self.case = Case(**{**case, "layers": tuple(case["layers"])})
        if not self.kind.supports(self.case):
            return {"supported": False}
        folder = Path(data)
        if self.case not in self.contenders:
            X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
            self.contenders[self.case] = self.kind(self.case, X, y, self.threads)
        self.current = self.contenders[self.case]
        return {"supported": True, "data": self.current.X.nbytes + self.current.y.nbytes}

    def fit(self, epochs: int | None = None, shuffle: bool = True, loss: bool = False) -> dict[str, Any]:
        """Train; with the defaults of the library if the number of epochs is None."""
        from benchmarks.cases import mean_loss

        gc.collect()
        start = time.perf_counter()
        weights = self.current.default_fit() if epochs is None else self.current.fit(epochs, shuffle)
        answer: dict[str, Any] = {"seconds": time.perf_counter() - start, "memory": peak_memory()}
        if loss:
            answer["loss"] = mean_loss(self.case, weights, self.current.X, self.current.y)
        return answer


def end_with_parent() -> None:
    """End with the parent process, even if it is killed: a stopped process would remain forever."""
    if sys.platform == "linux":
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 is PR_SET_PDEATHSIG


def main() -> None:
    """Answer until the input ends; other output is redirected to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    end_with_parent()
    threads = int(sys.argv[2])
    keep_to_cores(threads)
    worker = Worker(sys.argv[1], threads)
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = getattr(worker, question.pop("do"))(**question)
        except Exception as error:  # other contenders continue, and the report shows the error
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
