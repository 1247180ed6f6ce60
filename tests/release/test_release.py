"""Checks of a release find errors; version, date and supported versions are the same everywhere."""

import configparser
import io
import re
import tarfile
import zipfile

import pytest
import yaml

from ortlearn import __version__
from ortlearn.conversion import Weight
from ortlearn.learning_rates import LearningRateAdam
from ortlearn.models import Parameter
from tests.release import distribution, matrix
from tests.release.__main__ import main
from tests.release.environments import ROOT, commit, find_interpreter


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def parsed_setup():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


METADATA = "\n".join(
    [
        "Metadata-Version: 2.4",
        *(f"{field}: something" for field in distribution._FIELDS),
        *(f"Classifier: Programming Language :: Python :: {version}" for version in distribution.SUPPORTED),
        "",
        "A description.",
    ]
)


def sdist_of(folder, names):
    path = folder / "a.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(f"ortlearn-1/{name}"), io.BytesIO())
    return path


def wheel_of(folder, names):
    path, info = folder / "a.whl", "ortlearn-1.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        for name in (
            *names,
            *(f"{info}/{name}" for name in ("RECORD", "entry_points.txt", "licenses/LICENSE")),
        ):
            archive.writestr(name, "")
        archive.writestr(f"{info}/METADATA", METADATA)
    return path


PACKAGE = distribution._package_files()


@pytest.mark.slow
@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    ("check", "pack", "whole"),
    [
        (distribution.check_sdist, sdist_of, PACKAGE | distribution._BESIDE | {"ortlearn.egg-info/PKG-INFO"}),
        (distribution.check_wheel, wheel_of, PACKAGE),
    ],
)
def test_archives_have_the_package_and_nothing_else(check, pack, whole, tmp_path):
    assert "ortlearn/py.typed" in whole
    assert check(pack(tmp_path, whole)) == []
    for name in ("ortlearn/py.typed", "ortlearn/losses/base.py"):
        (error,) = check(pack(tmp_path, whole - {name}))
        assert error.endswith(f"{name} is missing")
    for name in ("tests/test_layers.py", "docs/index.md", "ortlearn/left_over.py"):
        (error,) = check(pack(tmp_path, whole | {name}))
        assert error.endswith(f"{name} does not belong there")


def test_metadata_is_complete():
    assert distribution.check_metadata(METADATA) == []
    assert distribution.check_metadata(METADATA.replace("License-Expression", "X-Other")) == [
        "metadata: License-Expression is missing"
    ]
    assert distribution.check_metadata(METADATA.replace("A description.", "")) == [
        "metadata: the description is empty"
    ]
    (error,) = distribution.check_metadata(METADATA.replace(":: 3.14", ":: 3.15"))
    assert "Python 3.14" in error


def test_floors_equal_the_requirements():
    required = parsed_setup()["options"]["install_requires"].split()
    assert [f"{name}>={version}" for name, version in matrix.floors().items()] == required
    assert matrix.floors(["numpy"]) == {"numpy": matrix.floors()["numpy"]}
    assert matrix.floors(["polars"]) == {"polars": "1.3"}  # not the upper bound on Python 3.10
    assert f"skops>={matrix.floors(['skops'])['skops']}" in parsed_setup()["options.extras_require"]["test"]


def test_environments_pin_the_floors_and_run_existing_tests():
    cases = {case.name: case for case in matrix.ENVIRONMENTS}
    assert len(cases) == len(matrix.ENVIRONMENTS)
    assert cases["floors"].pins.items() > matrix.floors().items()
    assert {f"{name}-floor" for name in matrix.floors()} - cases.keys() == {"scikit-learn-floor"}
    newest = {name for name in cases if name.startswith("newest-")}
    for version, extra in distribution.SUPPORTED.items():
        assert {f"newest-{kind}-{version}" for kind in (extra, "onnxruntime")} <= newest
    lowest = re.match(r"\d+\.\d+", matrix.floors()["scikit-learn"])[0]
    assert cases[f"scikit-learn-{lowest}"].pins["scikit-learn"] == f"{lowest}.*"
    extras = parsed_setup()["options.extras_require"]
    for case in cases.values():
        versions = {version.removesuffix("t") for version in case.python.split()}
        assert case.extra in extras and versions <= {*distribution.SUPPORTED}
        assert case.pins.keys() <= {*matrix.floors(), *matrix._OPTIONAL, "onnxruntime"}
        assert all((ROOT / name.partition("::")[0]).exists() for name in case.tests)


