"""Trained weights, written into the attributes of a copy of the scikit-learn estimator they come from."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...exceptions import WriteBackError
from ..trainable_model import TrainableModel
from ..weights.fitted_attributes import FittedArray, fitted_arrays
from .checks import check_link, check_same, check_unchanged, is_close, refusal
from .correspondence import moved
from .dependents import refresh
from .finding import ByOrder, ByProbe, alike, holders
from .ledger import Ledger
from .places import place_of
from .reconversion import Reconverted, core_of, reconvert
from .settling import settle
from .shapes import shape_predictions

__all__ = ["write_weights"]


def write_weights(
    source: Any, trainable: TrainableModel, weights: Mapping[str, np.ndarray], y_ndim: int | None = None
) -> Any:
    """Return a copy of a fitted estimator whose attributes hold trained weights.

    Where the attributes are in the graph is told by the order of their numbers, or found by converting a
    copy whose numbers are all different. That they are written right is checked by converting the result.

    Parameters
    ----------
    source : estimator
        Fitted estimator that was converted; it is not changed.
    trainable : TrainableModel
        What came of it.
    weights : mapping of str to ndarray
        Trained weights under the names they came with, as :meth:`TrainableModel.coefficients` gives them.
    y_ndim : {1, 2}, default=None
        Dimensions of y, which predictions of a regressor of one output get too where its attributes can
        tell; by default those they have before.

    Returns
    -------
    estimator
        Copy that predicts as the trained graph does.

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
    >>> written.coef_, float(written.intercept_)
    (array([2.]), 0.5)
    """
    if trainable.declared:
        from ..declared import write_declared

        return write_declared(source, trainable, weights, y_ndim)
    base = reconvert(source, trainable)
    check_unchanged(base, trainable)
    check_link(base, trainable)
    fitted = fitted_arrays(base.estimator)
    facts = {trainable.original_names[name]: trainable.weights[name] for name in trainable.trained}
    held = {name: holders(fact, fitted) for name, fact in facts.items()}
    write = partial(_attempt, source, trainable, weights, base, held)
    try:
        result = write(ByOrder(base, fitted))
    except WriteBackError:
        result = write(_probe(source, trainable, base, fitted, held))
    head = trainable.head
    if y_ndim in (1, 2) and head is not None and head.task == "regression" and head.n_outputs == 1:
        shape_predictions(result, y_ndim)
    return result


def _attempt(
    source: Any,
    trainable: TrainableModel,
    weights: Mapping[str, np.ndarray],
    base: Reconverted,
    held: Mapping[str, list[int]],
    way: ByOrder | ByProbe,
) -> Any:
    """Write the weights into the attributes that one way finds, and check the result."""
    ledger = Ledger(way.fitted)
    for name, own in held.items():
        problem = _take(ledger, name, weights[name], own, way)
        if problem:
            raise refusal(trainable, f"{_title(trainable, name)}: {problem}")
    settled, problem = settle(ledger, base.estimator)
    if problem:
        raise refusal(trainable, f"the trained weights: {problem}")
    expected = {}
    for entry in ledger.entries:
        values = ledger.expected(entry, base.arrays[entry.name])
        if entry.name not in settled and not is_close(values, weights[entry.name]):
            what = _title(trainable, entry.name)
            raise refusal(
                trainable, f"{what}: the graph holds it several times, and these were trained apart"
            )
        expected[entry.name] = values
    result = _written(source, trainable, ledger.fitted, ledger.numbers)
    check_same(reconvert(result, trainable), base, expected, trainable)
    return result


def _take(ledger: Ledger, name: str, values: np.ndarray, own: list[int], way: ByOrder | ByProbe) -> str:
    """Take the numbers of attributes from a weight; return why that cannot be, empty if it can."""
    before = way.base.arrays[name]
    if not own:
        return "" if is_close(values, before) else "it is not known which attribute it comes from"
    places = way.find(name, own)
    if isinstance(places, str):
        return places
    problems = (ledger.take(name, values, before, positions, found) for positions, found in places)
    return next(filter(None, problems), "")


def _probe(
    source: Any,
    trainable: TrainableModel,
    base: Reconverted,
    fitted: Sequence[FittedArray],
    held: Mapping[str, list[int]],
) -> ByProbe:
    """Convert a copy with other numbers in the arrays that weights may be made of."""
    random_state = np.random.RandomState(0)
    positions = alike([position for own in held.values() for position in own], fitted)
    other = {position: moved(fitted[position].values, random_state) for position in positions}
    probe = reconvert(_written(source, trainable, fitted, other), trainable)
    return ByProbe(base, probe, fitted, fitted_arrays(probe.estimator))


def _written(
    source: Any, trainable: TrainableModel, fitted: Sequence[FittedArray], numbers: Mapping[int, np.ndarray]
) -> Any:
    """Return a copy of an estimator with other numbers in some of its arrays."""
    result = copy.deepcopy(source)
    core = core_of(result, trainable)
    owners = {}
    for position, values in numbers.items():
        place = place_of(fitted[position], core)
        place.write(values)
        owners[id(place.owner)] = place.owner
    for owner in owners.values():
        refresh(owner)
    return result


def _title(trainable: TrainableModel, name: str) -> str:
    """Name a weight and the attribute it comes from."""
    origin = {trainable.original_names[new]: weight.origin for new, weight in trainable.weights.items()}[name]
    return f"the trained weight {name!r}" + (f" ({origin})" if origin else "")
