import os
import subprocess
import sys

import pytest

from ortlearn.plugins.__main__ import main
from ortlearn.plugins.table import plugins_table


def rows(text):
    return [line.split() for line in text.splitlines()]


def run(*arguments, path=None, **variables):
    env = os.environ | variables
    if path is not None:
        env["PYTHONPATH"] = os.pathsep.join([str(path), *filter(None, [env.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-m", "ortlearn.plugins", *arguments], capture_output=True, text=True, env=env
    )


def test_table_without_loading():
    done = run("--no-load")
    assert (done.returncode, done.stderr) == (0, "")
    table = rows(done.stdout)
    assert table[0] == ["group", "name", "distribution", "version", "status", "target"]
    row = next(row for row in table if row[1] == "log_loss")
    assert (row[0], row[2], row[4:]) == (
        "losses",
        "ortlearn",
        ["not", "loaded", "ortlearn.losses.log_loss:LogLoss"],
    )
    assert {row[0] for row in table[1:]} >= {"losses", "penalties", "learning_rates"}
    assert "ok" not in {row[4] for row in table}


@pytest.mark.slow
def test_every_built_in_plugin_has_a_summary():
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    header, *lines = done.stdout.splitlines()
    assert header.split()[-1] == "summary"
    start = header.index("summary")
    built_in = [line for line in lines if " ortlearn  " in line]
    assert len(built_in) > 30
    assert all(" ok " in line and len(line) > start for line in built_in)
    assert any(line.startswith("schedules") and line[start:].startswith("Cosine: ") for line in built_in)


@pytest.mark.slow
def test_load_shows_status_and_exits_with_zero(site):
    site.add(
        "mixed",
        "0.3",
        "[ortlearn.gradients]\nfine = mixed_fine:rules\nbad = mixed_bad:rules\n",
        mixed_fine='class rules:\n    """Rules that work \N{GREEK SMALL LETTER ALPHA}."""\n',
        mixed_bad="import a_module_nobody_has",
    )
    done = run("gradients", path=site.folder, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    header, *lines = done.stdout.splitlines()
    bad, fine = (line for line in lines if " mixed " in line)
    assert header.split()[-1] == "summary"
    assert bad.split()[:4] == ["gradients", "bad", "mixed", "0.3"]
    assert "broken: ModuleNotFoundError: No module named 'a_module_nobody_has'" in bad
    assert fine.split()[:5] == ["gradients", "fine", "mixed", "0.3", "ok"]
    assert fine.endswith("Rules that work ?.")
    # Aligned: the last column starts at the same place in every line.
    assert header.index("summary") == fine.index("Rules") == bad.index("mixed_bad:rules")


@pytest.mark.parametrize("group", ["losses", "ortlearn.losses"])
def test_one_group_by_short_or_full_name(group, capsys):
    assert main([group]) == 0
    assert {row[0] for row in rows(capsys.readouterr().out)[1:]} == {"losses"}


def test_empty_group_says_so():
    assert plugins_table([], "ortlearn.gradients", True).endswith("\nNo plugin in ortlearn.gradients.")


def test_unknown_group_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["optimizers"])
    assert caught.value.code == 2
    assert "learning_rates" in capsys.readouterr().err
