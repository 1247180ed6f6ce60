"""Check a penalty: parameters, value, gradient, and proximal step."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
from onnx import ModelProto, helper

from ..graphs import GraphBuilder, TensorType, make_value_info
from ..penalties import BasePenalty
from .gradient_rules import check_gradient_rule
from .parameters import check_parameters
from .running import Run, check_graph, run_reference
from .updates import RATE, SHAPES

__all__ = ["check_penalty"]


#: Shapes of weights: matrix, vector and convolution.
WEIGHTS = (*SHAPES[:2], (2, 3, 2, 2))


def check_penalty(penalty: BasePenalty, *, run: Run | None = None, random_state: int = 0) -> None:
    """Check that a penalty fulfils its contract.

    Parameters survive ``clone`` and pickle. The value is a finite, non-negative scalar of the weight's type
    (float32 and float64), computed with standard operators; its ``strengths`` may be scalars of the graph.
    The gradient of the differentiable part agrees with finite differences. A proximal step keeps shape and
    type, and does not increase ``||v - w||^2 / 2 + rate * (penalty(v) - smooth part(v))``.

    Parameters
    ----------
    penalty : BasePenalty
        Plugin to check.
    run : callable, default=None
        ``run(model, feeds)`` returns the outputs of a model; onnx's reference evaluator by default.
    random_state : int, default=0
        Seed of the weights.

    Raises
    ------
    AssertionError
        If the contract is violated; the message says how.
    PluginError
        If a parameter is invalid.

    Examples
    --------
    >>> from ortlearn.penalties import GroupLassoPenalty
    >>> from ortlearn.testing import check_penalty
    >>> check_penalty(GroupLassoPenalty(0.1))
    """
    penalty.check()
    check_parameters(penalty)
    rng, run = np.random.default_rng(random_state), run or run_reference
    for shape in WEIGHTS:
        weight = rng.normal(size=shape)
        for dtype in (np.float32, np.float64):
            _check_value(penalty, weight.astype(dtype), run)
            _check_strengths(penalty, weight.astype(dtype), run)
            if penalty.is_proximal():
                _check_step(penalty, weight.astype(dtype), run)
        smooth = _model(penalty, weight, penalty.smooth_part)
        if smooth is not None:
            check_gradient_rule(smooth, weight, run=run)


def _model(
    penalty: BasePenalty, weight: np.ndarray, write: Callable, strengths: Collection[str] = ()
) -> ModelProto | None:
    """Return the graph of a part of the penalty, or None if the part is empty."""
    elem_type = helper.np_dtype_to_tensor_dtype(weight.dtype)
    types = {"weight": TensorType(elem_type, weight.shape)}
    types |= dict.fromkeys(("rate", *strengths), TensorType(elem_type, ()))
    op = GraphBuilder(dtype=weight.dtype, existing_names=types, types=types)
    stepping = write == penalty.proximal_step
    output = write(op, "weight", "rate") if stepping else write(op, "weight")
    if output is None:
        return None
    others = sorted(set(op.opsets) - {""})
    assert not others, f"{type(penalty).__name__}: uses operators of {others}, which are not standard"
    inputs = [make_value_info(name, known) for name, known in types.items() if stepping or name != "rate"]
    outputs = [make_value_info(output, TensorType(elem_type, weight.shape if stepping else ()))]
    graph = helper.make_graph(op.nodes, type(penalty).__name__, inputs, outputs, op.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", op.opset)], ir_version=10)
    check_graph(type(penalty).__name__, model)
    return model


def _value(penalty: BasePenalty, weight: np.ndarray, write: Callable, run: Run) -> np.ndarray:
    return _run(_model(penalty, weight, write), {"weight": weight}, run)


def _run(model: ModelProto | None, feeds: dict[str, np.ndarray], run: Run) -> np.ndarray:
    """Return the output of a graph, zero if the graph is empty."""
    if model is None:
        return np.zeros((), feeds["weight"].dtype)
    return np.asarray(run(model, {value.name: feeds[value.name] for value in model.graph.input})[0])


def _check_value(penalty: BasePenalty, weight: np.ndarray, run: Run) -> None:
    name, value = type(penalty).__name__, _value(penalty, weight, penalty.forward, run)
    assert value.shape == (), f"{name}: its value has shape {value.shape}, it must be a scalar"
    assert value.dtype == weight.dtype, f"{name}: its value is {value.dtype}, not {weight.dtype}"
    assert np.isfinite(value) and value >= 0, f"{name}: its value is {value}, it must be 0 or above"


def _check_strengths(penalty: BasePenalty, weight: np.ndarray, run: Run) -> None:
    """Check that strengths may be scalars of the graph instead of numbers."""
    named, values = penalty.with_inputs("strength")
    feeds = {"weight": weight, "rate": np.array(RATE, weight.dtype)}
    feeds |= {name: np.array(value, weight.dtype) for name, value in values.items()}
    pairs: list[tuple[Callable, Callable]] = [(penalty.forward, named.forward)]
    pairs += [(penalty.proximal_step, named.proximal_step)] if penalty.is_proximal() else []
    rule = f"{type(penalty).__name__}: its strengths {penalty.strengths} must be operands as they are"
    for own, other in pairs if values else ():
        try:
            found = _run(_model(named, weight, other, values), feeds, run)
        except Exception as error:
            raise AssertionError(f"{rule}, but with a scalar of the graph, {error!r} is raised") from error
        expected = _run(_model(penalty, weight, own), feeds, run)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7, err_msg=rule)


def _check_step(penalty: BasePenalty, weight: np.ndarray, run: Run) -> None:
    name, model = type(penalty).__name__, _model(penalty, weight, penalty.proximal_step)
    assert model is not None, f"{name}: proximal_step must return the name of a weight"
    rate = np.array(RATE, weight.dtype)
    moved = np.asarray(run(model, {"weight": weight, "rate": rate})[0])
    assert moved.shape == weight.shape and moved.dtype == weight.dtype, (
        f"{name}: its proximal step returns {moved.dtype} of shape {moved.shape}"
    )
    assert np.isfinite(moved).all(), f"{name}: its proximal step returns values that are not finite"

    def rest(values: np.ndarray) -> float:
        whole = _value(penalty, values, penalty.forward, run)
        return float(whole - _value(penalty, values, penalty.smooth_part, run))

    before, after = RATE * rest(weight), ((moved - weight) ** 2).sum() / 2 + RATE * rest(moved)
    if rest(weight):  # constraints have value 0
        assert after <= before * (1 + 1e-5), (
            f"{name}: its proximal step increases its objective from {before:.6g} to {after:.6g}"
        )
