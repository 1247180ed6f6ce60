"""Routes of columns to the parts of an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Route:
    """A part of an estimator and the columns that it is given.

    Attributes
    ----------
    part : estimator or None
        Part; None where columns are passed through.
    columns : sequence of int
        Positions in X.
    imputed : bool
        Whether missing values are filled on the way.
    is_member : bool
        Whether it is one of several members that are given the same columns.
    """

    part: Any
    columns: Sequence[int]
    imputed: bool = False
    is_member: bool = False
