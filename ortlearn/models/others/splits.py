"""What boosters of several packages share: splits on categories, and penalties of leaves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...losses import BaseLoss
from ...penalties import BasePenalty, ElasticPenalty, L1Penalty, L2Penalty, NoPenalty
from .. import ModelWriter, Objective, category_numbers
from ..trees import Nodes


@dataclass(frozen=True)
class CategorySplit:
    """A split on categories, which are whole numbers."""

    node: int  # its number among the nodes of all trees
    feature: int  # column of the categories
    categories: tuple[int, ...]
    left: bool  # whether these go left; other numbers go to the other side
    missing_left: bool


def with_category_columns(
    op: ModelWriter,
    x: str,
    nodes: Nodes,
    n_columns: int,
    splits: Sequence[CategorySplit],
    whole: Callable[[str], str],
) -> tuple[str, Nodes, int]:
    """Append a column for each split on categories, 0 where a sample goes left and 1 where it goes right.

    ``whole`` makes whole numbers of a column. Returned are the columns of X and of the splits, the trees that
    compare these, and how many columns there are.
    """
    feature, threshold, missing_left = nodes.feature.copy(), nodes.threshold.copy(), nodes.missing_left.copy()
    columns = [x]
    for position in sorted({split.feature for split in splits}):
        own = [split for split in splits if split.feature == position]
        values = sorted(set().union(*(split.categories for split in own)))
        right = np.empty((len(values) + 1, len(own)), dtype=op.float_dtype)
        for number, split in enumerate(own):
            is_named = np.append(False, np.isin(values, split.categories))
            right[:, number] = is_named != split.left
        column = op.columns(x, [position])
        numbers = op.Reshape(category_numbers(op, whole(column), values), [-1])
        found = op.Gather(right, numbers, axis=0)
        of_missing = np.array([[not split.missing_left for split in own]], dtype=op.float_dtype)
        if np.any(of_missing != right[:1]):
            found = op.Where(op.IsNaN(column), of_missing, found)
        columns.append(found)
        places = [split.node for split in own]
        feature[places] = np.arange(n_columns, n_columns + len(own))
        threshold[places], missing_left[places] = 0.5, False
        n_columns += len(own)
    if len(columns) > 1:
        x = op.Concat(*columns, axis=1)
    return x, replace(nodes, feature=feature, threshold=threshold, missing_left=missing_left), n_columns


def with_codes(op: ModelWriter, model: Any, x: Any, known: Mapping[int, Sequence[Any]]) -> str:
    """Append the matrix of X with the codes of categories in the place of some columns; NaN for others.

    ``known`` has the categories of these columns, in the order of their codes.
    """
    name, n_features = type(model).__name__, model.n_features_in_
    numbers = [place for place in range(n_features) if place not in known]
    columns = [op.matrix(op.columns(x, numbers, n_features), name)] if numbers else []
    if not known:
        return columns[0]
    for place, categories in known.items():
        column = op.column(x, place)
        if op.has_text(column) and "nan" in categories:
            raise op.fail(model, "a category is the text 'nan', which stands for a missing one: rename it.")
        number = op.Cast(category_numbers(op, column, categories), to=op.elem_type)
        columns.append(op.Where(op.Greater(number, 0.0), op.Sub(number, 1.0), float("nan")))
    order = np.argsort([*numbers, *known])
    return op.columns(op.Concat(*columns, axis=1) if len(columns) > 1 else columns[0], order, n_features)


def boosting_objective(
    loss: BaseLoss | None, l1: float, l2: float, rate: float, total_weight: float
) -> Objective | None:
    """Return the objective of rounds that minimise ``sum(w * l) + l1 * sum(|v|) + l2 / 2 * sum(v^2)``.

    v are the values of the leaves of a round before they are multiplied with the rate (Chen, T. and Guestrin,
    C., "XGBoost", KDD 2016, equation 2; the absolute values are the ``reg_alpha`` of its documentation).
    """
    if loss is None:
        return None
    l1, l2 = l1 / (total_weight * rate), l2 / (2 * total_weight * rate**2)
    penalty: BasePenalty = NoPenalty()
    if l1 and l2:
        penalty = ElasticPenalty(l1=l1, l2=l2)
    elif l1 or l2:
        penalty = L1Penalty(l1=l1) if l1 else L2Penalty(l2=l2)
    reason = "its strength is of the leaves of one round after the other"
    return Objective(loss, penalty, reason if l1 or l2 else "")
