"""ONNX files that return a prediction and its attribution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from ..exceptions import GradientError, GradientWarning, warn_user
from ..functions import DifferentiableFunction
from ..functions.bridge import one_matrix
from ..graphs import (
    GraphBuilder,
    append_nodes,
    graph_names,
    make_value_info,
    map_names,
    opset_versions,
    value_types,
)
from ..graphs.editing import with_fields
from ..graphs.files import save_model
from .explained_output import explained_function

__all__ = ["save_attributions"]

ATTRIBUTIONS = "attributions"
POINTS = "ortlearn_points"  # samples on the lines, the input of the gradient


def save_attributions(
    estimator: Any,
    path: str | Path,
    baseline: Any = None,
    *,
    steps: int = 32,
    output: Any = None,
    method: str = "auto",
) -> ModelProto:
    """Write an ONNX file that returns the prediction and its attribution to the features.

    Programs in any language get both with one call of ONNX Runtime.

    Parameters
    ----------
    estimator : estimator, ONNX model or DifferentiableFunction
        Fitted model of a numeric matrix.
    path : str or pathlib.Path
        File.
    baseline : array-like of shape (n_features,), default=None
        Baseline of integrated gradients; by default the file returns the gradient times the sample.
    steps : int, default=32
        Number of gradients on each line; above 8 it is rounded up to a multiple of 8.
    output : int or str, default=None
        Class or column to explain; required if there are several.
    method : str, default="auto"
        Output, as in :func:`input_gradient`.

    Returns
    -------
    onnx.ModelProto
        The graph, with the inputs of the model, its output, and ``attributions`` of the shape of X.

    Raises
    ------
    GradientError
        If the output is piecewise constant: exact attributions of trees are no graph.
    ValueError
        If the baseline or the output is invalid.

    Warns
    -----
    GradientWarning
        If the output depends on trees, too, whose jumps are not attributed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.inspection import save_attributions
    >>> model = Ridge().fit([[0.0, 1.0], [1.0, 0.0]], [0.0, 1.0])
    >>> with TemporaryDirectory() as folder:
    ...     graph = save_attributions(model, f"{folder}/model.onnx", baseline=[0.0, 0.0])
    >>> [value.name for value in graph.graph.output]
    ['predict', 'attributions']
    """
    function = explained_function(estimator, method)
    one_matrix(function)
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 1:
        raise ValueError(f"steps={steps!r} must be a positive integer.")
    function.column_of(output)
    if function.omits_trees:
        warn_user(
            f"{function!r} depends on trees, too: the attributions leave out their jumps, which have no "
            "gradient. Attribute differentiable(model, smooth=width), whose thresholds are smoothed.",
            GradientWarning,
        )
    model = function.to_onnx("gradient", output)
    found = _on_lines(function, model, baseline, steps)
    save_model(found, path)
    return found


def _on_lines(function: DifferentiableFunction, model: ModelProto, baseline: Any, steps: int) -> ModelProto:
    """Return the graph of output and attributions, from that of output and gradient."""
    (name,), (value, gradient) = function.input_names_, (out.name for out in model.graph.output)
    known = value_types(model)[name]
    if known.shape is None or len(known.shape) != 2:
        raise GradientError(f"{function!r} does not take a matrix: its attributions are not written.")
    width, dtype = known.shape[1], function.dtype
    points, weights = _quadrature(steps)
    start = np.zeros(0) if baseline is None else np.asarray(baseline, dtype=dtype)
    if baseline is None:  # the gradient at the sample
        points, weights = np.array([1.0]), np.array([1.0])
    elif start.shape != (width,):
        raise ValueError(f"baseline has the shape {start.shape}, but must be one sample, ({width},).")
    shares = np.append(points, 1.0).astype(dtype)[:, None, None]  # the output is that of the samples, at 1
    renamed = map_names(model, {name: POINTS, value: f"{POINTS}_output", gradient: f"{POINTS}_gradient"})
    names = graph_names(renamed.graph) | {name, value, ATTRIBUTIONS}
    options: Any = {"dtype": dtype, "existing_names": names}
    front = GraphBuilder(opset_versions(model)[""], prefix="ortlearn_line_", **options)
    step = front.Sub(name, start) if baseline is not None else name
    line = front.Add(front.Mul(front.Unsqueeze(step, [0]), shares), start) if baseline is not None else None
    line = line or front.Mul(front.Unsqueeze(step, [0]), np.ones_like(shares))
    front.node("Reshape", line, [-1, width], outputs=[POINTS])
    back = GraphBuilder(opset_versions(model)[""], prefix="ortlearn_mean_", **options)
    mean = np.append(weights, 0.0).astype(dtype)[:, None, None]
    slopes = back.Reshape(f"{POINTS}_gradient", [len(shares), -1, width])
    back.node("Mul", back.ReduceSum(back.Mul(slopes, mean), [0], keepdims=0), step, outputs=[ATTRIBUTIONS])
    shape = function.graphs.output_shape
    tail = [len(shares), -1, *((1,) if shape is None else shape)]
    values = back.Reshape(f"{POINTS}_output", tail)
    back.node("Gather", values, len(shares) - 1, axis=0, outputs=[value])
    declared = {info.name: info for info in (*model.graph.input, *model.graph.output)}
    inputs = [declared[name]]
    renamed = with_fields(renamed, input=[], value_info=())
    joined = append_nodes(renamed, front, inputs=inputs, first=True)
    return append_nodes(joined, back, outputs=[declared[value], make_value_info(ATTRIBUTIONS, known)])


def _quadrature(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points in [0, 1] and weights of Gauss-Legendre quadrature in parts of at most 8 points."""
    order = min(steps, 8)
    nodes, weights = np.polynomial.legendre.leggauss(order)
    parts = -(-steps // order)
    points = (np.arange(parts)[:, None] + (nodes + 1) / 2) / parts
    return points.ravel(), np.tile(weights / (2 * parts), parts)
