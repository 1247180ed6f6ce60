import sys
import threading

import pytest

from ortlearn import plugins
from ortlearn.exceptions import PluginError, UnknownPluginError
from ortlearn.plugins import LEARNING_RATES, LOSSES, PENALTIES, SCHEDULES, suggestions

LOSS_MODULE = '''
class Loss:
    """A loss made for a test.

    With more lines.
    """
'''


def info_of(name, group=LOSSES, load=False):
    (info,) = [info for info in plugins.list_plugins(group, load=load) if info.name == name]
    return info


class Mine:
    """Mine alone."""


class Other:
    pass


# Loading


def test_get_imports_on_first_use_and_caches(site):
    site.add("lazy", "1.0", "[ortlearn.losses]\nlazy = lazy_loss:Loss\n", lazy_loss=LOSS_MODULE)
    assert info_of("lazy").status == "not loaded"
    assert "lazy_loss" not in sys.modules
    loss = plugins.get(LOSSES, "lazy")
    assert loss is sys.modules["lazy_loss"].Loss
    info = info_of("lazy")
    assert (info.status, info.summary) == ("ok", "A loss made for a test.")
    del sys.modules["lazy_loss"]
    assert plugins.get(LOSSES, "lazy") is loss


def test_get_loads_one_plugin(site):
    site.add(
        "two",
        entry_points="[ortlearn.losses]\na = two_a:Loss\nb = two_b:Loss\n",
        two_a=LOSS_MODULE,
        two_b="1 / 0",
    )
    assert plugins.get(LOSSES, "a").__module__ == "two_a"
    assert "two_b" not in sys.modules
    assert info_of("b").status == "not loaded"


@pytest.mark.parametrize(
    "name, closest",
    [("squarred_error", "squared_error"), ("LOG_LOS", "log_loss"), ("abs_error", "absolute_error")],
)
def test_unknown_name_suggests_the_closest_and_lists_the_known(name, closest):
    with pytest.raises(UnknownPluginError) as caught:
        plugins.get(LOSSES, name)
    message = str(caught.value)
    assert message.startswith(f"No loss is named {name!r}. Did you mean {closest!r}? Known names: ")
    for known in ("absolute_error", "elastic", "log_loss", "squared_error"):
        assert known in message
    assert isinstance(caught.value, ValueError)


ELSEWHERE = {
    LOSSES: {
        "squared_error": "mse MSE MSELoss mean_squared_error rmse ls reg:squarederror",
        "absolute_error": "mae mean_absolute_error LAD",
        "log_loss": "bce BCEWithLogitsLoss binary_crossentropy sparse_categorical_crossentropy nll deviance",
        "cross_entropy": "CrossEntropyLoss crossentropy",
        "huber": "SmoothL1Loss smooth_l1",
        "l1": "L1Loss",
    },
    PENALTIES: {"l2": "ridge weight_decay", "l1": "lasso", "l1l2": "l1_l2", "group_lasso": "GroupLasso"},
    LEARNING_RATES: {
        "RMSprop": "rms_prop RMS-Prop",
        "AdamW": "Adam_W",
        "Adam": "nadam AMSGrad",
        "LBFGS": "l-bfgs L_BFGS_B newton",
        "SGDNesterov": "momentum sgd_nesterov",
    },
    SCHEDULES: {"cosine": "CosineAnnealingLR", "plateau": "ReduceLROnPlateau", "step": "StepLR"},
}


@pytest.mark.parametrize("group", list(ELSEWHERE))
def test_names_of_other_libraries_suggest_those_of_ortlearn(group):
    for meant, names in ELSEWHERE[group].items():
        for name in names.split():
            with pytest.raises(UnknownPluginError) as caught:
                plugins.get(group, name)
            assert f" is named {name!r}. Did you mean {meant!r}? Known" in str(caught.value)


def test_suggestions_are_known_names_and_no_name_is_suggested_for_two():
    for group, table in suggestions.ELSEWHERE.items():
        assert all(plugins.has(group, meant) for meant in table)
        names = " ".join(table.values()).split()
        assert len(set(names)) == len(names)


