"""Integrated gradients, and the exact attributions of trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..exceptions import GradientError, GradientWarning, warn_user
from ..functions.bare import BareFunction
from ..functions.bridge import one_matrix
from ..functions.sources import open_source
from ..functions.tree_lines import TreeLines
from .explained_output import columns_of_output, explained_function, explained_method, selection

__all__ = ["IntegratedGradients", "integrated_gradients"]

#: Points of Gauss-Legendre quadrature in each part of a line, and the largest number of parts.
ORDER, MAX_PARTS = 8, 512
#: Completeness that ``steps="auto"`` refines to, relative to the change of the output.
COMPLETE = 1e-4


@dataclass(frozen=True)
class IntegratedGradients:
    """Attributions of :func:`integrated_gradients`.

    Attributes
    ----------
    attributions : ndarray of shape (n_samples, n_features)
        Contribution of each feature to the difference of the outputs of sample and baseline.
    value, baseline_value : ndarray of shape (n_samples,)
        Explained output of the samples, and of the baseline.
    error : ndarray of shape (n_samples,)
        Absolute difference of the sum of the attributions and the difference of the outputs.
    exact : bool
        Whether the jumps of trees were attributed, without quadrature.
    """

    attributions: np.ndarray
    value: np.ndarray
    baseline_value: np.ndarray
    error: np.ndarray
    exact: bool


def integrated_gradients(
    estimator: Any,
    X: Any,
    baseline: Any,
    steps: int | str = "auto",
    *,
    output: Any = None,
    method: str = "auto",
) -> IntegratedGradients:
    """Attribute the difference of a prediction from that of a baseline to the features.

    The attribution of a feature is its difference from the baseline, times the mean of the gradient on the
    line between both (Sundararajan, Taly and Yan, "Axiomatic attribution for deep networks", ICML 2017). The
    attributions of a sample sum to the difference of the outputs. For ensembles of trees, whose gradient is
    zero wherever it exists, the jumps at the thresholds on the line are attributed exactly.

    Parameters
    ----------
    estimator : estimator, ONNX model or DifferentiableFunction
        Fitted model.
    X : array-like of shape (n_samples, n_features)
        Samples.
    baseline : array-like of shape (n_features,) or (n_samples, n_features)
        Sample to compare with, such as the mean of the features.
    steps : int or "auto", default="auto"
        Number of gradients on each line; above 8 it is rounded up to a multiple of 8. "auto" takes 16, and
        doubles it until the sum is complete up to 1e-4 of the difference, at most 4096.
    output : int or str, default=None
        Class or column to explain; by default the only one, or the largest of each sample.
    method : str, default="auto"
        Output, as in :func:`input_gradient`.

    Returns
    -------
    IntegratedGradients
        Attributions, and their error.

    Raises
    ------
    GradientError
        If the output is piecewise constant, and not by trees.
    ValueError
        If the shapes do not match.

    Warns
    -----
    GradientWarning
        If the sum differs by more than 1e-3 of the difference of the outputs, as for trees next to smooth
        parts.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from ortlearn.inspection import integrated_gradients
    >>> model = DecisionTreeRegressor().fit([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], [1.0, 2.0, 4.0])
    >>> integrated_gradients(model, [[1.0, 1.0]], [0.0, 0.0]).attributions.sum()
    np.float64(3.0)
    """
    if steps != "auto" and (not isinstance(steps, int) or isinstance(steps, bool) or steps < 1):
        raise ValueError(f"steps={steps!r} must be a positive integer or 'auto'.")
    try:
        function = explained_function(estimator, method, X)
    except GradientError as error:
        return _of_trees(estimator, X, baseline, output, method, error)
    bare, samples = one_matrix(function), function.read(X)
    start = _start(baseline, samples)
    value, first = bare(samples), bare(start)
    columns = columns_of_output(function, value, output)
    difference = (_chosen(value, columns) - _chosen(first, columns)).astype(np.float64)
    found = _integrated(bare, samples, start, selection(value, columns), steps, difference)
    return _result(found, value, first, columns, exact=False)


def _start(baseline: Any, samples: np.ndarray) -> np.ndarray:
    """Return the baseline of each sample."""
    start = np.asarray(baseline, dtype=samples.dtype)
    if samples.ndim != 2 or start.shape not in (samples.shape, samples.shape[1:]):
        raise ValueError(
            f"baseline has the shape {start.shape}, but must be one sample or all of X, {samples.shape}."
        )
    return np.ascontiguousarray(np.broadcast_to(start, samples.shape))


def _integrated(
    bare: BareFunction,
    X: np.ndarray,
    start: np.ndarray,
    u: np.ndarray,
    steps: int | str,
    difference: np.ndarray,
) -> np.ndarray:
    """Return attributions by quadrature."""
    if steps != "auto":
        order = min(int(steps), ORDER)
        return _mean_gradient(bare, X, start, u, -(-int(steps) // order), order) * (X - start)
    found, parts, left = np.zeros(X.shape), 2, np.arange(len(X))
    while len(left):
        mean = _mean_gradient(bare, X[left], start[left], u[left], parts, ORDER)
        found[left] = mean * (X - start)[left]
        gap = np.abs(found[left].sum(axis=1) - difference[left])
        left = left[gap > COMPLETE * _scale(found[left], difference[left])]
        if parts >= MAX_PARTS:
            break
        parts *= 2
    return found


def _scale(found: np.ndarray, difference: np.ndarray) -> np.ndarray:
    """Return the size that errors of sums are relative to: the difference, unless attributions cancel."""
    return np.maximum(np.abs(difference), 0.01 * np.abs(found).sum(axis=1)) + 1e-12


def _mean_gradient(
    bare: BareFunction, X: np.ndarray, start: np.ndarray, u: np.ndarray, parts: int, order: int
) -> np.ndarray:
    """Return the mean of the gradient on each line, by Gauss-Legendre quadrature in equal parts."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    total = np.zeros(X.shape)
    for part in range(parts):
        for node, weight in zip(nodes, weights, strict=True):
            point = start + (part + (node + 1) / 2) / parts * (X - start)
            total += weight / (2 * parts) * bare.vjp(point.astype(X.dtype), u)
    return total


