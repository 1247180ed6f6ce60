"""Check a model definition: graph, gradients, and write-back of parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from ..graphs import TensorType, extract_model, initializer_arrays, make_inputs_of
from ..models import (
    Parameter,
    WrittenModel,
    all_covered,
    find_definition,
    objective_of,
    write_model,
    write_parameters,
)
from ..models.registry import public_path
from .gradient_rules import check_gradient_rule
from .objectives import check_suits
from .running import Run, check_graph, run_reference

__all__ = ["check_model"]

#: Relative change of parameters in the check of the write-back.
CHANGE = 0.01


def check_model(
    estimator: Any,
    X: np.ndarray,
    *,
    run: Run | None = None,
    rtol: float = 1e-7,
    gradient_rtol: float = 1e-5,
    random_state: int = 0,
) -> None:
    """Check that the definition of a fitted estimator fulfils its contract.

    The graph is valid ONNX and returns in float64 the same results as the estimator, for those methods of
    ``transform``, ``predict_proba``, ``score_samples``, ``decision_function`` and ``predict`` that it has.
    Gradients by all trained parameters agree with finite differences. Writing back changed parameters gives
    an estimator with the same results as the changed graph, whose graph has these parameters; the given
    estimator is not changed. The objective, if there is one, is compatible with the scores;
    :func:`~ortlearn.testing.check_objective` checks that the estimator minimises it.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator.
    X : ndarray of shape (n_samples, n_features)
        Samples at which the score is differentiable.
    run : callable, default=None
        ``run(model, feeds)`` returns the outputs of a model; onnx's reference evaluator by default.
    rtol : float, default=1e-7
        Tolerance of predictions, relative to the largest one.
    gradient_rtol : float, default=1e-5
        Tolerance of gradients.
    random_state : int, default=0
        Seed of the changes.

    Raises
    ------
    AssertionError
        If the contract is violated; the message says how.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.testing import check_model
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> check_model(Ridge().fit(X, X[:, 0]), X)
    """
    name, run = type(estimator).__name__, run or run_reference
    assert find_definition(estimator) is not None, f"{name}: no definition of {public_path(type(estimator))}"
    assert all_covered(estimator), f"{name}: it, or an estimator in it, is not covered by a definition"
    X = np.asarray(X, dtype=np.float64)
    written = _written(estimator, X)
    check_graph(name, written.model)
    objective = objective_of(estimator, float(len(X)))
    if objective is not None:
        check_suits(name, objective, written)
    _check_outputs(name, estimator, written, X, run, rtol)
    trained = [key for key, parameter in written.parameters.items() if not parameter.reason]
    assert trained, f"{name}: no parameter is trained"
    _check_gradients(name, written, trained, X, run, gradient_rtol)
    _check_write_back(name, estimator, written, trained, X, run, rtol, random_state)


def _written(estimator: Any, X: np.ndarray) -> WrittenModel:
    return write_model(estimator, {"X": TensorType(TensorProto.DOUBLE, (None, X.shape[1]))}, np.float64)


def _tensors(written: WrittenModel) -> dict[str, str]:
    """Return the tensor of the graph for each method."""
    scores = written.scores
    found = {"transform": scores.transformed, "predict_proba": scores.probabilities}
    found["score_samples"] = scores.likelihood
    if scores.task == "regression":
        found["predict"] = scores.predicted
    elif scores.decision != "" and scores.task != "unsupervised":
        found["decision_function"] = scores.decision or scores.score
    return {method: tensor for method, tensor in found.items() if isinstance(tensor, str)}


def _outputs(model: ModelProto, tensors: dict[str, str], X: np.ndarray, run: Run) -> dict[str, np.ndarray]:
    return {m: run(extract_model(model, [tensor]), {"X": X})[0] for m, tensor in tensors.items()}


def _check_outputs(
    name: str, estimator: Any, written: WrittenModel, X: np.ndarray, run: Run, rtol: float
) -> None:
    tensors = {m: t for m, t in _tensors(written).items() if hasattr(estimator, m)}
    for method, found in _outputs(written.model, tensors, X, run).items():
        expected = np.asarray(getattr(estimator, method)(X), dtype=np.float64)
        assert found.size == expected.size, f"{name}.{method}: shape {found.shape}, not {expected.shape}"
        gap = np.abs(found.reshape(expected.shape) - expected).max(initial=0.0)
        scale = max(1.0, np.abs(expected).max(initial=0.0))
        assert gap <= rtol * scale, f"{name}.{method}: the graph differs by {gap:.3g}"
    label = written.scores.label
    if label is not None and hasattr(estimator, "predict"):
        found = np.asarray(run(extract_model(written.model, [label]), {"X": X})[0])
        expected = np.asarray(estimator.predict(X)).reshape(found.shape)
        same = np.array_equal(found.astype(str if expected.dtype.kind in "OUS" else expected.dtype), expected)
        assert same, f"{name}.predict: the graph returns other labels"


def _check_gradients(
    name: str, written: WrittenModel, trained: list[str], X: np.ndarray, run: Run, rtol: float
) -> None:
    part = extract_model(written.model, [written.scores.score])
    present = [key for key in trained if key in initializer_arrays(part)]
    assert present, f"{name}: no trained parameter reaches the score"
    arrays = initializer_arrays(part, present)
    graph = make_inputs_of(part, present)
    wrt = range(1, 1 + len(present))
    values = [arrays[key] for key in present]
    check_gradient_rule(graph, X, *values, wrt=list(wrt), run=run, rtol=rtol, atol=1e-7)


def _changed(parameter: Parameter, array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if parameter.constraint is not None:
        free = parameter.constraint.free(array)
        return parameter.constraint.values(free + CHANGE * np.abs(free).max(initial=1.0))
    return array + CHANGE * (np.abs(array).mean() or 1.0) * rng.uniform(0.5, 1.0, size=array.shape)


def _check_write_back(
    name: str,
    estimator: Any,
    written: WrittenModel,
    trained: list[str],
    X: np.ndarray,
    run: Run,
    rtol: float,
    random_state: int,
) -> None:
    rng = np.random.default_rng(random_state)
    before = initializer_arrays(written.model, written.parameters)
    values = {key: _changed(written.parameters[key], before[key], rng) for key in trained}
    result = write_parameters(estimator, written.parameters, values)
    again = _written(result, X)
    same = list(again.parameters) == list(written.parameters)
    assert same, f"{name}: the graph has other parameters after the write-back"
    for key, value in values.items():
        close = np.allclose(again.parameters[key].value(result), value, rtol=1e-6, atol=1e-9)
        assert close, f"{name}: {written.parameters[key].expression} differs from the value written back"
    for key, array in initializer_arrays(_written(estimator, X).model, written.parameters).items():
        changes = f"the write-back changes {written.parameters[key].expression} of the given estimator"
        assert np.array_equal(array, before[key]), f"{name}: {changes}"
    _check_outputs(f"{name} with changed parameters", result, again, X, run, rtol)