def test_unknown_name_unlike_any_other_suggests_nothing():
    with pytest.raises(UnknownPluginError, match="No penalty is named 'zzzzzz'. Known names: ") as caught:
        plugins.get(PENALTIES, "zzzzzz")
    assert "Did you mean" not in str(caught.value)


def test_unknown_name_counts_registered_objects_among_the_known():
    with plugins.temporary(PENALTIES, "group_lasso", Mine):
        with pytest.raises(UnknownPluginError, match="Did you mean 'group_lasso'"):
            plugins.get(PENALTIES, "grouplasso")


@pytest.mark.parametrize("name", [None, 3, "", Mine])
def test_name_must_be_a_string(name):
    with pytest.raises(PluginError, match="must be a non-empty string"):
        plugins.get(LOSSES, name)


# Names in any case


@pytest.mark.parametrize("group", plugins.GROUPS)
def test_names_in_any_case(group):
    for name in {info.name for info in plugins.list_plugins(group) if info.distribution == "ortlearn"}:
        for written in (name.upper(), name.lower(), name.swapcase()):
            assert plugins.get(group, written) is plugins.get(group, name)


def test_names_that_differ_only_by_case(site):
    points = "[ortlearn.losses]\nTwin = twin_loss:Loss\nTWIN = twin_loss:Other\n"
    site.add("twins", "1.0", points, twin_loss=LOSS_MODULE + "class Other:\n    pass\n")
    assert plugins.get(LOSSES, "Twin").__name__ == "Loss"
    assert plugins.get(LOSSES, "TWIN").__name__ == "Other"
    with pytest.raises(
        PluginError, match="loss .twin. could be 'TWIN' or 'Twin'.*one of these names"
    ) as caught:
        plugins.get(LOSSES, "twin")
    assert not isinstance(caught.value, UnknownPluginError)
    plugins.register(LOSSES, "twin", Mine)
    assert plugins.get(LOSSES, "twin") is Mine
    plugins.unregister(LOSSES, "twin")


def test_registered_name_in_another_case():
    with plugins.temporary(LOSSES, "HUBER", Mine):
        assert plugins.get(LOSSES, "HUBER") is Mine
        assert plugins.get(LOSSES, "huber") is not Mine
        with pytest.raises(PluginError, match="'HUBER' or 'huber'"):
            plugins.get(LOSSES, "Huber")
    assert plugins.get(LOSSES, "HUBER") is plugins.get(LOSSES, "huber")


def test_has_compares_exact_names():
    assert plugins.has(LOSSES, "huber") and not plugins.has(LOSSES, "Huber")


# Broken plugins

BROKEN_SOURCES = {
    "import_error": (
        "import a_module_nobody_has",
        "ModuleNotFoundError: No module named 'a_module_nobody_has'",
    ),
    "any_error": ("1 / 0", "ZeroDivisionError: division by zero"),
    "no_attribute": ("", "AttributeError: .*has no attribute 'Loss'"),
    "exits": ("raise SystemExit('bye')", "SystemExit: bye"),
    "syntax": ("def", "SyntaxError"),
}


@pytest.mark.parametrize("case", BROKEN_SOURCES)
def test_error_of_a_broken_plugin(site, case):
    source, reason = BROKEN_SOURCES[case]
    points = "[ortlearn.losses]\nbad = bad_loss:Loss\ngood = good_loss:Loss\n"
    site.add("half-broken", "3.2", points, bad_loss=source, good_loss=LOSS_MODULE)
    with pytest.raises(
        PluginError, match=f"half-broken 3.2 .bad_loss:Loss. cannot be loaded: {reason}"
    ) as caught:
        plugins.get(LOSSES, "bad")
    assert not isinstance(caught.value, UnknownPluginError)
    assert type(caught.value.__cause__).__name__ == reason.split(":")[0]
    assert plugins.get(LOSSES, "good").__name__ == "Loss"
    assert info_of("bad").status.startswith("broken: " + reason.split(":")[0])


