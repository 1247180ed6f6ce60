"""Layered layout of a graph, from the inputs at the top to the outputs at the bottom.

The method is that of Sugiyama, K., Tagawa, S., Toda, M., "Methods for visual understanding of hierarchical
system structures", IEEE Transactions on Systems, Man, and Cybernetics 11(2), 1981: layers by the longest
path, an order in each layer by barycentres, then positions close to the neighbours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..graphs.elements import Arrow, Element

__all__ = ["Layout", "lay_out"]

SWEEPS = 8
GAP = 2.0  # between neighbours, in characters
BEND = 1.0  # width of an arrow that crosses a layer


@dataclass
class Layout:
    """Positions of elements and arrows; x in characters, y in layers from the top."""

    places: dict[str, tuple[float, float]]
    paths: list[list[tuple[float, float]]]


@dataclass
class _Layers:
    """Keys of each layer from left to right, and the neighbours of each key in the adjacent layers."""

    rows: list[list[str]]
    above: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    below: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


def lay_out(elements: Sequence[Element], arrows: Sequence[Arrow], widths: Mapping[str, float]) -> Layout:
    """Return the layout of a graph."""
    levels = _levels(elements, arrows)
    layers = _Layers([[] for _ in range(max(levels.values(), default=-1) + 1)])
    for element in elements:
        layers.rows[levels[element.key]].append(element.key)
    chains = [_join(layers, arrow, index, levels) for index, arrow in enumerate(arrows)]
    _order(layers)
    xs = _positions(layers, widths)
    places = {key: (xs[key], float(level)) for level, row in enumerate(layers.rows) for key in row}
    paths = [[places[key] for key in chain] for chain in chains]
    return Layout({element.key: places[element.key] for element in elements}, paths)


def _levels(elements: Any, arrows: Any) -> dict[str, int]:
    """Return the layer of each element: below its sources; inputs and weights right above their readers."""
    sources, readers = defaultdict(list), defaultdict(list)
    for arrow in arrows:
        sources[arrow.target].append(arrow.source)
        readers[arrow.source].append(arrow.target)
    levels: dict[str, int] = {}
    for element in elements:  # tensors are first, and operators are sorted
        levels[element.key] = 1 + max((levels[source] for source in sources[element.key]), default=-1)
    for element in elements:
        if element.kind in ("input", "weight") and readers[element.key]:
            levels[element.key] = min(levels[reader] for reader in readers[element.key]) - 1
    return levels


def _join(layers: _Layers, arrow: Arrow, index: int, levels: Mapping[str, int]) -> list[str]:
    """Return the keys on the path of an arrow; it has a bend in each layer that it crosses."""
    first, last = levels[arrow.source], levels[arrow.target]
    bends = [f"bend_{index}_{level}" for level in range(first + 1, last)]
    for level, key in enumerate(bends, start=first + 1):
        layers.rows[level].append(key)
    chain = [arrow.source, *bends, arrow.target]
    for upper, lower in zip(chain[:-1], chain[1:], strict=True):
        layers.below[upper].append(lower)
        layers.above[lower].append(upper)
    return chain


def _order(layers: _Layers) -> None:
    """Sort each layer by the mean rank of its neighbours above, then below, a few times."""
    ranks = {key: float(rank) for row in layers.rows for rank, key in enumerate(row)}
    for sweep in range(SWEEPS):
        near, rows = (layers.above, layers.rows) if sweep % 2 == 0 else (layers.below, layers.rows[::-1])
        for row in rows:
            means = {key: _mean(ranks, near[key], ranks[key]) for key in row}
            row.sort(key=means.__getitem__)
            ranks.update({key: float(rank) for rank, key in enumerate(row)})


def _positions(layers: _Layers, widths: Mapping[str, float]) -> dict[str, float]:
    """Return x of each key, as close to the mean of its neighbours as the other keys of the layer allow."""
    from sklearn.isotonic import isotonic_regression

    xs: dict[str, float] = {}
    offsets = [_offsets([widths.get(key, BEND) for key in row]) for row in layers.rows]
    for row, offset in zip(layers.rows, offsets, strict=True):
        xs.update(zip(row, offset - offset.mean(), strict=True))
    for sweep in range(SWEEPS):
        for row, offset in list(zip(layers.rows, offsets, strict=True))[:: 1 if sweep % 2 == 0 else -1]:
            wanted = [_mean(xs, [*layers.above[key], *layers.below[key]], xs[key]) for key in row]
            # Least squares with minimal distances is isotonic regression of the differences from the offsets.
            xs.update(zip(row, isotonic_regression(np.array(wanted) - offset) + offset, strict=True))
    return {key: float(x) for key, x in xs.items()}


def _offsets(widths: list[float]) -> np.ndarray:
    """Return the centres of elements at minimal distances, starting at zero."""
    halves = np.array(widths) / 2
    return np.concatenate([[0.0], np.cumsum(halves[:-1] + halves[1:] + GAP)])


def _mean(values: Mapping[str, float], keys: Sequence[str], default: float) -> float:
    return sum(values[key] for key in keys) / len(keys) if keys else default
