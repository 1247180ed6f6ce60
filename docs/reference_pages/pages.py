"""The pages: text from docstrings and objects, pictures from their graphs."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docs.reference_pages.docstrings import parse_docstring
from docs.reference_pages.entries import FAULTS, Entry, find_entries, one_line
from docs.reference_pages.learning_rates import (
    learning_rate_facts,
    learning_rate_picture,
    schedule_facts,
    schedule_picture,
)
from docs.reference_pages.losses import loss_facts, loss_picture
from docs.reference_pages.penalties import penalty_facts, penalty_picture
from docs.reference_pages.pictures import Picture, draw
from ortlearn import plugins

__all__ = ["KINDS", "OURS", "Kind", "Page", "make_page", "write_pages"]

PICTURES = "images/reference"
#: Whose plugins are on the pages that are committed.
OURS = ("ortlearn",)
DESCRIBED = "The linked pages of the classes have further formulas, the parameters, and sources."
#: Where autosummary writes the pages of classes.
CLASSES = "../reference/api/{}.rst"
#: Parameters of every update and their defaults, described once on their page.
SHARED = {("learning_rate", "'constant'"), ("alpha", "0.0001"), ("power_t", "0.25"), ("schedule", "None")}
MADE = (
    "`python -m ortlearn.plugins` lists all installed plugins. `make docs` generates this page from "
    "docstrings and from the graphs of the plugins."
)


@dataclass(frozen=True)
class Kind:
    """A group of plugins: its page, how a plugin is asked for, what its pictures show."""

    group: str
    stem: str
    title: str
    use: str
    facts: Callable[[Any], Iterator[str]]
    picture: Callable[[Any], Picture | None]
    pictures: str
    #: Whether sections have the whole text of a docstring, not only its summary.
    whole: bool = False


KINDS = (
    Kind(
        plugins.LOSSES,
        "losses",
        "Losses",
        "`learning_loss` of an estimator accepts the names on this page, or an object.",
        loss_facts,
        loss_picture,
        "The pictures show the loss of a sample and its gradient as functions of the raw score of the model: "
        "the prediction f of a regression, its logarithm z with a log link, the score z of a class. "
        "Labels of a regression are any numbers, and the link is the identity, unless stated. Two classes "
        "have one score; of several labels, each is 0 or 1, and their losses are summed.",
    ),
    Kind(
        plugins.PENALTIES,
        "penalties",
        "Penalties",
        "`learning_penalty` of an estimator accepts the names on this page, an object, or a dictionary from "
        "weights to penalties (`ortlearn.penalties.PerWeightPenalty`). By default intercepts are not "
        "penalised.",
        penalty_facts,
        penalty_picture,
        "The pictures show the value for one weight and for two weights of a row, the gradient of the smooth "
        "part, and the proximal step, at a high rate for visibility.",
    ),
    Kind(
        plugins.LEARNING_RATES,
        "learning_rates",
        "Learning rates",
        "`learning_rate` of an estimator accepts the names on this page, an object, or a number, which is "
        "the rate of `SGD`.",
        learning_rate_facts,
        learning_rate_picture,
        "g is the gradient of the objective. The pictures show 100 steps on a quadratic of two weights with "
        "curvatures 1 and 25, at the constant rate of 0.001, 0.003, ..., 10 with the lowest mean loss. The "
        "results do not carry over to other objectives. Each update also takes the name of its schedule "
        '(`learning_rate="constant"`) with `alpha` and `power_t`, or an object `schedule`. Proximal steps of '
        "penalties are only supported where stated; projections always are.",
        whole=True,
    ),
    Kind(
        plugins.SCHEDULES,
        "schedules",
        "Schedules",
        "`schedule` of a learning rate accepts the names on this page, or an object: "
        '`LearningRateAdam(schedule="cosine")`.',
        schedule_facts,
        schedule_picture,
        "The pictures show the rate over 100 epochs for `eta0=1` and the default parameters. Schedules that "
        "depend on the training loss, as stated, receive losses that decrease for 30 epochs and are constant "
        "afterwards; the others depend on the epoch number only.",
    ),
)


@dataclass
class Page:
    """Text of a page, and its pictures by file name."""

    text: str
    pictures: dict[str, Picture]


def write_pages(folder: Path, distributions: Collection[str] | None = None) -> list[Path]:
    """Write the pages of all kinds, and their pictures.

    Parameters
    ----------
    folder : Path
        Folder of documentation; ``reference`` and ``images/reference`` are made in it.
    distributions : collection of str, default=None
        Whose plugins; all by default.

    Returns
    -------
    list of Path
        Pages.
    """
    pictures, paths = folder / PICTURES, []
    for path in (pictures, folder / "reference"):
        path.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        page = make_page(kind, distributions)
        for old in pictures.glob(f"{kind.stem}-*.svg"):
            old.unlink()
        for name, picture in page.pictures.items():
            draw(picture, pictures / name)
        paths.append(folder / "reference" / f"{kind.stem}.md")
        paths[-1].write_text(page.text, encoding="utf-8")
    return paths


def make_page(kind: Kind, distributions: Collection[str] | None = None) -> Page:
    """Make the page of one kind; a plugin that fails is listed as broken, and stops nothing."""
    sections: dict[str, list[str]] = {}
    pictures: dict[str, Picture] = {}
    broken = []
    entries = find_entries(kind.group, distributions)
    for entry in entries:
        if entry.plugin is not None:
            try:
                facts = _section(kind, entry)
            except FAULTS as error:
                entry.plugin, entry.reason = None, one_line(error)
            else:
                sections[entry.names[0]] = [*facts, _picture(kind, entry, pictures)]
        if entry.plugin is None:
            names = ", ".join(f"`{name}`" for name in entry.names)
            broken.append(f"- {names} ({entry.owner}): broken, {entry.reason}")
    links = " | ".join(f"[{name}](#{name.lower()})" for name in sections)
    parts = [f"# {kind.title}", f"{kind.use} {kind.pictures} {DESCRIBED}", links]
    parts += [part for section in sections.values() for part in section]
    parts += ["## Broken plugins", "\n".join(broken)] if broken else []
    parts += ["---", MADE]
    return Page("\n\n".join(filter(None, parts)) + "\n", pictures)


def _section(kind: Kind, entry: Entry) -> list[str]:
    """Return heading, text and facts, the first of which is the call with the default parameters."""
    cls = type(entry.plugin)
    doc = parse_docstring(cls)
    also = f", also named {', '.join(f'`{name}`' for name in entry.names[1:])}" if entry.names[1:] else ""
    origin = "" if cls.__module__.startswith("ortlearn.") else f", from {entry.owner}"
    left_out = SHARED if kind.group == plugins.LEARNING_RATES else ()
    shown = [p for p in doc.parameters if (p.name, p.default) not in left_out]
    given = ", ".join(f"{p.name}={p.default}" if p.default else p.name for p in shown)
    path = _public_path(cls)
    call = f"`{path}({given})`"
    called = call if origin else f"[{call}]({CLASSES.format(path)})"
    facts = [f"{called}{also}{origin}.", *kind.facts(entry.plugin)]
    text = doc.text if kind.whole else doc.text.partition("\n\n")[0]
    return [f"## {entry.names[0]}", text, "\n".join(f"- {fact}" for fact in facts)]


def _public_path(cls: type) -> str:
    """Return the shortest import path of a class."""
    parts = cls.__module__.split(".")
    for count in range(1, len(parts)):
        package = ".".join(parts[:count])
        if getattr(sys.modules.get(package), cls.__name__, None) is cls:
            return f"{package}.{cls.__name__}"
    return f"{cls.__module__}.{cls.__qualname__}"


def _picture(kind: Kind, entry: Entry, pictures: dict[str, Picture]) -> str:
    """Return the link to the picture of a plugin, or why there is none."""
    try:
        picture = kind.picture(entry.plugin)
    except FAULTS as error:
        return f"No picture: {one_line(error)}"
    if picture is None:
        return "This plugin has no picture."
    name = f"{kind.stem}-{re.sub('[^A-Za-z0-9_.]', '-', entry.names[0])}.svg"
    pictures[name] = picture
    return f"![{entry.names[0]}: {picture.alt}](../{PICTURES}/{name})"