def test_broken_plugin_stays_broken_until_refresh(site):
    site.add("repaired", entry_points="[ortlearn.losses]\nr = repaired_loss:Loss\n", repaired_loss="1 / 0")
    with pytest.raises(PluginError, match="refresh"):
        plugins.get(LOSSES, "r")
    # The text has another length: the interpreter's cache of compiled files compares size and time.
    (site.folder / "repaired_loss.py").write_text(LOSS_MODULE)
    with pytest.raises(PluginError, match="division by zero"):
        plugins.get(LOSSES, "r")
    plugins.refresh()
    assert plugins.get(LOSSES, "r").__name__ == "Loss"
    assert info_of("r").status == "ok"


def test_malformed_target_is_a_broken_plugin(site):
    site.add("target", entry_points="[ortlearn.losses]\nt = not a target!\n")
    with pytest.raises(PluginError, match="target 1.0"):
        plugins.get(LOSSES, "t")


def test_listing_with_load_never_raises(site):
    points = "[ortlearn.losses]\n" + "".join(f"{case} = {case}_loss:Loss\n" for case in BROKEN_SOURCES)
    modules = {f"{case}_loss": source for case, (source, _) in BROKEN_SOURCES.items()}
    site.add("very-broken", "1.0", points + "odd = not a target!\nmissing = nowhere_at_all:x\n", **modules)
    site.add("malformed", "1.0", "[ortlearn.losses]\nno equals sign\n")
    site.add("rival", "1.0", "[ortlearn.losses]\nsyntax = elsewhere:Loss\n")
    infos = plugins.list_plugins(load=True)
    bad = [info for info in infos if info.distribution in ("very-broken", "malformed", "rival")]
    assert len(bad) == len(BROKEN_SOURCES) + 4
    assert all(info.broken and "\n" not in info.status for info in bad)
    assert "not loaded" not in {info.status for info in infos}
    assert "elsewhere" not in sys.modules


def test_name_declared_twice_fails_on_use(site):
    site.add("first", "1.0", "[ortlearn.losses]\nshared = first_loss:Loss\n", first_loss=LOSS_MODULE)
    points = "[ortlearn.losses]\nshared = second_loss:Loss\nown = second_loss:Loss\n"
    site.add("second", "2.0", points, second_loss=LOSS_MODULE)
    assert plugins.get(LOSSES, "own").__module__ == "second_loss"
    with pytest.raises(
        PluginError, match=r"first 1.0 \(first_loss:Loss\) and second 2.0 \(second_loss:Loss\)"
    ):
        plugins.get(LOSSES, "shared")
    with plugins.temporary(LOSSES, "shared", Mine):
        assert plugins.get(LOSSES, "shared") is Mine


def test_built_in_name_declared_twice(site):
    site.add("rival", "1.0", "[ortlearn.losses]\nlog_loss = rival_loss:Loss\n", rival_loss=LOSS_MODULE)
    with pytest.raises(
        PluginError, match=r"'log_loss' is declared more than once: by ortlearn .* and rival 1.0"
    ):
        plugins.get(LOSSES, "log_loss")


# Registered objects


def test_register_and_unregister():
    plugins.register(LOSSES, "mine", Mine)
    try:
        assert plugins.get(LOSSES, "mine") is Mine
        info = info_of("mine")
        assert (info.distribution, info.status, info.summary) == ("(registered)", "ok", "Mine alone.")
        assert info.value.endswith(":Mine")
        with pytest.raises(PluginError, match="already exists: .registered.*overwrite=True"):
            plugins.register(LOSSES, "mine", Other)
        assert plugins.get(LOSSES, "mine") is Mine
        plugins.register(LOSSES, "mine", Other, overwrite=True)
        assert plugins.get(LOSSES, "mine") is Other
        assert info_of("mine").summary == ""
    finally:
        plugins.unregister(LOSSES, "mine")
    with pytest.raises(UnknownPluginError):
        plugins.get(LOSSES, "mine")


def test_an_object_can_be_registered_as_well_as_a_class():
    loss = Mine()
    with plugins.temporary(LOSSES, "mine", loss):
        assert plugins.get(LOSSES, "mine") is loss
        assert info_of("mine").value.endswith(":Mine")


