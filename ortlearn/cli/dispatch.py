"""Dispatch to a command, and turn every error into one line."""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from .._version import __version__
from ..evaluation.messages import one_line
from .messages import error_message
from .parser import Parser, UsageError
from .report import to_json

__all__ = ["main", "status_of"]

PROGRAM = "ortlearn"
#: Commands; each is a module of this package.
COMMANDS = {
    "explain": "show the weights of a model, and which of them can be trained",
    "train": "train a model on the samples of a data file",
    "evaluate": "measure how well a model predicts the labels of a data file",
    "predict": "write the predictions of a model for the samples of a data file",
    "compare": "compare the predictions of two models on a data file",
    "compress": "make a model smaller: distil, prune, quantise",
    "adapt": "adapt a model to new samples, and put the result into use if it is better",
    "versions": "list the versions of a model folder, or go back to the one before",
    "plugins": "list losses, penalties, learning rates and other plugins",
}
#: Exit statuses: that of argparse, and those of a shell for SIGINT and SIGPIPE.
FAILED, INTERRUPTED, PIPE_CLOSED = 2, 130, 141
HELP = f"""usage: {PROGRAM} COMMAND ...

Train scikit-learn models and ONNX files by gradient, and inspect the results.

commands:
{chr(10).join(f"  {name:10s} {text}" for name, text in COMMANDS.items())}

`{PROGRAM} COMMAND --help` lists the options of a command. All of them take
  --json     print the result as JSON
  --debug    show the traceback of an error
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, default=None
        Arguments after the name of the program; those of the process by default.

    Returns
    -------
    int
        Exit status: 0, 2 after an error, 130 after Ctrl-C; ``adapt`` returns 3 or 4 if the new model is not
        used.

    Examples
    --------
    >>> from ortlearn.cli import main
    >>> main(["--version"])
    ortlearn ...
    0
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    program = f"{PROGRAM} {arguments[0]}" if arguments[:1] and arguments[0] in COMMANDS else PROGRAM
    return status_of(arguments, program)


def status_of(arguments: list[str], program: str, load: Callable[[str], Any] | None = None) -> int:
    """Run a command, loaded by its name, and return the exit status; all errors are handled here."""
    try:
        with _warnings_as_lines(program):
            status = _run(arguments, program, load or _command)
        sys.stdout.flush()
    except SystemExit as stop:  # argparse, after --help
        return int(stop.code or 0)
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return PIPE_CLOSED
    except Exception as error:
        if "--debug" in arguments:
            traceback.print_exc()
        print(f"{program}: error: {error_message(error)}", file=sys.stderr)
        return FAILED
    return status


def _run(arguments: list[str], program: str, load: Callable[[str], Any]) -> int:
    """Run a command and return its status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(HELP, end="")
        return 0
    if arguments[0] == "--version":
        print(PROGRAM, __version__)
        return 0
    command = load(arguments[0])
    parser = Parser(prog=program, description=command.__doc__)
    command.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    options = parser.parse_args(arguments[1:])
    result = command.run(options)
    if hasattr(sys.stdout, "reconfigure"):  # the terminal may lack a character
        sys.stdout.reconfigure(errors="replace")
    print(to_json(result) if options.json else command.as_text(result))
    return command.status(result) if hasattr(command, "status") else 0


def _command(name: str) -> ModuleType:
    if name not in COMMANDS:
        close = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"the commands are {', '.join(COMMANDS)}."
        raise UsageError(f"unknown command {name!r}: {hint}")
    return import_module(f".{name}", __package__)


@contextlib.contextmanager
def _warnings_as_lines(program: str) -> Iterator[None]:
    """Print each warning as one line, except those for programmers."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: Any = None,
        line: Any = None,
    ) -> None:
        print(f"{program}: warning: {one_line(message)}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        warnings.showwarning = show
        yield


def _discard_output() -> None:
    """Redirect output to the null device, after the reader of a pipe has closed it."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, sys.stdout.fileno())
        os.close(descriptor)
