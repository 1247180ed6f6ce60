"""Run attempts in forked processes with a time limit; the parent has imported all modules."""

from __future__ import annotations

import os
import select
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random

from benchmarks.faults.fault import End, Fault, Lost, Outcome

__all__ = ["forked", "measure", "wait"]

_LOST, _FAILED = b"lost", b"failed"


def forked(function: Callable[[], object]) -> int:
    """Return the id of a forked process that calls a function.

    Its exit code is 0, the code of a SystemExit, or 1 after another exception.
    """
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        function()
        status = 0
    except SystemExit as error:
        status = error.code
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def wait(pid: int) -> int:
    """Return the exit code of a process, or the negative signal number."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def measure(fault: Fault, tries: int, deadline: float) -> Outcome:
    """Return the outcome of attempts at a fault.

    Parameters
    ----------
    fault : Fault
        Fault to inject.
    tries : int
        Number of attempts.
    deadline : float
        Time of the monotonic clock after which attempts are omitted.
    """
    outcome = Outcome()
    for number in range(tries):
        limit = min(fault.seconds, deadline - time.monotonic())
        if limit > 0:
            _attempt(fault, number, limit, outcome)
        else:
            outcome.left_out += fault.repeats
    return outcome


def _attempt(fault: Fault, number: int, limit: float, outcome: Outcome) -> None:
    """Add the end of one attempt to an outcome."""
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory(prefix="ortlearn-fault-") as folder:
        pid = forked(lambda: _report(fault, number, Path(folder), reading, writing))
        os.close(writing)
        report = _read(reading, limit)
        if report is None:
            os.killpg(pid, signal.SIGKILL)  # with its children, which are in its process group
        code = wait(pid)
    if report is None and limit < fault.seconds:
        outcome.left_out += fault.repeats
        return
    outcome.tries += fault.repeats
    if report is None:
        outcome.hung += fault.repeats
        outcome.texts.append(f"attempt {number} hangs: ended after {limit:.0f} s")
    elif report.startswith(_LOST):
        outcome.lost += fault.repeats
        outcome.texts.append(f"attempt {number}: {report.decode()}")
    elif code or not report.isdigit():
        outcome.other += fault.repeats
        outcome.texts.append(f"attempt {number}: {report.decode()}, exit code {code}")
    else:
        end = End(int(report))
        outcome.clean += fault.repeats * bool(end & End.CLEAN)
        outcome.right += fault.repeats * bool(end & End.RIGHT)


def _report(fault: Fault, number: int, folder: Path, reading: int, writing: int) -> None:
    """Run the attempt and write its end to a pipe that its children do not inherit."""
    os.close(reading)
    os.setsid()
    held = [writing]
    os.register_at_fork(after_in_child=lambda: held and os.close(held.pop()))
    try:
        report = str(fault.attempt(Random(number), number, folder).value).encode()
    except Lost:
        report = _LOST + b" " + traceback.format_exc().encode()
    except BaseException:
        report = _FAILED + b" " + traceback.format_exc().encode()
    os.write(writing, report[-50_000:] if report.isdigit() else report[:50_000])


def _read(descriptor: int, limit: float) -> bytes | None:
    """Return the output of a process, or None if it does not end in time."""
    end, parts = time.monotonic() + limit, []
    with open(descriptor, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], max(end - time.monotonic(), 0))[0]:
            part = pipe.read(65536)
            if not part:
                return b"".join(parts)
            parts.append(part)
    return None
