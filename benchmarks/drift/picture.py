"""The picture of the README: accuracies of the tables of docs/howto/adapt_to_new_data.md.

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
ROW = re.compile(r"^\| ([a-z ]+) \| ([\d,]+) \| (\*{0,2}\d.+) \|$", re.MULTILINE)
#: Rows of the tables by family of models: names of drifts, in the order of the titles.
FAMILIES = {
    "logistic regression,\nnetworks, boosting": ("covariate", "concept", "share"),
    "forests": ("features moved", "new concept", "class shares"),
}
TITLES = ("features moved", "classes redefined", "classes got rare")
ANSWERS = ("old model", "scikit-learn: refit on new", "scikit-learn: refit on both", "ortlearn: warm start")
COLOURS = ("#c8c8c8", "#f4b266", "#e08214", "#1f4e9c")


def accuracies(page: str) -> dict[tuple[str, str], list[float]]:
    """Return the accuracies of each answer, by drift and number of new samples."""
    return {
        (drift, n_new): [float(cell.strip("* ").split(" ")[0]) for cell in cells.split("|")]
        for drift, n_new, cells in ROW.findall(page)
    }


def draw(page: str, path: Path) -> None:
    """Draw bars for each family of models, kind of drift and number of new samples."""
    found = accuracies(page)
    figure, grid = pyplot.subplots(2, 3, figsize=(9, 5.4), sharex=True, sharey=True, layout="constrained")
    for axes, (family, drifts) in zip(grid, FAMILIES.items(), strict=True):
        for axis, drift in zip(axes, drifts, strict=True):
            sizes = [n_new for name, n_new in found if name == drift]
            places = np.arange(len(sizes))
            for i, (answer, colour) in enumerate(zip(ANSWERS, COLOURS, strict=True)):
                heights = [found[drift, n_new][i] for n_new in sizes]
                axis.bar(places + 0.2 * (i - 1.5), heights, 0.18, label=answer, color=colour)
            axis.set_xticks(places, sizes)
            axis.set_ylim(0.6, 1)
            axis.spines[["top", "right"]].set_visible(False)
        axes[0].set_ylabel(f"{family}\naccuracy after the drift")
    for axis, title in zip(grid[0], TITLES, strict=True):
        axis.set_title(title)
    for axis in grid[1]:
        axis.set_xlabel("new samples")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    draw((DOCS / "howto/adapt_to_new_data.md").read_text(encoding="utf-8"), DOCS / "images/adapt.png")
