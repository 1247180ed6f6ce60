"""Decision trees and forests: means of the values or the depths of leaves."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    _iforest,
)
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from ... import losses
from ..base import Objective
from ..capabilities import Bags, GrowingEnsemble, ShiftedScores
from ..columns import LOWEST
from ..constraints.sets import ClosedSimplex
from ..forms import Form, Reshaped, Scaled
from ..parameters import Access
from ..scores import Scores, classes_of_probabilities, detection, multioutput, regression, transformation
from ..writer import ModelWriter
from .monotonic import MonotonicLeaves
from .nodes import STEM, FusedTrees, Nodes, TreeLeaves, leaf_numbers, leaf_sums, trees_of
from .thresholds import ComparesInFloat32

#: Lowest probability of a forest, in votes of one tree: with LOWEST, the gradient 1 / LOWEST of the logarithm
#: would be too large for a class without votes.
VOTE = 0.1


def _sums(op: ModelWriter, model: Any, x: str, **options: Any) -> str:
    """Append the sums of the values of the leaves that samples reach."""
    expression = "estimators_[*].tree_.value" if hasattr(model, "estimators_") else "tree_.value"
    table = op.parameter(model, expression, role="table", name=STEM, access=TreeLeaves(), **options)
    joined, numbers = _leaf_numbers(op, model, x)
    sums = leaf_sums(op, table, numbers, is_mean=True)
    op.tables[sums] = joined, table
    return sums


def _leaf_numbers(op: ModelWriter, model: Any, x: str) -> tuple[str, str]:
    """Append the leaves that samples reach in all trees of an ensemble, and in those of a member."""
    members, samples, columns, n_features = op.siblings.get(id(model), ([model], x, None, None))
    if len(members) == 1 or not all(hasattr(member, "tree_") for member in members):
        numbers = leaf_numbers(op, Nodes.of_trees(trees_of(model)), x, model.n_features_in_)
        return numbers, numbers
    if id(model) not in op.shared:
        nodes = Nodes.of_trees([member.tree_ for member in members], columns)
        counts = np.array([member.tree_.n_leaves for member in members])
        joined = leaf_numbers(op, nodes, op.matrix(samples), n_features or model.n_features_in_)
        numbers, sizes = op.Sub(joined, np.cumsum(counts) - counts), np.ones(len(members), dtype=np.int64)
        parts = op.Split(numbers, sizes, axis=1, n_outputs=len(members))
        op.shared |= {id(own): (joined, part) for own, part in zip(members, parts, strict=True)}
    return op.shared[id(model)]


def total_of(op: ModelWriter, tensors: Sequence[str]) -> str:
    """Append the sum of tensors, which is one fused operator if they are the leaves of all members."""
    total = op.Sum(*tensors)
    # each member keeps its table, so that weights keep their names
    numbers, tables = zip(*(op.tables.get(own, ("", "")) for own in tensors), strict=True)
    form = op.fused.get(numbers[0])
    if len(set(numbers)) == 1 and isinstance(form, FusedTrees) and len(form.nodes.sizes) == len(tables):
        op.fused[numbers[0]] = replace(form, sums=total, tables=tables)
    return total


#: Losses minimised by the values of leaves, by criterion.
CRITERIA = {
    "squared_error": losses.SquaredErrorLoss,
    "friedman_mse": losses.SquaredErrorLoss,
    "absolute_error": losses.AbsoluteErrorLoss,
    "entropy": losses.LogLoss,
    "log_loss": losses.LogLoss,
}


#: Smallest number of trees in a forest whose trees may be replaced by trees fitted on other samples.
FEWEST_TREES = 4


class GrowingForest(GrowingEnsemble):
    """Forests, which keep their number of trees, and single trees, which are replaced."""

    evidence = 2.0  # in measurements, noisy labels did harm more often with one standard error
    ignores_weightless = True
    stream_shares = (1.0, 0.75, 0.5, 0.25, 0.0)
    #: Their classes; subclasses may sample differently.
    kinds: tuple[type, ...] = (ExtraTreesClassifier, ExtraTreesRegressor)
    kinds += (RandomForestClassifier, RandomForestRegressor)
    single: tuple[type, ...] = (DecisionTreeClassifier, DecisionTreeRegressor)
    single += (ExtraTreeClassifier, ExtraTreeRegressor)
    #: Attributes with an element for each tree.
    lists: tuple[str, ...] = ("estimators_",)

    def grows(self, model: Any, n_samples: int) -> bool:
        if type(model) in self.single:
            return True
        return type(model) in self.kinds and len(model.estimators_) >= FEWEST_TREES

    def leaf_evidence(self, model: Any) -> float:
        return 1.0 if type(model) in self.single else self.evidence

    def shares(self, model: Any) -> tuple[float, ...]:
        return (1.0,) if type(model) in self.single else super().shares(model)

    def scores_of(self, model: Any, X: Any) -> np.ndarray:
        found = model.predict(X)
        return found.reshape(len(found), -1)

    def joined(self, model: Any, other: Any, share: float) -> Any:
        """Return the forest with its first trees replaced by trees of the other forest."""
        n_new = round(share * len(model.estimators_))
        return self._of_trees(model, (other, 0, n_new), (model, n_new, None))

    def extended(self, model: Any, other: Any, share: float, largest: int) -> Any:
        """Return the forest without its oldest trees, which come first, and with new ones at the end."""
        n_old, n_other = len(model.estimators_), len(other.estimators_)
        if share == 1:
            return other
        total = min(largest, round(n_old / (1 - share)), round(n_other / share))
        n_new = min(round(share * total), n_other)
        return self._of_trees(model, (model, max(0, n_old - total + n_new), None), (other, 0, n_new))

    def _of_trees(self, model: Any, *parts: tuple[Any, int, int | None]) -> Any:
        """Return a forest of copied trees: those of forests from one index to another."""
        found = copy.copy(model)
        for name in self.lists:
            lists = [getattr(forest, name)[begin:end] for forest, begin, end in parts]
            setattr(found, name, copy.deepcopy([own for part in lists for own in part]))
        found.n_estimators = len(found.estimators_)
        return found


class GrowingForestOfClasses(GrowingForest):
    """Forests of classifiers with one output, whose scores are logarithms of probabilities."""

    def grows(self, model: Any, n_samples: int) -> bool:
        return super().grows(model, n_samples) and getattr(model, "n_outputs_", 1) == 1

    def scores_of(self, model: Any, X: Any) -> np.ndarray:
        return np.log(np.maximum(model.predict_proba(X), _lowest(len(trees_of(model)))))

    def mixed_scores(self, scores: np.ndarray, others: np.ndarray, share: float) -> np.ndarray:
        return np.log((1 - share) * np.exp(scores) + share * np.exp(others))


class GrowingBagging(GrowingForest):
    """Bagging of trees, each with its columns and the seed of its bag."""

    kinds, single = (BaggingClassifier, BaggingRegressor), ()
    lists = "estimators_", "estimators_features_", "_seeds"

    def grows(self, model: Any, n_samples: int) -> bool:
        return super().grows(model, n_samples) and all(
            hasattr(member, "tree_") for member in model.estimators_
        )


class GrowingBaggingOfClasses(GrowingForestOfClasses, GrowingBagging):
    """Bagging of classification trees."""


def _lowest(n_trees: int) -> float:
    """Return the lowest probability of a mean of trees."""
    return VOTE / n_trees if n_trees > 1 else LOWEST


def _signs(model: Any) -> np.ndarray | None:
    """Return the signs of monotonic constraints, or None."""
    given = model.monotonic_cst
    return None if given is None else np.asarray(given)


MONOTONIC = MonotonicLeaves(lambda model: Nodes.of_trees(trees_of(model)), _signs)


class _Trees(ComparesInFloat32):
    """Trees and forests, without an objective for the Gini impurity and the Poisson deviance."""

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        loss = CRITERIA.get(model.criterion)
        return None if loss is None else Objective(loss())


class TreeRegressorDefinition(_Trees):
    """Regression trees and forests."""

    capabilities = (Bags(), GrowingForest(), MONOTONIC, ShiftedScores(lambda model: 1 / len(trees_of(model))))

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        n_trees, n_outputs = len(trees_of(model)), model.n_outputs_
        shape = (-1,) if n_outputs == 1 else (-1, n_outputs)
        form: Form = Reshaped(shape) if n_trees == 1 else Scaled(1 / n_trees, shape=shape)
        return regression(op, _sums(op, model, x, form=form), n_outputs)


class TreeClassifierDefinition(_Trees):
    """Classification trees and forests; the class probabilities of each leaf stay on the simplex."""

    capabilities = (Bags(), GrowingForestOfClasses(), MONOTONIC)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        several = model.n_outputs_ > 1
        sizes = list(model.n_classes_) if several else [model.n_classes_]
        n_trees = len(trees_of(model))
        mean = _sums(
            op,
            model,
            x,
            form=Reshaped((-1, len(sizes), max(sizes)) if several else (-1, sizes[0])),
            # for one tree, the logarithm of a share is too steep near zero
            constraint=ClosedSimplex(tuple(map(int, sizes)), n_trees**-0.5, grows=n_trees > 1),
            reason="" if max(sizes) > 1 else "all training samples have the same class",
        )
        if n_trees > 1:
            mean = op.Div(mean, float(n_trees))
        lowest = _lowest(n_trees)
        if not several:
            return classes_of_probabilities(op, mean, model.classes_, lowest)
        matrices = [op.Gather(mean, output, axis=1) for output in range(len(sizes))]
        found = [op.columns(own, range(k), max(sizes)) for own, k in zip(matrices, sizes, strict=True)]
        return multioutput(op, found, model.classes_, lowest)


class LeafDepths(Access):
    """Depths of leaves: splits, and the expected splits of the training samples in the leaf."""

    def _parts(self, forest: Any) -> Any:
        leaves = [member.tree_.children_left < 0 for member in forest.estimators_]
        return zip(leaves, forest._decision_path_lengths, forest._average_path_length_per_tree, strict=True)

    def read(self, owner: Any) -> np.ndarray:
        parts = self._parts(owner)
        return np.concatenate([path[leaves] + length[leaves] - 1.0 for leaves, path, length in parts])

    def write(self, owner: Any, value: np.ndarray) -> None:
        paths, begin = [], 0
        for leaves, path, length in self._parts(owner):
            path = path.astype(np.float64)
            path[leaves] = value[begin : (begin := begin + int(leaves.sum()))] + 1.0 - length[leaves]
            paths.append(path)
        owner._decision_path_lengths = tuple(paths)


class IsolationForestDefinition(ComparesInFloat32):
    """IsolationForest: ``-2^(-d / (T c(n))) - offset_``, d the depths in T trees (Liu et al., ICDM 2008)."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        expression = "_decision_path_lengths + _average_path_length_per_tree - 1"
        table = op.parameter(model, expression, role="table", name=STEM, access=LeafDepths())
        nodes = Nodes.of_trees(trees_of(model), model.estimators_features_)
        depth = leaf_sums(op, table, leaf_numbers(op, nodes, x, model.n_features_in_))
        scale = float(len(model.estimators_) * _iforest._average_path_length([model.max_samples_])[0])
        log2 = float(np.log(2))
        # trees of a single sample score 1/2
        exponent = op.Mul(depth, -log2 / scale) if scale else op.Sub(op.Mul(depth, 0.0), log2)
        reason = "" if model.contamination != "auto" else "constant for contamination='auto'"
        offset = op.parameter(model, "offset_", form=Reshaped((-1,)), role="intercept", reason=reason)
        return detection(op, op.Sub(op.Neg(op.Exp(exponent)), offset))


class TreesEmbeddingDefinition(ComparesInFloat32):
    """RandomTreesEmbedding: 1 in the column of the leaf that a sample reaches in each tree, 0 elsewhere."""

    untrained = "its output is the index of a leaf, a step function without a gradient"
    continuous = False

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        trees, known = trees_of(model), model.one_hot_encoder_.categories_
        leaves = [np.flatnonzero(tree.children_left < 0) for tree in trees]
        first = np.cumsum([0, *map(len, leaves)])
        pairs = zip(first, leaves, known, strict=False)
        wanted = np.concatenate([begin + np.searchsorted(own, some) for begin, own, some in pairs])
        numbers = leaf_numbers(op, Nodes.of_trees(trees), x, model.n_features_in_)
        reached = op.Gather(numbers, np.repeat(np.arange(len(trees)), list(map(len, known))), axis=1)
        return transformation(op, op.ones_where(op.Equal(reached, wanted)), len(wanted))
