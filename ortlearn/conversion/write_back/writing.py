"""Trained weights, written into the attributes of a copy of the scikit-learn estimator they come from."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..trainable_model import TrainableModel
from ..weights.fitted_attributes import FittedArray, fitted_arrays
from ..weights.weight_selection import Weight
from .checks import check_same, check_unchanged, is_close, refusal
from .correspondence import Correspondence, correspondence, moved
from .dependents import refresh
from .places import place_of
from .reconversion import Reconverted, core_of, reconvert

__all__ = ["write_weights"]

#: Numbers of some fitted arrays, by their position among all of an estimator.
Numbers = dict[int, np.ndarray]


def write_weights(source: Any, trainable: TrainableModel, weights: Mapping[str, np.ndarray]) -> Any:
    """Return a copy of a fitted estimator whose attributes hold trained weights.

    Where the attributes are in the graph is found by converting a copy whose numbers are all a little
    different; that they are written right, by converting the result.

    Parameters
    ----------
    source : estimator
        Fitted estimator that was converted; it is not changed.
    trainable : TrainableModel
        What came of it.
    weights : mapping of str to ndarray
        Trained weights under the names they came with, as :meth:`TrainableModel.coefficients` gives them.

    Returns
    -------
    estimator
        Copy, of which the conversion is the trained graph.

    Raises
    ------
    WriteBackError
        If the attributes of the estimator cannot hold the weights.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.conversion import to_trainable, write_weights
    >>> model = Ridge().fit([[0.1], [1.3]], [0.7, 3.1])
    >>> weights = {"coef": np.array([[2.0]]), "intercept": np.array([0.5])}
    >>> written = write_weights(model, to_trainable(model), weights)
    >>> written.coef_, written.intercept_
    (array([2.]), np.float64(0.5))
    """
    facts = {trainable.original_names[name]: trainable.weights[name] for name in trainable.trained}
    base = reconvert(source, trainable)
    check_unchanged(base, trainable)
    fitted = fitted_arrays(base.estimator)
    holders = {name: _holders(fact, fitted) for name, fact in facts.items()}
    held = sorted({position for own in holders.values() for position in own})
    random_state = np.random.RandomState(0)
    other = {position: moved(fitted[position].values, random_state) for position in held}
    probe = reconvert(_written(source, trainable, fitted, other), trainable)
    after = fitted_arrays(probe.estimator)
    new: Numbers = {}
    for name, fact in facts.items():
        problem = _read(name, weights[name], holders[name], base, probe, fitted, after, new)
        if problem:
            origin = f" ({fact.origin})" if fact.origin else ""
            raise refusal(trainable, f"the trained weight {name!r}{origin}: {problem}")
    result = _written(source, trainable, fitted, new)
    check_same(reconvert(result, trainable), base, weights, trainable)
    return result


def _holders(weight: Weight, fitted: Sequence[FittedArray]) -> list[int]:
    """Return the positions of the arrays that a weight is made of."""
    if weight.attribute is None:
        return []
    for expression in (weight.attribute, re.sub(r"\[\d+\]$", "", weight.attribute)):
        pattern = re.compile(re.escape(expression).replace(r"\[\*\]", r"\[\d+\]"))
        found = [
            position
            for position, array in enumerate(fitted)
            if array.step == weight.step and pattern.fullmatch(array.attribute)
        ]
        if found:
            return found
    return []


def _written(source: Any, trainable: TrainableModel, fitted: Sequence[FittedArray], new: Numbers) -> Any:
    """Return a copy of an estimator with other numbers in some of its arrays."""
    result = copy.deepcopy(source)
    core = core_of(result, trainable)
    owners = {}
    for position, values in new.items():
        place = place_of(fitted[position], core)
        place.write(values)
        owners[id(place.owner)] = place.owner
    for owner in owners.values():
        refresh(owner)
    return result


def _read(
    name: str,
    values: np.ndarray,
    holders: Sequence[int],
    base: Reconverted,
    probe: Reconverted,
    fitted: Sequence[FittedArray],
    after: Sequence[FittedArray],
    new: Numbers,
) -> str:
    """Take the numbers of attributes from a trained weight; return why that cannot be, empty if it can."""
    first = base.arrays[name]
    if is_close(values, first) and not holders:
        return ""
    if not holders:
        return "it is not known which attribute it comes from"
    second = base.counterpart(name, probe)
    if second is None or second.shape != first.shape:
        return "the converter writes another graph where the attribute has other numbers"
    before = np.concatenate([fitted[position].values.ravel() for position in holders])
    then = np.concatenate([after[position].values.ravel() for position in holders])
    found = correspondence(before, then, first, second)
    if found is None:
        return "no number of the attribute says what it is"
    return _take(found, values.ravel(), before, holders, fitted, new)


def _take(
    found: Correspondence,
    values: np.ndarray,
    before: np.ndarray,
    holders: Sequence[int],
    fitted: Sequence[FittedArray],
    new: Numbers,
) -> str:
    """Put numbers where they belong; return why that cannot be, empty if it can."""
    numbers = found.back(values, before)
    known = found.source >= 0
    if not np.isfinite(numbers[known]).all():
        return f"its numbers are not those of a {found.way}"
    whole = before.astype(np.float64)
    whole[found.source[known]] = numbers[known]
    if not is_close(whole[found.source[known]], numbers[known]):
        return "the graph holds the attribute more than once, and these were trained apart"
    begin = 0
    for position in holders:
        size = fitted[position].values.size
        own = new.setdefault(position, fitted[position].values.astype(np.float64).ravel())
        mine = found.source[known & (found.source >= begin) & (found.source < begin + size)]
        own[mine - begin] = whole[mine]
        begin += size
    return ""
