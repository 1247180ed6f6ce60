"""Draw the layout of the package from its imports: ``python -m docs.layout_picture FILE``."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import ortlearn

ROOT = Path(ortlearn.__file__).parent
#: Modules that all packages import, which are omitted.
LEFT_OUT = {"exceptions", "plugins", "quiet", "_version"}
#: Purpose of each room or module.
LABELS = {
    "boosting": "trees on any loss",
    "callbacks": "checkpoints, rates",
    "cli": "command line",
    "comparison": "is a change better,\nby losses of samples",
    "compress": "distilled, pruned and\nint8 models",
    "conversion": "public names of models,\nfiles, trainable graphs",
    "data": "samples in memory and\nin sources, orders",
    "differentiation": "rules, gradient graphs,\nthe C++ builder",
    "distributed": "training on shards,\nDask clusters",
    "estimators": "the two estimators:\nparameters, methods, tags",
    "evaluation": "a model on the\nsamples of a table",
    "fitting": "from samples to\na fitted model",
    "functions": "fitted models as\ndifferentiable functions",
    "graphs": "builder, queries, rewriting,\ntext, files",
    "inference": "predictions, scores, losses",
    "inspection": "pictures of histories\nand graphs",
    "intervals": "intervals, sets,\ncalibrated probabilities",
    "learning_rates": "updates, schedules,\nsolvers",
    "lifecycle": "drift, retraining, gate,\nversions, cards",
    "losses": "one file per loss",
    "models": "a definition per class:\ngraph, parameters, objective",
    "onnx_files": "files of any origin: loading,\nchecks, weights, scores",
    "packages": "training packages for\nother languages",
    "parameters": "checks of plugin parameters",
    "penalties": "one file per penalty",
    "preprocessing": "X to inputs, steps that\nstay in scikit-learn",
    "problem": "configuration, model\nand objective",
    "runtime": "sessions, devices, tensors\nof onnxruntime",
    "saving": "files without pickle",
    "search": "candidates trained\nin one graph",
    "targets": "labels, classes,\nclass weights",
    "testing": "checks for plugins",
    "trainable": "any model as a graph\nwith weights to train",
    "training": "objective, steps,\noptimisations, loop",
    "transforms": "an axis of candidates",
}


def imported_parts(path: Path) -> Iterator[str]:
    """Yield the parts of the package that a file imports."""
    package = ("ortlearn", *path.relative_to(ROOT).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1] + tuple((node.module or "").split("."))
            named = [name for name in base[1:] if name] or [alias.name for alias in node.names]
            yield from named[:1] if len(base) > 1 and base[1] else named


def arrows() -> dict[str, set[str]]:
    """Return the parts that each part imports."""
    parts = {p.name if p.is_dir() else p.stem for p in ROOT.iterdir() if p.suffix == ".py" or p.is_dir()}
    parts -= LEFT_OUT | {"__init__", "__main__", "__pycache__"}
    found: dict[str, set[str]] = {part: set() for part in sorted(parts)}
    for path in ROOT.rglob("*.py"):
        part = path.relative_to(ROOT).with_suffix("").parts[0]
        if part in found:
            found[part] |= {name for name in imported_parts(path) if name in parts} - {part}
    return found


def levels(graph: Mapping[str, set[str]]) -> dict[str, int]:
    """Return the length of the longest chain of imports from each part."""

    def level(part: str) -> int:
        return max((1 + level(other) for other in graph[part]), default=0)

    return {part: level(part) for part in graph}


def shortest(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the arrows that no longer path implies."""

    def reached(part: str) -> set[str]:
        return graph[part].union(*(reached(other) for other in graph[part]))

    return {
        part: {other for other in below if not any(other in reached(third) for third in below - {other})}
        for part, below in graph.items()
    }


def draw(path: Path) -> None:
    """Draw the parts, each above those that it imports."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    graph = arrows()
    rows: dict[int, list[str]] = {}
    for part, level in levels(graph).items():
        rows.setdefault(level, []).append(part)
    places = {
        part: ((number + 0.5) / len(row), float(level))
        for level, row in rows.items()
        for number, part in enumerate(sorted(row))
    }
    figure, axes = plt.subplots(figsize=(12, 1.35 * len(rows)))
    for part, below in shortest(graph).items():
        for other in below:
            (x, y), (z, t) = places[part], places[other]
            style = {"arrowstyle": "-|>", "color": "#8a8a8a", "shrinkA": 2, "shrinkB": 2}
            axes.annotate("", (z, t + 0.3), (x, y - 0.3), arrowprops=style)
    for part, (x, y) in places.items():
        text = f"$\\bf{{{part.replace('_', chr(92) + '_')}}}$\n{LABELS.get(part, '')}"
        box = {"boxstyle": "round,pad=0.4", "facecolor": "#eef3fa", "edgecolor": "#3b6ea5"}
        axes.text(x, y, text, ha="center", va="center", fontsize=8, bbox=box)
    axes.set_xlim(0, 1)
    axes.set_ylim(-0.6, max(rows) + 0.6)
    axes.axis("off")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, bbox_inches="tight")
    plt.close(figure)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
