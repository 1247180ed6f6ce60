"""AdaBoost: weighted votes and weighted medians of members."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ..base import ModelDefinition
from ..capabilities import ReplacedEnsemble, ShiftedScores
from ..constraints.sets import ClosedSimplex
from ..constraints.signs import Positive
from ..forms import Kept, Reshaped
from ..scores import (
    Scores,
    binary_classes,
    class_scores,
    classes_of_probabilities,
    label_of,
    regression,
)
from ..trees.nodes import STEM, Nodes, TreeLeaves, leaf_numbers, trees_of
from ..writer import ModelWriter
from .ensembles import common_offset, predicted_classes, probabilities_of, write_members

#: Leaves per tree up to which the votes of all leaves are computed.
FEW_LEAVES = 32


class AdaBoostRegressorDefinition(ModelDefinition):
    """AdaBoostRegressor: the weighted median; the gradient goes to the member that predicts it."""

    capabilities = ReplacedEnsemble(), ShiftedScores(common_offset)

    def children(self, model: Any) -> Iterator[Any]:
        yield from model.estimators_

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        count = len(model.estimators_)
        leaves = leaf_values(op, model, x, Reshaped((-1,))) if count > 1 else None
        if leaves:
            values = op.Gather(*leaves[:2], axis=0)
        else:
            columns = [member.predicted for member in write_members(op, model, x)]
            if count == 1:
                return regression(op, columns[0])
            values = op.Concat(*columns, axis=1)
        reason = "it only selects the member that is the median, a step function with zero gradient"
        weights = op.parameter(model, "estimator_weights_", reason=reason)
        _, order = op.TopK(values, [count], axis=1, largest=0, n_outputs=2)
        sums = op.CumSum(op.Gather(weights, order, axis=0), 1)
        half = op.Mul(op.Gather(sums, [count - 1], axis=1), 0.5)
        reached = op.Cast(op.GreaterOrEqual(sums, half), to=TensorProto.INT32)
        median = op.GatherElements(order, op.ArgMax(reached, axis=1, keepdims=1), axis=1)
        return regression(op, op.GatherElements(values, median, axis=1))


class AdaBoostClassifierDefinition(ModelDefinition):
    """AdaBoostClassifier; training replaces votes, which have no gradient, by probabilities."""

    capabilities = (ReplacedEnsemble(by_votes=True),)

    # Zhu, Zou, Rosset and Hastie, "Multi-class AdaBoost", Statistics and Its Interface 2, 2009 (SAMME)

    def children(self, model: Any) -> Iterator[Any]:
        yield from model.estimators_

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        classes, count = model.classes_, len(model.estimators_)
        k = len(classes)
        if k == 1:  # the decision for a single class is zero
            one = op.repeated_row(x, op.constant([1.0]))
            return classes_of_probabilities(op, one, classes, decision=op.Sub(one, 1.0))
        # weights are zero after the last member if the fit stopped early
        used = Kept(np.arange(len(model.estimator_weights_)) < count)
        weights = op.parameter(model, "estimator_weights_", form=used, constraint=Positive())
        weights = op.Div(weights, op.ReduceSum(weights, [0], keepdims=1))
        decision, score = self._votes(op, model, x, weights)
        if k > 2:
            scores = class_scores(op, op.Div(score, k - 1.0), classes)
            shares = op.Softmax(op.Div(decision, k - 1.0), axis=1)
        else:
            decision, score = op.difference(decision), op.difference(score)
            scores = binary_classes(op, score, classes)
            shares = op.binary_probabilities(op.Sigmoid(decision))
        label = label_of(op, op.ArgMax(shares, axis=1, keepdims=0), classes)
        return replace(scores, label=label, probabilities=shares, decision=decision)

    def _votes(self, op: ModelWriter, model: Any, x: str, weights: str) -> tuple[str, str]:
        """Append the weighted votes of all members, and those of their probabilities, of shape (n, k)."""
        k, hard, soft = len(model.classes_), [], []
        same = all(np.array_equal(member.classes_, model.classes_) for member in model.estimators_)
        leaves = leaf_values(op, model, x, Reshaped((-1, k)), ClosedSimplex((k,), 1.0)) if same else None
        if leaves:
            shares, numbers, nodes = leaves
            trees = nodes.trees[nodes.is_leaf]
            # Small trees have fewer leaves than a batch reads, so that votes are computed per leaf.
            by_leaf = len(trees) <= FEW_LEAVES * len(nodes.sizes)
            shares = shares if by_leaf else op.Gather(shares, numbers, axis=0)
            column = op.Reshape(op.Gather(weights, trees, axis=0) if by_leaf else weights, [-1, 1])
            best = op.Equal(op.ArgMax(shares, axis=-1, keepdims=1), np.arange(k))
            votes = [_votes(op, own, column, k) for own in (op.Cast(best, to=op.elem_type), shares)]
            votes = [op.Gather(own, numbers, axis=0) if by_leaf else own for own in votes]
            decision, score = (op.ReduceSum(own, [1], keepdims=0) for own in votes)
            return decision, score
        for number, member in enumerate(write_members(op, model, x)):
            weight = op.Gather(weights, [number], axis=0)
            hard.append(_votes(op, predicted_classes(op, member), weight, k))
            soft.append(_votes(op, probabilities_of(op, member), weight, k))
        return op.Sum(*hard), op.Sum(*soft)


def leaf_values(
    op: ModelWriter, model: Any, x: str, form: Any, constraint: Any = None
) -> tuple[str, str, Nodes] | None:
    """Append values of leaves and the leaves of samples, (n, n_trees); None if members are no trees."""
    trees = (DecisionTreeClassifier, DecisionTreeRegressor)
    if not all(isinstance(member, trees) and member.n_outputs_ == 1 for member in model.estimators_):
        return None
    options: Any = {"form": form, "constraint": constraint, "access": TreeLeaves(), "name": STEM}
    table = op.parameter(model, "estimators_[*].tree_.value", role="table", **options)
    nodes = Nodes.of_trees(trees_of(model))
    return table, leaf_numbers(op, nodes, x, model.n_features_in_), nodes


def _votes(op: ModelWriter, shares: str, weight: str, n_classes: int) -> str:
    """Append weighted votes of a member: 1 for a probability of 1, ``-1 / (k - 1)`` for 0."""
    rest = n_classes - 1
    return op.Mul(op.Sub(op.Mul(shares, n_classes / rest), 1.0 / rest), weight)
