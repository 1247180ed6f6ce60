"""Train damaged models in child processes, and report how each training ended."""

import multiprocessing
import os
import random
import signal
import sys
import traceback
import warnings
import zlib
from collections import Counter, deque

import numpy as np

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import OrtlearnError

from .damage import damaged
from .files import X, models

#: Limit of the CPU time per model in seconds; independent of other programs.
LIMIT = 20
#: Seeds that stop the process or raise a foreign error, to test the test.
STOPS, RAISES = -1, -2


def case(name, seed):
    """Return the bytes of a damaged model."""
    model, _ = models()[name]
    return damaged(model, random.Random(zlib.crc32(f"{name} {seed}".encode())))


def train(content, y, seed):
    """Train a model and predict with it; return the outcome."""
    optimizer = (OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer)[seed % 2]
    gradient = ("auto", "rules")[seed // 2 % 2]
    options = {"max_iter": 2, "learning_rate": 1e-3, "random_state": 0, "gradient": gradient}
    model = optimizer(content, straight_through=seed // 4 % 2 == 0, **options)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            _fail_on_purpose(seed)
            model.fit(X, y).predict(X)
        except OrtlearnError as error:
            return f"refused {type(error).__name__}"
        except (ValueError, TypeError) as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            own = f"{os.sep}ortlearn{os.sep}" in frame.filename and (frame.line or "").startswith("raise ")
            # Checks of X and y by scikit-learn count as ortlearn's.
            if own or f"{os.sep}sklearn{os.sep}" in frame.filename:
                return f"refused {type(error).__name__}"
            return _foreign(error)
        except Exception as error:
            return _foreign(error)
    return "trained"


def _fail_on_purpose(seed):
    """Stop or raise an error for the seeds that test the test."""
    if seed == STOPS:
        os.kill(os.getpid(), signal.SIGSEGV)
    if seed == RAISES:
        raise KeyError("on purpose")


def _foreign(error):
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
    return f"foreign {type(error).__name__} at {place}: {str(error)[:150]}"


def _worker(pipe, cases):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # onnxruntime and protobuf print there
    for name, seed in cases:
        content, y = case(name, seed), models()[name][1]
        signal.setitimer(signal.ITIMER_PROF, LIMIT)
        ended = train(content, y, seed)
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.send(ended)


def run(cases):
    """Yield name, seed and outcome of each training; a process that stopped is replaced."""
    left = deque(cases)
    while left:
        receiver, sender = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("spawn").Process(target=_worker, args=(sender, list(left)))
        process.start()
        sender.close()
        try:
            while True:
                ended = receiver.recv()
                yield left.popleft(), ended
        except EOFError:
            process.join()
        if left:
            yield left.popleft(), f"stopped by {process.exitcode}"


if __name__ == "__main__":
    seeds = range(int(sys.argv[1]), int(sys.argv[2]))
    ends = Counter()
    for (name, seed), ended in run((name, seed) for seed in seeds for name in sys.argv[3:] or models()):
        ends[ended.partition(" at ")[0]] += 1
        if not ended.startswith(("refused", "trained")):
            print(name, seed, ended, flush=True)
    print(ends)
