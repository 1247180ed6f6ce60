"""Common parts of boosters: objectives, outputs, splits on categories."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...losses import BaseLoss
from ...penalties import BasePenalty, ElasticPenalty, L1Penalty, L2Penalty, NoPenalty
from .. import ModelWriter, Objective, Scores, category_numbers
from ..scores import binary_classes, class_scores, decisions, indicator, regression
from ..trees import ComparesInFloat32, Nodes, leaf_numbers

__all__ = [
    "CLASSIFIERS",
    "Booster",
    "CategorySplit",
    "Kind",
    "boosting_objective",
    "tree_leaves",
    "with_codes",
]


def _hinge(op: ModelWriter, raw: str, classes: Any) -> Scores:
    shares = op.binary_probabilities(op.ones_where(op.Greater(raw, 0.0)))
    return decisions(op, raw, classes, probabilities=shares, decision="")


def _labels(op: ModelWriter, raw: str, classes: Any, **outputs: Any) -> Scores:
    return indicator(op, raw, np.arange(len(classes)), probabilities=op.Sigmoid(raw), **outputs)


#: Writers of the outputs of classifiers by the kind of their raw scores.
CLASSIFIERS: dict[str, Callable[..., Scores]] = {
    "hinge": _hinge,
    "labels": _labels,
    "logit": binary_classes,
    "logits": lambda op, raw, classes, **o: decisions(op, raw, classes, probabilities=op.Sigmoid(raw), **o),
    "softmax": class_scores,
}


class Kind(NamedTuple):
    """The loss of an objective, from the parameters of the fit, and the kind of its raw scores."""

    loss: Callable[[Any], BaseLoss] | None = None  # None without a corresponding loss
    output: str = "number"  # or "share", the logit of a value from 0 to 1, or a key of CLASSIFIERS


class Booster(ComparesInFloat32):
    """Base class of definitions of boosters, whose outputs depend on the objective."""

    kinds: Mapping[str, Kind]  # by the name of the objective
    defaults: tuple[str, str]  # objectives of regressors and classifiers, unless they are named
    supported: tuple[str, str]  # advice in errors for regressors, and for classifiers

    def kind_of(self, op: ModelWriter, model: Any, name: str) -> Kind:
        """Return the kind of an objective, or raise a ConversionError if it is not supported."""
        kind, is_classifier = self.kinds.get(name), hasattr(model, "predict_proba")
        if kind is None or (kind.output in CLASSIFIERS) is not is_classifier:
            advice = self.supported[is_classifier]
            raise op.fail(model, f"its objective {name!r} is not supported: use {advice}.")
        return kind

    def own_loss(self, model: Any, name: str | None, params: Any) -> BaseLoss | None:
        """Return the loss of an unfitted booster with the objective of a name; None if it is unknown."""
        loss = self.kinds.get(name or self.defaults[hasattr(model, "predict_proba")], Kind()).loss
        return None if loss is None else loss(params)

    def regression_scores(
        self, op: ModelWriter, kind: Kind, raw: str, params: Any, n_scores: int = 1
    ) -> Scores:
        """Return the outputs of a regressor from raw scores of shape (n, n_scores)."""
        if kind.output == "share":
            return regression(op, op.Sigmoid(raw), n_scores)
        return regression(op, raw, n_scores, kind.loss(params).link if kind.loss else "identity")


class CategorySplit(NamedTuple):
    """A split on categories, which are integers."""

    node: int  # number within its tree
    feature: int  # column of the categories
    categories: tuple[int, ...]
    left: bool  # whether these categories go left, and all others right
    missing_left: bool


def tree_leaves(
    op: ModelWriter,
    x: str,
    n_columns: int,
    trees: Sequence[tuple[Nodes, Sequence[CategorySplit]]],
    to_integer: Callable[[str], str],
    in_float32: bool = True,
) -> str:
    """Append the leaves of samples in trees with splits on categories, made integers by ``to_integer``."""
    # each of these splits becomes a column, 0 for samples that go left and 1 for the others
    nodes = Nodes.joined([own for own, _ in trees])
    pairs = zip(nodes.roots.tolist(), trees, strict=True)
    splits = [split._replace(node=begin + split.node) for begin, (_, own) in pairs for split in own]
    feature, threshold, missing_left = nodes.feature.copy(), nodes.threshold.copy(), nodes.missing_left.copy()
    columns = [x]
    for position in sorted({split.feature for split in splits}):
        found = [split for split in splits if split.feature == position]
        values = sorted(set().union(*(split.categories for split in found)))
        named = [np.append(False, np.isin(values, split.categories)) != split.left for split in found]
        right = np.stack(named, axis=1).astype(op.float_dtype)
        column = op.columns(x, [position])
        numbers = op.Reshape(category_numbers(op, to_integer(column), values), [-1])
        sides = op.Gather(right, numbers, axis=0)
        of_missing = np.array([[not split.missing_left for split in found]], dtype=op.float_dtype)
        if np.any(of_missing != right[:1]):
            sides = op.Where(op.IsNaN(column), of_missing, sides)
        columns.append(sides)
        indices = [split.node for split in found]
        feature[indices] = np.arange(n_columns, n_columns + len(found))
        threshold[indices], missing_left[indices] = 0.5, False
        n_columns += len(found)
    nodes = replace(nodes, feature=feature, threshold=threshold, missing_left=missing_left)
    return leaf_numbers(op, nodes, op.joined(columns), n_columns, in_float32)


def with_codes(op: ModelWriter, model: Any, x: Any, known: Mapping[int, Sequence[Any]]) -> str:
    """Append the matrix of X, with categories replaced by their codes, and by NaN if unknown."""
    name, n_features = type(model).__name__, model.n_features_in_
    numeric = [position for position in range(n_features) if position not in known]
    columns = [op.matrix(op.columns(x, numeric, n_features), name)] if numeric else []
    if not known:
        return columns[0]
    for position, categories in known.items():
        column = op.column(x, position)
        if op.has_text(column) and "nan" in categories:
            raise op.fail(model, "a category is the text 'nan', which stands for a missing value: rename it.")
        number = op.Cast(category_numbers(op, column, categories), to=op.elem_type)
        columns.append(op.Where(op.Greater(number, 0.0), op.Sub(number, 1.0), float("nan")))
    return op.columns(op.joined(columns), np.argsort([*numeric, *known]), n_features)


def boosting_objective(loss: BaseLoss, l1: float, l2: float, rate: float, total_weight: float) -> Objective:
    """Return the objective of rounds that minimise ``sum(w * l) + l1 * sum(|v|) + l2 / 2 * sum(v^2)``."""
    # v are the values of the leaves of a round before they are multiplied by the rate (Chen, T. and Guestrin,
    # C., "XGBoost", KDD 2016, equation 2; the absolute values are the reg_alpha of its documentation)
    l1, l2 = l1 / (total_weight * rate), l2 / (2 * total_weight * rate**2)
    if not l1 and not l2:
        return Objective(loss, NoPenalty())
    penalty: BasePenalty = L1Penalty(l1=l1) if l1 else L2Penalty(l2=l2)
    penalty = ElasticPenalty(l1=l1, l2=l2) if l1 and l2 else penalty
    return Objective(loss, penalty, "its strength applies to the leaves of each round")
