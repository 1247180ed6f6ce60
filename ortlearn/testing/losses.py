"""Check a loss: parameters, values per sample, and gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, helper

from ..differentiation import gradient_reach
from ..graphs import GraphBuilder, TensorType, make_value_info
from ..losses import BaseLoss, Interval
from .gradient_rules import check_gradient_rule
from .parameters import check_parameters
from .running import Run, check_graph, run_reference

__all__ = ["check_loss"]


N_SAMPLES = 7
TASKS = {"classification", "multilabel", "regression", "unsupervised"}


def check_loss(
    loss: BaseLoss,
    *,
    n_outputs: Sequence[int] = (1, 3),
    run: Run | None = None,
    rtol: float = 1e-6,
    random_state: int = 0,
) -> None:
    """Check that a loss fulfils its contract.

    Parameters survive ``clone`` and pickle. The forward expression is valid ONNX with standard operators. It
    returns one finite loss per sample, which has the type of the predictions (float32 and float64) and does
    not depend on other samples. A gradient reaches the predictions and agrees with finite differences;
    operators without gradient, such as ``Round`` and ``Sign``, are constants. Labels are drawn from the
    domain of the loss: numbers, classes, or multilabel indicators, according to ``tasks``.

    Parameters
    ----------
    loss : BaseLoss
        Plugin to check.
    n_outputs : sequence of int, default=(1, 3)
        Numbers of outputs to check.
    run : callable, default=None
        ``run(model, feeds)`` returns the outputs of a model; onnx's reference evaluator by default.
    rtol : float, default=1e-6
        Tolerance of the gradient.
    random_state : int, default=0
        Seed of labels and predictions.

    Raises
    ------
    AssertionError
        If the contract is violated; the message says how.
    PluginError
        If a parameter is invalid.

    Examples
    --------
    >>> from ortlearn.losses import HuberLoss
    >>> from ortlearn.testing import check_loss
    >>> check_loss(HuberLoss(delta=0.5))
    """
    name = type(loss).__name__
    loss.check()
    check_parameters(loss)
    assert loss.tasks and loss.tasks <= TASKS, f"{name}: tasks={sorted(loss.tasks)} must be some of {TASKS}"
    assert isinstance(loss.domain, Interval), f"{name}: domain={loss.domain!r} must be an Interval"
    assert loss.link in ("identity", "log"), f"{name}: link={loss.link!r} must be 'identity' or 'log'"
    rng, run = np.random.default_rng(random_state), run or run_reference
    for task in sorted(loss.tasks):
        for count in n_outputs:
            predicted = rng.normal(scale=1.5, size=(N_SAMPLES, count))
            expected = _labels(loss, task, count, rng)
            for dtype in (np.float32, np.float64):
                _check_samples(loss, expected, predicted.astype(dtype), run)
            model, _ = _model(loss, expected, predicted)
            _check_reach(model, f"{name} with {count} output(s)")
            check_gradient_rule(model, expected, predicted, wrt=[1], run=run, rtol=rtol, atol=1e-8)


def _labels(loss: BaseLoss, task: str, count: int, rng: np.random.Generator) -> np.ndarray:
    if task in ("classification", "multilabel"):
        if loss.integer_labels and task == "classification":
            return rng.integers(0, max(count, 2), size=N_SAMPLES)
        return rng.integers(0, 2, size=(N_SAMPLES, count)).astype(np.float64)
    if task == "unsupervised":
        return np.zeros((N_SAMPLES, count))
    low, high = loss.domain.low, loss.domain.high
    values = rng.normal(size=(N_SAMPLES, count))
    if np.isfinite(low) and np.isfinite(high):
        return low + (high - low) * rng.uniform(0.1, 0.9, size=values.shape)
    if np.isfinite(low):
        return low + np.abs(values) + 0.1
    return values if not np.isfinite(high) else high - np.abs(values) - 0.1


def _model(loss: BaseLoss, expected: np.ndarray, predicted: np.ndarray) -> tuple[ModelProto, GraphBuilder]:
    """Return the graph from labels and predictions to the loss of each sample."""
    arrays = {"expected": expected, "predicted": predicted}
    types = {
        key: TensorType(helper.np_dtype_to_tensor_dtype(array.dtype), ("N", *array.shape[1:]))
        for key, array in arrays.items()
    }
    op = GraphBuilder(dtype=predicted.dtype, existing_names=types, types=types)
    output = loss.forward(op, "expected", "predicted")
    assert isinstance(output, str), f"{type(loss).__name__}: forward must return a tensor, not {output!r}"
    inputs = [make_value_info(key, known) for key, known in types.items()]
    outputs = [make_value_info(output, TensorType(types["predicted"].elem_type, ("N",)))]
    graph = helper.make_graph(op.nodes, type(loss).__name__, inputs, outputs, op.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", op.opset)], ir_version=10), op


def _check_reach(model: ModelProto, name: str) -> None:
    names, blockers = gradient_reach(model, model.graph.output[0].name)
    steps = sorted({node.op_type for node in blockers})
    assert "predicted" in names, (
        f"{name}: no gradient reaches the predictions, so nothing would be trained. Operators without a "
        f"gradient between loss and predictions: {', '.join(steps) or 'none'}"
    )


def _check_samples(loss: BaseLoss, expected: np.ndarray, predicted: np.ndarray, run: Run) -> None:
    name = f"{type(loss).__name__} with {predicted.shape[1]} output(s)"
    if expected.dtype.kind == "f":
        expected = expected.astype(predicted.dtype)
    model, op = _model(loss, expected, predicted)
    others = sorted(set(op.opsets) - {""})
    assert not others, f"{name}: uses operators of {others}, which are not standard"
    check_graph(name, model)

    def values(numbers: Any) -> np.ndarray:
        return np.asarray(run(model, {"expected": expected[numbers], "predicted": predicted[numbers]})[0])

    every = values(slice(None))
    assert every.shape == (N_SAMPLES,), (
        f"{name}: returns shape {every.shape} for {N_SAMPLES} samples, it must be one loss per sample"
    )
    assert every.dtype == predicted.dtype, f"{name}: returns {every.dtype}, not {predicted.dtype}"
    assert np.isfinite(every).all(), f"{name}: returns {every}, which is not finite"
    some = [5, 0, 3]
    same = np.allclose(values(some), every[some], rtol=1e-5, atol=1e-6)
    assert same, f"{name}: the loss of a sample depends on other samples, or on their order"
