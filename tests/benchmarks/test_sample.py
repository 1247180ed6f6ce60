"""A sample of the catalogue: one case of a kind; ``make coverage`` measures all."""

import pytest

from benchmarks.model_zoo.cases import catalogue
from benchmarks.model_zoo.measure import measure
from benchmarks.model_zoo.verdict import is_trained, reason, silently_wrong
from ortlearn.differentiation import cpp_builder

CASES = catalogue()
TRAINED = [
    "GaussianMixture:diag",
    "GaussianNB:classes",
    "GaussianProcessRegressor:regression",
    "HistGradientBoostingClassifier:binary",
    "IsolationForest:rows",
    "KMeans:rows",
    "KNeighborsRegressor:regression",
    "LogisticRegression:classes",
    "MLPClassifier:labels",
    "MLPClassifier:two_labels",
    "MLPRegressor:poisson",
    "PCA:rows",
    "RandomForestRegressor:outputs",
    "SVC:classes",
    "StackingRegressor:regression",
    "TransformedTargetRegressor:regression",
    "one_hot+logistic:frame",
    "spline+logistic:classes",
]
NOT_TRAINED = ["KNeighborsClassifier:classes", "KBinsDiscretizer:rows", "SelectKBest:rows"]


def check(name):
    """Check that a case trains by the rules, and by onnxruntime-training or is refused."""
    facts = measure(CASES[name])
    assert not silently_wrong(facts), reason(facts)
    assert is_trained(facts, "rules"), reason(facts)
    if cpp_builder.is_available():
        assert is_trained(facts, "ort") or facts["gradient_ort"]["plain"], reason(facts)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", [name for name in TRAINED if name in CASES])
def test_a_model_trains_with_a_correct_gradient_and_predicts_as_exported(name):
    check(name)


@pytest.mark.parametrize(
    "name", ["KNeighborsClassifier:classes", "KBinsDiscretizer:rows", "SelectKBest:rows"]
)
def test_a_model_without_a_gradient_says_so(name):
    facts = measure(CASES[name])
    assert not any(is_trained(facts, backend) for backend in ("rules", "ort"))
    assert not silently_wrong(facts)
    assert facts["prepares"]["plain"] and facts["prepares"]["reason"]
