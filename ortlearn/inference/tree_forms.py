"""The forms of trees for few and many samples, whose results are equal, and the order of samples."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from onnx import ModelProto

from ..models.fusion import FusedForm
from ..models.trees.nodes import FusedTrees
from ..models.trees.ordering import order_graph
from ..models.trees.packed import samples_from, samples_of_levels
from ..runtime.sessions import n_threads

__all__ = ["CHUNK", "MANY", "TreeForms"]

#: Fewest samples for which trees have another form, or read them in an order of similar samples.
MANY = 512
#: Fewest samples that levels of trees read.
SOME = 64
#: Most samples of a call of such forms, whose results then stay in the cache.
CHUNK = 1024


class TreeForms:
    """Forms by the number of samples; those before count, as a session that opens slowly may pay."""

    def __init__(self, forms: Iterable[FusedForm], n_jobs: int | None):
        self._forms, self._n_jobs, self._seen = tuple(forms), n_jobs, 0

    @cached_property
    def n_threads(self) -> int:
        """Number of threads of a session."""
        return n_threads(self._n_jobs)

    @cached_property
    def limits(self) -> tuple[float, int]:
        """Number of samples from which tables pay, and of those that levels read before the operator does."""
        levels = samples_of_levels(self._forms) if self.n_threads == 1 else 0
        return samples_from(self._forms, self.n_threads), levels

    def choose(self, samples: Any, is_open: bool) -> str:
        """Return the form for samples; empty for the operator, whose session may be open."""
        if not self._forms or type(samples) is not np.ndarray or len(samples) < SOME:
            return ""
        self._seen += len(samples)
        enough, levels = self.limits
        if len(samples) >= MANY and self._seen >= enough:
            return "tables"
        return "levels" if not is_open and self._seen < levels else ""

    def order_graph(self, model: ModelProto) -> ModelProto | None:
        """Return the graph of keys, by which many samples are ordered; None if they are not."""
        trees = [form for form in self._forms if isinstance(form, FusedTrees)]
        return order_graph(model, trees[0]) if len(trees) == 1 else None
