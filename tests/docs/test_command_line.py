"""Outputs on the page of the command line are those of the commands, except for numbers."""

import doctest
import re
import shlex

import pytest

from ortlearn.cli import main
from tests.docs.pages import DOCS, ROOT

PAGE = DOCS / "guide/command_line.md"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.M | re.S)
COMMAND = re.compile(r"^\$ ortlearn (.*)\n((?:(?!\$ ).*\n)*)", re.M)
CONTINUED = re.compile(r"\\\n> *")
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e-?\d+)?")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def differences(text, run):
    """Run the blocks of a page; return the commands with other outputs, and the number of commands."""
    found, count = [], 0
    for kind, body in BLOCK.findall(text):
        if kind == "python":
            exec(body, {})
            continue
        for command, expected in COMMAND.findall(CONTINUED.sub("", body)):
            count += 1
            expected, printed = (NUMBER.sub("0", text) for text in (expected, run(shlex.split(command))))
            if not doctest.OutputChecker().check_output(expected, printed, FLAGS):
                found.append((command, printed))
    return found, count


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Return a function that runs a command in an empty folder and returns its output."""
    monkeypatch.chdir(tmp_path)

    def command(arguments):
        main(arguments)
        return "".join(capsys.readouterr())

    return command


@pytest.mark.slow
def test_outputs_of_commands(run):
    found, count = differences(PAGE.read_text(encoding="utf-8"), run)
    assert not found and count >= 8


@pytest.mark.slow
def test_another_output_is_found(run):
    text = PAGE.read_text(encoding="utf-8").replace("1 Sub", "1 Sum")
    assert [command for command, _ in differences(text, run)[0]] == ["explain new.onnx"]


def test_commands_of_the_readme_are_on_the_page():
    commands = re.findall(r"^ortlearn (\w+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    page = PAGE.read_text(encoding="utf-8")
    assert len(commands) >= 3 and all(f"ortlearn {command}" in page for command in commands)
