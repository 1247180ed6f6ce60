"""Install the libraries of the extra ``bench`` one by one, then other versions in their own folders.

Those that cannot be installed are reported.
"""

from __future__ import annotations

import argparse
import configparser
import subprocess
import sys
from pathlib import Path

from benchmarks.contenders import CONTENDERS, installed

__all__ = ["main", "peers"]


def peers(path: Path) -> list[str]:
    """Return the requirements of the extra, from a setup.cfg."""
    parser = configparser.ConfigParser()
    parser.read(path)
    return parser["options.extras_require"]["bench"].split()


def main() -> None:
    """Install."""
    wanted = [[peer] for peer in peers(Path(__file__).parent.parent / "setup.cfg")]
    wanted += [
        ["--no-deps", "--target", str(entry.folder), *entry.pinned]  # other packages are shared
        for name, entry in CONTENDERS.items()
        if entry.pinned and not installed(name)
    ]
    for options in wanted:
        if subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *options]).returncode:
            print(f"{options[-1]} cannot be installed: the benchmark continues without it.", flush=True)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
