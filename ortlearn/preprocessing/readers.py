"""Find the parts of an estimator that read a column first."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..models import find_definition


@dataclass(frozen=True)
class Reader:
    """A part of an estimator that reads a column of X."""

    #: Position of the column in X.
    position: int
    #: What reads it, an estimator; None where it is passed through.
    step: Any
    #: Position of the column among those the step reads.
    index: int
    #: Whether missing values were filled before.
    imputed: bool = False

    @property
    def encodes(self) -> bool:
        """Whether it takes the values for categories."""
        return hasattr(self.step, "categories_")

    @property
    def vectorizes(self) -> bool:
        """Whether it takes the values for documents."""
        return hasattr(self.step, "build_analyzer")


def first_readers(estimator: Any, columns: Sequence[int], imputed: bool = False) -> Iterator[Reader]:
    """Yield what reads each column of X first; a column may have several readers, or none.

    ``columns`` are positions in X, ``imputed`` says whether missing values were filled before. Steps that
    only fill missing values are passed over, and columns that only pass have the reader None.
    """
    definition = find_definition(estimator)
    routes = [] if definition is None else list(definition.routes(estimator, columns))
    followed = [route for route in routes if not route.is_member or _looks_at_columns(route.part)]
    if len(followed) < len(routes) or not routes:
        yield from (Reader(column, estimator, index, imputed) for index, column in enumerate(columns))
    for route in followed:
        yield from first_readers(route.part, route.columns, imputed or route.imputed)


def _looks_at_columns(estimator: Any) -> bool:
    """Return whether an estimator, or a part of it, reads columns one by one rather than a matrix of them."""
    definition = find_definition(estimator)
    if definition is None or not definition.takes_columns:
        return False
    parts = [route.part for route in definition.routes(estimator, ())]
    return definition.selects_columns or not parts or any(map(_looks_at_columns, parts))


def _selects(estimator: Any) -> bool:
    """Return whether an estimator begins with a selection of columns."""
    definition = find_definition(estimator)
    return definition is not None and (
        definition.selects_columns or any(_selects(route.part) for route in definition.routes(estimator, ()))
    )


def selected_names(estimator: Any) -> list[Hashable] | None:
    """Return the names of the columns that an estimator was fitted on; None where it does not select by name.

    The ColumnTransformer has them: pipelines and ensembles around it may not pass on the attribute.
    """
    definition = find_definition(estimator)
    if definition is None or not _selects(estimator):
        return None
    if definition.selects_columns:
        known = getattr(estimator, "feature_names_in_", None)
        return None if known is None else list(known)
    found = [selected_names(route.part) for route in definition.routes(estimator, ())]
    return None if None in found else found[0]
