"""Parts of a model that have not seen a sample, which predict it in training."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse

from ...comparison.measures import equal_rows
from ...data.samples import Data
from ...models import fitted_part
from ...models.capabilities import Bags, capability_of
from ...models.writer import Members
from ...preprocessing.initial_fit import after_steps
from ...problem.cross_fitting import unseen_outputs
from ...problem.problem import Problem
from ...problem.samples import Samples
from ...training.graphs.member_weights import with_member_weights, with_outputs
from ...training.graphs.task import TrainingTask

__all__ = ["members_of", "of_unseen_members", "with_members", "with_unseen_members"]

#: Share of copies among samples that makes no difference.
FEW_COPIES = 0.1


def of_unseen_members(problem: Problem, task: TrainingTask, data: Data) -> TrainingTask:
    """Return the task in which parts that have seen a sample do not predict it."""
    members = None if data.members is None else members_of(problem)
    if members is None or data.members is None:
        return task
    if members.replaced:
        return with_outputs(task, members.tensors[0], data.members.shape[1])
    return with_member_weights(task, members.tensors, members.rank, data.members.shape[1])


def with_unseen_members(problem: Problem, samples: Samples, data: Data) -> Data:
    """Return samples with weights of members, zero for those that were fitted on a sample.

    The samples of members are known if the model was fitted on exactly these samples; for others, all members
    have the same weight. For a model that takes outputs of cross-validation, samples have these outputs.
    """
    members = members_of(problem)
    if members is not None and members.replaced:
        outputs = unseen_outputs(problem.source)
        if outputs is None or len(outputs) != len(data):
            return data
        return with_members(data, outputs.astype(problem.dtype), True)
    bags = None if members is None else capability_of(fitted_part(problem.source), Bags)
    if bags is None:
        return data
    try:
        X = after_steps(problem.source, samples.X)
        X = X.tocsr().astype(np.float32) if issparse(X) else np.asarray(X, dtype=np.float32)
    except (TypeError, ValueError):  # columns that are not numbers
        return data
    drawn = bags.drawn(fitted_part(problem.source), X, samples.sample_weight)
    if drawn is None:
        return data
    if isinstance(X, np.ndarray):
        drawn = _with_copies(drawn, X, data.y)
    counts = (~drawn).sum(axis=1, keepdims=True)
    return with_members(data, (~drawn * (drawn.shape[1] / np.maximum(counts, 1))).astype(problem.dtype))


def _with_copies(drawn: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return whether members have seen samples or copies of them, if equal features have equal labels."""
    first, group = equal_rows(X)
    if len(first) >= (1 - FEW_COPIES) * len(X) or np.any(y[first][group] != y):
        return drawn
    seen = np.zeros((len(first), drawn.shape[1]), dtype=bool)
    np.logical_or.at(seen, group, drawn)
    return seen[group]


def with_members(data: Data, members: np.ndarray, replaced: bool = False) -> Data:
    """Return samples with weights of members; without them, if all members have seen all samples.

    Samples that all members have seen get the weight zero, unless members are outputs that are ``replaced``.
    """
    if replaced:
        return Data(data.X, data.y, data.sample_weight, data.features, members)
    given, is_seen = data.sample_weight, ~members.any(axis=1)
    if is_seen.any():
        given = np.ones(len(data), dtype=members.dtype) if given is None else given.copy()
        given[is_seen] = 0.0
    return (
        data if given is not None and not given.any() else Data(data.X, data.y, given, data.features, members)
    )


def members_of(problem: Problem) -> Members | None:
    """Return the members of a trained mean of members, or the outputs that its last part takes, or None."""
    declared = problem.trainable.members
    if problem.source is None or not declared:
        return None
    if problem.trainable.replaced is not None:
        return problem.trainable.replaced
    outermost = min(declared, key=lambda members: len(members.path))
    others = [own for own in declared if own.path[: len(outermost.path)] != outermost.path]
    is_own = capability_of(fitted_part(problem.source), Bags) is not None
    return outermost if is_own and not others else None
