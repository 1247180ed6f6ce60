"""The picture of the README: accuracies of the table of docs/howto/adapt_to_new_data.md.

``python -m benchmarks.drift.picture`` draws it from the page, without measuring anything.
"""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot

__all__ = ["accuracies", "draw"]

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"^\| (covariate|concept|share) \| ([\d,]+) \| (.+) \|$", re.MULTILINE)
TITLES = {"covariate": "features moved", "concept": "classes redefined", "share": "classes got rare"}
ANSWERS = ("old model", "scikit-learn: refit on new", "scikit-learn: refit on both", "ortlearn: warm start")
COLOURS = ("#c8c8c8", "#f4b266", "#e08214", "#1f4e9c")


def accuracies(page: str) -> dict[tuple[str, str], list[float]]:
    """Return the accuracies of each answer, by drift and number of new samples."""
    return {
        (drift, n_new): [float(cell.strip("* ").split(" ")[0]) for cell in cells.split("|")]
        for drift, n_new, cells in ROW.findall(page)
    }


def draw(page: str, path: Path) -> None:
    """Draw bars for each kind of drift and each number of new samples."""
    found = accuracies(page)
    figure, axes = pyplot.subplots(1, 3, figsize=(9, 3.4), sharey=True, layout="constrained")
    for axis, (drift, title) in zip(axes, TITLES.items(), strict=True):
        sizes = [n_new for name, n_new in found if name == drift]
        places = np.arange(len(sizes))
        for i, (answer, colour) in enumerate(zip(ANSWERS, COLOURS, strict=True)):
            heights = [found[drift, n_new][i] for n_new in sizes]
            axis.bar(places + 0.2 * (i - 1.5), heights, 0.18, label=answer, color=colour)
        axis.set_xticks(places, sizes)
        axis.set(title=title, xlabel="new samples", ylim=(0.6, 1))
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("accuracy after the drift")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    draw((DOCS / "howto/adapt_to_new_data.md").read_text(encoding="utf-8"), DOCS / "images/adapt.png")
