"""Boosters of LightGBM, XGBoost and CatBoost with any loss, by their custom objectives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .stages import StageObjective, StageObjectives

__all__ = ["averages", "averages_lightgbm", "grows_catboost", "grows_lightgbm"]
__all__ += ["grows_xgboost", "shift_catboost", "shift_lightgbm"]


#: Parameters of LightGBM with which samples too few for a split get constants, as with its own losses.
OF_FEW_SAMPLES = {"feature_pre_filter": False}
#: Names of the monotonic constraints of LightGBM.
MONOTONIC = ("monotone_constraints", "monotone_constraint", "monotonic_cst", "mc")
#: Other names of the loss and the learning rate of CatBoost, which must not be given twice.
SYNONYMS = ("objective", "eta")
#: Parameters of CatBoost for custom losses, unless they are given.
OF_CUSTOM = {"eval_metric": "RMSE", "leaf_estimation_method": "Newton", "leaf_estimation_iterations": 1}


class _Function:
    """An objective of scores that start at zero, multiplied by the weights of samples."""

    def __init__(self, objective: Any, baseline: Any):
        self.objective, self.baseline = objective, baseline

    def __deepcopy__(self, memo: dict) -> Any:
        return self  # LightGBM copies its parameters

    def __call__(
        self, y_true: np.ndarray, y_pred: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        scores = np.reshape(y_pred, (len(y_true), -1)) + self.baseline
        weights = 1.0 if sample_weight is None else np.reshape(sample_weight, (-1, 1))
        first, second = (part * weights for part in self.objective.pair(np.asarray(y_true, float), scores))
        return first.reshape(y_pred.shape), second.reshape(y_pred.shape)


class _Leaves(_Function):
    """An objective that sets the leaves of each tree of LightGBM to the values with the lowest loss.

    The scores of LightGBM are those of its own leaves, and are replaced by the sums of these values.
    """

    def __init__(self, objective: StageObjective, baseline: np.ndarray, X: Any, y: np.ndarray, weights: Any):
        super().__init__(objective, baseline)
        self.X, self.y = X, np.asarray(y, dtype=np.float64)
        self.weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
        self.scores = np.zeros(len(y))

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> tuple[np.ndarray, np.ndarray]:
        scores = self.scores[:, np.newaxis] + self.baseline
        first = self.objective.gradient(self.y, scores)[:, 0] * self.weights
        return first, self.weights

    def set_leaves(self, environment: Any) -> None:
        """Set the leaves of the last tree, as a callback after an iteration."""
        booster, number = environment.model, environment.iteration
        if booster.num_trees() <= number:  # no split was found
            return
        leaves = booster.predict(self.X, pred_leaf=True, start_iteration=number, num_iteration=1).ravel()
        scores = self.scores[:, np.newaxis] + self.baseline
        rate = environment.params.get("learning_rate", 0.1)
        values = rate * self.objective.leaf_values(self.y, scores, self.weights, leaves.astype(np.int64))
        for leaf, value in enumerate(values):
            booster.set_leaf_output(number, leaf, value)
        self.scores += values[leaves]


@contextmanager
def averages(
    model: Any,
    objective: StageObjective | StageObjectives,
    own: str,
    set_leaves: Callable[[Any, Any, Any], None],
) -> Iterator[None]:
    """Make the next fit of a random forest grow its trees on the squared error, with leaves of lowest loss.

    Trees that take one step from the same constant would hardly leave it. ``own`` is the name of the squared
    error; ``set_leaves`` takes the model, X and a function from the leaves of a tree, and the number of an
    output, to values.
    """
    given, fit = model.objective, model.fit

    def fitted(X: Any, y: Any, sample_weight: Any = None, **options: Any) -> Any:
        fit(X, y, sample_weight=sample_weight, **options)
        labels, weights = np.asarray(y, float), np.ones(len(y)) if sample_weight is None else sample_weight
        scores = np.tile(objective.baseline, (len(labels), 1))

        def values(leaves: np.ndarray, output: int = 0) -> np.ndarray:
            leaves = leaves.astype(np.int64)
            found = objective.leaf_values(labels, scores, np.asarray(weights), leaves, output)
            return found + objective.baseline[output]

        set_leaves(model, X, values)
        return model

    model.objective, model.fit = own, fitted
    try:
        yield
    finally:
        del model.fit
        model.objective = given


@contextmanager
def averages_lightgbm(model: Any, objective: StageObjective) -> Iterator[None]:
    """Make the next fit of a random forest of LightGBM, which takes no custom objective, lower a loss."""
    given = model.get_params()
    if any(given.get(name) is not None for name in MONOTONIC):
        raise ValueError(
            f"{type(model).__name__}(boosting_type='rf') with monotonic constraints takes no loss but its "
            "own: use boosting_type='gbdt'."
        )

    def set_leaves(model: Any, X: Any, values: Callable[[np.ndarray], np.ndarray]) -> None:
        for tree, leaves in enumerate(model.booster_.predict(X, pred_leaf=True).T):
            for leaf, value in enumerate(values(leaves)):
                model.booster_.set_leaf_output(tree, leaf, value)

    with averages(model, objective, "regression", set_leaves):
        yield
    _name_objective(model, "poisson" if objective.loss.link == "log" else "regression")


@contextmanager
def grows_lightgbm(model: Any, objective: StageObjective) -> Iterator[None]:
    """Make the next fit of an estimator of LightGBM grow trees on an objective."""
    given, fit, baseline = model.get_params(), model.fit, objective.baseline
    is_free = all(given.get(name) is None for name in MONOTONIC)
    plain = model.boosting_type == "gbdt" and is_free

    def searching(X: Any, y: Any, sample_weight: Any = None, **options: Any) -> Any:
        leaves = _Leaves(objective, baseline, X, y, sample_weight)
        model.set_params(objective=leaves.__call__)
        callbacks = [*(options.pop("callbacks", None) or ()), leaves.set_leaves]
        return fit(X, y, sample_weight=sample_weight, callbacks=callbacks, **options)

    model.set_params(objective=_Function(objective, baseline), **OF_FEW_SAMPLES)
    if objective.searches and plain:
        model.fit = searching
    try:
        yield
    finally:
        vars(model).pop("fit", None)
        for name in OF_FEW_SAMPLES.keys() - given:
            delattr(model, name)
            del model._other_params[name]
        model.set_params(objective=given["objective"])
    shift_lightgbm(model, baseline)
    n_scores = len(baseline)
    name = "poisson" if objective.loss.link == "log" else "regression"
    if is_classifier(model):
        name = "binary sigmoid:1" if n_scores == 1 else f"multiclass num_class:{n_scores}"
    _name_objective(model, name)


def _name_objective(model: Any, name: str) -> None:
    """Give the booster of a fitted estimator of LightGBM the objective of a name."""
    head, separator, rest = model.booster_.model_to_string().partition("feature_names=")
    head = re.sub("^objective=.*\n", "", head, flags=re.MULTILINE)
    model._Booster = type(model.booster_)(model_str=f"{head}objective={name}\n{separator}{rest}")
    model._objective = name.split()[0]


def shift_lightgbm(model: Any, shifts: Any) -> None:
    """Add numbers, one for each score, to the scores of a fitted estimator of LightGBM, in place."""
    booster = model.booster_
    first = booster.dump_model(num_iteration=1)
    trees = first["tree_info"] if booster.num_trees() else []
    n_averaged = booster.current_iteration() if first["average_output"] else 1
    for number, (tree, shift) in enumerate(zip(trees, n_averaged * np.ravel(shifts), strict=False)):
        for leaf in range(tree["num_leaves"]):  # each sample reaches one leaf of the first trees
            booster.set_leaf_output(number, leaf, booster.get_leaf_output(number, leaf) + shift)


def shift_catboost(model: Any, shift: float) -> None:
    """Add a number to the scores of a fitted estimator of CatBoost, in place."""
    scale, bias = model.get_scale_and_bias()
    model.set_scale_and_bias(scale, bias + shift)


@contextmanager
def grows_xgboost(model: Any, objective: StageObjective | StageObjectives) -> Iterator[None]:
    """Make the next fit of an estimator of XGBoost grow trees on an objective."""
    given, base, several = model.objective, model.base_score, isinstance(objective, StageObjectives)
    of_classes = not several and len(objective.baseline) > 1
    start = np.zeros(1) if of_classes else objective.baseline
    # shares are float32, and must be below one
    shares = (1 / (1 + np.exp(-np.clip(start, -15, 15))) if is_classifier(model) else start).tolist()
    model.objective, model.base_score = _Function(objective, 0.0), shares if several else shares[0]
    try:
        yield
    finally:
        model.objective, model.base_score = given, base
    if of_classes:  # as its own fit does
        model.objective = "multi:softprob"


@contextmanager
def grows_catboost(model: Any, objective: StageObjective) -> Iterator[None]:
    """Make the next fit of a CatBoostRegressor grow trees on an objective."""
    from .objectives import CatBoostObjective

    if is_classifier(model):
        raise ValueError(
            "A classifier of CatBoost with a custom loss has no probabilities: use a loss of CatBoost, or an "
            "estimator of LightGBM, XGBoost or scikit-learn."
        )

    class Shifted(CatBoostObjective):
        def __call__(
            self, y_true: Any, y_pred: Any, sample_weight: Any = None
        ) -> tuple[np.ndarray, np.ndarray]:
            return _Function(objective, objective.baseline)(y_true, y_pred, sample_weight)

    fit, given = model.fit, model.get_params()
    plain = {name: value for name, value in given.items() if name not in SYNONYMS}

    def fitted(X: Any, y: Any, **options: Any) -> Any:
        rate = given.get("learning_rate", given.get("eta"))
        if rate is None:  # with its own losses, CatBoost chooses it by the numbers of samples and iterations
            probe = type(model)(**{**plain, "loss_function": "RMSE"}).fit(X, y, **options)
            rate = float(probe.get_all_params()["learning_rate"])
        own = {"loss_function": Shifted(objective.loss, np.float64), "learning_rate": rate}
        model._init_params = {}
        model.set_params(**{**OF_CUSTOM, **plain, **own})
        return fit(X, y, **options)

    model.fit = fitted
    try:
        yield
    finally:
        del model.fit
        model._init_params = given
    shift_catboost(model, float(objective.baseline[0]))
