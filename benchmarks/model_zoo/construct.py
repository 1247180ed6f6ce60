"""Construction of estimators, small enough that a case takes about a second."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.multioutput import RegressorChain
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

__all__ = ["construct", "required", "with_defaults"]

#: Values of constructor parameters wherever an estimator has one of that name: fast, and the same every time.
QUICK: dict[str, Any] = {
    "random_state": 0,
    "n_estimators": 5,
    "n_clusters": 3,
    "n_init": 1,
    "n_jobs": None,
    "cv": 3,
    "n_quantiles": 30,
    "max_trials": 20,
}
#: Parameter of chains, which scikit-learn 1.7 renamed.
CHAINED = "estimator" if "estimator" in inspect.signature(RegressorChain).parameters else "base_estimator"
#: The same for single estimators, where the general value or the default does not do.
OWN: dict[str, dict[str, Any]] = {
    "AdaBoostClassifier": {"estimator": DecisionTreeClassifier(max_depth=2, random_state=0)},
    "AdaBoostRegressor": {"estimator": DecisionTreeRegressor(max_depth=2, random_state=0)},
    "BaggingClassifier": {"estimator": LogisticRegression()},
    "BaggingRegressor": {"estimator": Ridge()},
    "BernoulliRBM": {"n_components": 3, "n_iter": 5},
    "BisectingKMeans": {"n_init": 3},
    "Birch": {"threshold": 0.3},
    "BayesianGaussianMixture": {"n_components": 2, "max_iter": 500},
    "CCA": {"n_components": 1},
    "CalibratedClassifierCV": {"estimator": LogisticRegression()},
    "CategoricalNB": {"min_categories": 3},
    "ClassifierChain": {CHAINED: LogisticRegression()},
    "DecisionTreeClassifier": {"max_depth": 3},
    "DecisionTreeRegressor": {"max_depth": 3},
    "DictionaryLearning": {"n_components": 3, "max_iter": 20},
    "DummyRegressor": {"strategy": "quantile", "quantile": 0.8},
    "ElasticNet": {"alpha": 0.05},
    "ElasticNetCV": {"alphas": [0.01, 0.1]},
    "ExtraTreeClassifier": {"max_depth": 3},
    "ExtraTreeRegressor": {"max_depth": 3},
    "FactorAnalysis": {"n_components": 2},
    "FastICA": {"n_components": 2, "whiten": "unit-variance"},
    "ExtraTreesClassifier": {"max_depth": 3},
    "ExtraTreesRegressor": {"max_depth": 3},
    "FeatureHasher": {"input_type": "string", "n_features": 8},
    "GaussianMixture": {"n_components": 2},
    "GaussianRandomProjection": {"n_components": 2},
    "GenericUnivariateSelect": {"mode": "k_best", "param": 2},
    "HashingVectorizer": {"n_features": 16},
    "HistGradientBoostingClassifier": {"max_iter": 5, "min_samples_leaf": 5},
    "HistGradientBoostingRegressor": {"max_iter": 5, "min_samples_leaf": 5},
    "IncrementalPCA": {"n_components": 2},
    "KBinsDiscretizer": {"encode": "ordinal", "quantile_method": "averaged_inverted_cdf"},
    "KernelPCA": {"n_components": 2, "kernel": "rbf"},
    "LabelPropagation": {"gamma": 2.0},
    "LabelSpreading": {"gamma": 2.0},
    "Lasso": {"alpha": 0.05},
    "LassoCV": {"alphas": [0.01, 0.1]},
    "LassoLars": {"alpha": 0.05},
    "LatentDirichletAllocation": {"n_components": 3, "max_iter": 3},
    "LinearSVC": {"max_iter": 10000},
    "LinearSVR": {"max_iter": 10000},
    "LocalOutlierFactor": {"novelty": True, "n_neighbors": 10},
    "LogisticRegressionCV": {"Cs": [0.1, 1.0], "use_legacy_attributes": False},
    "MLPClassifier": {"hidden_layer_sizes": (5,), "max_iter": 100},
    "MLPRegressor": {"hidden_layer_sizes": (5,), "max_iter": 100},
    "MiniBatchDictionaryLearning": {"n_components": 3, "max_iter": 10},
    "MiniBatchNMF": {"n_components": 3},
    "MiniBatchSparsePCA": {"n_components": 2, "max_iter": 10},
    "MultiTaskElasticNetCV": {"alphas": [0.01, 0.1]},
    "MultiTaskLassoCV": {"alphas": [0.01, 0.1]},
    "MultiTaskElasticNet": {"alpha": 0.05},
    "MultiTaskLasso": {"alpha": 0.05},
    "NMF": {"n_components": 3, "max_iter": 500},
    "NearestNeighbors": {"radius": None},
    "NeighborhoodComponentsAnalysis": {"n_components": 2},
    "Nystroem": {"n_components": 5},
    "PCA": {"n_components": 2},
    "PLSCanonical": {"n_components": 1},
    "PLSRegression": {"n_components": 2},
    "PLSSVD": {"n_components": 1},
    "PolynomialCountSketch": {"n_components": 7},
    "PolynomialFeatures": {"degree": 2},
    "QuantileRegressor": {"alpha": 0.01},
    "QuantileTransformer": {"output_distribution": "uniform"},
    "RANSACRegressor": {"estimator": LinearRegression(), "min_samples": 20},
    "RBFSampler": {"n_components": 5},
    "RadiusNeighborsClassifier": {"radius": 4.0},
    "RadiusNeighborsRegressor": {"radius": 4.0},
    "RadiusNeighborsTransformer": {"radius": 2.0},
    "RegressorChain": {CHAINED: Ridge()},
    "RandomForestClassifier": {"max_depth": 3},
    "RandomForestRegressor": {"max_depth": 3},
    "RandomTreesEmbedding": {"max_depth": 2, "sparse_output": False},
    "SGDClassifier": {"loss": "log_loss"},
    "SelectFdr": {"alpha": 0.9},
    "SelectFpr": {"alpha": 0.9},
    "SelectFwe": {"alpha": 0.9},
    "SelectKBest": {"k": 2},
    "SelectPercentile": {"percentile": 50},
    "SelfTrainingClassifier": {"estimator": LogisticRegression()},
    "SkewedChi2Sampler": {"n_components": 5},
    "SparseCoder": {"dictionary": np.eye(4)},
    "SparsePCA": {"n_components": 2, "max_iter": 20},
    "SparseRandomProjection": {"n_components": 2, "density": 0.7},
    "SpectralBiclustering": {"n_clusters": 2},
    "TSNE": {"perplexity": 5, "max_iter": 250},
    "TransformedTargetRegressor": {"regressor": Ridge()},
    "TruncatedSVD": {"n_components": 2},
    "VotingClassifier": {"flatten_transform": False},
    "VarianceThreshold": {"threshold": 0.1},
}

#: Parameters without which an estimator with default parameters does not apply to small data or takes long.
NEEDED: dict[str, dict[str, Any]] = {
    "AdaBoostClassifier": {"n_estimators": 10},
    "AdaBoostRegressor": {"n_estimators": 10},
    "CCA": {"n_components": 1},
    "FeatureHasher": {"input_type": "string", "n_features": 8},
    "GaussianRandomProjection": {"n_components": 2},
    "HashingVectorizer": {"n_features": 16},
    "LatentDirichletAllocation": {"n_components": 3, "max_iter": 3, "max_doc_update_iter": 5},
    "LocalOutlierFactor": {"novelty": True},
    "PLSCanonical": {"n_components": 1},
    "PLSSVD": {"n_components": 1},
    "SparseRandomProjection": {"n_components": 2},
    "SelfTrainingClassifier": {"estimator": LogisticRegression()},
    "TSNE": {"perplexity": 5},
}


def _members(by_class: bool) -> list[tuple[str, Any]]:
    """Return the members of an ensemble."""
    if by_class:
        return [("first", LogisticRegression()), ("second", LinearDiscriminantAnalysis())]
    return [("first", Ridge()), ("second", LinearRegression())]


def _required(name: str, by_class: bool) -> Any:
    """Return a value for a constructor parameter that has no default."""
    estimator = LogisticRegression() if by_class else Ridge()
    grid = {"C": [0.1, 1.0]} if by_class else {"alpha": [0.1, 1.0]}
    values: dict[str, Any] = {
        "estimator": estimator,
        "estimators": _members(by_class),
        "param_grid": grid,
        "param_distributions": grid,
        "steps": [("scale", StandardScaler()), ("model", estimator)],
        "transformers": [("left", StandardScaler(), [0, 1]), ("right", MinMaxScaler(), [2, 3])],
        "transformer_list": [("scale", StandardScaler()), ("range", MinMaxScaler())],
    }
    return values[name]


def required(cls: type) -> set[str]:
    """Return the constructor parameters without a default."""
    parameters = inspect.signature(cls).parameters.values()
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {p.name for p in parameters if p.default is inspect.Parameter.empty and p.kind not in kinds}


def construct(cls: type, by_class: bool = False, **params: Any) -> Any:
    """Return an estimator of a class, its parameters chosen for small data.

    Parameters
    ----------
    cls : type
        Class of scikit-learn.
    by_class : bool, default=False
        Whether what it wraps is a classifier rather than a regressor.
    **params
        Parameters that matter for the case.
    """
    known = inspect.signature(cls).parameters
    own = OWN.get(cls.__name__, {})
    chosen = {name: value for name, value in QUICK.items() if name in known}
    chosen.update({name: _required(name, by_class) for name in required(cls) - own.keys()})
    chosen.update({name: value for name, value in own.items() if name in known})
    if "cv" in known and cls.__name__ in ("RidgeCV", "RidgeClassifierCV"):
        del chosen["cv"]
    if cls.__name__ == "RandomizedSearchCV":
        chosen["n_iter"] = 2
    return cls(**{**chosen, **params})


def with_defaults(cls: type, by_class: bool = False) -> Any:
    """Return an estimator of a class with default parameters, except for those that small data need."""
    own = OWN.get(cls.__name__, {})
    chosen = {name: own[name] if name in own else _required(name, by_class) for name in required(cls)}
    return cls(**chosen, **NEEDED.get(cls.__name__, {}))
