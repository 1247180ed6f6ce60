"""Run harnesses under atheris for some time each: ``python -m tests.fuzzing --seconds 60 [NAME ...]``."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
NAMES = ("opening", "saved_estimators", "training_packages", "parquet_pages", "gradients")
#: Seconds after which one input counts as a finding, and its largest memory in MiB.
TIMEOUT, MEMORY = 60, 6000


def fuzz(name: str, seconds: int, found: Path) -> None:
    """Run a harness in this process, which atheris ends."""
    import atheris

    with atheris.instrument_imports(include=["ortlearn"], enable_loader_override=False):
        from tests.fuzzing.harnesses import HARNESSES

        harness = HARNESSES[name]
        for path in (CORPUS / name).iterdir():  # which imports what is imported late
            harness(path.read_bytes())
    with tempfile.TemporaryDirectory() as new:
        options = [
            f"-max_total_time={seconds}",
            f"-timeout={TIMEOUT}",
            f"-rss_limit_mb={MEMORY}",
            "-max_len=512",
        ]
        folders = [new, str(CORPUS / name)]
        atheris.Setup(
            [name, *options, f"-artifact_prefix={found}/{name}-", "-print_final_stats=1", *folders],
            lambda data: harness(data) and None,
        )
        atheris.Fuzz()


def main() -> int:
    """Run each harness in a separate process; return the number of those with a finding."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *NAMES], metavar="NAME")
    parser.add_argument("--seconds", type=int, default=60, help="for each harness")
    parser.add_argument("--found", type=Path, default=Path("build/fuzz"), help="folder of inputs that fail")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.found.mkdir(parents=True, exist_ok=True)
    if options.here:
        fuzz(options.names[0], options.seconds, options.found)
    failed = []
    for name in options.names or NAMES:
        command = [sys.executable, "-m", "tests.fuzzing", "--here", name, "--seconds", str(options.seconds)]
        print(f"{name}: {options.seconds} s", flush=True)
        if subprocess.run([*command, "--found", str(options.found)]).returncode:
            failed.append(name)
    print(f"Findings, whose inputs are in {options.found}: {', '.join(failed)}" if failed else "No finding.")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
