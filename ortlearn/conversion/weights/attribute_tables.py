"""What is known of fitted attributes by name: no parameters, those held back, those that combine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["COMBINED", "HELD", "KERNEL", "LEAF_DEPTHS", "NOT_LEARNED", "PRIVATE"]

#: What fit leaves behind that no prediction is made of, or that names things.
NOT_LEARNED = {
    "best_loss_",
    "class_weight_",
    "classes_",
    "code_book_",
    "cv_results_",
    "dual_gap_",
    "estimator_errors_",
    "feature_importances_",
    "inertia_",
    "loss_",
    "loss_curve_",
    "lower_bound_",
    "lower_bounds_",
    "max_abs_",
    "n_features_in_",
    "n_iter_",
    "scores_",
    "train_score_",
    "validation_scores_",
}
#: Private attributes that predictions are made of; scikit-learn keeps caches and states in others.
PRIVATE = {
    "_baseline_prediction",
    "_centerer",
    "_distances_fit_X_",
    "_dual_coef_",
    "_fit_X",
    "_gamma",
    "_idf_diag",
    "_intercept_",
    "_lrd",
    "_predictors",
    "_probA",
    "_probB",
    "_scaler",
    "_tfidf",
    "_x_mean",
    "_x_std",
    "_y",
    "_y_mean",
    "_y_train_mean",
    "_y_train_std",
}
_POSTERIOR = "it follows from the rows and the other numbers of the fit, as the rest of the graph expects it"
_PLACES = "it says where the thresholds are; their values are trained"
#: Attributes that are not trained unless somebody names them, and why; ``*`` stands for any class.
HELD = {
    ("BayesianGaussianMixture", "_estimate_log_weights()"): "ONNX has no function that gives it",
    ("*", "_gamma"): "hyper-parameter of the kernel, set when it was fitted",
    ("*", "gamma_"): "hyper-parameter of the kernel, set when it was fitted",
    ("IsotonicRegression", "X_max_"): _PLACES,
    ("IsotonicRegression", "X_min_"): _PLACES,
    ("IsotonicRegression", "X_thresholds_"): _PLACES,
    ("IsotonicRegression", "diff(X_thresholds_)"): _PLACES,
    ("LocalOutlierFactor", "_distances_fit_X_"): _POSTERIOR,
    ("LocalOutlierFactor", "_fit_X"): _POSTERIOR,
    ("QuantileTransformer", "references_"): "levels of the quantiles, not learned",
    ("_BinaryGaussianProcessClassifierLaplace", "L_"): _POSTERIOR,
    ("_BinaryGaussianProcessClassifierLaplace", "W_sr_"): _POSTERIOR,
    ("_BinaryGaussianProcessClassifierLaplace", "inv(L_) * W_sr_"): _POSTERIOR,
    ("_BinaryGaussianProcessClassifierLaplace", "X_train_"): _POSTERIOR,
}
KERNEL = "fitted hyper-parameter of the kernel"


def _first_score(estimator: Any) -> np.ndarray:
    """Return the score that boosting starts from, where it is the same for every row."""
    if estimator.init is not None:
        raise AttributeError("a member of its own gives the first score")
    row = np.zeros((1, estimator.n_features_in_), dtype=np.float32)
    return estimator._raw_predict_init(row).ravel()


def _leaf_depths(forest: Any) -> np.ndarray:
    """Return the depths of all leaves of an isolation forest, as scikit-learn adds them up."""
    depths = []
    for tree, path, length in zip(
        forest.estimators_, forest._decision_path_lengths, forest._average_path_length_per_tree, strict=True
    ):
        leaves = tree.tree_.children_left < 0
        depths.append(path[leaves] + length[leaves] - 1.0)
    return np.concatenate(depths)


#: Expression of the depths of the leaves of an isolation forest.
LEAF_DEPTHS = "_decision_path_lengths + _average_path_length_per_tree - 1"
#: What converters store of several attributes together: how to write it, and how to compute it.
COMBINED: dict[str, tuple[tuple[str, Callable[[Any], np.ndarray]], ...]] = {
    "BayesianGaussianMixture": (("_estimate_log_weights()", lambda e: e._estimate_log_weights()),),
    "GradientBoostingClassifier": (("_raw_predict_init(X)", _first_score),),
    "IsolationForest": ((LEAF_DEPTHS, _leaf_depths),),
    "IsotonicRegression": (("diff(X_thresholds_)", lambda e: np.diff(e.X_thresholds_)),),
    "KernelPCA": (
        ("eigenvectors_ / sqrt(eigenvalues_)", lambda e: e.eigenvectors_ / np.sqrt(e.eigenvalues_)),
        ("normalize(X_fit_)", lambda e: e.X_fit_ / np.linalg.norm(e.X_fit_, axis=1, keepdims=True)),
    ),
    "_BinaryGaussianProcessClassifierLaplace": (
        ("y_train_ - pi_", lambda e: e.y_train_ - e.pi_),
        ("inv(L_) * W_sr_", lambda e: np.linalg.inv(e.L_) * e.W_sr_),
    ),
}
