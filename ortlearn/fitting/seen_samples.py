"""Whether a model was fitted on the samples: its losses are compared with those of clones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from ..comparison.evidence import best_of
from ..comparison.measures import CLONES, MANY_SAMPLES, folds_without_copies, weights_of
from ..exceptions import OrtlearnError
from ..models import fitted_part
from ..models.capabilities import (
    CrossFitted,
    capability_of,
    cross_fitting_of,
)
from ..preprocessing.initial_fit import after_steps, final_step, is_fitted, labels_within
from ..problem.configuration import Configuration
from ..problem.samples import Samples
from .clone_losses import CloneLosses, bounded_of, sample_losses
from .start import Start, new_start

if TYPE_CHECKING:  # only ensembles need it
    from .growth import Growth

__all__ = ["is_seen"]

#: Standard errors by which the loss of samples must be lower for fits that contain them.
EVIDENCE_OF_OVERFITTING = 2.0


def is_seen(
    configuration: Configuration,
    start: Start,
    samples: Samples,
    again: bool,
    growth: Growth | None = None,
    folds_state: np.random.RandomState | None = None,
) -> bool:
    """Return whether the starting weights were probably fitted on the samples.

    Three clones are fitted, each on all folds but one. If they predict their own samples better than those
    left out, by more than chance, a model that predicts these nearly as well as clones that know them has
    seen them. If there is no difference, the comparison cannot tell, and the result is False. Of labels that
    are numbers, square roots of losses are compared, too, since few outliers decide on means.
    ``again`` says that the weights are those of an earlier training. A ``growth`` keeps the clones, for the
    folds that ``folds_state`` draws.
    """
    if len(start.data) < 2:
        return False
    source = configuration.source
    tags = get_tags(final_step(source))  # a pipeline does not say that its last step requires labels
    if start.problem.needs_labels and tags.transformer_tags is not None and not tags.target_tags.required:
        return False  # its fit has not seen the labels
    if not is_fitted(source) and not again:
        return True
    random_state = np.random.RandomState(start.state.seed % 2**32)
    rows = np.arange(len(start.data))
    if len(rows) > MANY_SAMPLES:
        rows = np.sort(random_state.choice(len(rows), MANY_SAMPLES, replace=False))
    samples, start = samples.take(rows), replace(start, data=start.data.take(rows))
    given, classes = sample_losses(configuration, start), start.problem.encoder.class_indices(start.data.y)
    own = bounded_of(start, given)
    sums, outside, weights = np.zeros((2, len(own))), own.copy(), np.zeros(len(own))
    growth = None if _learns_labels(start.problem.source) else growth
    clones = CloneLosses(configuration, start, samples, growth)
    if clones.find_method(given) and growth is not None:
        growth.scores_by_methods = clones.scores_by_method
    folds = folds_without_copies(classes, start.data, folds_state or random_state)
    for kept, left_out in folds[:CLONES]:
        losses = clones.losses(kept)
        if losses is None:
            return False
        sums[:, kept] += losses[kept], np.ones(len(kept))
        outside[left_out], weights[left_out] = losses[left_out], weights_of(start.data)[left_out]
        if best_of(np.stack([own, outside]), weights, [None], EVIDENCE_OF_OVERFITTING) == 0:
            return _members_have_seen(configuration, start, samples)  # such as after a drift
    views = [np.stack([outside, sums[0] / np.maximum(sums[1], 1), own])]
    if classes is None:  # outliers, whose losses are large, do not decide on square roots
        views.append(np.sqrt(views[0] - views[0].min()))
    overfits = any(best_of(view[:2], weights, [None], EVIDENCE_OF_OVERFITTING) == 0 for view in views)
    if overfits and all(weights @ (view[2] - view[:2].mean(axis=0)) < 0 for view in views):
        return True
    return _members_have_seen(configuration, start, samples)


def _members_have_seen(configuration: Configuration, start: Start, samples: Samples) -> bool:
    """Return whether a part whose outputs were cross-validated has seen the samples."""
    source = start.problem.source
    if isinstance(source, Pipeline) and len(source.steps) > 1 and cross_fitting_of(source[:-1]):
        steps, data = source[:-1], (samples.X, samples.y)
        codes = [np.asarray(own.transform(samples.X)) for own in (steps, clone(steps).fit(*data))]
        if (
            codes[0].shape == codes[1].shape
            and codes[0].dtype.kind == "f"
            and np.allclose(codes[0], codes[1])
        ):
            return True
    part = fitted_part(source)
    rule = capability_of(part, CrossFitted)
    if rule is None or not rule.applies(part):
        return False
    classes = start.problem.encoder.class_indices(start.data.y)
    inside = replace(samples, X=after_steps(source, samples.X), y=labels_within(source, samples.y))
    inside = inside if classes is None else replace(inside, y=np.ravel(classes))
    known = replace(configuration.in_type(start.problem.dtype), warm_start=True)
    for member in rule.members(part):
        try:
            own = replace(known, source=member)
            random_state = np.random.RandomState(start.state.seed % 2**32)
            other = new_start(own, inside, random_state, start.state.seed, compares=False)
            if is_seen(own, other, inside, True):
                return True
        except OrtlearnError:  # a member without an ONNX form
            continue
    return False


def _learns_labels(source: Any) -> bool:
    """Return whether steps before the last one are fitted to labels: clones refit them, too."""
    steps = [step for _, step in source.steps[:-1]] if isinstance(source, Pipeline) else []
    known = [step for step in steps if isinstance(step, BaseEstimator)]
    nested = [own for step in known for own in step.get_params().values() if isinstance(own, BaseEstimator)]
    return any(get_tags(own).target_tags.required for own in (*known, *nested))
