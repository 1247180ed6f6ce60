"""Pipelines and models in models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import NMF, PCA, FastICA, KernelPCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import (
    ElasticNet,
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor, RegressorChain
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks.model_zoo.case import Case

__all__ = ["cases_of_pipelines"]


def _mlp(by_class: bool = True) -> Any:
    model = MLPClassifier if by_class else MLPRegressor
    return model(hidden_layer_sizes=(5,), max_iter=100, random_state=0)


def _forest(by_class: bool) -> Any:
    model = RandomForestClassifier if by_class else RandomForestRegressor
    return model(n_estimators=4, max_depth=4, random_state=0)


def _two_sides(left: Any = None, right: Any = None) -> ColumnTransformer:
    return ColumnTransformer(
        [("left", left or StandardScaler(), [0, 1]), ("right", right or MinMaxScaler(), [2, 3])]
    )


def _members(by_class: bool) -> list:
    if by_class:
        return [("linear", LogisticRegression()), ("network", _mlp()), ("bayes", GaussianNB())]
    return [("linear", Ridge()), ("network", _mlp(False)), ("forest", _forest(False))]


def _square(X: Any) -> Any:
    return np.square(X)


def _kinds(*columns: tuple) -> Any:
    return ColumnTransformer([("numbers", StandardScaler(), ["age", "size"]), *columns])


def _bins() -> KBinsDiscretizer:
    return KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf")


def _filled(imputer: Any) -> ColumnTransformer:
    numbers = make_pipeline(imputer, StandardScaler())
    return ColumnTransformer([("n", numbers, ["age", "size"]), ("kinds", OneHotEncoder(), ["kind"])])


#: Models by data set, then by name.
_PIPELINES: dict[str, dict[str, Callable[[], Any]]] = {
    "classes": {
        "scaler+logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
        "scaler+mlp": lambda: make_pipeline(StandardScaler(), _mlp()),
        "pca+logistic": lambda: make_pipeline(PCA(3, random_state=0), LogisticRegression()),
        "kernel_pca+logistic": lambda: make_pipeline(KernelPCA(3, kernel="rbf"), LogisticRegression()),
        "select+logistic": lambda: make_pipeline(SelectKBest(k=3), LogisticRegression()),
        "lda+logistic": lambda: make_pipeline(
            LinearDiscriminantAnalysis(n_components=2), LogisticRegression()
        ),
        "columns+logistic": lambda: make_pipeline(_two_sides(), LogisticRegression()),
        "union+logistic": lambda: make_pipeline(
            make_union(StandardScaler(), PCA(2, random_state=0)), LogisticRegression()
        ),
        "scaler+svc": lambda: make_pipeline(StandardScaler(), SVC()),
        "scaler+linear_svc": lambda: make_pipeline(StandardScaler(), LinearSVC()),
        "scaler+sgd": lambda: make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss", random_state=0)),
        "scaler+forest": lambda: make_pipeline(StandardScaler(), _forest(True)),
        "voting_of_pipelines": lambda: VotingClassifier(
            [(name, make_pipeline(StandardScaler(), model)) for name, model in _members(True)], voting="soft"
        ),
        "stacking": lambda: StackingClassifier(_members(True), LogisticRegression(), cv=3),
        "bagging_of_mlps": lambda: BaggingClassifier(_mlp(), n_estimators=3, random_state=0),
        "bagging_of_pipelines": lambda: BaggingClassifier(
            make_pipeline(StandardScaler(), LogisticRegression()), n_estimators=3, random_state=0
        ),
        "one_vs_rest_of_svc": lambda: OneVsRestClassifier(SVC()),
        "one_vs_rest_of_mlp": lambda: OneVsRestClassifier(_mlp()),
        "one_vs_one_of_svc": lambda: OneVsOneClassifier(SVC()),
        "calibrated_forest": lambda: CalibratedClassifierCV(_forest(True), cv=2),
        "search_of_pipeline": lambda: GridSearchCV(
            make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [0.1, 1.0]}, cv=2
        ),
        "pipeline_in_pipeline": lambda: make_pipeline(
            StandardScaler(), make_pipeline(PCA(3, random_state=0), LogisticRegression())
        ),
        "kmeans+logistic": lambda: make_pipeline(KMeans(4, n_init=1, random_state=0), LogisticRegression()),
        "spline+logistic": lambda: make_pipeline(SplineTransformer(n_knots=4), LogisticRegression()),
    },
    "binary": {
        "tuned_threshold_of_pipeline": lambda: TunedThresholdClassifierCV(
            make_pipeline(StandardScaler(), LogisticRegression()), cv=3
        ),
        "fixed_threshold_of_forest": lambda: FixedThresholdClassifier(_forest(True), threshold=0.4),
        "normalizer+logistic": lambda: make_pipeline(Normalizer(), LogisticRegression()),
        "power+logistic": lambda: make_pipeline(PowerTransformer(), LogisticRegression()),
        "bins+logistic": lambda: make_pipeline(
            KBinsDiscretizer(4, encode="onehot-dense", strategy="uniform"), LogisticRegression()
        ),
        "calibrated_svc": lambda: CalibratedClassifierCV(LinearSVC(), cv=2),
        "python_function+logistic": lambda: make_pipeline(FunctionTransformer(_square), LogisticRegression()),
        "nystroem+logistic": lambda: make_pipeline(
            Nystroem(n_components=6, random_state=0), LogisticRegression()
        ),
        "bagging_of_trees": lambda: BaggingClassifier(
            DecisionTreeClassifier(max_depth=3), n_estimators=4, random_state=0
        ),
    },
    "regression": {
        "scaler+ridge": lambda: make_pipeline(StandardScaler(), Ridge()),
        "robust+huber": lambda: make_pipeline(RobustScaler(), HuberRegressor()),
        "max_abs+elastic_net": lambda: make_pipeline(MaxAbsScaler(), ElasticNet(alpha=0.05)),
        "polynomial+ridge": lambda: make_pipeline(PolynomialFeatures(2), Ridge()),
        "columns+mlp": lambda: make_pipeline(_two_sides(PCA(1), RobustScaler()), _mlp(False)),
        "variance+ridge": lambda: make_pipeline(VarianceThreshold(0.1), Ridge()),
        "svd+ridge": lambda: make_pipeline(TruncatedSVD(2, random_state=0), Ridge()),
        "ica+ridge": lambda: make_pipeline(FastICA(2, random_state=0, whiten="unit-variance"), Ridge()),
        "quantile+ridge": lambda: make_pipeline(QuantileTransformer(n_quantiles=20), Ridge()),
        "scaler+svr": lambda: make_pipeline(StandardScaler(), SVR()),
        "scaler+knn": lambda: make_pipeline(StandardScaler(), KNeighborsRegressor()),
        "scaler+gaussian_process": lambda: make_pipeline(
            StandardScaler(), GaussianProcessRegressor(alpha=0.1, optimizer=None)
        ),
        "scaler+boosting": lambda: make_pipeline(
            StandardScaler(), GradientBoostingRegressor(n_estimators=5, random_state=0)
        ),
        "transformed_target": lambda: TransformedTargetRegressor(
            make_pipeline(StandardScaler(), Ridge()), transformer=StandardScaler()
        ),
        "transformed_target_by_function": lambda: TransformedTargetRegressor(
            Ridge(), func=np.arcsinh, inverse_func=np.sinh
        ),
        "voting": lambda: VotingRegressor(_members(False)),
        "stacking": lambda: StackingRegressor(_members(False), Ridge(), cv=3),
        "stacking_of_forests": lambda: StackingRegressor([("forest", _forest(False))], _forest(False), cv=3),
        "bagging_of_mlps": lambda: BaggingRegressor(_mlp(False), n_estimators=3, random_state=0),
        "random_search": lambda: RandomizedSearchCV(
            make_pipeline(StandardScaler(), Ridge()),
            {"ridge__alpha": [0.1, 1.0]},
            n_iter=2,
            cv=2,
            random_state=0,
        ),
        "union_in_columns": lambda: make_pipeline(
            ColumnTransformer(
                [("both", FeatureUnion([("a", StandardScaler()), ("b", PCA(1))]), [0, 1, 2])],
                remainder="passthrough",
            ),
            Ridge(),
        ),
    },
    "regression_positive": {
        "nmf+ridge": lambda: make_pipeline(NMF(3, max_iter=500, random_state=0), Ridge()),
    },
    "regression_gaps": {
        "imputer+ridge": lambda: make_pipeline(SimpleImputer(), StandardScaler(), Ridge()),
        "imputer_with_indicator+ridge": lambda: make_pipeline(SimpleImputer(add_indicator=True), Ridge()),
    },
    "regression_outputs": {
        "scaler+mlp_outputs": lambda: make_pipeline(StandardScaler(), _mlp(False)),
        "scaler+pls": lambda: make_pipeline(StandardScaler(), PLSRegression(2)),
        "one_regressor_per_output": lambda: MultiOutputRegressor(make_pipeline(StandardScaler(), Ridge())),
        "forest_per_output": lambda: MultiOutputRegressor(_forest(False)),
        "chain": lambda: RegressorChain(LinearRegression()),
    },
    "labels": {
        "one_classifier_per_label": lambda: MultiOutputClassifier(LogisticRegression()),
        "forest_per_label": lambda: MultiOutputClassifier(_forest(True)),
        "chain_of_labels": lambda: ClassifierChain(LogisticRegression(), order=[2, 0, 1]),
        "one_vs_rest_of_labels": lambda: OneVsRestClassifier(_mlp()),
        "scaler+ridge_labels": lambda: make_pipeline(StandardScaler(), RidgeClassifier()),
    },
    "frame": {
        "one_hot+logistic": lambda: make_pipeline(
            _kinds(("kinds", OneHotEncoder(handle_unknown="ignore"), ["kind"])), LogisticRegression()
        ),
        "ordinal+boosting": lambda: make_pipeline(
            _kinds(("kinds", OrdinalEncoder(), ["kind"])),
            HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5),
        ),
        "target_encoder+logistic": lambda: make_pipeline(
            _kinds(("kinds", TargetEncoder(cv=3, random_state=0), ["kind"])), LogisticRegression()
        ),
        "tfidf+logistic": lambda: make_pipeline(
            _kinds(("words", TfidfVectorizer(), "text")), LogisticRegression()
        ),
        "counts+mlp": lambda: make_pipeline(_kinds(("words", CountVectorizer(), "text")), _mlp()),
        "hashes+logistic": lambda: make_pipeline(
            _kinds(("words", HashingVectorizer(n_features=16), "text")), LogisticRegression()
        ),
        "bins_in_columns+logistic": lambda: make_pipeline(
            _kinds(("bins", _bins(), ["age"]), ("kinds", OneHotEncoder(), ["kind"])), LogisticRegression()
        ),
        "spline_in_columns+ridge": lambda: make_pipeline(
            _kinds(("bent", SplineTransformer(4), ["age", "size"]), ("kinds", OneHotEncoder(), ["kind"])),
            Ridge(),
        ),
    },
    "frame_gaps": {
        "iterative_imputer_in_columns+ridge": lambda: make_pipeline(
            _filled(IterativeImputer(max_iter=3, tol=0.1)), Ridge()
        ),
        "knn_imputer_in_columns+logistic": lambda: make_pipeline(_filled(KNNImputer()), LogisticRegression()),
    },
}


#: Pipelines without a target, by name.
_NO_TARGET: dict[str, Callable[[], Any]] = {
    "scaler+gaussian_mixture": lambda: make_pipeline(StandardScaler(), GaussianMixture(2, random_state=0)),
    "scaler+kmeans": lambda: make_pipeline(StandardScaler(), KMeans(3, n_init=1, random_state=0)),
    "scaler+pca": lambda: make_pipeline(StandardScaler(), PCA(2, random_state=0)),
}


def cases_of_pipelines() -> Iterator[Case]:
    """Yield pipelines and models in models."""
    for data, models in _PIPELINES.items():
        for name, make in models.items():
            yield Case(f"{name}:{data}", "pipeline", data, make)
    for name, make in _NO_TARGET.items():
        yield Case(f"{name}:rows", "pipeline", "regression", make)
