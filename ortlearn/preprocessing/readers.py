"""Find the parts of an estimator that read the columns of X."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..models.registry import definition_or_default


@dataclass(frozen=True)
class Reader:
    """A part of an estimator that reads a column of X."""

    position: int  # of the column in X
    step: Any  # estimator; None for a passthrough column
    index: int  # position among the columns of the step
    imputed: bool = False  # whether a previous step imputes missing values

    @property
    def encodes(self) -> bool:
        """Whether the step encodes categories."""
        return hasattr(self.step, "categories_")

    @property
    def vectorizes(self) -> bool:
        """Whether the step vectorizes documents."""
        return hasattr(self.step, "build_analyzer")


def first_readers(estimator: Any, columns: Sequence[int], imputed: bool = False) -> Iterator[Reader]:
    """Yield the first readers, except imputers, of columns by position in X; a column may have several."""
    routes = list(definition_or_default(estimator).routes(estimator, columns))
    followed = [route for route in routes if not route.is_member or _reads_columns(route.part)]
    if len(followed) < len(routes) or not routes:
        yield from (Reader(column, estimator, index, imputed) for index, column in enumerate(columns))
    for route in followed:
        yield from first_readers(route.part, route.columns, imputed or route.imputed)


def _reads_columns(estimator: Any) -> bool:
    """Return whether an estimator, or a part of it, reads single columns rather than a matrix."""
    definition = definition_or_default(estimator)
    if not definition.takes_columns:
        return False
    parts = [route.part for route in definition.routes(estimator, ())]
    return definition.selects_columns or not parts or any(map(_reads_columns, parts))


def _selects(estimator: Any) -> bool:
    """Return whether an estimator first selects columns."""
    definition = definition_or_default(estimator)
    parts = (route.part for route in definition.routes(estimator, ()))
    return definition.selects_columns or any(map(_selects, parts))


def selected_names(estimator: Any) -> list[Hashable] | None:
    """Return the names of the columns that an estimator was fitted on; None if it does not select by name."""
    definition = definition_or_default(estimator)
    if not _selects(estimator):
        return None
    if definition.selects_columns:
        known = getattr(estimator, "feature_names_in_", None)
        return None if known is None else list(known)
    found = [selected_names(route.part) for route in definition.routes(estimator, ())]
    return None if None in found else found[0]
