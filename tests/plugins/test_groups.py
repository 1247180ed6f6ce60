import pytest

from ortlearn import plugins
from ortlearn.exceptions import PluginError
from ortlearn.plugins.groups import LABELS, check_group


def test_six_groups_each_with_a_label():
    assert plugins.GROUPS == (
        plugins.LOSSES,
        plugins.PENALTIES,
        plugins.LEARNING_RATES,
        plugins.SCHEDULES,
        plugins.GRADIENTS,
        plugins.MODELS,
    )
    assert list(LABELS) == list(plugins.GROUPS)
    assert len(set(LABELS.values())) == 6


@pytest.mark.parametrize("group", ["losses", "", None, "ortlearn.loss"])
def test_unknown_group_lists_the_groups(group):
    with pytest.raises(PluginError, match="ortlearn.losses, ortlearn.penalties"):
        check_group(group)


def test_all_functions_reject_unknown_groups():
    calls = [
        lambda: plugins.get("losses", "l1"),
        lambda: plugins.list_plugins("losses"),
        lambda: plugins.register("losses", "x", object),
        lambda: plugins.unregister("losses", "x"),
        lambda: plugins.temporary("losses", "x", object).__enter__(),
    ]
    for call in calls:
        with pytest.raises(PluginError, match="not a group"):
            call()
