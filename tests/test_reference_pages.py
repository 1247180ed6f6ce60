"""The pages of docs/reference are complete, up to date and have correct pictures."""

import re
from pathlib import Path

import numpy as np
import pytest

from docs.reference_pages.docstrings import parse_docstring
from docs.reference_pages.learning_rates import CURVATURE, STEPS, learning_rate_picture, schedule_picture
from docs.reference_pages.losses import loss_picture
from docs.reference_pages.operators import operator_states, operators_page, write_operators_page
from docs.reference_pages.pages import KINDS, MADE, OURS, make_page, write_pages
from docs.reference_pages.penalties import penalty_picture
from docs.reference_pages.pictures import Line, Panel, Picture, draw
from ortlearn import plugins
from ortlearn.differentiation.rule_set import RuleSet
from ortlearn.learning_rates import BaseSchedule, LearningRateSGD, PlateauSchedule
from ortlearn.losses import BaseLoss, HuberLoss, LogLoss, PoissonLoss, QuantilesLoss
from ortlearn.penalties import L1Penalty

DOCS = Path(__file__).parents[1] / "docs"
BY_GROUP = {kind.group: kind for kind in KINDS}
LOSS_KIND = BY_GROUP[plugins.LOSSES]
REGISTERED = ("(registered)",)
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.stem)


def committed(kind):
    return (DOCS / "reference" / f"{kind.stem}.md").read_text(encoding="utf-8")


@kinds
def test_every_plugin_is_on_its_page(kind):
    text = committed(kind)
    headings = re.findall("^## (.+)$", text, re.MULTILINE)
    also = re.findall("`([^`]+)`", " ".join(re.findall("also named (.+?)(?:, from.*)?$", text, re.MULTILINE)))
    names = [info.name for info in plugins.list_plugins(kind.group) if info.distribution in OURS]
    assert sorted(headings + also) == sorted(names)


@pytest.mark.slow
@pytest.mark.sweep(3)
@kinds
def test_committed_page_is_up_to_date(kind):
    page = make_page(kind, OURS)
    assert committed(kind) == page.text, "run: make docs"
    links = re.findall(r"^!\[.+\]\(\.\./images/reference/(.+)\)$", page.text, re.MULTILINE)
    assert links == list(page.pictures)
    assert sorted(links) == sorted(path.name for path in (DOCS / "images/reference").glob(f"{kind.stem}-*"))


class QuarticLoss(BaseLoss):
    """Quartic loss: ``factor * (f - y) ** 4``.

    It is :class:`~ortlearn.losses.SquaredErrorLoss`, squared.

    Parameters
    ----------
    factor, unused : float
        What it is
        multiplied by.

    References
    ----------
    None.
    """

    def __init__(self, factor=2.0, unused=1e-3):
        self.factor = factor
        self.unused = unused

    def forward(self, op, expected, predicted):
        """Write the loss of each sample."""
        square = op.Mul(op.Sub(predicted, expected), op.Sub(predicted, expected))
        return self.sum_outputs(op, op.Mul(op.Mul(square, square), self.factor))


@pytest.mark.slow
def test_plugin_of_another_distribution_is_shown(tmp_path):
    class Half(BaseSchedule):
        """Half of it."""

        def rate(self, epoch, eta0, memory=None):
            """Return the rate of an epoch."""
            return eta0 / 2

    with (
        plugins.temporary(plugins.LOSSES, "quartic", QuarticLoss),
        plugins.temporary(plugins.LOSSES, "fourth_power", QuarticLoss),
        plugins.temporary(plugins.SCHEDULES, "half", Half),
    ):
        write_pages(tmp_path, REGISTERED)
    text = (tmp_path / "reference/losses.md").read_text()
    assert "## quartic\n\nQuartic loss: ``factor * (f - y) ** 4``.\n\n- `" in text
    assert "QuarticLoss(factor=2.0, unused=0.001)`, also named `fourth_power`, from (registered)." in text
    assert not {"squared.", "multiplied", "References"} & set(text.split())
    assert text.endswith(f"images/reference/losses-quartic.svg)\n\n---\n\n{MADE}\n")
    assert "## half" in (tmp_path / "reference/schedules.md").read_text()
    pictures = sorted(path.name for path in (tmp_path / "images/reference").iterdir())
    assert pictures == ["losses-quartic.svg", "schedules-half.svg"]
    write_pages(tmp_path, REGISTERED)
    assert not list((tmp_path / "images/reference").iterdir()), "pictures of removed plugins"


