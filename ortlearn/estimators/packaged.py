"""The content of a training package: graphs, tensors and manifest of a fitted estimator."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, helper
from onnx.external_data_helper import set_external_data

from .._version import __version__
from ..exceptions import PackageError, SavedFileError
from ..graphs import extract_model, initializer_arrays, make_initializers_of, make_inputs_of, map_names
from ..learning_rates import BaseLearningRate, Rates, resolve_learning_rate
from ..saving.packages import EPOCH, FORMAT, PREDICT, STATE, WEIGHTS
from ..saving.tensors import pack_tensors, tensor_offsets
from ..training import Data, TrainingTask
from ..training.averaging import Averaged, averages, is_averaged
from ..training.epoch_graph import LOSSES, ORDER
from ..training.package_graphs import EVALUATED, SCORE, PackageGraphs, evaluation_graph, package_graphs
from ..training.package_weights import GIVEN_WEIGHT, with_averages, with_class_weights
from ..training.step_graphs import OBJECTIVE, RATE, ROWS, SAMPLE_WEIGHT, Carried
from .base import BaseOrtGradientEstimator
from .fitted_model import FittedModel
from .input_validation import read_samples
from .package_checks import check_package, class_weights
from .problem import Problem
from .samples import Samples
from .starting import data_of

__all__ = ["continued", "package_of"]

#: Epochs and rows of the record by which a port checks itself, where no example is given.
EPOCHS, FULL_BATCHES = 2, 3


@dataclass(frozen=True)
class _Package:
    """What the files of a package are made of."""

    fitted: FittedModel
    task: TrainingTask
    graphs: PackageGraphs
    batch_size: int
    rates: list[float]
    weighted: bool
    has_class_weights: bool

    @property
    def weight_input(self) -> str | None:
        """Input of the training graphs that takes the weights of rows."""
        if not self.weighted:
            return None
        return GIVEN_WEIGHT if self.has_class_weights else SAMPLE_WEIGHT

    @property
    def carried(self) -> dict[str, Carried]:
        """Weights and states by name."""
        return {name: item for name, (item, _) in self.graphs.carried.items()}

    @property
    def is_averaged(self) -> bool:
        """Whether means of the weights predict."""
        return isinstance(self.task.update.learning_rate, Averaged)

    @property
    def task_of_loss(self) -> TrainingTask:
        """The task whose loss of rows is evaluated, their classes weighing the same."""
        return self.task if self.weighted else self.fitted.problem.task(False)


def package_of(
    estimator: BaseOrtGradientEstimator,
    batch_size: int | None,
    example: tuple[Any, Any] | None,
    learning_rate: Any,
    weighted: bool = False,
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the manifest and the files of the package of a fitted estimator.

    Raises
    ------
    NotFittedError
        If it is not fitted.
    PackageError
        If its training cannot leave Python.
    """
    fitted, configuration = estimator._model(), estimator._configuration()
    rule = fitted.problem.updates.learning_rate
    assert rule is not None
    if learning_rate is not None:
        rule = resolve_learning_rate(learning_rate)
        rule.check()
    n_epochs = configuration.stopping.max_iter
    rule = rule.for_epochs(n_epochs)
    check_package(fitted.problem, rule, learning_rate is not None)
    table, rates = class_weights(fitted.problem), Rates(rule)
    averaged = Averaged(rule) if fitted.problem.updates.average else rule
    task = fitted.problem.task(weighted or table is not None)
    task = task.changed(learning_rate=averaged, gradient="rules")
    size = configuration.updates.batch_size if batch_size is None else batch_size
    if not isinstance(size, int | np.integer) or size < 1:
        raise ValueError(f"batch_size must be a whole number of at least 1, not {size!r}.")
    graphs = package_graphs(task, int(size))
    if table is not None:
        step, epoch = (with_class_weights(m, task, table, weighted) for m in (graphs.step, graphs.epoch))
        graphs = replace(graphs, step=step, epoch=epoch)
    by_epoch = [rates.of(i) for i in range(n_epochs)]
    package = _Package(fitted, task, graphs, int(size), by_epoch, weighted, table is not None)
    data = _example(package, example)
    return _contents(package, data)


