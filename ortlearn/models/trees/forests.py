"""Decision trees and forests: means of the values of leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...losses import AbsoluteErrorLoss, LogLoss, SquaredErrorLoss
from ..base import ModelDefinition
from ..constraints.sets import Shares
from ..forms import Composed, Form, Reshaped, Scaled
from ..members import difference
from ..objectives import Objective, elastic
from ..scores import LOWEST, Scores, classes_of_probabilities, label_of, regression
from ..writer import ModelWriter
from .leaves import STEM, Leaves
from .nodes import Nodes
from .routing import leaf_numbers

#: Share of one tree's vote below which the probabilities of a forest count as this one: a class that no tree
#: votes for would jump at the first step otherwise, where the slope of the logarithm is 1 / LOWEST.
VOTE = 0.1


def _trees(model: Any) -> list[Any]:
    return [member.tree_ for member in getattr(model, "estimators_", [model])]


def _leaves(op: ModelWriter, model: Any, x: str, **options: Any) -> str:
    """Append the values of the leaves that samples reach, the trees along axis 1."""
    expression = "estimators_[*].tree_.value" if hasattr(model, "estimators_") else "tree_.value"
    table = op.parameter(model, expression, role="table", name=STEM, access=Leaves(_trees), **options)
    numbers = op.shared.get(id(model))
    if numbers is None:
        numbers = leaf_numbers(op, Nodes.of_trees(_trees(model)), x, model.n_features_in_)
    return op.Gather(table, numbers, axis=0)


#: Losses that criteria are the decrease of; values of leaves are their minima.
CRITERIA = {
    "squared_error": SquaredErrorLoss,
    "friedman_mse": SquaredErrorLoss,
    "absolute_error": AbsoluteErrorLoss,
    "entropy": LogLoss,
    "log_loss": LogLoss,
}


class _Trees(ModelDefinition):
    """Trees and forests: they minimise the criterion (User guide of scikit-learn, "Decision Trees")."""

    def share(
        self,
        op: ModelWriter,
        members: Sequence[Any],
        x: Any,
        n_features: int,
        columns: Sequence[np.ndarray] | None = None,
    ) -> None:
        if not all(hasattr(member, "tree_") for member in members):
            return
        nodes = Nodes.of_trees([member.tree_ for member in members], columns)
        counts = np.array([member.tree_.n_leaves for member in members])
        numbers = op.Sub(leaf_numbers(op, nodes, op.matrix(x), n_features), np.cumsum(counts) - counts)
        for number, member in enumerate(members):
            op.shared[id(member)] = op.Gather(numbers, [number], axis=1)

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        """Return the loss of the criterion.

        None for the Gini impurity, a square of probabilities, and for the Poisson deviance of trees, whose
        scores are means rather than logarithms.
        """
        loss = CRITERIA.get(model.criterion)
        return None if loss is None else Objective(loss(), elastic(0.0, 0.0))


class TreeRegressorDefinition(_Trees):
    """Trees and forests that predict numbers."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        n_trees, n_outputs = len(_trees(model)), model.n_outputs_
        form: Form = Reshaped((-1,) if n_outputs == 1 else (-1, n_outputs))
        if n_trees > 1:
            form = Composed(form, Scaled(1 / n_trees))
        values = _leaves(op, model, x, form=form)
        return regression(op, op.ReduceSum(values, [1], keepdims=int(n_outputs == 1)), n_outputs)


class TreeClassifierDefinition(_Trees):
    """Trees and forests that predict classes: the shares of each leaf stay on the simplex."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        several = model.n_outputs_ > 1
        sizes = list(model.n_classes_) if several else [model.n_classes_]
        if several and min(sizes) < 2:
            raise op.fail(model, "every output needs two classes at least.")
        n_trees = len(_trees(model))
        shares = _leaves(
            op,
            model,
            x,
            form=Reshaped((-1, len(sizes), max(sizes)) if several else (-1, sizes[0])),
            # The logarithm of a single tree's share is too steep near zero to start from there.
            constraint=Shares(tuple(map(int, sizes)), n_trees**-0.5, grows=n_trees > 1),
            reason="" if max(sizes) > 1 else "of a single class there is nothing to learn",
        )
        mean = op.ReduceSum(shares, [1], keepdims=0)
        if n_trees > 1:
            mean = op.Div(mean, float(n_trees))
        lowest = VOTE / n_trees if n_trees > 1 else LOWEST
        if not several:
            return classes_of_probabilities(op, mean, model.classes_, lowest)
        return _several_outputs(op, mean, model.classes_, lowest)


def _several_outputs(op: ModelWriter, shares: str, classes: list[np.ndarray], lowest: float) -> Scores:
    """Return the outputs of a classifier of several outputs from shares (n, n_outputs, n_classes).

    An output of two classes has one score, whose sigmoid is the probability of the second; one of more
    classes has a score for each, under a softmax of their own.
    """
    sizes = [len(own) for own in classes]
    logarithms = op.Log(op.Max(shares, lowest))
    scores, probabilities = [], []
    for output, size in enumerate(sizes):
        probabilities.append(op.columns(op.Gather(shares, output, axis=1), range(size), max(sizes)))
        own = op.Gather(logarithms, output, axis=1)
        if size == 2:
            scores.append(difference(op, own))
        else:
            scores.append(op.columns(own, range(size), max(sizes)))
    groups = tuple(1 if size == 2 else size for size in sizes)
    first = np.cumsum(sizes) - sizes
    best = op.Add(op.ArgMax(shares, axis=2, keepdims=0), first)
    return Scores(
        "multilabel",
        op.Concat(*scores, axis=1),
        sum(groups),
        "sigmoid" if max(groups) == 1 else "softmax",
        label=label_of(op, best, np.concatenate(classes)),
        probabilities=tuple(probabilities),
        classes=classes,
        groups=groups,
    )
