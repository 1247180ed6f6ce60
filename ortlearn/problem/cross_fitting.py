"""Ensembles of trees whose trees leave out samples, for losses that the trees are not grown for."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from ..models.capabilities import Bags, capability_of
from ..preprocessing.initial_fit import after_steps, final_step, fit_clone
from .automatic import is_same_loss, own_loss
from .configuration import Configuration

__all__ = ["cross_fitted"]

#: Number of folds; each tree of an ensemble leaves out one, and a single tree half of the samples.
FOLDS, HALVES = 5, 2


def cross_fitted(configuration: Configuration, X: Any, y: Any, **options: Any) -> Any:
    """Return a fitted clone whose trees leave out samples; None for other models, and for their own loss.

    This applies to regression trees and their ensembles in which each tree would be fitted on all samples.
    ``options`` are those of :func:`~ortlearn.preprocessing.initial_fit.fit_clone`.
    """
    source = configuration.source
    last = final_step(source)
    bags = capability_of(last, Bags) if is_regressor(last) else None
    if configuration.loss is None or bags is None:
        return None
    n_members = getattr(last, "n_estimators", 1)
    n_folds = min(n_members, FOLDS) if n_members > 1 else HALVES
    if not bags.sees_all(last) or len(y) < 2 * n_folds:
        return None
    first = clone(source)
    if n_members > 1:
        final_step(first).set_params(n_estimators=1)
    first = fit_clone(first, X, y, **options)
    if is_same_loss(configuration.loss, own_loss(first)):
        return None
    Xt = after_steps(first, X)
    random_state, weights = options["random_state"], options["sample_weight"]
    of_sample = random_state.permutation(len(y)) % n_folds
    parts, of_member = [], np.sort(np.arange(n_members) % n_folds)
    for fold in np.unique(of_member):
        indices, part = np.flatnonzero(of_sample != fold), clone(last)
        if n_members > 1:
            part.set_params(n_estimators=int((of_member == fold).sum()))
        own = None if weights is None else weights[indices]
        taken = _safe_indexing(Xt, indices), _safe_indexing(y, indices)
        parts.append(fit_clone(part, *taken, sample_weight=own, random_state=random_state))
    joined = bags.joined(parts, of_sample, of_member)
    if not isinstance(source, Pipeline):
        return joined
    pipeline = copy.copy(first)
    pipeline.steps = [*first.steps[:-1], (first.steps[-1][0], joined)]
    return pipeline