def test_register_over_an_installed_plugin_needs_overwrite(site):
    site.add("hidden", "1.0", "[ortlearn.losses]\nhidden = hidden_loss:Loss\n", hidden_loss=LOSS_MODULE)
    with pytest.raises(PluginError, match="already exists: hidden 1.0"):
        plugins.register(LOSSES, "hidden", Mine)
    plugins.register(LOSSES, "hidden", Mine, overwrite=True)
    assert plugins.get(LOSSES, "hidden") is Mine
    assert info_of("hidden").distribution == "(registered)"
    plugins.unregister(LOSSES, "hidden")
    assert plugins.get(LOSSES, "hidden").__module__ == "hidden_loss"


def test_register_in_one_group_leaves_the_others():
    with plugins.temporary(LOSSES, "mine", Mine):
        with pytest.raises(UnknownPluginError):
            plugins.get(PENALTIES, "mine")
        assert "mine" not in {info.name for info in plugins.list_plugins(PENALTIES)}


def test_unregister_an_unregistered_name():
    with pytest.raises(UnknownPluginError, match="'nobody'"):
        plugins.unregister(LOSSES, "nobody")
    with pytest.raises(PluginError, match="comes from ortlearn") as caught:
        plugins.unregister(LOSSES, "log_loss")
    assert not isinstance(caught.value, UnknownPluginError)


def test_temporary_restores_after_an_error():
    plugins.register(LOSSES, "mine", Mine)
    try:
        with pytest.raises(KeyError):
            with plugins.temporary(LOSSES, "mine", Other) as other:
                assert other is Other and plugins.get(LOSSES, "mine") is Other
                raise KeyError("x")
        assert plugins.get(LOSSES, "mine") is Mine
        with plugins.temporary(LOSSES, "mine", Other):
            plugins.unregister(LOSSES, "mine")
        assert plugins.get(LOSSES, "mine") is Mine
    finally:
        plugins.unregister(LOSSES, "mine")


def test_temporary_blocks_nest():
    with plugins.temporary(LOSSES, "mine", Mine):
        with plugins.temporary(LOSSES, "mine", Other):
            assert plugins.get(LOSSES, "mine") is Other
        assert plugins.get(LOSSES, "mine") is Mine
    with pytest.raises(UnknownPluginError):
        plugins.get(LOSSES, "mine")


def test_registered_objects_survive_refresh():
    with plugins.temporary(LOSSES, "mine", Mine):
        plugins.refresh()
        assert plugins.get(LOSSES, "mine") is Mine


# Scanning and threads


def test_scan_is_cached_until_refresh(site):
    plugins.list_plugins()
    info = site.folder / "later-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: later\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ortlearn.losses]\nlater = later_loss:Loss\n")
    with pytest.raises(UnknownPluginError, match="refresh"):
        plugins.get(LOSSES, "later")
    plugins.refresh()
    assert info_of("later").owner == "later 1.0"


def test_plugins_may_use_the_registry_during_import(site):
    source = LOSS_MODULE + (
        "import threading\n"
        "from ortlearn import plugins\n"
        "thread = threading.Thread(target=plugins.list_plugins, daemon=True)\n"
        "thread.start()\n"
        "thread.join(30)\n"
        "FREE = not thread.is_alive()\n"
        "INNER = plugins.get(plugins.LOSSES, 'inner')\n"
    )
    points = "[ortlearn.losses]\nouter = outer_loss:Loss\ninner = inner_loss:Loss\n"
    site.add("nested", entry_points=points, outer_loss=source, inner_loss=LOSS_MODULE)
    plugins.get(LOSSES, "outer")
    assert sys.modules["outer_loss"].FREE
    assert sys.modules["outer_loss"].INNER is plugins.get(LOSSES, "inner")


def test_all_threads_get_the_same_object(site):
    source = "def __getattr__(name):\n    return type(name, (), {})\n"
    site.add("racing", entry_points="[ortlearn.losses]\nracing = racing_loss:Loss\n", racing_loss=source)
    start = threading.Barrier(8)
    seen = []

    def ask():
        start.wait()
        seen.append(plugins.get(LOSSES, "racing"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 8 and len(set(seen)) == 1


def test_number_as_text():
    with pytest.raises(UnknownPluginError, match="No learning rate is named '1e-3'. Pass a number: "):
        plugins.get(LEARNING_RATES, "1e-3")
