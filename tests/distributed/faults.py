"""Learning rate that injects a fault into one task on the workers: it dies, fails, is slow or is held."""

import os
import signal
import threading
import time
from pathlib import Path

from distributed import get_worker

from ortlearn.learning_rates import LearningRateSGD

#: Set by a held task, and by a test that releases it; both run in this process.
HELD, RELEASED = threading.Event(), threading.Event()


class FaultyRate(LearningRateSGD):
    """SGD at a constant rate; ``init`` is called once per task, and a file counts the calls."""

    def __init__(self, eta0=0.01, folder="", number=0, fault="none"):
        super().__init__(eta0=eta0, learning_rate="constant")
        self.folder = folder
        self.number = number
        self.fault = fault

    def init(self, weight):
        """Return an empty state, after the fault of this call."""
        try:
            get_worker()
        except ValueError:  # on the driver
            return super().init(weight)
        begins = weight.size > 1 and weight.any()  # not zeros for writing a graph, nor intercepts
        if self.folder and begins:
            with (Path(self.folder) / "calls").open("ab", buffering=0) as file:  # appends are atomic
                file.write(b".")
                number = file.tell()
            if number == self.number:
                FAULTS[self.fault](Path(self.folder))
        return super().init(weight)


def kill(folder):
    os.kill(os.getpid(), signal.SIGKILL)


def kill_all(folder):
    for text in (folder / "pids").read_text().split():
        if int(text) != os.getpid():
            os.kill(int(text), signal.SIGKILL)
    kill(folder)


def fail(folder):
    raise RuntimeError("the disk is full")


def sleep(folder):
    time.sleep(1.0)


def hold(folder):
    HELD.set()
    RELEASED.wait(60)


FAULTS = {"kill": kill, "kill all": kill_all, "fail": fail, "sleep": sleep, "hold": hold}
