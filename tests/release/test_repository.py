"""Workflows, forms and hooks of the repository are valid, and run commands that exist."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from docs.good_first_issues import LIMITS, find_issues, listing
from ortlearn import __version__
from tests.release import checks, distribution, sbom
from tests.release.environments import ROOT
from tests.release.matrix import ENVIRONMENTS

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.search(r"^\.PHONY:(.*)$", MAKEFILE, re.MULTILINE)[1].split())
workflows = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def parsed(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def commands(path):
    """Return the commands of make in a workflow, once per value of its matrix."""
    found = []
    for job in parsed(path)["jobs"].values():
        choices = job.get("strategy", {}).get("matrix", {})
        for line in (step["run"] for step in job["steps"] if "run" in step):
            names = [name for name in choices if f"matrix.{name} " in line]
            for value in choices[names[0]] if names else [""]:
                found.append(re.sub(r"\$\{\{ matrix\.\w+ \}\}", str(value), line))
    return [shlex.split(line) for line in found if line.startswith("make ")]


@workflows
def test_workflows_have_few_permissions_and_fixed_versions(path):
    workflow = parsed(path)
    assert workflow["permissions"] == {"contents": "read"} and workflow[True]  # "on" is true in YAML
    for step in steps(workflow):
        assert ("run" in step) != ("uses" in step)
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40}", step["uses"])
        if "actions/checkout" in step.get("uses", ""):
            assert step["with"] == {"persist-credentials": False}


@workflows
def test_workflows_run_targets_of_make(path):
    for _, target, *variables in commands(path):
        assert target in TARGETS
        assert all(f"$({name.partition('=')[0]}" in MAKEFILE for name in variables)


@pytest.mark.slow
def test_make_knows_how_to_run_the_steps_of_workflows():
    targets = {command[1] for path in WORKFLOWS for command in commands(path)}
    dry = ["make", "--dry-run", *sorted(targets)]
    done = subprocess.run(dry, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and len(done.stdout.splitlines()) > len(targets), done.stderr


@pytest.mark.parametrize("tag, code", [(f"v{__version__}", 0), ("v0.0.0", 1), (__version__, 1)])
def test_a_release_has_the_tag_of_its_version(tag, code):
    """The step of the workflow runs in the shell of GitHub's runners."""
    workflow = parsed(ROOT / ".github" / "workflows" / "publish.yml")
    (script,) = [step["run"] for step in steps(workflow) if "GITHUB_REF_NAME" in step.get("run", "")]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"GITHUB_REF_NAME": tag, "PATH": path}
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    assert subprocess.run(shell, cwd=ROOT, env=environment).returncode == code


def test_nightly_matrix_covers_all_environments_and_versions():
    nightly = commands(ROOT / ".github" / "workflows" / "nightly.yml")
    patterns = [
        word.partition("=")[2].strip("'") for line in nightly for word in line[2:] if "MATRIX" in word
    ]
    from fnmatch import fnmatch

    for case in ENVIRONMENTS:
        assert any(fnmatch(case.name, pattern) for pattern in patterns), case.name
    for pattern in patterns:
        assert any(fnmatch(case.name, pattern) for case in ENVIRONMENTS), pattern
    assert {f"test-{version}" for version in distribution.SUPPORTED} <= {line[1] for line in nightly}


def test_pull_requests_run_lint_tests_on_three_versions_and_docs():
    run = commands(ROOT / ".github" / "workflows" / "pull_request.yml")
    assert {line[1] for line in run} == {"lint", "demo", "test", "docs"}
    versions = [line[2].removeprefix("PYTHON=python") for line in run if line[1] == "test"]
    assert len(versions) == 3 and set(versions) <= set(distribution.SUPPORTED)
    assert {distribution.SUPPORTED[version] for version in versions} == {"training", "onnxruntime"}


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_issue_forms(path):
    form = parsed(path)
    assert form["name"] and form["description"] and form["labels"]
    names = [item["id"] for item in form["body"] if item["type"] != "markdown"]
    assert len(names) == len(set(names))
    for item in form["body"]:
        assert item["type"] in {"markdown", "textarea", "input", "checkboxes", "dropdown"}
        assert item["attributes"].get("label") or item["type"] == "markdown"


def test_dependabot_looks_into_existing_folders():
    found = parsed(ROOT / ".github" / "dependabot.yml")
    assert found["version"] == 2
    assert {update["package-ecosystem"] for update in found["updates"]} == {"github-actions", "pip", "npm"}
    for update in found["updates"]:
        for folder in update.get("directories", [update.get("directory")]):
            assert (ROOT / folder.strip("/")).is_dir()


def test_hooks_are_the_commands_of_make_lint():
    recipe = re.search(r"^lint: .*\n((?:\t.+\n)+)", MAKEFILE, re.MULTILINE)[1]
    lines = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe.splitlines()]
    (repository,) = parsed(ROOT / ".pre-commit-config.yaml")["repos"]
    assert [hook["entry"] for hook in repository["hooks"]] == lines


def test_good_first_issues_are_those_of_the_limits():
    issues = find_issues(LIMITS.read_text(encoding="utf-8"))
    assert listing(issues[:1]).startswith(f"{issues[0].title} (limits, {issues[0].area})\n  First step: ")
    assert len(issues) >= 5 and all(issue.limit and issue.step for issue in issues)
    assert all((ROOT / name).exists() for issue in issues for name in issue.files)


def test_outcomes_of_checks_are_recorded(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- checks -->\n<!-- end -->\nafter", encoding="utf-8")
    for name, result in (("matrix", "failed"), ("coverage", "passed"), ("matrix", "passed")):
        checks.record(name, result, 150, page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n") and text.endswith("\nafter") and "failed" not in text
    rows = re.findall(r"^\| `make ([\w-]+).*\| passed \| 2 min \|$", text, re.MULTILINE)
    assert rows == ["coverage", "matrix"] and checks.CHECKS.keys() <= TARGETS
    assert "no such check" in checks.run(["no-such-check"], page)[0]
    table = checks.PAGE.read_text(encoding="utf-8").partition("| check | ")[2].partition("<!-- checks -->")[0]
    documented = re.findall(r"`([\w-]+)`", "".join(re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)))
    assert sorted(documented) == sorted(checks.CHECKS)


def test_bill_of_materials_is_about_the_package():
    parts = [{"bom-ref": f"{name}==1", "name": name} for name in ("numpy", "ortlearn", "pip")]
    links = [{"ref": part["bom-ref"]} for part in parts]
    bill = sbom.about("ortlearn", {"components": parts, "dependencies": links, "metadata": {"tools": 1}})
    assert bill["components"] == parts[:1] and bill["dependencies"] == links[:2]
    assert bill["metadata"] == {"tools": 1, "component": {**parts[1], "type": "library"}}
    with pytest.raises(ValueError, match="torch is 0 times"):
        sbom.about("torch", {"components": parts})
