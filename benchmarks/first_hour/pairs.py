"""Pairs of data set and model: the rows of the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import is_classifier
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

__all__ = ["PAIRS", "Pair"]

#: Models with their default parameters; quantile models have an explicit quantile.
MODELS: dict[str, Any] = {
    "Ridge": Ridge(),
    "Lasso": Lasso(),
    "ElasticNet": ElasticNet(),
    "SGDRegressor": SGDRegressor(random_state=0),
    "HuberRegressor": HuberRegressor(),
    "QuantileRegressor": QuantileRegressor(),
    "PoissonRegressor": PoissonRegressor(),
    "GammaRegressor": GammaRegressor(),
    "LinearSVR": LinearSVR(random_state=0),
    "SVR": SVR(),
    "MLPRegressor": MLPRegressor(random_state=0),
    "GradientBoostingRegressor": GradientBoostingRegressor(random_state=0),
    "HistGradientBoostingRegressor": HistGradientBoostingRegressor(random_state=0),
    "HistGradientBoostingRegressor(quantile)": HistGradientBoostingRegressor(
        loss="quantile", quantile=0.8, random_state=0
    ),
    "HistGradientBoostingRegressor(poisson)": HistGradientBoostingRegressor(loss="poisson", random_state=0),
    "RandomForestRegressor": RandomForestRegressor(random_state=0),
    "GaussianProcessRegressor": GaussianProcessRegressor(random_state=0),
    "LogisticRegression": LogisticRegression(),
    "LinearSVC": LinearSVC(random_state=0),
    "SGDClassifier": SGDClassifier(random_state=0),
    "SVC": SVC(random_state=0),
    "MLPClassifier": MLPClassifier(random_state=0),
    "GradientBoostingClassifier": GradientBoostingClassifier(random_state=0),
    "HistGradientBoostingClassifier": HistGradientBoostingClassifier(random_state=0),
    "GaussianNB": GaussianNB(),
    "LinearDiscriminantAnalysis": LinearDiscriminantAnalysis(),
}
#: What a score is, where it is not that of every classifier or regressor.
METRICS = {
    "PoissonRegressor": "D2 Poisson",
    "HistGradientBoostingRegressor(poisson)": "D2 Poisson",
    "GammaRegressor": "D2 Gamma",
    "QuantileRegressor": "D2 pinball 0.5",
    "HistGradientBoostingRegressor(quantile)": "D2 pinball 0.8",
}
#: Models by data set; "raw" is the data as it is, "scaled" has a StandardScaler in front of the model.
TABLE = {
    "diabetes": {
        "raw": "Ridge Lasso ElasticNet HuberRegressor QuantileRegressor RandomForestRegressor "
        "HistGradientBoostingRegressor(quantile)",
        "scaled": "Ridge Lasso LinearSVR MLPRegressor HuberRegressor QuantileRegressor",
    },
    "friedman": {
        "raw": "Ridge MLPRegressor GradientBoostingRegressor HistGradientBoostingRegressor",
        "scaled": "SVR MLPRegressor GaussianProcessRegressor",
    },
    "thousands": {"raw": "Ridge Lasso LinearSVR MLPRegressor", "scaled": "Ridge SGDRegressor"},
    "prices": {
        "raw": "Ridge GradientBoostingRegressor",
        "scaled": "Ridge HuberRegressor MLPRegressor SVR",
    },
    "few_samples": {
        "raw": "Ridge RandomForestRegressor GradientBoostingRegressor",
        "scaled": "ElasticNet",
    },
    "counts": {
        "raw": "PoissonRegressor HistGradientBoostingRegressor(poisson)",
        "scaled": "PoissonRegressor",
    },
    "skewed": {"raw": "GammaRegressor Ridge", "scaled": "GammaRegressor"},
    "heavy_tails": {
        "raw": "Ridge HuberRegressor QuantileRegressor",
        "scaled": "LinearSVR SGDRegressor",
    },
    "linnerud": {"raw": "Ridge", "scaled": "MLPRegressor"},
    "breast_cancer": {
        "raw": "LogisticRegression LinearSVC MLPClassifier GradientBoostingClassifier GaussianNB "
        "LinearDiscriminantAnalysis",
        "scaled": "LogisticRegression LinearSVC SGDClassifier MLPClassifier",
    },
    "wine": {
        "raw": "LogisticRegression GaussianNB LinearDiscriminantAnalysis",
        "scaled": "LogisticRegression SVC",
    },
    "iris": {"raw": "LogisticRegression SVC MLPClassifier GradientBoostingClassifier"},
    "digits": {"raw": "LogisticRegression SVC", "scaled": "MLPClassifier"},
    "many_samples": {
        "raw": "LogisticRegression LinearSVC SGDClassifier MLPClassifier HistGradientBoostingClassifier"
    },
    "few_labels": {"raw": "LogisticRegression GradientBoostingClassifier", "scaled": "LogisticRegression"},
    "rare_class": {"raw": "LogisticRegression", "scaled": "LinearSVC"},
}


@dataclass(frozen=True)
class Pair:
    """A data set and a model with default parameters.

    Attributes
    ----------
    dataset, scaling, model : str
        Name of a data set, ``"raw"`` or ``"scaled"``, name of a model.
    """

    dataset: str
    scaling: str
    model: str

    @property
    def name(self) -> str:
        """All three, as the table shows them."""
        return f"{self.dataset} {self.scaling} {self.model}"

    @property
    def metric(self) -> str:
        """Name of the score."""
        return METRICS.get(self.model, "accuracy" if is_classifier(MODELS[self.model]) else "R2")

    def estimator(self) -> Any:
        """Return the model, not fitted; callers clone it."""
        model = MODELS[self.model]
        return make_pipeline(StandardScaler(), model) if self.scaling == "scaled" else model


PAIRS = [
    Pair(dataset, scaling, model)
    for dataset, parts in TABLE.items()
    for scaling, models in parts.items()
    for model in models.split()
]
