"""Capabilities of some models, as objects that definitions name and that callers ask for by type."""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from ..losses import BaseLoss
from .registry import find_definition

if TYPE_CHECKING:  # only fits of boosting need it
    from ..boosting.stages import StageObjective

__all__ = [
    *("Bags", "BoostedStages", "CrossFitted", "GrowingEnsemble"),
    *("ReplacedEnsemble", "ReplacedModel", "SeparateParts", "ShiftedScores"),
    *("UNSEEN_OUTPUTS", "capability_of", "cross_fitting_of", "with_few_members"),
]

#: Attribute of a fitted part: outputs of the parts before, for samples that they had not seen, as its X.
UNSEEN_OUTPUTS = "_unseen_outputs"
#: Number of members that are few.
FEW = 25


class GrowingEnsemble:
    """Ensembles of trees that may be averaged, since their scores are sums over trees."""

    #: Standard errors by which the loss of held-out samples must decrease for new trees.
    evidence = 1.0
    #: Whether samples of weight zero change nothing in a fit but its classes.
    ignores_weightless = False
    #: Shares of new trees that ``partial_fit`` compares, in decreasing order.
    stream_shares: tuple[float, ...] = (1.0, 0.0)
    #: Whether labels are votes, whose errors are compared, as losses of scores do not determine them.
    by_votes = False

    def grows(self, model: Any, n_samples: int) -> bool:
        """Return whether an ensemble can be averaged with, or replaced by, one of ``n_samples`` others."""
        return True

    def leaf_evidence(self, model: Any) -> float:
        """Return the standard errors that other leaf values require."""
        return self.evidence

    def shares(self, model: Any) -> tuple[float, ...]:
        """Return the shares of new trees that a warm start compares, in increasing order."""
        return 0.25, 0.5, 0.75, 1.0

    def scores_of(self, model: Any, X: Any) -> np.ndarray:
        """Return the scores that the graph of an ensemble computes, of shape (n, k)."""
        raise NotImplementedError

    def mixed_scores(self, scores: np.ndarray, others: np.ndarray, share: float) -> np.ndarray:
        """Return the scores that :meth:`joined` ensembles give, from the scores of each."""
        return scores + share * (others - scores)

    def joined(self, model: Any, other: Any, share: float) -> Any:
        """Return an ensemble with the weighted mean of two scores, ``share`` the weight of ``other``."""
        raise NotImplementedError

    def n_trees(self, model: Any) -> int:
        """Return the number of rounds or trees; one for a model without members."""
        return len(getattr(model, "estimators_", [model]))

    def n_leaves(self, model: Any) -> float:
        """Return the mean number of leaves of a tree."""
        return float(np.mean([member.tree_.n_leaves for member in np.ravel(model.estimators_)]))

    def window(self, model: Any) -> int:
        """Return how many samples of a stream are kept: ten for each leaf, and 1,000 for trees of few."""
        return max(1_000, round(10 * self.n_leaves(model)))

    def extended(self, model: Any, other: Any, share: float, largest: int) -> Any:
        """Return the ensemble with a share of the trees of another one, of up to ``largest`` trees."""
        return other


class ReplacedEnsemble(GrowingEnsemble):
    """Models that are replaced as a whole, since the mean of two is not a model of their kind."""

    def __init__(self, by_votes: bool = False) -> None:
        self.by_votes = by_votes

    def shares(self, model: Any) -> tuple[float, ...]:
        return (1.0,)

    def scores_of(self, model: Any, X: Any) -> np.ndarray:
        found = model.decision_function(X) if self.by_votes else model.predict(X)
        return found.reshape(len(found), -1)

    def n_leaves(self, model: Any) -> float:
        return super().n_leaves(model) if hasattr(model.estimators_[0], "tree_") else 1.0


class ReplacedModel(ReplacedEnsemble):
    """Models whose fit has no objective that training minimises: they are fitted again on new samples."""

    evidence = 2.0

    def leaf_evidence(self, model: Any) -> float:
        return -np.inf

    def window(self, model: Any) -> int:
        return 1_000


def _one(model: Any) -> float:
    """Return one."""
    return 1.0