def test_page_of_the_matrix_keeps_the_last_outcome_of_each_environment(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- matrix -->old<!-- end -->\nafter", encoding="utf-8")
    for name, result, seconds in (
        ("newest-onnxruntime-3.13", "1 failed, 8 passed", 1),
        ("floors", "1 failed, 8 passed", 2),
        ("floors", "9 passed", 3),
    ):
        matrix.write_page(matrix.Outcome(name, "3.10.13", "1.19.2 1.22.0", result, seconds), page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n") and text.endswith("<!-- end -->\nafter")
    assert re.findall(r"^\| ([\w.-]+) \| 3\.", text, re.MULTILINE) == ["floors", "newest-onnxruntime-3.13"]
    assert "| floors | 3.10.13 | 1.19.2 1.22.0 | 9 passed | 3 |" in text
    assert matrix.passed(page, commit()) == {"floors"} and matrix.passed(page, "another") == set()
    recorded = re.findall(r"^\| ([\w.-]+) \| 3\.", text_of("docs/compatibility.md"), re.MULTILINE)
    assert {*recorded} <= {case.name for case in matrix.ENVIRONMENTS}


def test_outcome_is_the_summary_of_pytest():
    assert matrix.summary("...\n== 2 failed, 31 passed, 4 skipped, 1 error in 5.21s ==\n") == (
        "2 failed, 31 passed, 1 error"
    )
    assert matrix.summary("31 passed, 4 skipped, 2 xfailed in 5.21s") == "31 passed"
    assert matrix.summary("Fatal Python error: Segmentation fault") == "tests did not run"


def test_unknown_names_are_errors(capsys):
    assert main(["matrix", "no-such-environment"]) == 1
    assert "No environment fits no-such-environment. There are: floors, " in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["dist", "2.7"])
    assert "invalid choice: '2.7'" in capsys.readouterr().err
    assert find_interpreter("3.999") is None


def test_extras_have_an_onnxruntime_for_each_supported_python():
    parser = parsed_setup()
    assert parser["options"]["python_requires"] == f">={next(iter(distribution.SUPPORTED))}"
    assert set(distribution.SUPPORTED.values()) <= parser["options.extras_require"].keys()


def test_changelog_and_citation_have_the_version():
    headings = re.findall(r"^## (.+)$", text_of("CHANGELOG.md"), re.MULTILINE)
    released = [heading for heading in headings if heading != "Unreleased"]
    citation = yaml.safe_load(text_of("CITATION.cff"))
    assert released[0] == f"{__version__} ({citation['date-released']})"
    assert citation["version"] == __version__
    assert citation["license"] == parsed_setup()["metadata"]["license_expression"]


def test_deprecated_names_are_removed_after_two_minor_releases():
    major, minor = map(int, __version__.split(".")[:2])
    assert major == 0, "say in docs/versions.md what a major release removes"
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "ortlearn").rglob("*.py"))
    notes = re.findall(r"\.\. deprecated:: 0\.(\d+)$", sources, re.MULTILINE)
    assert len(notes) == sources.count(".. deprecated::")
    assert all(minor < int(since) + 2 for since in notes)


def test_former_names_stay():
    former, new = LearningRateAdam(learning_rate="cosine"), LearningRateAdam(schedule="cosine")
    assert former.resolved_schedule().get_params() == new.resolved_schedule().get_params()
    assert Weight is Parameter


def test_versions_page_lists_the_supported_versions():
    (python,) = re.findall(r"^\| Python \| (\S+) to (\S+);", text_of("docs/versions.md"), re.MULTILINE)
    assert python == (min(distribution.SUPPORTED, key=_number), max(distribution.SUPPORTED, key=_number))
    lowest = re.match(r"\d+\.\d+", matrix.floors()["scikit-learn"])[0]
    assert f"| scikit-learn | {lowest} to " in text_of("docs/versions.md")


def _number(version):
    return tuple(map(int, version.split(".")))


def test_only_the_publish_job_has_permission_and_uses_the_tested_archives():
    workflow = yaml.safe_load(text_of(".github/workflows/publish.yml"))
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert workflow["permissions"] == {"contents": "read"} and "permissions" not in build
    assert publish["permissions"] == {"id-token": "write", "attestations": "write"}
    assert publish["needs"] == "build" and publish["environment"] == "pypi"
    commands = [step["run"] for step in build["steps"] if "run" in step]
    assert commands[-2:] == [f'make dist DIST="{" ".join(distribution.SUPPORTED)}"', "make sbom"]
    assert not any("run" in step for step in publish["steps"])
    (versions,) = (
        step["with"]["python-version"] for step in build["steps"] if "setup-python" in step.get("uses", "")
    )
    assert sorted(versions.split()) == sorted(distribution.SUPPORTED)
