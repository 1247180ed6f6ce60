"""Checks that all batches of a source have the same form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ...data.sample_blocks import SampleBlock
from ...data.source_errors import errors_in
from ...data.sources import Source
from ...data.tables import Table
from ...preprocessing.columns import column_keys, is_frame, is_missing, refuse_masked
from ...problem.input_validation import InputFeatures

__all__ = ["LabelForm", "UniformSource"]


@dataclass(frozen=True)
class LabelForm:
    """Form of the labels and weights of some samples."""

    labels: tuple[int, ...] | None  # shape of the labels of a sample; None without labels
    kind: str | None  # "texts" or "numbers"; None without labels
    weights: tuple[int, ...] | None  # shape of the weights of a sample; None without weights

    @classmethod
    def of(cls, block: SampleBlock) -> LabelForm:
        """Return the form of some samples; raise an error for masked arrays."""
        for name, values in (("X", block.X), ("y", block.y), ("sample_weight", block.sample_weight)):
            refuse_masked(values, name)
        shapes = [None if part is None else part.shape[1:] for part in (block.y, block.sample_weight)]
        return cls(shapes[0], _kind_of(block.y), shapes[1])

    def check(self, other: LabelForm, where: str) -> None:
        """Raise an error if the form of other samples differs; ``where`` is their position."""
        for name, own, given in (
            ("y", self.labels, other.labels),
            ("sample_weight", self.weights, other.weights),
        ):
            if own is None or given is None:
                state = "missing" if given is None else "given"
                if own is not given:
                    fault = f"{name} is {state}, unlike in {where}"
                    raise ValueError(f"{fault}: pass {name} for all samples, or for none.")
            elif own != given:
                shapes = f"{('n', *given)}, and {('n', *own)} in {where}"
                raise ValueError(f"{name} has the shape {shapes}: pass one shape.")
        if None not in (self.kind, other.kind) and self.kind != other.kind:
            raise ValueError(
                f"The labels are {other.kind}, and {self.kind} in {where}: convert y to one type."
            )


def _kind_of(y: Any) -> str | None:
    """Return whether values are texts or numbers, from the first one of objects; None without any."""
    if y is None or issparse(y):
        return None
    values = np.asarray(y)
    if values.dtype.kind != "O":
        return "texts" if values.dtype.kind in "UST" else "numbers"
    first = next((value for value in values.flat if not is_missing(value)), None)
    return None if first is None else "texts" if isinstance(first, str) else "numbers"


class UniformSource(Source):
    """Source whose blocks are checked to have the same type, columns and labels as the first one."""

    def __init__(self, source: Source, estimator: str):
        self._source, self._estimator = source, estimator
        self._first: tuple[str, LabelForm] | None = None
        self._features: tuple[str, str, InputFeatures] | None = None
        self.sizes, self.names, self.stamp = source.sizes, source.names, source.stamp

    def blocks(self, numbers: Sequence[int] | None = None, features: bool = True) -> Iterator[SampleBlock]:
        """Yield the blocks of the source after the checks."""
        for block in self._source.blocks(numbers, features):
            with errors_in(block.where):
                self._check(block)
            yield block

    def _check(self, block: SampleBlock) -> None:
        form, X = LabelForm.of(block), block.X
        if self._first is None:
            self._first = block.where, form
        self._first[1].check(form, self._first[0])
        if X is None or isinstance(X, Table):  # columns are selected by name
            return
        if is_frame(X):
            column_keys(X)  # raises an error for repeated names
        kind = _type_of(X)
        if self._features is None:
            self._features = block.where, kind, InputFeatures.of(X, self._estimator)
        where, first, known = self._features
        if kind != first:
            raise ValueError(f"X is {kind}, and {first} in {where}: pass one type in all batches.")
        if np.ndim(X) == 2 and known.count is not None:
            known.check(X)

    def close(self) -> None:
        """Close the source."""
        self._source.close()


def _type_of(X: Any) -> str:
    """Return the type of features, for messages."""
    if issparse(X):
        return "a sparse matrix"
    if is_frame(X):
        return f"a frame of {type(X).__module__.partition('.')[0]}"
    if hasattr(X, "items"):
        return "a dictionary"
    return "an array of texts" if _kind_of(X) == "texts" else "an array"