def test_broken_plugins_are_listed(tmp_path, monkeypatch):
    class Unmakeable(QuarticLoss):
        """A loss that cannot be made."""

        def __init__(self):
            raise SystemExit("no licence")

    class Domainless(QuarticLoss):
        """A loss without a domain."""

        @property
        def domain(self):
            """Fail."""
            raise KeyError("domain")

    class Unwritten(BaseLoss):
        """A loss without an expression."""

    info = tmp_path / "broken_losses-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-losses\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ortlearn.losses]\ngone = not_there_at_all:Loss\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins.refresh()
    try:
        with (
            plugins.temporary(plugins.LOSSES, "wrong_kind", 3),
            plugins.temporary(plugins.LOSSES, "unmakeable", Unmakeable),
            plugins.temporary(plugins.LOSSES, "domainless", Domainless),
            plugins.temporary(plugins.LOSSES, "unwritten", Unwritten),
            plugins.temporary(plugins.LOSSES, "quartic", QuarticLoss),
        ):
            text = make_page(LOSS_KIND, [*REGISTERED, "broken-losses"]).text
    finally:
        monkeypatch.undo()
        plugins.refresh()
    assert re.findall("^## (.+)$", text, re.MULTILINE) == ["quartic", "unwritten", "Broken plugins"]
    assert "No picture: NotImplementedError: Unwritten has no forward expression: implement forward." in text
    broken = text.partition("## Broken plugins")[2]
    assert "- `gone` (broken-losses 1.0): broken, ModuleNotFoundError: No module named 'not_there" in broken
    assert "- `wrong_kind` ((registered)): broken, PluginError: " in broken
    assert "broken, SystemExit: no licence" in broken
    assert "broken, KeyError: 'domain'" in broken


def test_picture_of_a_loss():
    rows, slopes = loss_picture(HuberLoss(delta=0.7)).panels
    assert [line.label for line in rows.lines] == ["y = -1", "y = 0.5", "y = 3"]
    for target, row, slope in zip((-1, 0.5, 3), rows.lines, slopes.lines, strict=True):
        r = row.x - target
        assert np.allclose(row.y, np.where(abs(r) <= 0.7, r**2 / 2, 0.7 * (abs(r) - 0.35)), atol=1e-5)
        assert np.allclose(slope.y, np.clip(r, -0.7, 0.7), atol=1e-5)


def test_labels_are_of_the_domain_and_the_task():
    picture = loss_picture(PoissonLoss())
    assert [line.label for line in picture.panels[0].lines] == ["y = 0", "y = 1", "y = 3"]
    slope = loss_picture(LogLoss()).panels[1].lines[1]
    assert slope.label == "class 1"
    assert np.allclose(slope.y, 1 / (1 + np.exp(-slope.x)) - 1, atol=1e-6)


def test_picture_of_quantiles_varies_the_middle_score():
    rows, slopes = loss_picture(QuantilesLoss()).panels
    step, levels = np.log(2), (0.05, 0.5, 0.95)  # the others are softplus(0) above and below
    for target, row, slope in zip((-1, 0.5, 3), rows.lines, slopes.lines, strict=True):
        r = target - row.x[:, None] - [-step, 0, step]
        losses = np.maximum(np.multiply(levels, r), np.subtract(levels, 1) * r)
        assert np.allclose(row.y, losses.sum(axis=1), atol=1e-5)
        smooth = abs(r).min(axis=1) > 1e-6
        assert np.allclose(slope.y[smooth], ((r < 0) - levels).sum(axis=1)[smooth], atol=1e-5)


