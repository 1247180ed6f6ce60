"""GradientBoosting* and HistGradientBoosting* of scikit-learn with any loss."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from sklearn._loss.link import IdentityLink
from sklearn._loss.loss import BaseLoss, HalfPoissonLoss, HalfSquaredError
from sklearn.base import is_classifier
from sklearn.dummy import DummyRegressor
from sklearn.tree import DecisionTreeRegressor

from .stages import StageObjective

__all__ = ["StageLoss", "grows_by_gradients", "grows_by_histograms"]

#: Parameters of the trees of gradient boosting.
OF_TREES = (
    "ccp_alpha",
    "max_depth",
    "max_features",
    "max_leaf_nodes",
    "min_impurity_decrease",
    "min_samples_leaf",
    "min_samples_split",
    "min_weight_fraction_leaf",
)


class StageLoss(BaseLoss):
    """An objective in the form of scikit-learn's losses."""

    def __init__(self, objective: StageObjective, native: Any = None):
        n_classes = None if native is None else native.n_classes
        super().__init__(None, IdentityLink() if native is None else native.link, n_classes)
        self.objective = objective
        self.stage: tuple[np.ndarray, np.ndarray] | None = None  # labels and scores of the current stage
        self.order: tuple[np.ndarray, np.ndarray] | None = None
        if native is not None:
            self.is_multiclass = native.is_multiclass
            self.predict_proba = native.predict_proba

    def loss(
        self,
        y_true: Any,
        raw_prediction: np.ndarray,
        sample_weight: Any = None,
        loss_out: Any = None,
        n_threads: int = 1,
    ) -> np.ndarray:
        """Return the weighted loss of each sample."""
        found = self.objective.losses(y_true, raw_prediction)
        return found if sample_weight is None else found * sample_weight

    def gradient(
        self,
        y_true: Any,
        raw_prediction: np.ndarray,
        sample_weight: Any = None,
        gradient_out: Any = None,
        n_threads: int = 1,
    ) -> np.ndarray:
        """Return the weighted gradient."""
        found = self.objective.gradient(y_true, raw_prediction)
        return _stored(found, sample_weight, gradient_out, raw_prediction)

    def gradient_hessian(
        self,
        y_true: Any,
        raw_prediction: np.ndarray,
        sample_weight: Any = None,
        gradient_out: Any = None,
        hessian_out: Any = None,
        n_threads: int = 1,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the weighted gradient and curvature."""
        if self.differentiable:
            first, second = self.objective.pair(y_true, raw_prediction)
        else:  # leaves are set by fit_intercept_only, as in scikit-learn's losses with kinks
            first = self.objective.gradient(y_true, raw_prediction)
            second, self.order = np.ones_like(first), None
            self.stage = y_true, np.array(raw_prediction, copy=True).ravel()
        first = _stored(first, sample_weight, gradient_out, raw_prediction)
        return first, _stored(second, sample_weight, hessian_out, raw_prediction)

    def fit_intercept_only(self, y_true: Any, sample_weight: Any = None) -> Any:
        """Return the initial scores; once there are stages, the value of a leaf with these residuals."""
        if self.stage is None:
            return self.objective.baseline
        y, scores = self.stage
        if self.order is None:
            order = np.argsort(y - scores)
            self.order = order, (y - scores)[order]
        order, residuals = self.order
        found = order[np.searchsorted(residuals, y_true)]
        weights = np.ones(len(found)) if sample_weight is None else sample_weight
        return self.objective.leaf_value(y[found], scores[found, None], weights)


def _stored(values: np.ndarray, sample_weight: Any, out: Any, like: np.ndarray) -> np.ndarray:
    """Return weighted values of shape (n, k) in an array ``out`` or in the shape of others."""
    values = values if sample_weight is None else values * np.reshape(sample_weight, (-1, 1))
    if out is None:
        return values.reshape(like.shape)
    out[...] = values.reshape(out.shape)
    return out


@contextmanager
def grows_by_histograms(model: Any, objective: StageObjective) -> Iterator[None]:
    """Make the next fit of a HistGradientBoosting* grow trees on an objective."""
    # the parameter loss may be an object of the class of scikit-learn's losses
    loss, link = model.loss, objective.loss.link
    native = HalfPoissonLoss() if link == "log" else HalfSquaredError()
    own = StageLoss(objective)
    own.link, own.interval_y_pred = native.link, native.interval_y_pred
    if is_classifier(model):
        model.n_trees_per_iteration_ = objective.derivatives.n_scores
        native = model._get_loss(sample_weight=None)
        own = StageLoss(objective, native)
    is_free = getattr(model, "monotonic_cst", None) is None
    own.differentiable = not (objective.searches and is_free)
    model.loss = own
    try:
        yield
        model._loss = native
    finally:
        model.loss = loss


@contextmanager
def grows_by_gradients(model: Any, objective: StageObjective) -> Iterator[None]:
    """Make the next fit of a GradientBoosting* grow trees on an objective."""
    init, native = model.init, None
    if model.loss == "exponential":
        raise ValueError(
            "GradientBoostingClassifier(loss='exponential') has scores of another scale, half of the log "
            "odds: use loss='log_loss' to grow it with another loss."
        )
    if is_classifier(model):
        model.n_classes_ = max(objective.derivatives.n_scores, 2)
        native = model._get_loss(sample_weight=None)
    elif init is None:
        model.init = DummyRegressor(strategy="constant", constant=objective.baseline[0])
    elif objective.loss.link == "log":
        raise ValueError(f"{type(objective.loss).__name__} has a log link, which requires init=None.")
    names: dict[str, Any] = {"_get_loss": lambda sample_weight: StageLoss(objective, native)}
    names["_fit_stage"] = partial(_fit_stage, model, objective)
    vars(model).update(names)
    try:
        yield
    finally:
        model.init = init
        for name in names:
            del vars(model)[name]
    model._loss = native or model._get_loss(sample_weight=None)


def _fit_stage(
    model: Any,
    objective: StageObjective,
    i: int,
    X: Any,
    y: np.ndarray,
    raw_predictions: np.ndarray,
    sample_weight: np.ndarray,
    sample_mask: np.ndarray,
    random_state: Any,
    X_csc: Any = None,
    X_csr: Any = None,
) -> np.ndarray:
    """Fit a tree for each score to the negative gradients, and set the values of its leaves.

    In the place of the method of the same name of scikit-learn, whose leaves depend on the class of its loss.
    """
    before, second = np.array(raw_predictions), None
    if objective.searches:
        first = objective.gradient(y, before)
    else:
        first, second = objective.pair(y, before)
    weights = sample_weight * sample_mask if model.subsample < 1 else sample_weight
    options = {name: getattr(model, name) for name in OF_TREES}
    is_ignored = type(model)().criterion == "deprecated"  # from scikit-learn 1.9 on
    options["criterion"] = "squared_error" if is_ignored else model.criterion
    for column in range(first.shape[1]):
        tree = DecisionTreeRegressor(**options, random_state=random_state)
        rows = X if X_csc is None else X_csc
        tree.fit(rows, -first[:, column], sample_weight=weights, check_input=False)
        leaves = tree.tree_.apply(X if X_csr is None else X_csr)
        values = tree.tree_.value[:, 0, 0]
        if second is None:
            found = objective.leaf_values(y, before, weights, leaves, column)
        else:
            found = _newton_steps(first[:, column], second[:, column], weights, leaves)
        is_leaf = np.flatnonzero(tree.tree_.children_left[: len(found)] < 0)
        values[is_leaf] = found[is_leaf]
        raw_predictions[:, column] += model.learning_rate * values[leaves]
        model.estimators_[i, column] = tree
    return raw_predictions


def _newton_steps(
    first: np.ndarray, second: np.ndarray, weights: np.ndarray, leaves: np.ndarray
) -> np.ndarray:
    """Return the Newton step of each leaf."""
    first, second = (np.bincount(leaves, weights * part) for part in (first, second))
    return np.divide(-first, second, out=np.zeros_like(first), where=second > 0)
