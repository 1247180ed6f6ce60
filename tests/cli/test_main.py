"""The program: help, errors of one line, exit statuses, light start."""

import os
import subprocess
import sys
import warnings
from types import SimpleNamespace

import pytest

from ortlearn import __version__
from ortlearn.cli import main
from ortlearn.cli.dispatch import COMMANDS, status_of
from ortlearn.plugins.__main__ import main as plugins_main


def python(*arguments, code=None, **more):
    command = [sys.executable, "-c", code] if code else [sys.executable, "-m", "ortlearn", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **more)


@pytest.mark.slow
def test_as_a_program():
    done = python("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"ortlearn {__version__}\n", "")
    done = python("evaluate", "model.pkl", "data.csv", "--label", "y")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr.startswith("ortlearn evaluate: error: model.pkl: pickle") and done.stderr.count("\n") == 1
    )


def test_console_script_is_declared():
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="ortlearn")
    assert script.load() is main


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_lists_every_command(run, arguments):
    done = run(*arguments)
    assert (done.status, done.err) == (0, "")
    assert all(f"\n  {name} " in done.out for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(run, command):
    done = run(command, "--help")
    assert (done.status, done.err) == (0, "")
    assert all(option in done.out for option in ("--json", "--debug", f"usage: ortlearn {command}"))


def test_unknown_commands(run):
    assert run("trian").error == "ortlearn: error: unknown command 'trian': did you mean 'train'?"
    assert "the commands are explain, train" in run("frobnicate").error


def test_unknown_options_are_not_guessed(run):
    assert "did you mean --label?" in run("evaluate", "wine.onnx", "wine.csv", "--labl", "kind").error
    assert "unknown arguments: --lab kind" in run("evaluate", "wine.onnx", "wine.csv", "--lab", "kind").error


def test_debug_shows_the_traceback(run):
    done = run("evaluate", "wine.onnx", "wine.csv", "--label", "nothing", "--debug")
    assert done.status == 2
    assert done.err.startswith("Traceback") and done.err.splitlines()[-1].startswith(
        "ortlearn evaluate: error"
    )


@pytest.mark.parametrize(
    "error, text",
    [
        (ValueError("two\n  lines"), "two lines"),
        (KeyError("name"), "'name' is missing (--debug shows the traceback)"),
        (PermissionError(13, "Permission denied", "a.csv"), "a.csv: Permission denied"),
        (ArithmeticError("diverged"), "diverged"),
        (MemoryError(), "MemoryError"),
        (TypeError("a fault"), "TypeError: a fault (--debug shows the traceback)"),
    ],
)
def test_errors_of_every_kind(capsys, error, text):
    def fail(options):
        raise error

    assert run_command(capsys, fail) == (2, "", f"ortlearn plugins: error: {text}\n")


def run_command(capsys, function):
    """Return status and output of a command that calls a function."""
    command = SimpleNamespace(run=function, as_text=str, add_arguments=lambda parser: None)
    status = status_of(["plugins"], "ortlearn plugins", lambda name: command)
    return status, *capsys.readouterr()


def test_ctrl_c(capsys):
    def interrupt(options):
        raise KeyboardInterrupt

    assert run_command(capsys, interrupt) == (130, "", "ortlearn plugins: interrupted\n")


def test_warnings_are_lines(capsys):
    def warn(options):
        warnings.warn("two\nlines", UserWarning, stacklevel=1)
        warnings.warn("for programmers", DeprecationWarning, stacklevel=1)
        return "done"

    assert run_command(capsys, warn) == (0, "done\n", "ortlearn plugins: warning: two lines\n")


@pytest.mark.skipif(os.name != "posix", reason="pipes of a shell")
def test_closed_pipe_prints_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "ortlearn", "plugins", "--no-load"]
    with open(writer, "wb") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, timeout=120)
    assert (done.returncode, done.stderr) == (141, b"")


def test_plugins_prints_the_plugin_table(run, capsys):
    done = run("plugins", "losses", "--no-load")
    assert plugins_main(["losses", "--no-load"]) == 0
    assert done.out == capsys.readouterr().out and "log_loss" in done.out
    listed = run("plugins", "losses", "--no-load", "--json").result
    assert {"name", "distribution", "version", "status"} <= set(listed["plugins"][0])
    assert "optimizers" in run("plugins", "optimizers").error


@pytest.mark.parametrize("arguments", [["--help"], ["plugins", "--no-load"], ["evaluate", "a.pkl", "b"]])
def test_heavy_modules_are_imported_lazily(arguments):
    code = f"""
import sys
from ortlearn.cli import main
main({arguments!r})
print([name for name in ("onnxruntime", "pandas", "skops", "matplotlib", "skl2onnx") if name in sys.modules])
"""
    assert python(code=code).stdout.splitlines()[-1] == "[]"
