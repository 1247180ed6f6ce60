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
#: Packages that offer functions of one above them, by the one above (see tests/test_layers.py).
OFFERED = {"onnx_files": "differentiation"}
#: Purpose of each package or module.
LABELS = {
    "callbacks": "checkpoints, rates",
    "cli": "command line",
    "conversion": "trainable graphs, selection\nand explanation of weights",
    "differentiation": "rules, gradient graphs,\nthe C++ builder",
    "distributed": "training over shards,\nDask clusters",
    "estimators": "the two estimators,\ninput validation",
    "graphs": "builder, queries, rewriting,\ntext, pictures",
    "inspection": "pictures of histories\nand graphs",
    "learning_rates": "updates and schedules",
    "losses": "one file per loss",
    "models": "a definition per class:\ngraph, parameters, objective",
    "onnx_files": "files of other sources: loading,\nchecks, decomposition, scores",
    "parameters": "parameters of plugins",
    "penalties": "one file per penalty",
    "preprocessing": "X to inputs, steps that\nstay in scikit-learn",
    "saving": "estimators, checkpoints,\ntraining packages",
    "search": "candidates trained\nin one graph",
    "streams": "samples that do not fit\nin memory: blocks, chunks",
    "testing": "checkers for plugins",
    "training": "the loop, steps, fusions,\nsessions",
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
            found[part] -= {above for above, below in OFFERED.items() if below == part}
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
    figure, axes = plt.subplots(figsize=(11, 1.35 * len(rows)))
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
