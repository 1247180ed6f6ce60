"""Variants of single estimators: kernels, covariances, losses, criteria, penalties, solvers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks.model_zoo.case import Case
from benchmarks.model_zoo.cases_all import estimator_classes
from benchmarks.model_zoo.construct import construct

__all__ = ["cases_of_variants"]

_SVM_KERNELS = ("linear", "poly", "sigmoid")
_COVARIANCES = ("tied", "diag", "spherical")
_CRITERIA = {
    "Classifier": ("entropy", "log_loss"),
    "Regressor": ("friedman_mse", "absolute_error", "poisson"),
}
_GP_KERNELS = {
    "matern": kernels.Matern(nu=1.5),
    "matern25": kernels.Matern(nu=2.5),
    "matern08": kernels.Matern([1.0, 2.0, 1.0, 2.0], nu=0.8),
    "matern35": kernels.Matern(nu=3.5),
    "laplacian": kernels.PairwiseKernel(metric="laplacian", gamma=0.2),
    "rational_quadratic": kernels.RationalQuadratic(),
    "dot_product": kernels.DotProduct(),
    "white": kernels.RBF() + kernels.WhiteKernel(0.1),
    "constant_times_rbf": kernels.ConstantKernel(2.0) * kernels.RBF([1.0, 2.0, 1.0, 2.0]),
}

_CHI2 = {"kernel": kernels.PairwiseKernel(metric="chi2"), "alpha": 0.1, "optimizer": None}
_KDE_KERNELS = ("cosine", "epanechnikov", "exponential", "linear", "tophat")
_SINE = {"kernel": kernels.ExpSineSquared(periodicity=3.0), "alpha": 0.1, "optimizer": None}

_LASSO = {"transform_alpha": 0.3, "dictionary": np.random.default_rng(0).normal(size=(6, 4))}
#: Estimator, variant, kind, data, parameters.
_OTHERS: list[tuple[str, str, str, str, dict[str, Any]]] = [
    ("LogisticRegression", "texts", "classifier", "texts", {}),
    ("LogisticRegression", "no_intercept", "classifier", "classes", {"fit_intercept": False}),
    (
        "LogisticRegression",
        "l1",
        "classifier",
        "classes",
        {"l1_ratio": 1.0, "solver": "saga", "max_iter": 2000},
    ),
    ("LinearRegression", "no_intercept", "regressor", "regression", {"fit_intercept": False}),
    ("LinearRegression", "positive", "regressor", "regression", {"positive": True}),
    ("LinearSVC", "hinge", "classifier", "classes", {"loss": "hinge"}),
    ("LinearSVC", "crammer_singer", "classifier", "classes", {"multi_class": "crammer_singer"}),
    ("LinearSVR", "squared", "regressor", "regression", {"loss": "squared_epsilon_insensitive"}),
    ("SGDClassifier", "hinge", "classifier", "classes", {"loss": "hinge"}),
    ("SGDClassifier", "modified_huber", "classifier", "classes", {"loss": "modified_huber"}),
    ("SGDClassifier", "elasticnet", "classifier", "binary", {"penalty": "elasticnet"}),
    ("SGDRegressor", "huber", "regressor", "regression", {"loss": "huber"}),
    ("SVC", "probability", "classifier", "binary", {"probability": True}),
    ("SVC", "probability_classes", "classifier", "classes", {"probability": True}),
    ("SVC", "texts", "classifier", "texts", {}),
    ("SVC", "ovo", "classifier", "classes", {"decision_function_shape": "ovo"}),
    ("SVC", "break_ties", "classifier", "classes", {"break_ties": True}),
    ("NuSVC", "probability", "classifier", "classes", {"probability": True}),
    ("TweedieRegressor", "poisson", "regressor", "regression_above_zero", {"power": 1}),
    ("TweedieRegressor", "inverse_gaussian", "regressor", "regression_above_zero", {"power": 3}),
    ("MLPClassifier", "logistic", "classifier", "classes", {"activation": "logistic"}),
    ("MLPClassifier", "tanh", "classifier", "binary", {"activation": "tanh"}),
    ("MLPRegressor", "identity", "regressor", "regression", {"activation": "identity"}),
    ("MLPRegressor", "two_layers", "regressor", "regression", {"hidden_layer_sizes": (6, 4)}),
    ("MLPRegressor", "tanh", "regressor", "regression_outputs", {"activation": "tanh"}),
    ("MLPClassifier", "two_labels", "classifier", "two_labels", {}),
    ("MLPRegressor", "poisson", "regressor", "regression_above_zero", {"loss": "poisson"}),
    ("OneVsRestClassifier", "two_labels", "classifier", "two_labels", {}),
    ("RandomForestClassifier", "two_labels", "classifier", "two_labels", {}),
    ("KNeighborsClassifier", "distance", "classifier", "classes", {"weights": "distance"}),
    ("KNeighborsRegressor", "distance", "regressor", "regression", {"weights": "distance"}),
    ("KNeighborsRegressor", "manhattan", "regressor", "regression", {"p": 1, "weights": "distance"}),
    ("RadiusNeighborsClassifier", "distance", "classifier", "classes", {"weights": "distance"}),
    ("RadiusNeighborsRegressor", "distance", "regressor", "regression", {"weights": "distance"}),
    ("LinearDiscriminantAnalysis", "lsqr", "classifier", "classes", {"solver": "lsqr"}),
    ("LinearDiscriminantAnalysis", "shrinkage", "classifier", "binary", {"solver": "lsqr", "shrinkage": 0.2}),
    ("QuadraticDiscriminantAnalysis", "regularised", "classifier", "classes", {"reg_param": 0.1}),
    ("GradientBoostingClassifier", "exponential", "classifier", "binary", {"loss": "exponential"}),
    ("GradientBoostingClassifier", "init_zero", "classifier", "classes", {"init": "zero"}),
    ("GradientBoostingRegressor", "huber", "regressor", "regression", {"loss": "huber"}),
    ("GradientBoostingRegressor", "quantile", "regressor", "regression", {"loss": "quantile"}),
    ("HistGradientBoostingRegressor", "gaps", "regressor", "regression_gaps", {}),
    ("HistGradientBoostingRegressor", "poisson", "regressor", "regression_above_zero", {"loss": "poisson"}),
    (
        "HistGradientBoostingRegressor",
        "quantile",
        "regressor",
        "regression",
        {"loss": "quantile", "quantile": 0.5},
    ),
    ("HistGradientBoostingClassifier", "gaps", "classifier", "binary", {}),
    ("RandomForestClassifier", "texts", "classifier", "texts", {}),
    ("RandomForestRegressor", "gaps", "regressor", "regression_gaps", {}),
    ("AdaBoostRegressor", "square", "regressor", "regression", {"loss": "square"}),
    (
        "HistGradientBoostingClassifier",
        "categories",
        "classifier",
        "classes_categories",
        {"categorical_features": [0, 2]},
    ),
    (
        "HistGradientBoostingRegressor",
        "frame",
        "regressor",
        "frame_with_categories",
        {"categorical_features": "from_dtype"},
    ),
    (
        "HistGradientBoostingRegressor",
        "many_categories",
        "regressor",
        "many_categories",
        {"categorical_features": [0, 1], "min_samples_leaf": 2},
    ),
    (
        "HistGradientBoostingClassifier",
        "named_categories",
        "classifier",
        "frame_classes",
        {"categorical_features": ["kind", "text"]},
    ),
    (
        "BaggingClassifier",
        "trees",
        "classifier",
        "classes",
        {"estimator": DecisionTreeClassifier(max_depth=3)},
    ),
    ("BaggingClassifier", "some_columns", "classifier", "classes", {"max_features": 0.5}),
    ("BaggingRegressor", "trees", "regressor", "regression", {"estimator": None}),
    ("BaggingRegressor", "some_columns", "regressor", "regression", {"max_features": 0.5}),
    ("CalibratedClassifierCV", "isotonic", "classifier", "binary", {"method": "isotonic"}),
    ("CalibratedClassifierCV", "temperature", "classifier", "classes", {"method": "temperature"}),
    ("CalibratedClassifierCV", "one_model", "classifier", "classes", {"ensemble": False}),
    ("CalibratedClassifierCV", "linear_svc", "classifier", "classes", {"estimator": LinearSVC()}),
    (
        "CalibratedClassifierCV",
        "one_isotonic",
        "classifier",
        "binary",
        {"method": "isotonic", "ensemble": False},
    ),
    ("DummyClassifier", "most_frequent", "classifier", "classes", {"strategy": "most_frequent"}),
    ("DummyRegressor", "mean", "regressor", "regression_above_zero", {"strategy": "mean"}),
    ("DummyRegressor", "median", "regressor", "regression_above_zero", {"strategy": "median"}),
    ("IsotonicRegression", "bounded", "regressor", "one_column", {"y_min": -0.9, "y_max": 0.9}),
    ("IsotonicRegression", "below", "regressor", "one_column", {"y_max": 0.5, "out_of_bounds": "clip"}),
    ("VotingClassifier", "soft", "classifier", "classes", {"voting": "soft"}),
    ("VotingClassifier", "flattened", "classifier", "classes", {"voting": "soft", "flatten_transform": True}),
    ("VotingClassifier", "weighted", "classifier", "binary", {"voting": "soft", "weights": [1, 3]}),
    ("VotingRegressor", "weighted", "regressor", "regression", {"weights": [1, 3]}),
    ("StackingClassifier", "passthrough", "classifier", "classes", {"passthrough": True}),
    ("StackingRegressor", "passthrough", "regressor", "regression", {"passthrough": True}),
    ("OneVsRestClassifier", "linear_svc", "classifier", "classes", {"estimator": LinearSVC()}),
    ("OneVsRestClassifier", "linear_svc_binary", "classifier", "binary", {"estimator": LinearSVC()}),
    (
        "OutputCodeClassifier",
        "trees",
        "classifier",
        "classes",
        {"estimator": DecisionTreeClassifier(max_depth=3)},
    ),
    ("OutputCodeClassifier", "linear_svc", "classifier", "classes", {"estimator": LinearSVC()}),
    ("OneVsRestClassifier", "ridge_regression", "classifier", "classes", {"estimator": Ridge()}),
    ("OneVsOneClassifier", "ridge", "classifier", "classes", {"estimator": RidgeClassifier()}),
    ("GaussianProcessRegressor", "exp_sine_squared", "regressor", "one_column", _SINE),
    ("OneClassSVM", "linear", "outliers", "regression", {"kernel": "linear"}),
    ("OneClassSVM", "poly", "outliers", "regression", {"kernel": "poly"}),
    ("OneClassSVM", "precomputed", "outliers", "regression_kernel", {"kernel": "precomputed"}),
    ("SVC", "precomputed", "classifier", "classes_kernel", {"kernel": "precomputed"}),
    ("NuSVC", "precomputed", "classifier", "binary_kernel", {"kernel": "precomputed"}),
    ("SVR", "precomputed", "regressor", "regression_kernel", {"kernel": "precomputed"}),
    ("NuSVR", "precomputed", "regressor", "regression_kernel", {"kernel": "precomputed"}),
    ("GaussianProcessClassifier", "pairs", "classifier", "classes", {"multi_class": "one_vs_one"}),
    ("GaussianProcessRegressor", "chi2", "regressor", "regression_positive", _CHI2),
    ("KernelPCA", "linear", "transformer", "regression", {"kernel": "linear"}),
    ("KernelPCA", "poly", "transformer", "regression", {"kernel": "poly"}),
    ("KernelPCA", "sigmoid", "transformer", "regression", {"kernel": "sigmoid"}),
    ("KernelPCA", "cosine", "transformer", "regression", {"kernel": "cosine"}),
    ("KernelPCA", "precomputed", "transformer", "regression_kernel", {"kernel": "precomputed"}),
    ("NearestCentroid", "manhattan", "classifier", "classes", {"metric": "manhattan"}),
    ("NearestCentroid", "shrunk", "classifier", "classes", {"shrink_threshold": 0.5}),
    ("NearestCentroid", "empirical", "classifier", "classes", {"priors": "empirical"}),
    ("PolynomialCountSketch", "cubic", "transformer", "regression", {"degree": 3, "coef0": 1.0}),
    ("AdditiveChi2Sampler", "three_steps", "transformer", "regression_positive", {"sample_steps": 3}),
    ("PCA", "whiten", "transformer", "regression", {"whiten": True}),
    *(
        ("SparseCoder", algorithm, "transformer", "regression", {"transform_algorithm": algorithm, **_LASSO})
        for algorithm in ("threshold", "lasso_cd", "lasso_lars", "lars")
    ),
    ("DictionaryLearning", "lasso", "transformer", "regression", {"transform_algorithm": "lasso_lars"}),
    ("NMF", "mu", "transformer", "regression_positive", {"solver": "mu", "beta_loss": "kullback-leibler"}),
    ("MiniBatchNMF", "kl", "transformer", "regression_positive", {"beta_loss": "kullback-leibler"}),
    ("FactorAnalysis", "one", "transformer", "regression", {"n_components": 1}),
    ("SparseRandomProjection", "dense", "transformer", "regression", {"density": 1.0}),
    ("PLSCanonical", "outputs_two", "regressor", "regression_outputs", {"n_components": 2}),
    ("FastICA", "arbitrary", "transformer", "regression", {"whiten": "arbitrary-variance"}),
    ("PowerTransformer", "box_cox", "transformer", "regression_positive", {"method": "box-cox"}),
    ("QuantileTransformer", "normal", "transformer", "regression", {"output_distribution": "normal"}),
    ("SplineTransformer", "linear", "transformer", "regression", {"degree": 2, "extrapolation": "linear"}),
    ("SplineTransformer", "periodic", "transformer", "regression", {"extrapolation": "periodic"}),
    ("SplineTransformer", "quantiles", "transformer", "regression", {"knots": "quantile", "degree": 1}),
    ("IterativeImputer", "ridge", "transformer", "regression_gaps", {"estimator": Ridge(), "max_iter": 3}),
    ("KNNImputer", "distance", "transformer", "regression_gaps", {"weights": "distance"}),
    ("KBinsDiscretizer", "uniform", "transformer", "regression", {"strategy": "uniform", "encode": "onehot"}),
    ("KBinsDiscretizer", "kmeans", "transformer", "regression", {"strategy": "kmeans"}),
    ("KBinsDiscretizer", "onehot", "transformer", "regression", {"encode": "onehot-dense"}),
    ("Normalizer", "l1", "transformer", "regression", {"norm": "l1"}),
    ("Normalizer", "max", "transformer", "regression", {"norm": "max"}),
    ("SimpleImputer", "median", "transformer", "regression_gaps", {"strategy": "median"}),
    ("GaussianMixture", "one", "density", "regression", {"n_components": 1}),
    ("PLSRegression", "outputs_two", "regressor", "regression_outputs", {"n_components": 2}),
]


def cases_of_variants() -> Iterator[Case]:
    """Yield variants that do not follow from the tags of an estimator."""
    classes = estimator_classes()
    for name, variant, kind, data, params in [*_OTHERS, *_tables()]:
        # MLPRegressor has no loss before scikit-learn 1.7.
        if name in classes and params.keys() <= signature(classes[name]).parameters.keys():
            make = partial(construct, classes[name], by_class=kind == "classifier", **params)
            yield Case(f"{name}:{variant}", kind, data, make)


def _tables() -> Iterator[tuple[str, str, str, str, dict[str, Any]]]:
    for name, kind, data in (
        ("SVC", "classifier", "classes"),
        ("NuSVC", "classifier", "binary"),
        ("SVR", "regressor", "regression"),
        ("NuSVR", "regressor", "regression"),
    ):
        for kernel in _SVM_KERNELS:
            yield name, kernel, kind, data, {"kernel": kernel}
    for kernel in ("cosine", "poly", "rbf", "sigmoid", "laplacian", "chi2", "precomputed"):
        data = {"chi2": "regression_positive", "precomputed": "regression_kernel"}.get(kernel, "regression")
        yield "KernelRidge", kernel, "regressor", data, {"kernel": kernel, "gamma": 0.2}
        if kernel != "precomputed":
            yield "Nystroem", kernel, "transformer", data, {"kernel": kernel, "n_components": 4}
    for kernel in _KDE_KERNELS:
        # of an even number of features, scikit-learn's cosines have no constant
        data = "one_column" if kernel == "cosine" else "regression"
        yield "KernelDensity", kernel, "density", data, {"kernel": kernel, "bandwidth": 4.0}
    for name in ("LabelPropagation", "LabelSpreading"):
        yield name, "knn", "classifier", "classes", {"kernel": "knn", "n_neighbors": 5}
    for name in ("GaussianMixture", "BayesianGaussianMixture"):
        for covariance in _COVARIANCES:
            yield name, covariance, "density", "regression", {"covariance_type": covariance}
    for name, kernel in _GP_KERNELS.items():
        params = {"kernel": kernel, "optimizer": None}
        yield "GaussianProcessRegressor", name, "regressor", "regression", {**params, "alpha": 0.1}
        yield "GaussianProcessClassifier", name, "classifier", "binary", params
    for family in ("DecisionTree", "ExtraTree", "RandomForest", "ExtraTrees"):
        for suffix, criteria in _CRITERIA.items():
            kind, data = ("classifier", "classes") if suffix == "Classifier" else ("regressor", "regression")
            for criterion in criteria:
                rows = "regression_above_zero" if criterion == "poisson" else data
                yield family + suffix, criterion, kind, rows, {"criterion": criterion}
