"""Classes of a classifier, from its graph, the parameter ``classes``, or the labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .label_errors import other_number_of_classes, too_few_classes

if TYPE_CHECKING:
    from ..trainable.conversion import TrainableModel

__all__ = ["known_classes"]


def known_classes(trainable: TrainableModel, y: Any, classes: Any) -> Any:
    """Return the classes of a model, from its graph, ``classes`` or y; None if it is no classifier."""
    scores = trainable.scores
    if scores is None or scores.task not in ("classification", "multilabel"):
        return None
    known = scores.classes
    if scores.task == "multilabel":
        return known
    expected = 2 if scores.n_outputs == 1 else scores.n_outputs
    if known is None and y is None and classes is None:  # graphs exported before fit
        known = np.arange(expected)
    elif known is None:
        known = _numbered(np.unique(y), expected) if classes is None else classes
    known = np.asarray(known)
    if known.ndim == 1 and len(known) < 2:
        raise too_few_classes(known)
    if known.ndim != 1 or len(known) != expected:
        raise other_number_of_classes(scores.n_outputs, known)
    return known


def _numbered(found: np.ndarray, count: int) -> np.ndarray:
    """Return the classes 0, 1, ... if y contains only some of them; otherwise the classes of y."""
    if len(found) >= count or found.dtype.kind not in "iufb":
        return found
    every = np.arange(count)
    return every.astype(found.dtype) if np.isin(found, every).all() else found
