"""Fewer trees of an ensemble, and fewer leaves of trees."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.tree import BaseDecisionTree

from ..preprocessing.initial_fit import after_steps, final_step
from .teachers import member_answers

__all__ = ["fewer_leaves", "fewer_trees", "n_leaves", "n_trees", "set_parameter"]

#: Halvings of an interval of strengths of cost-complexity pruning.
HALVINGS = 40


def n_trees(model: Any) -> str:
    """Return the number of trees of an ensemble."""
    return str(len(final_step(model).estimators_))


def n_leaves(model: Any) -> str:
    """Return the number of leaves of a tree, or of all trees of an ensemble."""
    return str(_count(_trees(final_step(model))))


def set_parameter(model: Any, name: str, value: Any) -> Any:
    """Return a model with a parameter of its last step set."""
    own = f"{model.steps[-1][0]}__{name}" if final_step(model) is not model else name
    return model.set_params(**{own: value})


def fewer_trees(model: Any, X: Any, y: Any, share: float, training: Any) -> Any:
    """Keep the trees whose mean has the lowest squared error, chosen one after the other."""
    model = copy.deepcopy(model)
    last = final_step(model)
    answers = np.stack(list(member_answers(last, np.asarray(after_steps(model, X)))))
    values = np.asarray(y)
    target = values[:, None] == last.classes_ if is_classifier(last) else values.reshape(len(values), -1)
    total, order = np.zeros(answers.shape[1:]), list[int]()
    for count in range(1, max(1, round(len(answers) * (1 - share))) + 1):
        free = [i for i in range(len(answers)) if i not in order]
        errors = np.square((total + answers[free]) / count - target).sum(axis=(1, 2))
        order.append(free[int(np.argmin(errors))])
        total += answers[order[-1]]
    last.estimators_ = [last.estimators_[i] for i in sorted(order)]
    if hasattr(last, "estimators_features_"):
        last.estimators_features_ = [last.estimators_features_[i] for i in sorted(order)]
    return set_parameter(model, "n_estimators", len(order))


def fewer_leaves(model: Any, X: Any, y: Any, share: float, training: Any) -> Any:
    """Remove the subtrees whose splits decrease the impurity least per leaf, of all trees together.

    The strength of the minimal cost-complexity pruning (Breiman et al., 1984, section 3.3) is the lowest that
    leaves as few leaves as wanted.
    """
    wanted = max(1, round(_count(_trees(final_step(model))) * (1 - share)))
    low, high = 0.0, max(float(tree.tree_.impurity[0]) for tree in _trees(final_step(model)))
    for _ in range(HALVINGS if share else 0):
        middle = (low + high) / 2
        is_enough = _count(_pruned(_trees(final_step(model)), middle)) <= wanted
        low, high = (low, middle) if is_enough else (middle, high)
    model = copy.deepcopy(model)
    last = final_step(model)
    pruned = _pruned(_trees(last), high if share else 0.0)
    for tree, smaller in zip(_trees(last), pruned, strict=True):
        tree.tree_ = smaller.tree_
    return set_parameter(model, "ccp_alpha", high if share else last.ccp_alpha)


def _trees(last: Any) -> list[Any]:
    return [last] if isinstance(last, BaseDecisionTree) else list(last.estimators_)


def _count(trees: list[Any]) -> int:
    return sum(tree.get_n_leaves() for tree in trees)


def _pruned(trees: list[Any], strength: float) -> list[Any]:
    """Return trees after cost-complexity pruning of a strength."""
    found = [copy.copy(tree).set_params(ccp_alpha=strength) for tree in trees]
    for tree in found:
        tree._prune_tree()
    return found