def _example(package: _Package, example: tuple[Any, Any] | None) -> Data | None:
    """Return rows for the record: those given, or drawn ones with predictions as labels."""
    fitted, problem = package.fitted, package.fitted.problem
    if example is not None:
        X, y = example
        return data_of(problem, read_samples(problem, X, fitted.features), Samples(X, y, None))
    if not problem.trainable.takes_numbers or fitted.features.count is None:
        return None
    rng = np.random.default_rng(0)
    shape = (FULL_BATCHES * package.batch_size + math.ceil(package.batch_size / 2), fitted.features.count)
    X = rng.normal(size=shape).astype(problem.trainable.input_dtype)
    if problem.trainable.head is None:
        return None
    y = problem.targets.classes
    if y is None:
        y = fitted.predict(X)
    elif isinstance(y, list):
        return None
    else:
        y = y[np.arange(len(X)) % len(y)]
    return data_of(problem, X, Samples(X, y, None))


def _contents(package: _Package, data: Data | None) -> tuple[dict[str, Any], dict[str, bytes]]:
    fitted, graphs, trained = package.fitted, package.graphs, package.fitted.trained
    problem, head = fitted.problem, fitted.problem.trainable.head
    weights = initializer_arrays(trained, problem.trainable.trained)
    if package.is_averaged:
        weights |= fitted.state.raw_weights or {}
    state = _initial_state(package, weights)
    outputs = _outputs(problem, trained)
    files = {WEIGHTS: pack_tensors(weights), STATE: pack_tensors({**state, EPOCH: np.array(0)})}
    classes = problem.targets.classes if head is not None and head.task == "classification" else None
    evaluation = evaluation_graph(package.task_of_loss, trained, _scored(problem), classes)
    if package.weight_input is not None:
        evaluation = map_names(evaluation, {SAMPLE_WEIGHT: package.weight_input})
    infer = make_inputs_of(_predicting(trained, outputs), problem.trainable.trained)
    if package.is_averaged:
        infer, evaluation = (with_averages(m, package.task, package.carried) for m in (infer, evaluation))
        held = [value.name for value in infer.graph.input if value.name in package.graphs.carried]
        files[PREDICT] = _with_weights_apart(make_initializers_of(infer, held), files)
    else:
        files[PREDICT] = _with_weights_apart(_predicting(trained, outputs), files)
    graphs_by_name = {"step": graphs.step, "epoch": graphs.epoch, "evaluate": evaluation, "infer": infer}
    for name, graph in graphs_by_name.items():
        files[f"{name}.onnx"] = graph.SerializeToString()
    objective = package.task.objective
    manifest = {
        "kind": "ortlearn training package",
        "format": FORMAT,
        "versions": {"ortlearn": __version__},
        "runtime": {"graph_optimization_level": "basic"},
        "tensors": [WEIGHTS, STATE],
        "batch_size": package.batch_size,
        "dtype": str(package.task.graph.dtype),
        "features": [_described(v) for v in graphs.step.graph.input if v.name in package.task.graph.features],
        "label": _label(problem, graphs.step),
        "sample_weight": _weight(package),
        "penalty_in_objective": type(objective.penalty).__name__ != "NoPenalty",
        "step": {"rows": ROWS, "rate": RATE, "objective": OBJECTIVE},
        "epoch": {"rows": ORDER, "rate": RATE, "objective": LOSSES},
        "evaluate": {
            "loss": EVALUATED,
            "score": SCORE if any(v.name == SCORE for v in evaluation.graph.output) else None,
            "inputs": [value.name for value in evaluation.graph.input],
        },
        "predict": sorted(outputs),
        "carried": _carried(package),
        "schedule": {
            "learning_rate": type(_own_rule(package)).__name__,
            "parameters": _parameters(_own_rule(package)),
            "rates": package.rates,
        },
        "record": None,
    }
    if data is not None:
        manifest["record"], files["record.safetensors"] = _record(package, data, weights, state)
    return manifest, files


