"""Check the objective of a definition: it is compatible with the scores, and minimal after a fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from ..exceptions import PluginError
from ..graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    extract_model,
    graph_names,
    initializer_arrays,
    make_inputs_of,
    make_value_info,
)
from ..graphs.name_patterns import matches_pattern
from ..losses import BaseLoss, PerOutputLoss
from ..models import Parameter, Scores, WrittenModel, objective_of, write_model
from ..models.base import Objective
from ..penalties import BasePenalty
from .running import Run, run_reference

__all__ = ["check_objective"]

#: Size of the steps from the fitted parameters, relative to the parameters.
STEP = 1e-6
#: Number of random directions, in addition to single parameters.
DIRECTIONS = 20


def check_objective(
    estimator: Any,
    X: np.ndarray,
    y: Any = None,
    sample_weight: np.ndarray | None = None,
    *,
    names: set[str] | None = None,
    run: Run | None = None,
    rtol: float = 1e-4,
    random_state: int = 0,
) -> None:
    """Check that a fitted estimator minimises the objective of its definition.

    From the fitted parameters, the objective must not decrease in the direction of a single parameter or in
    random directions. If the objective is convex, and not differentiable in single parameters only, this
    proves a minimum. Use it for estimators that were fitted with a small tolerance;
    :func:`~ortlearn.testing.check_model` checks that an objective is compatible with the scores.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator.
    X : ndarray of shape (n_samples, n_features)
        Samples that it was fitted on.
    y : array-like, default=None
        Labels; not needed if the model computes its own loss.
    sample_weight : ndarray of shape (n_samples,), default=None
        Sample weights, multiplied by the weights of classes.
    names : set of str, default=None
        Names in the graph of the parameters that the fit minimises over; all trained ones by default.
    run : callable, default=None
        ``run(model, feeds)`` returns the outputs of a model; onnx's reference evaluator by default.
    rtol : float, default=1e-4
        Largest allowed negative slope, relative to the mean absolute slope of the losses of single samples.
    random_state : int, default=0
        Seed of the directions.

    Raises
    ------
    AssertionError
        If there is no objective, or it decreases in a direction, which the message names.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.testing import check_objective
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> check_objective(Ridge(alpha=3.0).fit(X, X[:, 0]), X, X[:, 0])
    """
    X = np.asarray(X, dtype=np.float64)
    weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    objective = objective_of(estimator, weights.sum())
    assert objective is not None, f"{type(estimator).__name__}: its definition has no objective"
    slopes = _Slopes.of(estimator, objective, X, y, weights / weights.sum(), run or run_reference)
    trained = {name: p for name, p in slopes.parameters.items() if not p.reason}
    chosen = {name: p for name, p in trained.items() if names is None or name in names}
    assert chosen, f"{type(estimator).__name__}: no parameter is trained"
    for where, direction in _directions(chosen, slopes.feeds, np.random.default_rng(random_state)):
        slope = slopes.along(direction)
        assert slope >= -rtol, (
            f"{type(estimator).__name__}: its objective {objective!r} falls along {where}, with a slope of "
            f"{slope:.3g} relative to those of single samples"
        )


def check_suits(name: str, objective: Objective, written: WrittenModel) -> None:
    """Check that an objective is compatible with the scores of a model."""
    scores, loss, penalty = written.scores, objective.loss, objective.penalty
    assert isinstance(loss, BaseLoss), f"{name}: the loss {loss!r} of its objective is not a BaseLoss"
    assert isinstance(penalty, BasePenalty), (
        f"{name}: the penalty {penalty!r} of its objective is not a BasePenalty"
    )
    loss.check()
    penalty.check()
    task = "regression" if scores.task == "transformation" else scores.task
    assert task in loss.tasks, f"{name}: {type(loss).__name__} is not for {task}"
    if task == "regression":
        same = loss.link == scores.link
        assert same, f"{name}: {type(loss).__name__} has link {loss.link!r}, the scores have {scores.link!r}"
    _resolved(penalty, written.parameters)


def _resolved(penalty: BasePenalty, parameters: dict[str, Parameter]) -> BasePenalty:
    """Return a penalty with the names of weights in the graph."""

    def choose(patterns: Any) -> list[str]:
        patterns = [patterns] if isinstance(patterns, str) else patterns
        found = {
            name
            for name, p in parameters.items()
            if any(
                matches_pattern(known, pattern) for known in (name, p.attribute or "") for pattern in patterns
            )
        }
        if not found:
            raise PluginError(f"{penalty!r}: {patterns} name no parameter among {sorted(parameters)}.")
        return sorted(found)

    return penalty.for_weights(choose)


def _labels(scores: Scores, loss: BaseLoss, y: Any, n_samples: int) -> np.ndarray:
    """Return labels in the encoding of a loss."""
    if scores.task == "unsupervised":
        return np.zeros((n_samples, scores.n_outputs))
    y = np.asarray(y)
    if scores.task == "classification":
        numbers = np.searchsorted(scores.classes, y)
        if scores.n_outputs == 1:
            return numbers.reshape(-1, 1).astype(np.float64)
        whole = loss.integer_labels and scores.link == "softmax"
        return numbers if whole else np.eye(scores.n_outputs)[numbers]
    if isinstance(scores.classes, list):
        columns = zip(scores.classes, y.T, strict=True)
        y = np.column_stack([np.searchsorted(classes, own) for classes, own in columns])
        if isinstance(loss, PerOutputLoss):
            return y
    return y.reshape(n_samples, -1).astype(np.float64)


@dataclass
class _Slopes:
    """Objective as a graph with parameters as inputs, and its slopes at the fitted parameters."""

    model: ModelProto
    parameters: dict[str, Parameter]
    feeds: dict[str, np.ndarray]
    weights: np.ndarray
    run: Run
    fitted: list

    @classmethod
    def of(
        cls, estimator: Any, objective: Objective, X: np.ndarray, y: Any, weights: np.ndarray, run: Run
    ) -> _Slopes:
        inputs = {"X": TensorType(TensorProto.DOUBLE, (None, X.shape[1]))}
        written = write_model(estimator, inputs, np.float64)
        check_suits(type(estimator).__name__, objective, written)
        loss = objective.loss
        if max(written.scores.groups, default=1) > 1:
            loss = PerOutputLoss(loss, written.scores.groups)
        labels = _labels(written.scores, loss, y, len(X))
        part = extract_model(written.model, [written.scores.score])
        values = initializer_arrays(part, written.parameters)
        present = list(values)
        graph = make_inputs_of(part, present)
        parameters = {name: written.parameters[name] for name in present}
        model = _with_objective(graph, written, labels, loss, objective.penalty, values)
        feeds = {"X": X, "labels": labels, **values}
        return cls(model, parameters, feeds, weights, run, run(model, feeds))

    def along(self, direction: dict[str, np.ndarray]) -> float:
        """Return the slope of the objective along a direction, relative to those of single samples."""
        moved = dict(self.feeds)
        for name, step in direction.items():
            constraint = self.parameters[name].constraint
            value = self.feeds[name]
            moved[name] = value + step if constraint is None else _moved(constraint, value, step)
        (before, penalty_before), (after, penalty_after) = self.fitted, self.run(self.model, moved)
        losses, penalty = self.weights * (after - before), float(penalty_after - penalty_before)
        size = np.abs(losses).sum() + abs(penalty)
        return float((losses.sum() + penalty) / size) if size else 0.0


def _moved(constraint: Any, value: np.ndarray, step: np.ndarray) -> np.ndarray:
    return constraint.values(constraint.free(value) + step.reshape(constraint.free(value).shape))


def _with_objective(
    graph: ModelProto,
    written: WrittenModel,
    labels: np.ndarray,
    loss: BaseLoss,
    penalty: BasePenalty,
    values: dict[str, np.ndarray],
) -> ModelProto:
    """Return a graph from samples, labels and parameters to losses and penalty."""
    scores, parameters = written.scores, written.parameters
    elem_type = TensorProto.INT64 if labels.dtype.kind == "i" else TensorProto.DOUBLE
    types = {
        "labels": TensorType(elem_type, (None, *labels.shape[1:])),
        scores.score: TensorType(TensorProto.DOUBLE, (None, scores.n_outputs)),
        **{name: TensorType(TensorProto.DOUBLE, value.shape) for name, value in values.items()},
    }
    taken = graph_names(graph.graph) | {"labels"}
    op = GraphBuilder(dtype=np.float64, existing_names=taken, types=types, prefix="objective_")
    rows = op.node("Identity", loss.forward(op, "labels", scores.score), outputs=["losses"])
    terms, penalty = [], _resolved(penalty, {name: parameters[name] for name in values})
    for name in values:
        if not parameters[name].reason:
            parts = penalty.parts_for(parameters[name].role == "intercept", name)
            terms += [term for part in parts if (term := part.forward(op, name)) is not None]
    total = op.node("Sum", op.constant(np.float64(0)), *terms, outputs=["penalty"])
    outputs = {rows: (None,), total: ()}
    return append_nodes(
        graph,
        op,
        inputs=[make_value_info("labels", types["labels"])],
        outputs=[make_value_info(name, TensorType(TensorProto.DOUBLE, own)) for name, own in outputs.items()],
    )


def _directions(
    parameters: dict[str, Parameter], values: dict[str, np.ndarray], rng: np.random.Generator
) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Yield steps along each entry of the parameters, in both directions, and along random directions."""
    sizes, free = {}, {}
    for name, parameter in parameters.items():
        value = values[name]
        free[name] = value if parameter.constraint is None else parameter.constraint.free(value)
        sizes[name] = STEP * max(1.0, np.abs(free[name]).max(initial=0.0))
    for name, value in free.items():
        for place in np.ndindex(value.shape):
            for sign in (1, -1):
                step = np.zeros(value.shape)
                step[place] = sign * sizes[name]
                yield f"{'-' if sign < 0 else ''}{parameters[name].expression} {list(place)}", {name: step}
    for number in range(DIRECTIONS):
        yield (
            f"random direction {number}",
            {name: sizes[name] * rng.normal(size=value.shape) for name, value in free.items()},
        )
