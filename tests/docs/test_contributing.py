"""Commands, files and folders in CONTRIBUTING exist, and the page of commands lists every Makefile target."""

import re

import pytest

from tests.docs.pages import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
COMMANDS = (ROOT / "docs/explanation/commands.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
#: Targets of single versions, named in the line of make test-all.
PARTS = {"test-3.10", "test-3.11", "test-3.12", "test-3.13", "test-3.14"}


def targets():
    phony = re.search(r"^\.PHONY:(.*)$", MAKEFILE, re.MULTILINE)[1]
    return set(phony.split()) - PARTS


def rows():
    commands = COMMANDS.partition("## Continuous integration")[0]
    return re.findall(r"^\| `([^`]+)` \| .+ \| .+ \|$", commands, re.MULTILINE)


def test_table_lists_all_targets_of_make():
    named = {row.removeprefix("make ") for row in rows() if row.startswith("make ")}
    assert named == targets()


@pytest.mark.parametrize("command", [row for row in rows() if "-m benchmarks." in row])
def test_programs_exist(command):
    module = ROOT / command.split(" -m ")[1].split()[0].replace(".", "/")
    assert module.with_suffix(".py").is_file() or (module / "__main__.py").is_file()


def test_continuous_integration_runs_targets_of_make():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    run = re.findall(r"^make (\S+)(?: [A-Z]+=.*)?$", script, re.MULTILINE)
    assert ".ci/run" in rows() and set(run) <= targets() | PARTS
    in_readme = re.findall(r"^make (\S+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"demo", "test"} <= {*in_readme} <= {*run}
    steps = COMMANDS.partition("## Continuous integration")[2].partition("\n## ")[0]
    assert [row.split()[1] for row in re.findall(r"^\| `(make [^`]+)`", steps, re.MULTILINE)] == run


@pytest.mark.parametrize("name", re.findall(r"`((?:docs|tests|examples)/[\w/.*-]*)`", TEXT))
def test_files_and_folders_exist(name):
    made = ("docs/reference/", "demo-output/")
    assert name.startswith(made) or list(ROOT.glob(name.rstrip("/")))


@pytest.mark.parametrize("argument", re.findall(r"pytest -q (\S+\.(?:py|md))$", TEXT, re.MULTILINE))
def test_single_test_files_exist(argument):
    assert (ROOT / argument).is_file()
