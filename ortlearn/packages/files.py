"""Write the files of a training package, and read an estimator from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import ModelProto
from onnx.external_data_helper import set_external_data

from ..data.samples import Data
from ..estimators.base import BaseOrtGradientEstimator
from ..exceptions import SavedFileError
from ..fitting.fitted_model import FittedModel
from ..graphs import make_initializers_of, make_inputs_of, map_names
from ..learning_rates import Rates, resolve_learning_rate
from ..onnx_files.running_statistics import for_evaluation
from ..problem.problem import Problem
from ..saving.package_files import CHECKSUM, EPOCH, PREDICT, VALUES, PackageFiles, check_finite, sealed
from ..saving.tensors import pack_tensors, tensor_offsets
from ..training.graphs.averaging import Averaged, reset_pending_averages
from ..training.graphs.names import SAMPLE_WEIGHT
from .checks import check_package, class_weights
from .content import Package, outputs_of, prediction_graph
from .graphs import evaluation_graph, package_graphs
from .labels import LabelUnits
from .manifest import manifest_of
from .record import example_of, record_of
from .weights import with_averages, with_class_weights

__all__ = ["continued", "package_of"]


def package_of(
    estimator: BaseOrtGradientEstimator,
    batch_size: int | None,
    example: tuple[Any, Any] | None,
    learning_rate: Any,
    weighted: bool = False,
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the manifest and the files of the package of a fitted estimator."""
    head = units = None
    if hasattr(estimator, "_packaged"):  # intervals and sets are outputs after those of the model
        estimator, head, found = estimator._packaged()
        units = None if found is None else LabelUnits(*found)
    if not isinstance(estimator, BaseOrtGradientEstimator):
        name = type(estimator).__name__
        raise TypeError(
            f"export_training takes an estimator of ortlearn, not {name}: fit "
            f"OrtGradientOptimizer({name}(...)) first, and pass it."
        )
    fitted = estimator._model()
    updates = fitted.problem.updates
    configuration = estimator._configuration().in_batches(updates.batch_size)
    rate = updates.learning_rate if learning_rate is None else resolve_learning_rate(learning_rate)
    assert rate is not None
    n_epochs = configuration.stopping.max_iter
    rate = rate.for_epochs(n_epochs)
    check_package(fitted.problem, rate, learning_rate is not None)
    table, rates = class_weights(fitted.problem), Rates(rate)
    size = configuration.updates.batch_size if batch_size is None else batch_size
    if not isinstance(size, int | np.integer) or size < 1:
        raise ValueError(f"batch_size must be an integer of at least 1, not {size!r}.")
    if average := int(updates.average):
        rate = Averaged(rate, max(1, math.ceil((average - fitted.state.n_seen) / size)))
    task = fitted.problem.task(weighted or table is not None)
    gradient = task.gradient if task.gradient == "straight_through" else "rules"
    task = task.changed(learning_rate=rate, gradient=gradient)
    graphs = package_graphs(task, int(size))
    if table is not None:
        step, epoch = (with_class_weights(m, task, table, weighted) for m in (graphs.step, graphs.epoch))
        graphs = replace(graphs, step=step, epoch=epoch)
    if units is not None:
        step, epoch = (units.of_given(m, task) for m in (graphs.step, graphs.epoch))
        graphs = replace(graphs, step=step, epoch=epoch)
    by_epoch = [rates.of(i) for i in range(n_epochs)]
    package = Package(fitted, task, graphs, int(size), by_epoch, weighted, table is not None, units)
    return _contents(package, example_of(package, example), head)


def _contents(
    package: Package, data: Data | None, head: Callable[[ModelProto], ModelProto] | None
) -> tuple[dict[str, Any], dict[str, bytes]]:
    fitted, graphs, trained = package.fitted, package.graphs, for_evaluation(package.fitted.trained)
    problem, scores = fitted.problem, fitted.problem.trainable.scores
    own = fitted.state.next_weights if package.is_averaged else fitted.state.weights
    weights = {name: own[name] for name in problem.trainable.trained}
    state = _initial_state(package, weights)
    outputs = outputs_of(problem, trained)
    values = {**weights, **state, EPOCH: np.array(0, dtype=np.int64)}
    files = {VALUES: sealed(pack_tensors(values, {CHECKSUM: "0" * 8}))}
    classes = problem.targets.classes if scores is not None and scores.task == "classification" else None
    evaluation = evaluation_graph(package.evaluation_task, trained, _scored_output(problem), classes)
    if package.units is not None:
        evaluation = package.units.of_given(evaluation, package.evaluation_task)
    if package.weight_input is not None:
        evaluation = map_names(evaluation, {SAMPLE_WEIGHT: package.weight_input})
    whole = trained
    if head is not None:
        whole = head(trained)
        new = [value.name for value in whole.graph.output if value.name not in outputs.values()]
        outputs = {kind: name for kind, name in outputs.items() if kind not in new} | {n: n for n in new}
    infer = make_inputs_of(prediction_graph(whole, outputs), problem.trainable.trained)
    if package.is_averaged:
        infer, evaluation = (with_averages(m, package.task, package.carried) for m in (infer, evaluation))
        held = [value.name for value in infer.graph.input if value.name in package.graphs.carried]
        files[PREDICT] = _with_external_weights(make_initializers_of(infer, held), files)
    else:
        files[PREDICT] = _with_external_weights(prediction_graph(whole, outputs), files)
    graphs_by_name = {"step": graphs.step, "epoch": graphs.epoch, "evaluate": evaluation, "infer": infer}
    for name, graph in graphs_by_name.items():
        files[f"{name}.onnx"] = graph.SerializeToString()
    manifest = manifest_of(package, outputs, evaluation)
    if data is not None:
        manifest["record"], files["record.safetensors"] = record_of(package, data, weights, state)
    return manifest, files


