"""Cases: a model with its data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Case", "KINDS"]

#: Kinds of models, in the order of the report.
KINDS = ("classifier", "regressor", "clusterer", "density", "outliers", "transformer", "other", "pipeline")


@dataclass(frozen=True)
class Case:
    """A model to measure.

    Attributes
    ----------
    name : str
        ``Estimator:variant``, unique.
    kind : {"classifier", "regressor", "clusterer", "density", "outliers", "transformer", "other", "pipeline"}
        Part of the report.
    data : str
        Name of a data set.
    make : callable
        Returns the unfitted estimator.
    main : bool
        Whether it is the plain case of its estimator, which the counts per estimator go by.
    make_default : callable or None
        Returns the unfitted estimator with default parameters; None for cases that are not the main one.
    """

    name: str
    kind: str
    data: str
    make: Callable[[], Any]
    main: bool = False
    make_default: Callable[[], Any] | None = None

    @property
    def estimator(self) -> str:
        """Name of the estimator, or of the pipeline."""
        return self.name.partition(":")[0]