@dataclass(frozen=True)
class ShiftedScores:
    """Models whose scores can be shifted by a constant, such as by the values of all leaves of a forest.

    Attributes
    ----------
    offset : callable
        Function of a fitted model that returns the change that changes each score by one: of all values, or
        an array of one for each; None if there is none.
    attribute : str
        Expression of the attribute that changes; by default, all tables.
    """

    offset: Callable[[Any], Any] = _one
    attribute: str = ""


class Bags:
    """Trees, and ensembles that know which samples each member was fitted on."""

    def sees_all(self, model: Any) -> bool:
        """Return whether each member of an unfitted model would be fitted on all samples."""
        return not getattr(model, "bootstrap", False) and getattr(model, "max_samples", None) in (None, 1.0)

    def share_left_out(self, model: Any, sample_weight: Any, n_samples: int) -> float:
        """Return the share of members of an unfitted model that are not fitted on the heaviest sample."""
        if self.sees_all(model):
            return 0.0
        if sample_weight is None:
            return 1.0
        given, total = getattr(model, "max_samples", None), float(np.sum(sample_weight))
        drawn = n_samples if given is None else given * total if isinstance(given, float) else given
        return float((1 - np.max(sample_weight) / total) ** drawn)  # by weight, with replacement

    def joined(self, parts: Sequence[Any], of_sample: np.ndarray, of_member: np.ndarray) -> Any:
        """Return the ensemble of all members; each one leaves out the samples of its fold."""
        found = copy.copy(parts[0])
        if len(of_member) > 1:
            for name in ("estimators_", "estimators_features_"):
                if hasattr(found, name):
                    setattr(found, name, [own for part in parts for own in getattr(part, name)])
            found.n_estimators = len(of_member)
        found._n_samples, found._left_out = len(of_sample), (of_sample, of_member)
        return found

    def drawn(self, model: Any, X: Any, sample_weight: Any = None) -> np.ndarray | None:
        """Return whether each member was fitted on each sample, of shape (n_samples, n_members).

        None if all members were fitted on all samples, or if the model was fitted on other samples than the
        float32 matrix X: the numbers of drawn samples in the leaves of the first and the last tree decide.
        Trees that leave out a fold may also not have drawn some of the others.
        """
        if getattr(model, "_n_samples", None) != X.shape[0]:
            return None
        folds = getattr(model, "_left_out", None)
        if folds is None:
            bags = list(getattr(model, "estimators_samples_", ()))
        else:
            bags = [np.flatnonzero(folds[0] != fold) for fold in folds[1]]
        drawn = np.zeros((X.shape[0], len(bags)), dtype=bool)
        for number, bag in enumerate(bags):
            drawn[bag, number] = True
        if sample_weight is not None:  # trees do not count samples without weight
            bags = [bag[np.asarray(sample_weight)[bag] > 0] for bag in bags]
        draws = folds is not None and not self.sees_all(model)
        if drawn.all() or not all(_are_of_tree(model, X, bags[i], i, draws) for i in (0, len(bags) - 1)):
            return None
        return drawn


def _are_of_tree(model: Any, X: Any, bag: np.ndarray, number: int, draws: bool) -> bool:
    """Return whether a tree of an ensemble was fitted on some samples; with ``draws``, on a part of them."""
    columns = getattr(model, "estimators_features_", None)
    X = X if columns is None else X[:, columns[number]]
    tree = getattr(getattr(model, "estimators_", [model])[number], "tree_", None)
    if tree is None or tree.n_features != X.shape[1]:
        return False
    leaves = tree.apply(np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X)
    is_leaf = tree.children_left < 0
    counts = [np.bincount(leaves[own], minlength=tree.node_count)[is_leaf] for own in (bag, np.unique(bag))]
    if draws:
        return bool(counts[0].all())
    return any(np.array_equal(found, tree.n_node_samples[is_leaf]) for found in counts)


def _always(model: Any) -> bool:
    """Return True."""
    return True


