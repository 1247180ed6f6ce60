"""Result of a compression: the file, its scores, bytes and latencies."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from onnx import ModelProto
from sklearn.utils import _safe_indexing

from ..evaluation.bootstrap import Bootstrap
from ..evaluation.metrics import Metrics
from ..graphs.files import save_model
from .files import CHUNK, File, Samples, latencies

__all__ = ["Compressed", "report"]

#: Most seconds of a call that is timed.
LONGEST = 1.0


@dataclass(frozen=True)
class Compressed:
    """Result of :func:`distill`, :func:`quantize` or :func:`prune`.

    Attributes
    ----------
    onnx : onnx.ModelProto
        The compressed model.
    model : estimator or None
        The compressed estimator: a student, or a pruned one; None for quantised models and ONNX files.
    metric : str
        Metric of ``max_loss``: accuracy or R2.
    scores : dict
        Value and interval of each metric on the held-out samples, for ``old``, ``new`` and ``difference``.
    n_bytes : dict of str to int
        Bytes of the files, ``old`` and ``new``.
    seconds : dict of int to dict
        Median seconds of a call in onnxruntime, ``old`` and ``new``, for 1 and for 1,000 samples, or fewer if
        these would take more than a second; measured when it is read first.
    layers : dict of str to str
        What was done to each layer or part, and the reason where nothing was.
    facts : dict
        More numbers, such as the fidelity of a student.
    timed : sequence of tuple
        Files and their samples for ``seconds``, the new file last.
    """

    onnx: ModelProto
    metric: str
    scores: dict[str, dict]
    n_bytes: dict[str, int]
    layers: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    model: Any = None
    timed: Sequence[tuple[ModelProto, Any]] = field(default=(), repr=False)  # files, the new one last

    @cached_property
    def seconds(self) -> dict[int, dict[str, float]]:
        """Median seconds of a call, by the number of samples."""
        files = [(File(model), X) for model, X in self.timed]
        found = {1: _times(files, 1)}
        slowest = np.nanmax(list(found[1].values()))
        many = next((count for count in (CHUNK, 100, 10) if count * slowest < LONGEST), 1)
        return found | ({many: _times(files, many)} if many > 1 else {})

    @property
    def loss(self) -> float:
        """Loss of the metric on the held-out samples; negative for a gain."""
        return -self.scores[self.metric]["difference"]["value"]

    def save(self, path: str | os.PathLike) -> None:
        """Write the ONNX file.

        Parameters
        ----------
        path : str or path-like
            File, which is replaced if it exists.
        """
        save_model(self.onnx, os.fspath(path))

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table before and after, as texts.

        Returns
        -------
        list of tuple of str
            Rows of three cells: a score, the bytes or a latency, before and after. The first row is the head.
        """
        rows: list[tuple[str, ...]] = [("", "before", "after")]
        for name, part in self.scores.items():
            rows.append((name, *(_with_interval(part[side]) for side in ("old", "new"))))
        rows.append(("bytes", *(f"{self.n_bytes[side]:,}" for side in ("old", "new"))))
        for count, part in self.seconds.items():
            title = f"ms for {count:,} sample" + "s" * (count > 1)
            rows.append((title, *(f"{part[side] * 1e3:.3g}" for side in ("old", "new"))))
        return rows

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join(lines + [f"{name}: {text}" for name, text in self.layers.items()])


def _with_interval(part: dict) -> str:
    """Return a value and its interval as text."""
    interval = part["interval"]
    return f"{part['value']:.4f}" + ("" if interval is None else f" [{interval[0]:.4f}, {interval[1]:.4f}]")


def report(
    old: Sequence[tuple[File, Any]],
    new: File,
    held_out: Samples,
    seed: int,
    before: Metrics,
    layers: dict[str, str],
    facts: dict[str, Any],
    model: Any = None,
) -> Compressed:
    """Return the result of a compression on held-out samples; old files have their own form of X."""
    X, y = held_out
    scores = Bootstrap(seed=seed).compare(before, new.metrics(X, y), np.ones(len(y)))
    few = np.arange(min(CHUNK, len(y)))
    size = sum(file.model.ByteSize() for file, _ in old)
    return Compressed(
        onnx=new.model,
        metric=next(iter(scores)),
        scores=scores,
        n_bytes={"old": size, "new": new.model.ByteSize()},
        timed=[(file.model, _safe_indexing(own, few)) for file, own in [*old, (new, X)]],
        layers=layers,
        facts=facts,
        model=model,
    )


def _times(files: Sequence[tuple[File, Any]], count: int) -> dict[str, float]:
    """Return the seconds of calls of the old files together, if there are any, and of the new one."""
    *old, new = latencies(files, count)
    return {"old": sum(old) if old else float("nan"), "new": new}