def _initial_state(package: _Package, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the states that training continues with, by the name that the step reads them under."""
    known, rule = package.fitted.state.states, package.task.update.learning_rate
    same = type(_own_rule(package)) is type(package.fitted.problem.updates.learning_rate)
    same = same and package.fitted.state.coordinates is None
    found = {}
    for name, (item, _) in package.graphs.carried.items():
        if item.state is not None:
            fresh = rule.init(weights[item.weight])[item.state]
            own = known.get((item.weight, item.state)) if same else None
            fits = own is not None and own.shape == fresh.shape
            found[name] = own.astype(fresh.dtype) if fits and own is not None else fresh
    return found


def _outputs(problem: Problem, trained: ModelProto) -> dict[str, str]:
    """Return the outputs of the predicting graph by what they are."""
    head = problem.trainable.head
    if head is None:
        own = problem.trainable.own_loss
        names = [v.name for v in trained.graph.output if own is None or v.name != own.output]
        return {f"output_{number}": name for number, name in enumerate(names)}
    found = {"scores": head.score, "label": head.label, "transformed": head.transformed}
    if isinstance(head.probabilities, str):
        found["probabilities"] = head.probabilities
    if head.task == "regression":
        found["prediction"] = head.predicted
    unique = {name: kind for kind, name in found.items() if name}
    return {kind: name for name, kind in unique.items()}


def _scored(problem: Problem) -> str | None:
    """Return what is compared with the labels for a score; None where there is none."""
    head = problem.trainable.head
    if head is None or head.target_transformers:
        return None
    return {"classification": head.label, "regression": head.predicted}.get(head.task)


def _predicting(trained: ModelProto, outputs: dict[str, str]) -> ModelProto:
    """Return the predicting graph, its outputs named after what they are."""
    return map_names(extract_model(trained, list(outputs.values())), {n: k for k, n in outputs.items()})


def _own_rule(package: _Package) -> BaseLearningRate:
    """Return the learning rate, without the averages that may be taken of the weights."""
    rule = package.task.update.learning_rate
    return rule.learning_rate if isinstance(rule, Averaged) else rule


def _with_weights_apart(model: ModelProto, files: dict[str, bytes]) -> bytes:
    """Return a predicting graph whose trained weights lie in the files of tensors."""
    offsets = {file: tensor_offsets(files[file]) for file in (STATE, WEIGHTS)}
    places = {name: (file, *offset) for file, known in offsets.items() for name, offset in known.items()}
    for tensor in model.graph.initializer:
        if tensor.name in places:
            set_external_data(tensor, *places[tensor.name])
            for part in ("raw_data", "float_data", "double_data"):
                tensor.ClearField(part)
    return model.SerializeToString()


def _type_name(elem_type: int) -> str:
    """Return the name of a type as numpy and ONNX Runtime's JavaScript have it."""
    return "string" if elem_type == TensorProto.STRING else str(helper.tensor_dtype_to_np_dtype(elem_type))


def _described(value: ValueInfoProto) -> dict[str, Any]:
    known = value.type.tensor_type
    shape = [dim.dim_value if dim.HasField("dim_value") else None for dim in known.shape.dim]
    return {"name": value.name, "type": _type_name(known.elem_type), "shape": shape}


def _label(problem: Problem, step: ModelProto) -> dict[str, Any] | None:
    """Return how labels become the input of the graphs."""
    task, head = problem.task(False), problem.trainable.head
    found = [value for value in step.graph.input if value.name == task.objective.label]
    if not found:
        return None
    label = _described(found[0])
    if head is None or head.task != "classification":
        return {**label, "encoding": "values", "classes": None}
    one_hot = len(label["shape"]) == 2 and label["shape"][1] != 1
    encoding = "one_hot" if one_hot else "class_number"
    return {**label, "encoding": encoding, "classes": np.asarray(problem.targets.classes).tolist()}


def _weight(package: _Package) -> dict[str, Any] | None:
    """Return the input that takes the weights of rows; null where they have none."""
    found = [value for value in package.graphs.step.graph.input if value.name == package.weight_input]
    if package.weighted and not found:
        raise PackageError(
            "This model computes its own loss without weights of rows: leave weighted=False, or name the "
            "input that takes them in weight_name."
        )
    return _described(found[0]) if found else None


def _carried(package: _Package) -> list[dict[str, Any]]:
    described = {value.name: _described(value) for value in package.graphs.step.graph.input}
    names = package.fitted.problem.trainable.original_names
    return [
        {
            **described[name],
            "weight": item.weight,
            "original": names[item.weight],
            "state": item.state,
            "step": {"input": item.source, "output": item.result},
            "epoch": {"input": other.source, "output": other.result},
        }
        for name, (item, other) in package.graphs.carried.items()
    ]


def _parameters(rule: BaseLearningRate) -> dict[str, Any]:
    """Return parameters as JSON has them; schedules by their representation."""
    values = rule.get_params(deep=False)
    return {n: v if isinstance(v, bool | int | float | str | None) else repr(v) for n, v in values.items()}


def _record(
    package: _Package, data: Data, weights: dict[str, np.ndarray], state: dict[str, np.ndarray]
) -> tuple[dict[str, Any], bytes]:
    """Train on the example, and return what a port compares its own results with."""
    make_session = package.fitted.runner._session
    graphs, size = package.graphs, package.batch_size
    step, epoch = make_session(graphs.step), make_session(graphs.epoch)
    values = {name: {**weights, **state}[name] for name in graphs.carried}
    columns = {name: np.asarray(array) for name, array in data.columns(package.task).items()}
    columns.pop(SAMPLE_WEIGHT, None)  # the graphs know those of classes
    if package.weight_input is not None:
        shape = [len(data), *_weight(package)["shape"][1:]]  # type: ignore[index]
        weights_of_rows = np.random.default_rng(2).uniform(0.5, 2.0, size=shape)
        columns[package.weight_input] = weights_of_rows.astype(package.task.graph.dtype)
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
            feeds = {**columns, ROWS: order[n_full * size :], RATE: rate, **values}
            found = _run(step, feeds)
            objectives.append(found[OBJECTIVE].item())
            values = {name: found[item.result] for name, (item, _) in graphs.carried.items()}
    tensors |= {f"result {name}": array for name, array in values.items()}
    if not np.isfinite(objectives).all():
        raise PackageError(
            "The objective of the example is not finite: pass example=(X, y), rows like those that training "
            "will see, or a lower learning rate."
        )
    problem = package.fitted.problem
    arrays = {item.weight: values[n] for n, (item, _) in graphs.carried.items() if item.state is None}
    if package.is_averaged:
        keys = {(i.weight, i.state): values[n] for n, i in package.carried.items() if i.state is not None}
        arrays = averages(keys, arrays)
    after = problem.trainable.with_stable_weights(arrays)
    outputs = _outputs(problem, after)
    predicted = _run(make_session(_predicting(after, outputs)), columns)
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


def continued(
    estimator: BaseOrtGradientEstimator,
    manifest: dict[str, Any],
    weights: dict[str, np.ndarray],
    state: dict[str, np.ndarray],
) -> BaseOrtGradientEstimator:
    """Return an estimator with the weights and the states that a program has left in a package.

    Raises
    ------
    SavedFileError
        If they are not those of the estimator.
    """
    fitted = estimator._model()
    own = fitted.stable_weights()
    if {n: (a.shape, a.dtype) for n, a in own.items()} != {n: (a.shape, a.dtype) for n, a in weights.items()}:
        raise SavedFileError("The weights of the package are not those of its estimator.")
    states = {
        (item["weight"], item["state"]): state[item["name"]]
        for item in manifest["carried"]
        if item["state"] is not None and item["name"] in state
    }
    raw = None
    if is_averaged(states):
        raw, weights = weights, averages(states, weights)
    trained = fitted.problem.trainable.with_stable_weights(weights)
    new = replace(fitted.state, states=states, raw_weights=raw, coordinates=None)
    estimator._fitted = FittedModel(fitted.problem, fitted.features, trained, new)
    return estimator
