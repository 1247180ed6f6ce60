"""The argument parser, and the options that several commands share."""

from __future__ import annotations

import argparse
import difflib
from typing import TYPE_CHECKING, Any, NoReturn

from ..exceptions import OrtlearnError

if TYPE_CHECKING:
    from ..evaluation.data_files import Table

__all__ = [
    "MOST_SAMPLES",
    "Parser",
    "UsageError",
    "add_data_options",
    "add_max_samples",
    "add_model",
    "drawn",
]

#: Most samples in memory of commands that do not read their data in parts.
MOST_SAMPLES = 100_000


class UsageError(OrtlearnError, ValueError):
    """Arguments that the command line does not accept."""


class Parser(argparse.ArgumentParser):
    """Parser that raises errors instead of printing them, and does not guess abbreviated options."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Return the options; an unknown one is an error that suggests a similar one."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            known = [name for action in self._actions for name in action.option_strings]
            close = difflib.get_close_matches(unknown[0].partition("=")[0], known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            self.error(f"unknown arguments: {' '.join(unknown)}{hint}")
        return options

    def error(self, message: str) -> NoReturn:
        """Raise a UsageError."""
        raise UsageError(f"{message} (see {self.prog} --help)")


def add_model(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add positional arguments for model files, and the option for the types to trust in them."""
    for name in names:
        parser.add_argument(name, metavar=name.upper(), help="model: an .onnx file, or a .skops file")
    parser.add_argument(
        "--trust",
        action="append",
        default=[],
        metavar="TYPE",
        help="type that a .skops file may contain besides those that skops trusts, such as "
        "mypackage.MyTransformer; may be repeated. Loading it can run the code of that type",
    )


def add_max_samples(parser: argparse.ArgumentParser) -> None:
    """Add the option for the number of samples in memory."""
    parser.add_argument(
        "--max-samples",
        type=int,
        default=MOST_SAMPLES,
        metavar="NUMBER",
        help="most samples of each file or folder that are in memory, drawn at random from all of them, so "
        f"that it may be larger than memory (default: {MOST_SAMPLES:,})",
    )


def drawn(options: argparse.Namespace, path: str, **columns: Any) -> tuple[Table, int]:
    """Return at most ``--max-samples`` samples of a path, and how many it has."""
    from ..evaluation.data_files import column_options, read_sample

    if options.max_samples < 1:
        raise ValueError(f"--max-samples {options.max_samples}: must be 1 or more.")
    columns |= column_options(options)
    return read_sample(path, options.max_samples, options.random_state, **columns)


def add_data_options(parser: argparse.ArgumentParser, *, optional: bool = False, label_help: str) -> None:
    """Add the data file and the options for its columns."""
    parser.add_argument(
        "data",
        metavar="DATA",
        nargs="?" if optional else None,
        help="data: a .csv, .csv.gz, .parquet or .arrow file with column names, a folder of them, a quoted "
        "pattern such as 'rows-*.csv', or - for one of these files in the standard input",
    )
    parser.add_argument("--label", metavar="COLUMN", help=label_help)
    parser.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="COLUMN",
        help="column that is not a feature; may be repeated",
    )
    parser.add_argument("--weights", metavar="COLUMN", help="column with sample weights, not a feature")
    parser.add_argument(
        "--text",
        action="append",
        default=[],
        metavar="COLUMN",
        help="column of a csv file that is text but looks like numbers, such as 01234; may be repeated",
    )
    parser.add_argument(
        "--separator", default=",", metavar="TEXT", help="separator of columns in csv files (default: ',')"
    )