@dataclass(frozen=True)
class BoostedStages:
    """Boosting whose trees are fitted to derivatives of a loss, which may be any.

    Attributes
    ----------
    grows : callable
        Function of an unfitted estimator and a :class:`~ortlearn.boosting.stages.StageObjective` that returns
        a context, in which the fit of the estimator grows trees on the objective.
    own_loss : callable
        Function of an unfitted estimator that returns the loss of its fit, or None if it is unknown.
    scores_of : callable
        Function of a fitted estimator and X that returns the scores, of shape (n,) or (n, n_scores).
    shift : callable
        Function of a fitted estimator and a number, or one for each output, added to its scores in place.
    applies : callable
        Function of an unfitted estimator that returns whether its stages are grown one after the other.
    several : bool
        Whether ``grows`` also takes :class:`~ortlearn.boosting.stages.StageObjectives`.
    """

    grows: Callable[[Any, StageObjective], AbstractContextManager[None]]
    own_loss: Callable[[Any], BaseLoss | None]
    scores_of: Callable[[Any, Any], np.ndarray]
    shift: Callable[[Any, Any], None]
    applies: Callable[[Any], bool] = _always
    several: bool = False


def _no_members(model: Any) -> Sequence[Any]:
    """Return nothing."""
    return ()


@dataclass(frozen=True)
class CrossFitted:
    """Models whose parts are fitted to outputs for samples that the parts before have not seen.

    Attributes
    ----------
    applies : callable
        Function of an estimator that returns whether its fit does so, and does not take parts as they are.
    members : callable
        Function of a fitted estimator that returns the parts before, which have seen all samples.
    final : str
        Parameter with the part that is fitted to the outputs, ``final + "_"`` after the fit; empty for
        transformers, whose outputs go to the next step.
    """

    applies: Callable[[Any], bool] = _always
    members: Callable[[Any], Sequence[Any]] = _no_members
    final: str = ""


def reproduces_samples(model: Any, *details: Any) -> bool:
    """Return whether parts of an unfitted model, such as trees, reproduce the samples of their fit."""
    parts = [own for own in model.get_params().values() if hasattr(own, "get_params")]
    return any(capability_of(own, kind) for own in parts for kind in (BoostedStages, ShiftedScores))


@dataclass(frozen=True)
class SeparateParts:
    """Models whose parts are fitted for themselves, so that each can be trained for itself, too.

    Attributes
    ----------
    samples : callable
        Function of a fitted model and its samples, a generator of each part and the samples of its fit, to
        which the trained part is sent; of nothing if its parts are trained together.
    replace : callable
        Function of a fitted model and a list of other parts, which it takes.
    applies : callable
        Function of an unfitted model and a loss that returns whether its parts are trained for themselves; by
        default, if they have trees.
    """

    samples: Callable[[Any, Any], Generator[tuple[Any, Any], Any, None]]
    replace: Callable[[Any, list[Any]], None]
    applies: Callable[[Any, BaseLoss], bool] = reproduces_samples


Capability = TypeVar("Capability")


def with_few_members(model: Any) -> Any:
    """Return an unfitted model or pipeline, with few members if its losses are then nearly the same."""
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        few = with_few_members(last)
        return model if few is last else Pipeline([*model.steps[:-1], (name, few)])
    if capability_of(model, Bags) is None or getattr(model, "n_estimators", 0) <= FEW:
        return model
    return clone(model).set_params(n_estimators=FEW)


def capability_of(model: Any, kind: type[Capability]) -> Capability | None:
    """Return the capability of a kind that the definition of a fitted estimator names, or None."""
    definition = find_definition(model)
    named = () if definition is None else definition.capabilities
    return next((own for own in named if isinstance(own, kind)), None)


def cross_fitting_of(estimator: Any) -> str:
    """Return how the fit of an estimator differs from training by a part that is :class:`CrossFitted`."""
    nested = [own for own in estimator.get_params(deep=True).values() if hasattr(own, "get_params")]
    rules = [(own, capability_of(own, CrossFitted)) for own in (estimator, *nested)]
    names = [type(own).__name__ for own, rule in rules if rule is not None and rule.applies(own)]
    return f"its fit takes cross-validated outputs in {names[0]}" if names else ""
