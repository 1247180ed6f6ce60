"""Check a release: ``python -m tests.release dist``, ``checks``, ``sbom`` or ``matrix``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.release import checks, distribution, matrix, sbom
from tests.release.environments import ROOT


def dist(versions: list[str]) -> list[str]:
    """Build the archives in dist, check them, use the wheel on versions of Python; return the errors."""
    sdist, wheel = distribution.build(ROOT / "dist")
    errors = distribution.check_sdist(sdist) + distribution.check_wheel(wheel)
    if errors:
        return errors
    failed, missing = distribution.smoke(wheel, versions or list(distribution.SUPPORTED), bool(versions))
    if missing:
        print(f"Not tested, since not installed: Python {', '.join(missing)}.")
    return [f"Python {version} is not installed, or the wheel does not work there" for version in failed]


def main(arguments: list[str] | None = None) -> int:
    """Run a command, print errors, and return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.release", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    of_dist = commands.add_parser("dist", help="build the archives, check them, install and use the wheel")
    of_dist.add_argument(
        "versions",
        nargs="*",
        metavar="VERSION",
        choices=[[], *distribution.SUPPORTED],
        help="versions of Python that must be there; without it, the supported ones that are installed",
    )
    of_matrix = commands.add_parser("matrix", help="run chosen tests with other versions of dependencies")
    of_matrix.add_argument("names", nargs="*", metavar="GLOB", help="environments, such as 'scikit-learn-*'")
    of_matrix.add_argument("--write", type=Path, metavar="PAGE", default=ROOT / "docs" / "compatibility.md")
    of_matrix.add_argument("--resume", action="store_true", help="leave out what passed at this commit")
    of_checks = commands.add_parser("checks", help="run and record the long measurements before a release")
    of_checks.add_argument("names", nargs="*", metavar="NAME", help="commands of make, such as mutation")
    commands.add_parser("sbom", help="list the components of an installation of the wheel in dist")
    options = parser.parse_args(arguments)
    if options.command == "dist":
        errors = dist(options.versions)
    elif options.command == "checks":
        errors = checks.run(options.names)
    elif options.command == "sbom":
        errors = sbom.write(ROOT / "dist", ROOT / "build" / "sbom" / "ortlearn.cdx.json")
    else:
        errors = matrix.run(options.names, options.write, options.resume)
    for error in errors:
        print(error, file=sys.stderr)
    return int(bool(errors))


if __name__ == "__main__":
    sys.exit(main())