def _of_trees(
    estimator: Any, X: Any, baseline: Any, output: Any, method: str, error: GradientError
) -> IntegratedGradients:
    """Return exact attributions of the jumps of trees; raise the error of the gradient without trees."""
    source = open_source(estimator, None, None)
    try:
        lines = TreeLines(source, explained_method(estimator, method))
    except GradientError as other:
        raise (error if "no ensemble" in str(other) else other) from error
    samples = source.read(X)[lines.name]
    first = _start(baseline, samples)
    value, before = lines.value(samples), lines.value(first)
    columns = None
    if value.ndim > 1:
        classes = None if source.classes is None else list(source.classes)
        index = classes.index(output) if classes and isinstance(output, str) and output in classes else output
        columns = value.argmax(axis=1) if index is None else np.full(len(value), int(index))
    found = lines.attributions(first.astype(np.float64), samples.astype(np.float64), columns)
    return _result(found, value, before, columns, exact=True)


def _chosen(values: np.ndarray, columns: np.ndarray | None) -> np.ndarray:
    return values if columns is None else values[np.arange(len(values)), columns]


def _result(
    found: np.ndarray, value: np.ndarray, first: np.ndarray, columns: np.ndarray | None, exact: bool
) -> IntegratedGradients:
    """Return attributions with their error, and warn if it is large."""
    value, first = (_chosen(part, columns).astype(np.float64) for part in (value, first))
    gap = np.abs(found.sum(axis=1) - (value - first))
    relative = gap / _scale(found, value - first)
    worst = int(np.argmax(relative)) if len(gap) else 0
    if len(gap) and relative[worst] > 1e-3:
        warn_user(
            f"The attributions of sample {worst} sum to {found[worst].sum():.4g}, but its output differs "
            f"from that of the baseline by {value[worst] - first[worst]:.4g}: take more steps. Jumps of "
            "trees next to smooth parts have no gradient.",
            GradientWarning,
        )
    return IntegratedGradients(found, value, first, gap, exact)
