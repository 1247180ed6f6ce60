"""Averages of the weights and states of trainings on shards."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..fitting.fitted_model import FittedModel

__all__ = ["Mean", "average_arrays", "average_trainers", "merge_in_pairs", "merged"]

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


class Mean(NamedTuple):
    """Weighted mean of the arrays of several trainings, and the sum of their weights."""

    arrays: Mapping[Any, np.ndarray]
    weight: float


def merge_in_pairs(items: Sequence[Item], merge: Callable[[Item, Item], Item]) -> Item:
    """Return the items merged to one: neighbours in pairs, then pairs of pairs."""
    level = list(items)
    while len(level) > 1:
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        level = [merge(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0]


def merged(first: Mean, second: Mean) -> Mean:
    """Return the mean of two means, weighted by their sums of weights.

    Floats are ``a + (b - a) * w_b / (w_a + w_b)`` in float64, so that equal values do not change. Of integers
    and booleans, which count steps, the larger value is returned.
    """
    total = first.weight + second.weight
    share = second.weight / total if total > 0 else 0.0
    arrays = {}
    for name, one in first.arrays.items():
        other = second.arrays[name]
        if np.issubdtype(one.dtype, np.floating):
            wide = one.astype(np.float64)
            arrays[name] = np.asarray(wide + (other.astype(np.float64) - wide) * share)
        else:
            arrays[name] = np.asarray(np.maximum(one, other))
    return Mean(arrays, total)


def average_arrays(
    parts: Sequence[Mapping[Key, np.ndarray]], weights: Sequence[float] | None = None
) -> dict[Key, np.ndarray]:
    """Return the weighted mean of the arrays of several trainings.

    Neighbours are merged in pairs, then pairs of pairs, in float64. The result depends only on the parts and
    their order: it is the same, bit for bit, wherever a pair is merged.

    Parameters
    ----------
    parts : sequence of mapping of str or tuple to ndarray
        Arrays of each training, with the same names, shapes and types.
    weights : sequence of float, default=None
        Weight of each training, such as its number of samples; equal weights by default.

    Returns
    -------
    dict of str or tuple to ndarray
        Means, with the types of the arrays; for integers, the maximum.

    Raises
    ------
    ValueError
        If there are no parts, if names, shapes or types differ, or if weights are invalid.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.distributed import average_arrays
    >>> average_arrays([{"coef": np.array([0.0, 1.0])}, {"coef": np.array([4.0, 1.0])}], weights=[300, 100])
    {'coef': array([1., 1.])}
    """
    weights = _checked_weights(weights, len(parts))
    forms = [{name: (array.shape, array.dtype) for name, array in part.items()} for part in parts]
    for number, form in enumerate(forms):
        if form != forms[0]:
            differ = [n for n in {**forms[0], **form} if form.get(n) != forms[0].get(n)]
            raise ValueError(
                f"Part {number} has other arrays than part 0: {differ[:3]} differ in name, shape or type. "
                "Average trainings that started from the same model, with a named learning_rate if "
                "partial_fit fits the model again."
            )
    mean = merge_in_pairs([Mean(part, weight) for part, weight in zip(parts, weights, strict=True)], merged)
    return {name: np.array(array, dtype=parts[0][name].dtype) for name, array in mean.arrays.items()}


def _checked_weights(weights: Sequence[float] | None, count: int) -> list[float]:
    """Return the weights of trainings as floats; reject invalid ones."""
    if not count:
        raise ValueError("There is nothing to average: pass at least one training.")
    values = np.ones(count) if weights is None else np.asarray(weights, dtype=np.float64)
    if values.shape != (count,) or not np.isfinite(values).all() or values.min() < 0 or not values.any():
        raise ValueError(
            f"weights={weights!r} must be a number >= 0 for each of {count} trainings, at least one of them "
            "positive. Pass their numbers of samples, for example."
        )
    return values.tolist()


def average_trainers(trainers: Sequence[Any], weights: Sequence[float] | None = None) -> Any:
    """Return an estimator with the mean of the weights and update states of several estimators.

    Use it between two rounds of training on shards: call ``partial_fit`` once, copy the estimator to the
    workers, call ``partial_fit`` on one shard each, and average the copies. Training continues with
    ``partial_fit`` of the result. The trainers are not modified, and the order in which workers finish does
    not matter.

    Parameters
    ----------
    trainers : sequence of OrtGradientOptimizer or OrtGradientForwardBackwardOptimizer
        Fitted estimators that started as copies of the same one.
    weights : sequence of float, default=None
        Weight of each estimator, such as its number of samples; equal weights by default.

    Returns
    -------
    OrtGradientOptimizer or OrtGradientForwardBackwardOptimizer
        A copy of the first estimator. Its weights and the floating-point states of its update (momentum,
        moments, sums of averaged weights) are weighted means, computed in float64 in the order of the
        trainers. Integers and counts of samples are maxima. The losses of its history are weighted means.

    Raises
    ------
    ValueError
        If the models differ, if features are standardised differently (``learning_rate="auto"`` standardises
        them with the moments of its first samples), or if weights are invalid.
    NotFittedError
        If an estimator is not fitted.

    References
    ----------
    McMahan, B., Moore, E., Ramage, D., Hampson, S. and Aguera y Arcas, B., "Communication-efficient learning
    of deep networks from decentralized data", AISTATS 2017.
    Stich, S. U., "Local SGD converges fast and communicates little", ICLR 2019.

    Examples
    --------
    >>> import copy
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from ortlearn import OrtGradientOptimizer
    >>> from ortlearn.distributed import average_trainers
    >>> X = np.random.default_rng(0).standard_normal((200, 3)).astype(np.float32)
    >>> y = X @ np.array([1.0, 2.0, 3.0], np.float32)
    >>> shards = [(X[:150], y[:150]), (X[150:], y[150:])]
    >>> model = OrtGradientOptimizer(LinearRegression(), learning_rate=0.3, random_state=0)
    >>> model = model.partial_fit(X[:10], y[:10])
    >>> for _ in range(8):
    ...     copies = [copy.deepcopy(model).partial_fit(*shard) for shard in shards]
    ...     model = average_trainers(copies, [150, 50])
    >>> model.to_sklearn().coef_.round(2).tolist()
    [1.0, 2.0, 3.0]
    """
    for trainer in trainers:
        check_is_fitted(trainer)
    models = [trainer._fitted for trainer in trainers]
    _check_coordinates([model.state.coordinates for model in models])
    parts = [{**model.state.points, **model.state.states} for model in models]
    found: dict[Any, np.ndarray] = average_arrays(parts, weights)
    updated = {key: array for key, array in found.items() if isinstance(key, str)}
    states = {key: array for key, array in found.items() if key not in updated}
    state = replace(
        models[0].state.continued,
        history=_mean_history([model.state.history for model in models], weights),
        n_seen=max(model.state.n_seen for model in models),
        total_weight=max(model.state.total_weight for model in models),
        penalty_weight=max(model.state.penalty_weight for model in models),
    )
    result, first = copy.copy(trainers[0]), models[0]
    result._fitted = FittedModel(first.problem, first.features, state.at(updated, states), first.step)
    return result


def _check_coordinates(found: Sequence[Any]) -> None:
    """Raise an error if a training standardises features differently from the first one."""
    for number, other in enumerate(found):
        if not _are_equal(other, found[0]):
            raise ValueError(
                f"Training {number} standardises features differently from training 0: their states cannot "
                "be averaged. Call partial_fit once, and start all trainings with copies of that estimator."
            )


def _are_equal(one: Any, other: Any) -> bool:
    """Return whether two coordinates have the same means and spreads."""
    if one is None or other is None:
        return one is other
    pairs = list(zip(one.scales, other.scales, strict=False))
    return len(one.scales) == len(other.scales) and all(
        np.array_equal(a.mean, b.mean) and np.array_equal(a.spread, b.spread) for a, b in pairs
    )


def _mean_history(
    histories: Sequence[list[dict[str, Any]]], weights: Sequence[float] | None
) -> list[dict[str, Any]]:
    """Return the longest history, with the mean loss of each epoch."""
    longest = max(histories, key=len)
    weights = _checked_weights(weights, len(histories))
    records = []
    for number, record in enumerate(longest):
        known = [(h[number]["loss"], w) for h, w in zip(histories, weights, strict=True) if number < len(h)]
        losses, counts = zip(*known, strict=True)
        loss = float(np.average(losses, weights=counts)) if any(counts) else record["loss"]
        records.append({**record, "loss": loss})
    return records
