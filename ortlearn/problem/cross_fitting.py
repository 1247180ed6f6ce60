"""Fits whose parts leave out samples: trees with other losses than their own, and parts before the last."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from ..models import fitted_part
from ..models.capabilities import UNSEEN_OUTPUTS, Bags, CrossFitted, capability_of, cross_fitting_of
from ..preprocessing.initial_fit import after_steps, final_step, fit_clone
from .automatic import is_same_loss, own_loss
from .configuration import Configuration

__all__ = ["cross_fitted", "forget_outputs", "last_part", "records_outputs", "unseen_outputs"]

#: Number of folds; each tree of an ensemble leaves out one, and a single tree half of the samples.
FOLDS, HALVES = 5, 2


def cross_fitted(configuration: Configuration, X: Any, y: Any, **options: Any) -> Any:
    """Return a fitted clone whose trees leave out samples; None for other models, and for their own loss.

    This applies to regression trees and their ensembles in which each tree would be fitted on all samples,
    or almost every tree on the heaviest ones.
    ``options`` are those of :func:`~ortlearn.preprocessing.initial_fit.fit_clone`.
    """
    source = configuration.source
    last = final_step(source)
    bags = capability_of(last, Bags) if is_regressor(last) else None
    if configuration.loss is None or bags is None:
        return None
    n_members = getattr(last, "n_estimators", 1)
    n_folds = min(n_members, FOLDS) if n_members > 1 else HALVES
    weights = options["sample_weight"]
    if bags.share_left_out(last, weights, len(y)) >= 1 / n_folds or len(y) < 2 * n_folds:
        return None
    first = clone(source)
    if n_members > 1:
        final_step(first).set_params(n_estimators=1)
    first = fit_clone(first, X, y, **options)
    if is_same_loss(configuration.loss, own_loss(first)):
        return None
    Xt = after_steps(first, X)
    random_state = options["random_state"]
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


def records_outputs(source: Any) -> Any:
    """Return the context of a fit that keeps the outputs to which the last part is fitted; None for others.

    This applies to stacks, and to pipelines whose steps are :class:`CrossFitted`, unless the last part is an
    ensemble of trees, which knows its own samples.
    """
    last = final_step(source)
    if _final_of(last):
        return _recorded_stack
    has_steps = isinstance(source, Pipeline) and len(source.steps) > 1 and cross_fitting_of(source[:-1])
    return _recorded if has_steps and capability_of(last, Bags) is None else None


def _final_of(model: Any) -> str:
    """Return the parameter with the part that is fitted to outputs of cross-validation, or an empty text."""
    rule = capability_of(model, CrossFitted)
    return rule.final if rule is not None and rule.applies(model) else ""


@contextmanager
def _recorded(part: Any, y: Any = None, sample_weight: Any = None) -> Iterator[None]:
    """Keep the X of a fit of an estimator."""
    own = type(part)
    part.__class__ = _recording(own)
    try:
        yield
    finally:
        part.__class__ = own


@contextmanager
def _recorded_stack(stack: Any, y: Any, sample_weight: Any) -> Iterator[None]:
    """Keep the X of the fit of the final part, which is cloned, with scikit-learn's default."""
    name = _final_of(stack)
    given = getattr(stack, name)
    part = clone(given) if given is not None else LogisticRegression() if is_classifier(stack) else RidgeCV()
    own = type(part)
    with _recorded(part):
        setattr(stack, name, part)
        try:
            yield
        finally:
            setattr(stack, name, given)
            if hasattr(stack, f"{name}_"):
                getattr(stack, f"{name}_").__class__ = own


def _recording(own: Any) -> type:
    """Return a class of estimators that keep the X of their fit."""

    @wraps(own.fit)
    def fit(self: Any, X: Any, *args: Any, **params: Any) -> Any:
        found = own.fit(self, X, *args, **params)
        if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f":
            setattr(found, UNSEEN_OUTPUTS, X)
        return found

    return type(own.__name__, (own,), {"fit": fit, "__module__": own.__module__})


def last_part(source: Any) -> Any:
    """Return the part of a fitted estimator that takes the outputs of the others."""
    part = fitted_part(source)
    name = _final_of(part)
    return getattr(part, f"{name}_") if name else part


def unseen_outputs(source: Any) -> np.ndarray | None:
    """Return the outputs to which the last part of a fitted estimator was fitted, if they were kept."""
    return getattr(last_part(source), UNSEEN_OUTPUTS, None)


def forget_outputs(source: Any) -> None:
    """Remove outputs that were kept, as later samples have others."""
    vars(last_part(source)).pop(UNSEEN_OUTPUTS, None)
