"""Worker for tests that crashes or hangs, depending on the name of the case."""

from __future__ import annotations

import json
import os
import signal
import sys
import time


def _say(**words) -> None:
    print(json.dumps(words), flush=True)


def main() -> None:
    """Answer like the worker."""
    _say(ready=True)
    for line in sys.stdin:
        name = line.strip()
        _say(fact="fits")
        _say(fact="fits", found={"ok": True})
        _say(fact="converts")
        if name == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        if name == "endless":
            time.sleep(60)
        _say(fact="converts", found={"ok": True})
        _say(done=name)


if __name__ == "__main__":
    main()
