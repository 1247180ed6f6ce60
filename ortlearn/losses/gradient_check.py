"""Check the gradient of a Python loss by finite differences in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..exceptions import GradientWarning, PluginError, warn_user

__all__ = ["check_gradient", "slope_ratio"]

Evaluate = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]

#: Step, as a fraction of the distance at which the linearised loss is zero.
STEP = 1e-3
#: Largest relative difference between slope and gradient that is not reported.
TOLERANCE = 0.1
#: Largest ratio of rounding errors and noise to the slope for which differences are reported.
NOISE = 0.05
CURE = "FunctionLoss(function, check_gradient=False) turns this check off."


def slope_ratio(
    evaluate: Evaluate,
    expected: np.ndarray,
    predicted: np.ndarray,
    losses: np.ndarray,
    gradient: np.ndarray,
) -> float | None:
    """Return the slope of a loss along its gradient, divided by the slope that the gradient implies.

    The result is 1 for a correct gradient, -1 for a wrong sign, and n for a gradient that was divided by n;
    None if it cannot be determined. The change of the loss of each sample along its gradient, between two
    points on both sides of the prediction, is compared with the mean of the gradients there, which is also
    correct for a kink at the prediction. The step is 1e-3 of the distance at which the linearised loss is
    zero: for absolute errors and hinge losses this is the distance to the kink.
    """
    expected, predicted = np.array(expected, dtype=np.float64), np.array(predicted, dtype=np.float64)
    losses, gradient = losses.astype(np.float64), gradient.astype(np.float64)
    with np.errstate(all="ignore"):
        norms = np.sqrt((gradient**2).sum(axis=1))
        reach = np.maximum(1.0, np.abs(predicted).max(axis=1))
        lengths = STEP * np.minimum(np.abs(losses) / norms, reach)
        used = np.isfinite(lengths) & (lengths > 0) & np.isfinite(norms) & (norms > 0)
        lengths = np.where(used, lengths, 0.0)
        steps = np.where(used[:, None], gradient / norms[:, None], 0.0) * lengths[:, None]
    above, gradient_above = evaluate(expected.copy(), predicted + steps)  # it may overwrite its arguments
    below, gradient_below = evaluate(expected.copy(), predicted - steps)
    with np.errstate(all="ignore"):
        change = above - below
        implied = ((gradient_above + gradient_below) * steps).sum(axis=1)
        curvature = np.abs((gradient_above - gradient_below) * steps).sum(axis=1)
        used &= np.isfinite(change) & np.isfinite(implied) & (curvature <= TOLERANCE * np.abs(implied))
        if not used.any() or not implied[used].sum() > 0:
            return None
        eps = _precision(above, below)
        sizes = np.abs(losses) + norms * np.abs(predicted).max(axis=1)
        # The loss at the prediction is close to the mean of both sides, unless the loss is random.
        noise = eps * sizes[used].sum() + abs((above + below - 2 * losses)[used].sum())
        if not noise <= NOISE * max(implied[used].sum(), np.abs(change[used].sum())):
            return None
        return float(change[used].sum() / implied[used].sum())


def check_gradient(
    evaluate: Evaluate,
    expected: np.ndarray,
    predicted: np.ndarray,
    losses: np.ndarray,
    gradient: np.ndarray,
) -> None:
    """Compare the gradient of a Python loss with finite differences; raise for a wrong sign, else warn."""
    try:
        is_missing = not gradient.any() and _changes(evaluate, expected, predicted, losses)
        ratio = slope_ratio(evaluate, expected, predicted, losses, gradient)
    except Exception:  # the function does not support float64, or fails at other predictions
        return
    if is_missing:
        raise PluginError(
            "The loss function returned a gradient of zero, but the losses of the first batch change with "
            "predicted. Return the gradient with respect to predicted, such as predicted - expected for half "
            f"of the squared error. {CURE}"
        )
    if ratio is None or abs(ratio - 1) <= TOLERANCE:
        return
    if ratio < 0:
        raise PluginError(
            "The gradient that the loss function returns has the wrong sign: the losses of the first batch "
            f"change by {ratio:.3g} times what the gradient implies. Return the gradient with respect to "
            f"predicted, such as predicted - expected for half of the squared error. {CURE}"
        )
    warn_user(
        f"The losses of the first batch change by {ratio:.3g} times what the gradient of the loss function "
        "implies. Return the gradient of the sum of the losses, not of their mean, with the same factors; "
        f"the training uses the gradient as it is. {CURE}",
        GradientWarning,
    )


def _changes(evaluate: Evaluate, expected: np.ndarray, predicted: np.ndarray, losses: np.ndarray) -> bool:
    """Return whether losses have a slope along the first output, beyond curvature and rounding errors."""
    steps = np.zeros(predicted.shape)
    steps[:, 0] = STEP * np.maximum(1.0, np.abs(predicted[:, 0]))
    expected, predicted = np.array(expected, dtype=np.float64), np.array(predicted, dtype=np.float64)
    above, _ = evaluate(expected.copy(), predicted + steps)
    below, _ = evaluate(expected.copy(), predicted - steps)
    curvature = np.abs(above + below - 2 * losses).sum() + _precision(above, below) * np.abs(losses).sum()
    return bool(NOISE * np.abs(above - below).sum() > curvature)


def _precision(*values: np.ndarray) -> float:
    """Return the machine epsilon of float32 if all values are representable in it, or that of float64."""
    coarse = all(np.array_equal(part, part.astype(np.float32)) for part in values)
    return float(np.finfo(np.float32 if coarse else np.float64).eps)