def _initial_state(package: Package, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the initial states of the learning rate, by the names of the inputs of the step."""
    rate = package.task.update.learning_rate
    known = reset_pending_averages(package.fitted.state.states, rate)
    same = type(package.learning_rate) is type(package.fitted.problem.updates.learning_rate)
    same = same and package.fitted.state.coordinates is None
    states = {}
    for name, (item, _) in package.graphs.carried.items():
        if item.state is not None:
            fresh = rate.init(weights[item.weight])[item.state]
            last = known.get((item.weight, item.state)) if same else None
            fits = last is not None and last.shape == fresh.shape
            states[name] = last.astype(fresh.dtype) if fits and last is not None else fresh
    return states


def _scored_output(problem: Problem) -> str | None:
    """Return the output that a score compares with the labels, or None."""
    scores = problem.trainable.scores
    if scores is None or scores.target_transformers:
        return None
    return {"classification": scores.label, "regression": scores.predicted}.get(scores.task)


def _with_external_weights(model: ModelProto, files: dict[str, bytes]) -> bytes:
    """Return a prediction graph whose trained weights are external data in the file of tensors."""
    offsets = tensor_offsets(files[VALUES])
    for tensor in model.graph.initializer:
        if tensor.name in offsets:
            set_external_data(tensor, VALUES, *offsets[tensor.name])
            for part in ("raw_data", "float_data", "double_data"):
                tensor.ClearField(part)
    return model.SerializeToString()


def continued(estimator: BaseOrtGradientEstimator, package: PackageFiles) -> BaseOrtGradientEstimator:
    """Return an estimator with the weights and states of a package, and the epochs of its programs."""
    if hasattr(estimator, "_packaged"):
        continued(estimator._packaged()[0], package)
        return estimator
    fitted, values = estimator._model(), package.values
    own, weights = fitted.stable_weights(), {name: values[name] for name in package.names(weights=True)}
    if {n: (a.shape, a.dtype) for n, a in own.items()} != {n: (a.shape, a.dtype) for n, a in weights.items()}:
        raise SavedFileError("The weights of the package do not match its estimator: export it again.")
    states = {
        (item["weight"], item["state"]): values[item["name"]]
        for item in package.manifest["carried"]
        if item["state"] is not None
    }
    _check_states(fitted, package.manifest, states)
    history = [*fitted.state.history, *_records(fitted, package.manifest, int(values[EPOCH]))]
    state = replace(fitted.state.continued, history=history, coordinates=None)
    estimator._fitted = FittedModel(fitted.problem, fitted.features, state.at(weights, states))
    return estimator


def _records(fitted: FittedModel, manifest: dict[str, Any], n_epochs: int) -> list[dict[str, Any]]:
    """Return records of the epochs that a program has trained, in which nothing but the rate is known."""
    rates, first = manifest["schedule"]["rates"], fitted.state.n_iter + 1
    unknown = dict.fromkeys(("loss", "validation_loss", "validation_score", "seconds"))
    return [{"epoch": first + i, **unknown, "rate": rates[min(i, len(rates) - 1)]} for i in range(n_epochs)]


def _check_states(fitted: FittedModel, manifest: dict[str, Any], states: dict[tuple[str, str], Any]) -> None:
    """Raise an error unless states are those that the learning rate of the estimator begins with."""
    rate = fitted.problem.updates.learning_rate
    if rate is None or type(rate).__name__ != manifest["schedule"]["learning_rate"]:
        return
    weights = fitted.stable_weights()
    for name, weight in weights.items():
        for state, fresh in rate.init(weight).items():
            found = states.get((name, state))
            if found is None or found.shape != fresh.shape:
                raise SavedFileError(
                    f"The package lacks the state {state!r} of weight {name!r}, of shape {fresh.shape}."
                )
            if state in rate.nonnegative_states:
                check_finite(f"{state} of {name}", found, 0.0)
