"""Which step inside others is the one that has no faithful ONNX form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import _safe_indexing

from ..models.pipelines import column_positions
from ..quiet import quiet
from .columns import is_frame
from .overwriting import untouched
from .readers import IDLE_STEPS

__all__ = ["find_culprit"]

Step = tuple[str, Any]


def find_culprit(
    step: Step, rows: Any, fault: str, fault_of: Callable[[Step, Any], str | None]
) -> tuple[Step, str]:
    """Return the innermost step at fault, and what is wrong with it.

    Parameters
    ----------
    step : tuple of str and estimator
        Name and fitted transformer, which has no faithful ONNX form.
    rows : array-like, sparse matrix or frame
        Rows as it is given them.
    fault : str
        What is wrong with it.
    fault_of : callable
        Takes a step and its rows, returns what is wrong with it, or None.

    Returns
    -------
    step : tuple of str and estimator
        Name and transformer: the one given where nothing inside it is at fault alone.
    fault : str
        What is wrong with it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.compose import ColumnTransformer
    >>> from sklearn.preprocessing import SplineTransformer, StandardScaler
    >>> from ortlearn.preprocessing.culprits import find_culprit
    >>> X = np.linspace(0, 1, 18).reshape(9, 2)
    >>> both = ColumnTransformer([("scale", StandardScaler(), [0]), ("bend", SplineTransformer(), [1])])
    >>> def fault_of(step, rows):
    ...     return "no form" if isinstance(step[1], SplineTransformer) else None
    >>> find_culprit(("both", both.fit(X)), X, "unknown", fault_of)
    (('bend', SplineTransformer()), 'no form')
    """
    try:
        for inner, own in _inner_steps(step[1], rows):
            found = fault_of(inner, own)
            if found is not None:
                return find_culprit(inner, own, found, fault_of)
    except Exception:  # a step that does not run alone: its name is a help, no need
        return step, fault
    return step, fault


def _inner_steps(step: Any, rows: Any) -> Iterator[tuple[Step, Any]]:
    """Yield the steps inside a transformer, each with the rows that it is given."""
    if isinstance(step, ColumnTransformer):
        names = getattr(step, "feature_names_in_", []) if is_frame(rows) else []
        asked = {name: columns for name, _, columns in step.transformers}
        for name, inner, indices in column_positions(step):
            chosen = [names[index] for index in indices] if len(names) else indices
            single = isinstance(asked.get(name), str | int)
            if hasattr(inner, "transform"):
                yield (name, inner), _safe_indexing(rows, chosen[0] if single else chosen, axis=1)
    elif isinstance(step, FeatureUnion):
        yield from (
            ((name, inner), rows) for name, inner in step.transformer_list if hasattr(inner, "transform")
        )
    elif isinstance(step, Pipeline):
        for name, inner in step.steps:
            if inner not in IDLE_STEPS:
                yield (name, inner), rows
                with quiet():
                    rows = inner.transform(*untouched(inner, rows))
