"""Program that is killed before each change of a folder of versions, and continues.

Arguments are a folder with one version, and one for its copies. Each step prints a line of JSON: what the
adaptation was about to do, whether it was killed, and the versions in use after the kill and the next run.
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np

from ortlearn.lifecycle import ModelFolder, adapt

#: Events of the audit log that change files.
CHANGES = {"open", "os.rename", "os.remove", "os.link", "os.truncate"}
rng = np.random.default_rng(0)
X = rng.normal(size=(120, 2))
NEW = X, X @ [1.0, -2.0]


def adapted(folder):
    return adapt(folder, NEW, candidates=["refit"], dry_run=False)


def killed_at(step, folder, report):
    """Adapt in a child process that kills itself before a change; return whether it was killed."""
    child = os.fork()
    if child == 0:
        count = 0

        def note(event, arguments):
            nonlocal count
            if event not in CHANGES or not str(arguments[0]).startswith(str(folder)):
                return
            if event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR):
                return
            count += 1
            if count == step:
                names = [Path(name).name for name in arguments[:2] if isinstance(name, str | Path)]
                os.write(report, json.dumps([event, *names]).encode())
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(note)
        adapted(folder)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def main(source, copies):
    step = 0
    while True:
        step += 1
        folder = ModelFolder(Path(copies) / str(step))
        shutil.copytree(source, folder.path)
        read, write = os.pipe()
        killed = killed_at(step, folder.path, write)
        os.close(write)
        with open(read) as file:
            before = file.read()
        current = folder.current
        model_is_whole = folder.model().kind == "scikit-learn"
        later = adapted(folder)
        record = {
            "before": json.loads(before or "[]"),
            "killed": killed,
            "current": current,
            "whole": model_is_whole,
            "later": [later.outcome, folder.current, [item["number"] for item in folder.history()]],
            "hidden": [path.name for path in folder.path.glob(".*")],
        }
        print(json.dumps(record), flush=True)
        shutil.rmtree(folder.path)
        if not killed:
            break


if __name__ == "__main__":
    main(*sys.argv[1:])
