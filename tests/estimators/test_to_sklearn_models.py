"""to_sklearn of all models predicts like the trained estimator."""

import pytest

from benchmarks.model_zoo.cases import catalogue
from benchmarks.model_zoo.measurement import Measurement
from benchmarks.model_zoo.training import NO_RATE, perturbed, train_from
from benchmarks.model_zoo.written import written_back

CASES = catalogue()
#: One case of each family; the others are in the slow test below.
SOME = [
    "AdaBoostClassifier:classes",
    "BaggingClassifier:some_columns",
    "BayesianGaussianMixture:tied",
    "BernoulliNB:classes",
    "CalibratedClassifierCV:isotonic",
    "CategoricalNB:classes",
    "DecisionTreeClassifier:binary",
    "DecisionTreeClassifier:labels",
    "GaussianMixture:rows",
    "GaussianNB:classes",
    "GaussianProcessRegressor:regression",
    "GradientBoostingClassifier:classes",
    "GradientBoostingClassifier:exponential",
    "GradientBoostingRegressor:huber",
    "HistGradientBoostingClassifier:classes",
    "IsolationForest:rows",
    "KMeans:rows",
    "KNeighborsRegressor:distance",
    "LinearDiscriminantAnalysis:classes",
    "LocalOutlierFactor:rows",
    "LogisticRegression:texts",
    "MLPClassifier:labels",
    "OneClassSVM:rows",
    "OneVsOneClassifier:classes",
    "PCA:whiten",
    "PLSRegression:outputs",
    "PowerTransformer:rows",
    "QuadraticDiscriminantAnalysis:classes",
    "SGDOneClassSVM:rows",
    "SVC:ovo",
    "StackingRegressor:passthrough",
    "TransformedTargetRegressor:regression",
    "TunedThresholdClassifierCV:binary",
    "TweedieRegressor:poisson",
    "columns+logistic:classes",
    "forest_per_output:regression_outputs",
    "one_hot+logistic:frame",
    "search_of_pipeline:classes",
    "spline+logistic:classes",
    "voting_of_pipelines:classes",
]
#: Tolerances for kernels and error functions in float32, and for the early stop of scikit-learn's lasso.
ROUGH = {"GaussianProcessClassifier": 1e-3, "GaussianProcessRegressor": 1e-4, "SparseCoder": 0.2}
#: Cases whose attributes cannot represent the trained weights, with the reason.
REJECTED = {}


def trained(name):
    """Return an estimator whose weights differ by 5 % from the fitted ones, samples and labels."""
    found = Measurement(CASES[name])
    found.fits()
    if not found.prepares()["ok"]:
        return None, found.samples.X, found.target
    weights = perturbed(found.prepared.weights, 0.05)
    ours = train_from(found.model, found.samples.X, found.target, weights, NO_RATE, 1, "auto")
    return ours, found.samples.X, found.target


def check(ours, X, y, name):
    reason = REJECTED.get(name) or REJECTED.get(CASES[name].estimator)
    if reason is not None:
        with pytest.raises(ValueError, match=reason):
            ours.to_sklearn()
        return
    found = written_back(ours, X, y)
    if found["ok"] is not None:
        assert max(found["gaps"].values()) <= ROUGH.get(CASES[name].estimator, 1e-5), found["gaps"]


@pytest.mark.sweep(6)
@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.FallbackWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", SOME)
def test_model_predicts_like_the_trained_estimator(name):
    check(*trained(name), name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in CASES if name not in SOME])
def test_every_model_of_the_catalogue(name):
    ours, X, y = trained(name)
    if ours is not None:  # it has weights to train
        check(ours, X, y, name)
