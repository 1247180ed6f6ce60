"""Losses as objectives of LightGBM, XGBoost and CatBoost."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses import BaseLoss, Interval, resolve_loss
from ..losses.interval import check_domain
from .derivatives import LossDerivatives

__all__ = ["CatBoostObjective", "Objective", "as_objective"]


class Objective:
    """Function of labels and scores, or of scores and a data set, that returns gradient and curvature."""

    def __init__(self, loss: BaseLoss, dtype: Any):
        self.loss, self.dtype = loss, dtype
        self._derivatives: dict[int, LossDerivatives] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_derivatives": {}}

    def __call__(
        self, y_true: Any, y_pred: Any, sample_weight: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return gradient and curvature, multiplied by the weights, of the shape of the scores."""
        if hasattr(y_pred, "get_label"):  # (scores, data set), as the functions train pass them
            y_true, y_pred, sample_weight = y_pred.get_label(), y_true, y_pred.get_weight()
        scores = y_pred if y_pred.ndim > 1 else y_pred[:, np.newaxis]
        labels = np.asarray(y_true)
        if "classification" in self.loss.tasks and "regression" not in self.loss.tasks:
            labels = self._of_classes(labels, scores.shape[1])
        elif self.loss.domain != Interval():
            check_domain(self.loss, labels)
        found = self.derivatives(scores.shape[1]).curvature(labels, scores)
        if sample_weight is not None and np.size(sample_weight):
            weights = np.reshape(sample_weight, (-1, 1)).astype(found[0].dtype, copy=False)
            found = found[0] * weights, found[1] * weights
        return found[0].reshape(y_pred.shape), found[1].reshape(y_pred.shape)

    def _of_classes(self, labels: np.ndarray, n_scores: int) -> np.ndarray:
        """Return labels of classes as the loss takes them; raise an error for others."""
        in_columns = labels.ndim > 1 and n_scores > 1  # one for each score
        highest = 1 if in_columns else max(n_scores - 1, 1)
        wrong = (labels < 0) | (labels > highest) | (labels != np.floor(labels))
        if wrong.any() or (in_columns and self.loss.integer_labels):
            found = f"{labels[wrong][0]:g}" if wrong.any() else f"{labels.shape[1]} columns"
            known = "0 and 1" if n_scores == 1 else f"0 to {n_scores - 1}, one for each sample"
            raise ValueError(
                f"{type(self.loss).__name__} takes the labels {known}, and y has {found}: encode classes, "
                "such as by LabelEncoder, or choose a loss for regression."
            )
        if in_columns or n_scores == 1 or self.loss.integer_labels:
            return labels
        return np.eye(n_scores)[labels.astype(np.int64).ravel()]

    def derivatives(self, n_scores: int) -> LossDerivatives:
        """Return the derivatives for a number of scores per sample."""
        if n_scores not in self._derivatives:
            self._derivatives[n_scores] = LossDerivatives(self.loss, n_scores, self.dtype)
        return self._derivatives[n_scores]


class CatBoostObjective(Objective):
    """Objective with the methods that CatBoost calls, of negative losses."""

    def calc_ders_range(self, approxes: Any, targets: Any, weights: Any) -> list[tuple[float, float]]:
        """Return the derivatives of samples with one score each."""
        columns = (approxes, targets, weights)
        scores, labels, shares = (
            None if own is None else np.array([own[i] for i in range(len(own))]) for own in columns
        )
        first, second = self(labels, scores, shares)
        return list(zip((-first).tolist(), (-second).tolist(), strict=True))

    def calc_ders_multi(
        self, approxes: Any, target: Any, weight: Any
    ) -> tuple[list[float], list[list[float]]]:
        """Return the derivatives of one sample with several scores."""
        scores = np.array([[approxes[i] for i in range(len(approxes))]])
        first, second = self(np.array([target]), scores, np.array([weight]))
        return (-first[0]).tolist(), np.diag(-second[0]).tolist()


#: Classes of objectives and types of scores, by package.
PACKAGES: dict[str, tuple[type[Objective], Any]] = {
    "catboost": (CatBoostObjective, np.float64),
    "lightgbm": (Objective, np.float64),
    "xgboost": (Objective, np.float32),
}


def as_objective(loss: Any, package: str = "lightgbm") -> Objective:
    """Return a loss as an objective of a boosting package.

    Gradients and second derivatives are computed by ONNX graphs. Where a second derivative is not positive,
    as at kinks, or so small that steps would be too large, it is replaced by a curvature that limits them
    (:meth:`~ortlearn.boosting.derivatives.LossDerivatives.curvature`).

    Parameters
    ----------
    loss : str, type or BaseLoss
        Loss, such as ``"huber"``, ``QuantileLoss(0.9)``, or one that a subclass of BaseLoss writes as a
        forward expression. Scores are raw: logarithms of predictions for losses with a log link, log odds or
        logits for losses of classes, whose labels are 0 and 1, or 0 to k - 1 for k scores. Losses of several
        classes use the diagonal of the Hessian.
    package : {"lightgbm", "xgboost", "catboost"}, default="lightgbm"
        Package that calls the objective.

    Returns
    -------
    callable
        Function of ``(y_true, y_pred, sample_weight=None)`` that returns gradient and second derivative, for
        the parameter ``objective`` of ``LGBMModel`` and ``XGBModel``; also of ``(scores, data set)``, as
        ``lightgbm.train`` and ``xgboost.train`` call it. For CatBoost it is an object for the parameter
        ``loss_function`` with the methods ``calc_ders_range`` and ``calc_ders_multi``; CatBoost requires an
        ``eval_metric`` besides.

    Raises
    ------
    PluginError
        If the loss is a Python function, or the loss is not known.
    ValueError
        If the package is unknown; in a call, if the loss does not take the labels.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.losses import as_objective
    >>> gradient, hessian = as_objective("poisson")(np.array([1.0, 3.0]), np.zeros(2))
    >>> gradient.tolist(), hessian.tolist()
    ([0.0, -2.0], [1.0, 1.0])
    """
    if package not in PACKAGES:
        raise ValueError(f"package={package!r} must be one of {sorted(PACKAGES)}.")
    found = resolve_loss(loss)
    found.check()
    kind, dtype = PACKAGES[package]
    objective = kind(found, dtype)
    objective.derivatives(1)  # raises an error for a Python function
    return objective
