import json
import subprocess
import sys

import pytest

from ortlearn import plugins
from ortlearn.plugins.discovery import find

LIST_THEN_SHOW_MODULES = """
import json, sys
from ortlearn import plugins
names = [info.name for info in plugins.list_plugins()]
print(json.dumps({"names": names, "modules": sorted(sys.modules)}))
"""


def named(name, group=plugins.LOSSES):
    return [info for info in find(group) if info.name == name]


def test_listing_imports_no_plugin():
    run = subprocess.run(
        [sys.executable, "-c", LIST_THEN_SHOW_MODULES], capture_output=True, text=True, check=True
    )
    seen = json.loads(run.stdout)
    assert {"squared_error", "log_loss", "l2", "Adam", "example_log_cosh"} <= set(seen["names"])
    heavy = {
        "onnxruntime",
        "ortlearn.losses.log_loss",
        "ortlearn.losses",
        "ortlearn.penalties",
        "ortlearn.learning_rates",
        "ortlearn_example_plugin",
        "skl2onnx",
    }
    assert not heavy & set(seen["modules"])


def test_built_in_plugins_are_found_like_others():
    (info,) = named("log_loss")
    assert (info.distribution, info.value) == ("ortlearn", "ortlearn.losses.log_loss:LogLoss")
    assert info.version
    assert (info.status, info.summary, info.broken) == ("not loaded", "", False)


def test_records_of_a_new_distribution(site):
    site.add(
        "extra-losses",
        "2.1",
        "[ortlearn.losses]\nextra = extra_module:Extra\n[ortlearn.gradients]\nextra = extra_module:rules\n"
        "[console_scripts]\nextra = extra_module:main\n",
    )
    assert [(info.group, info.value) for info in find() if info.distribution == "extra-losses"] == [
        ("ortlearn.losses", "extra_module:Extra"),
        ("ortlearn.gradients", "extra_module:rules"),
    ]
    assert named("extra")[0].owner == "extra-losses 2.1"
    assert "extra_module" not in sys.modules


def test_order_is_by_group_name_and_owner(site):
    site.add("zz", entry_points="[ortlearn.penalties]\nb = z:b\na = z:a\n[ortlearn.losses]\nc = z:c\n")
    order = [(plugins.GROUPS.index(info.group), info.name) for info in find()]
    assert order == sorted(order)


def test_same_distribution_twice_on_the_path_counts_once(new_site):
    behind, ahead = new_site(), new_site()
    behind.add("Twice.Seen", "1.0", "[ortlearn.losses]\nseen = twice_old:Loss\ngone = twice_old:Gone\n")
    ahead.add("twice-seen", "1.1", "[ortlearn.losses]\nseen = twice_new:Loss\n")
    (info,) = named("seen")
    assert (info.version, info.value, info.broken) == ("1.1", "twice_new:Loss", False)
    assert named("gone") == []


def test_first_copy_counts_even_if_it_declares_nothing(new_site):
    behind, ahead = new_site(), new_site()
    behind.add("dropped", "1.0", "[ortlearn.losses]\ndropped = dropped_module:Loss\n")
    ahead.add("dropped", "2.0")
    assert named("dropped") == []


def test_two_distributions_of_one_name_are_both_listed(site):
    site.add("first", "1.0", "[ortlearn.losses]\nshared = first_module:Loss\n")
    site.add("second", "2.0", "[ortlearn.losses]\nshared = second_module:Loss\n")
    assert [info.status for info in named("shared")] == [
        "broken: also declared by second 2.0",
        "broken: also declared by first 1.0",
    ]


def test_one_name_in_two_groups(site):
    site.add("pair", entry_points="[ortlearn.losses]\nx = pair:L\n[ortlearn.penalties]\nx = pair:P\n")
    assert [info.status for info in find() if info.distribution == "pair"] == ["not loaded"] * 2


def test_malformed_metadata_is_one_broken_record(site):
    site.add("malformed", "0.1", "[ortlearn.losses]\nthis line has no equals sign\n")
    (info,) = [info for info in find() if info.distribution == "malformed"]
    assert (info.group, info.name) == ("ortlearn.losses", "?")
    assert info.status.startswith("broken: entry_points.txt is malformed")
    assert len(named("log_loss")) == 1


def test_unreadable_or_nameless_metadata_is_ignored(site):
    site.add("nameless", entry_points="[ortlearn.losses]\nnameless = nameless:Loss\n")
    (site.folder / "nameless-1.0.dist-info" / "METADATA").unlink()
    site.add("binary", entry_points="")
    (site.folder / "binary-1.0.dist-info" / "entry_points.txt").write_bytes(b"\xff\xfe[ortlearn.losses]")
    plugins.refresh()
    names = {info.name for info in find()}
    assert "nameless" not in names and "log_loss" in names


@pytest.mark.parametrize("group", plugins.GROUPS)
def test_one_group(group):
    assert {info.group for info in find(group)} <= {group}
