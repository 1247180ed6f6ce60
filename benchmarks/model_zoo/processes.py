"""Measure cases in separate processes, so that crashes and cases without an end are results."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

__all__ = ["measure_all"]

ROOT = Path(__file__).resolve().parents[2]
#: Seconds of a case.
LIMIT = 90.0
#: Seconds of a worker's start, and cases after which it is replaced: onnxruntime never gives everything back.
START, CASES = 60.0, 60

Facts = dict[str, dict[str, Any]]


class Worker:
    """A process that measures cases, and is restarted after a crash."""

    def __init__(self, module: str = "benchmarks.model_zoo.worker"):
        self.module = module
        self.process: subprocess.Popen | None = None
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.done = 0

    def measure(self, name: str, limit: float = LIMIT) -> Facts:
        """Return the facts of a case; a crash or the end of its time is the reason of the last one.

        Raises
        ------
        RuntimeError
            If the process does not even start.
        """
        process = self.process or self._start()
        assert process.stdin is not None
        process.stdin.write(name + "\n")
        process.stdin.flush()
        facts: Facts = {}
        current = "fits"
        deadline = time.monotonic() + limit
        while True:
            try:
                message = self._next(deadline)
            except (queue.Empty, EOFError) as error:
                late = isinstance(error, queue.Empty)
                facts[current] = _lost(f"still at it after {limit:.0f} s" if late else str(error))
                self.close()
                return facts
            if "done" in message:
                self._count()
                return facts
            current = message["fact"]
            if "found" in message:
                facts[current] = message["found"]

    def _next(self, deadline: float) -> dict[str, Any]:
        """Return what the process says next."""
        line = self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
        if line is None:
            assert self.process is not None
            raise EOFError(f"the process ended: {_ending(self.process.wait())}")
        return json.loads(line)

    def _start(self) -> subprocess.Popen:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self.errors = tempfile.TemporaryFile("w+")
        self.process = process = subprocess.Popen(
            [sys.executable, "-m", self.module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            cwd=ROOT,
            env={**os.environ, **threads},
        )
        self.lines, self.done = queue.Queue(), 0
        threading.Thread(target=_read, args=(process.stdout, self.lines), daemon=True).start()
        try:
            self._next(time.monotonic() + START)
        except (queue.Empty, EOFError) as error:
            self.errors.seek(0)
            raise RuntimeError(f"A worker does not start: {error} {self.errors.read()[-2000:]}") from error
        return process

    def _count(self) -> None:
        self.done += 1
        if self.done >= CASES:
            self.close()

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.errors.close()
            assert self.process.stdin is not None
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
            self.process = None


def _read(stream: Iterable[str], lines: queue.Queue) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _lost(reason: str) -> dict[str, Any]:
    return {"ok": False, "reason": reason, "crash": True}


def _ending(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"


def measure_all(
    names: Iterable[str], jobs: int, report: Callable[[str, Facts, float], None], limit: float = LIMIT
) -> dict[str, Facts]:
    """Return the facts of cases, measured in parallel.

    Parameters
    ----------
    names : iterable of str
        Cases.
    jobs : int
        Processes.
    report : callable
        Called with name, facts and seconds of each case, one call at a time.
    limit : float
        Seconds of a case.
    """
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    names = list(names)
    for name in names:
        waiting.put(name)
    results: dict[str, Facts] = {}
    lock = threading.Lock()

    def work() -> None:
        worker = Worker()
        try:
            while True:
                try:
                    name = waiting.get_nowait()
                except queue.Empty:
                    return
                begin = time.perf_counter()
                facts = worker.measure(name, limit)
                with lock:
                    results[name] = facts
                    report(name, facts, time.perf_counter() - begin)
        finally:
            worker.close()

    with ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(work) for _ in range(min(jobs, len(names)))]:
            done.result()
    return {name: results[name] for name in names if name in results}
