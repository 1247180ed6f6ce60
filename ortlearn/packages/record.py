"""The record of a training package, with which programs check their results."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..data.samples import Data
from ..exceptions import PackageError
from ..problem.objective_weights import data_of, read_data
from ..problem.samples import Samples, check_lengths
from ..saving.tensors import pack_tensors
from ..training.graphs.averaging import averages
from ..training.graphs.names import OBJECTIVE, RATE, SAMPLE_INDICES, SAMPLE_WEIGHT
from ..training.steps.epoch_graph import LOSSES, ORDER
from .content import Package, outputs_of, prediction_graph
from .labels import GIVEN_LABEL
from .manifest import weight_of

__all__ = ["example_of", "record_of"]

#: Number of epochs of the record, and of full batches if no example is given.
EPOCHS, FULL_BATCHES = 2, 3


def example_of(package: Package, example: tuple[Any, Any] | None) -> Data | None:
    """Return samples for the record: the given ones, or random ones labelled by the model."""
    fitted, problem = package.fitted, package.fitted.problem
    if example is not None:
        if not isinstance(example, tuple | list) or len(example) != 2:
            raise ValueError(
                f"example must be a pair (X, y), and is {type(example).__name__}: add the labels."
            )
        X, y = example
        check_lengths(X, y)
        y = y if package.units is None else package.units.standardised(y)
        return read_data(problem, Samples(X, y, None), fitted.features)
    if not problem.trainable.takes_numbers or fitted.features.count is None:
        return None
    rng = np.random.default_rng(0)
    shape = (FULL_BATCHES * package.batch_size + math.ceil(package.batch_size / 2), fitted.features.count)
    X = rng.normal(size=shape).astype(problem.trainable.input_dtype)
    if problem.trainable.scores is None:
        return None
    y = problem.targets.classes
    if y is None:
        y = fitted.predict(X)
    elif isinstance(y, list):
        return None
    else:
        y = y[np.arange(len(X)) % len(y)]
    return data_of(problem, X, Samples(X, y, None))


def record_of(
    package: Package, data: Data, weights: dict[str, np.ndarray], state: dict[str, np.ndarray]
) -> tuple[dict[str, Any], bytes]:
    """Train on the example, and return the results as a reference for other implementations."""
    make_session = package.fitted.runner._session
    graphs, size = package.graphs, package.batch_size
    step, epoch = make_session(graphs.step), make_session(graphs.epoch)
    values = {name: {**weights, **state}[name] for name in graphs.carried}
    columns = {name: np.asarray(array) for name, array in package.task.columns(data).items()}
    columns.pop(SAMPLE_WEIGHT, None)  # the graphs contain the class weights
    if package.units is not None:
        columns[GIVEN_LABEL] = package.units.given(columns.pop(package.task.objective.label))
    if package.weight_input is not None:
        shape = [len(data), *weight_of(package)["shape"][1:]]  # type: ignore[index]
        weights_of_samples = np.random.default_rng(2).uniform(0.5, 2.0, size=shape)
        columns[package.weight_input] = weights_of_samples.astype(package.task.graph.dtype)
    tensors = {f"column {name}": array for name, array in columns.items()}
    rng, objectives = np.random.default_rng(1), []
    n_full, dtype = len(data) // size, package.task.graph.dtype
    for number in range(EPOCHS):
        order = rng.permutation(len(data))
        tensors[f"order {number}"] = order
        rate = np.array(package.rates[min(number, len(package.rates) - 1)], dtype)
        if n_full:
            feeds = {**columns, ORDER: order[: n_full * size].reshape(-1, size), RATE: rate}
            feeds |= {other.source: values[name] for name, (_, other) in graphs.carried.items()}
            found = _run(epoch, feeds)
            objectives += found[LOSSES].tolist()
            values = {name: found[other.result] for name, (_, other) in graphs.carried.items()}
        if len(data) % size:
            feeds = {**columns, SAMPLE_INDICES: order[n_full * size :], RATE: rate, **values}
            found = _run(step, feeds)
            objectives.append(found[OBJECTIVE].item())
            values = {name: found[item.result] for name, (item, _) in graphs.carried.items()}
    tensors |= {f"result {name}": array for name, array in values.items()}
    if not np.isfinite(objectives).all():
        raise PackageError(
            "The objective of the example is not finite: pass example=(X, y) with typical samples, or a "
            "lower learning rate."
        )
    problem = package.fitted.problem
    arrays = {item.weight: values[n] for n, (item, _) in graphs.carried.items() if item.state is None}
    if package.is_averaged:
        keys = {(i.weight, i.state): values[n] for n, i in package.carried.items() if i.state is not None}
        arrays = averages(keys, arrays)
    after = problem.trainable.with_stable_weights(arrays)
    outputs = outputs_of(problem, after)
    predicted = _run(make_session(prediction_graph(after, outputs)), columns)
    numbers = {kind: array for kind, array in predicted.items() if array.dtype.kind in "fi"}
    tensors |= {f"predicted {kind}": array for kind, array in numbers.items()}
    summary = {
        "epochs": EPOCHS,
        "rows": len(data),
        "objectives": objectives,
        "predicted": sorted(numbers),
        "tolerance": 1e-4,
    }
    return summary, pack_tensors(tensors)


def _run(session: Any, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    names = [value.name for value in session.get_outputs()]
    known = {value.name for value in session.get_inputs()}
    results = session.run(names, {name: array for name, array in feeds.items() if name in known})
    return dict(zip(names, results, strict=True))
