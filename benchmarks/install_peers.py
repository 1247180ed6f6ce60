"""Install the libraries of the extra ``bench`` one by one, and report those that cannot be installed."""

from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

__all__ = ["main", "peers"]


def peers(path: Path) -> list[str]:
    """Return the requirements of the extra, from a setup.cfg."""
    parser = configparser.ConfigParser()
    parser.read(path)
    return parser["options.extras_require"]["bench"].split()


def main() -> None:
    """Install."""
    for peer in peers(Path(__file__).parent.parent / "setup.cfg"):
        if subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", peer]).returncode:
            print(f"{peer} cannot be installed: the benchmark continues without it.", flush=True)


if __name__ == "__main__":
    main()