def test_picture_of_a_proximal_step():
    panels = {panel.title: panel for panel in penalty_picture(L1Penalty(l1=0.02)).panels}
    assert set(panels) == {"value", "value over a row", "proximal step"}
    line = panels["proximal step"].lines[0]
    assert line.label == "rate 100"
    assert np.allclose(line.y, np.sign(line.x) * np.maximum(abs(line.x) - 2, 0), atol=1e-5)
    x, y, values = panels["value over a row"].contours
    assert np.allclose(values, 0.02 * (abs(x[None]) + abs(y[:, None])), atol=1e-6)


def test_picture_of_a_learning_rate():
    line = learning_rate_picture(LearningRateSGD()).panels[0].lines[0]
    rate = float(line.label.removeprefix("rate "))
    path = np.stack([line.x, line.y], axis=1)
    assert len(path) == STEPS + 1
    assert np.allclose(path[1:], path[:-1] - rate * path[:-1] @ CURVATURE, atol=1e-5)


def test_picture_of_a_schedule_that_depends_on_losses():
    rates, losses = schedule_picture(PlateauSchedule(patience=4)).panels
    flat = int(np.argmin(losses.lines[0].y))  # the first epoch of the lowest loss
    assert np.flatnonzero(np.diff(rates.lines[0].y))[0] == flat + 5
    assert np.isclose(rates.lines[0].y[flat + 6], 0.1)


@pytest.mark.slow
def test_pictures_are_reproducible(tmp_path):
    picture = Picture([Panel("t", "x", "y", [Line([1, 2], [3, 4], "a", "o")], log=True)], "a line")
    draw(picture, tmp_path / "one.svg")
    draw(picture, tmp_path / "two.svg")
    text = (tmp_path / "one.svg").read_text()
    assert text == (tmp_path / "two.svg").read_text()
    assert "dc:date" not in text
    with pytest.raises(ValueError, match="not all values are finite"):
        Panel("t", "x", "y", [Line([1, 2], [3, float("nan")])])


def test_text_of_a_docstring():
    assert parse_docstring(QuarticLoss).text.endswith("** 4``.\n\nIt is ``SquaredErrorLoss``, squared.")


def test_parameters_of_a_class_without_docstring():
    class Bare:
        def __init__(self, a, b=1, *args, **kwargs):
            pass

    doc = parse_docstring(Bare)
    assert doc.text == ""
    assert [(parameter.name, parameter.default) for parameter in doc.parameters] == [("a", ""), ("b", "1")]


def states_on_the_page():
    """Return the states of operators on the committed page, and of others with a name that is None."""
    text = (DOCS / "reference/operators.md").read_text(encoding="utf-8")
    sections = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    return {
        ("" if domain == "ai.onnx" else domain, None if name == "all others" else name): state
        for domain, section in zip(sections[::2], sections[1::2], strict=True)
        for state, names in re.findall(r"^\*\*([a-z ]+)\*\*: ([\w, ]+)\.$", section, re.MULTILINE)
        for name in names.split(", ")
    }


def test_committed_page_of_operators_is_up_to_date():
    """Versions of onnx differ in the known operators and in those defined as functions."""
    found, listed = operator_states(OURS), states_on_the_page()
    others = {domain: state for (domain, name), state in listed.items() if name is None}
    assert others == {"": "rule", "com.microsoft": "missing"}
    states = {key: listed.get(key, others.get(key[0])) for key in found}
    differ = {key for key, state in found.items() if states[key] != state}
    assert not {key for key in differ if {"rule", "no gradient"} & {found[key], states[key]}}, (
        "run: make docs"
    )
    assert states["", "LSTM"] == listed["com.microsoft", "Attention"] == "rule"
    assert listed["", "ArgMax"] == "no gradient" and listed["", "DFT"] == "missing"


def test_operators_of_other_distributions_are_not_on_the_page(tmp_path):
    rules = RuleSet("theirs")
    rules.without_gradient("Glue", domain="ai.onnx.ml")
    with plugins.temporary(plugins.GRADIENTS, "theirs", rules):
        path = write_operators_page(tmp_path, REGISTERED)
        assert ("ai.onnx.ml", "Glue") not in operator_states(OURS)
    assert re.search(r"^\*\*no gradient\*\*: .*\bGlue\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    bare = operators_page(operator_states(()))
    assert re.search(r"^\*\*missing\*\*: .*\bScaler\b", bare, re.MULTILINE) and "LSTM" not in bare
