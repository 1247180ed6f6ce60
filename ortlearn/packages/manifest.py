"""The manifest of a training package: inputs, outputs, labels, schedule, weights and states."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from .._version import __version__
from ..exceptions import PackageError
from ..learning_rates import BaseLearningRate
from ..problem.problem import Problem
from ..saving.package_files import FORMAT, KIND, VALUES
from ..training.graphs.names import OBJECTIVE, RATE, SAMPLE_INDICES
from ..training.steps.epoch_graph import LOSSES, ORDER
from .content import Package
from .graphs import EVALUATED, SCORE
from .labels import GIVEN_LABEL

__all__ = ["manifest_of", "weight_of"]


def manifest_of(package: Package, outputs: dict[str, str], evaluation: ModelProto) -> dict[str, Any]:
    """Return the manifest of a package, without its record."""
    problem, graphs, objective = package.fitted.problem, package.graphs, package.task.objective
    return {
        "kind": KIND,
        "format": FORMAT,
        "versions": {"ortlearn": __version__},
        "runtime": {"graph_optimization_level": "basic"},
        "tensors": [VALUES],
        "batch_size": package.batch_size,
        "dtype": str(package.task.graph.dtype),
        "features": [
            _feature(problem, v) for v in graphs.step.graph.input if v.name in package.task.graph.features
        ],
        "label": _label(problem, graphs.step),
        "sample_weight": weight_of(package),
        "penalty_in_objective": type(objective.penalty).__name__ != "NoPenalty",
        "step": {"rows": SAMPLE_INDICES, "rate": RATE, "objective": OBJECTIVE},
        "epoch": {"rows": ORDER, "rate": RATE, "objective": LOSSES},
        "evaluate": {
            "loss": EVALUATED,
            "score": SCORE if any(v.name == SCORE for v in evaluation.graph.output) else None,
            "inputs": [value.name for value in evaluation.graph.input],
        },
        "predict": sorted(outputs),
        "carried": _carried(package),
        "schedule": {
            "learning_rate": type(package.learning_rate).__name__,
            "parameters": _parameters(package.learning_rate),
            "rates": package.rates,
        },
        "record": None,
    }


def _feature(problem: Problem, value: ValueInfoProto) -> dict[str, Any]:
    """Return an input for X; one of floats has the numbers of its columns that may have missing values."""
    described, schema = _described(value), problem.trainable.entry.schema
    if not described["type"].startswith("float"):
        return described
    if schema.is_number_matrix:
        return {**described, "missing": sorted(problem.missing)}
    position = next((item.position for item in schema.inputs if item.name == value.name), None)
    return {**described, "missing": [0] if position in problem.missing else []}


def _label(problem: Problem, step: ModelProto) -> dict[str, Any] | None:
    """Return the label input and the encoding of labels."""
    task, scores = problem.task(False), problem.trainable.scores
    found = [value for value in step.graph.input if value.name in (task.objective.label, GIVEN_LABEL)]
    if not found:
        return None
    label = _described(found[0])
    if scores is None or scores.task != "classification":
        return {**label, "encoding": "values", "classes": None}
    one_hot = len(label["shape"]) == 2 and label["shape"][1] != 1
    encoding = "one_hot" if one_hot else "class_number"
    return {**label, "encoding": encoding, "classes": np.asarray(problem.targets.classes).tolist()}


def weight_of(package: Package) -> dict[str, Any] | None:
    """Return the input for sample weights, or None."""
    found = [value for value in package.graphs.step.graph.input if value.name == package.weight_input]
    if package.weighted and not found:
        raise PackageError(
            "This model computes its own loss without sample weights: set weighted=False, or weight_name to "
            "the input for them."
        )
    return _described(found[0]) if found else None


def _carried(package: Package) -> list[dict[str, Any]]:
    described = {value.name: _described(value) for value in package.graphs.step.graph.input}
    names = package.fitted.problem.trainable.original_names
    nonnegative = package.learning_rate.nonnegative_states
    return [
        {
            **described[name],
            "weight": item.weight,
            "original": names[item.weight],
            "state": item.state,
            **({"minimum": 0} if item.state in nonnegative else {}),
            "step": {"input": item.source, "output": item.result},
            "epoch": {"input": other.source, "output": other.result},
        }
        for name, (item, other) in package.graphs.carried.items()
    ]


def _parameters(rule: BaseLearningRate) -> dict[str, Any]:
    """Return parameters as JSON values; schedules are replaced by their representation."""
    values = rule.get_params(deep=False)
    return {n: v if isinstance(v, bool | int | float | str | None) else repr(v) for n, v in values.items()}


def _described(value: ValueInfoProto) -> dict[str, Any]:
    known = value.type.tensor_type
    shape = [dim.dim_value if dim.HasField("dim_value") else None for dim in known.shape.dim]
    return {"name": value.name, "type": _type_name(known.elem_type), "shape": shape}


def _type_name(elem_type: int) -> str:
    """Return the name of a type in numpy and in ONNX Runtime for JavaScript."""
    return "string" if elem_type == TensorProto.STRING else str(helper.tensor_dtype_to_np_dtype(elem_type))
