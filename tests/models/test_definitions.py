"""Linear models, networks and scalers: graph, gradients and write-back of their definitions."""

import numpy as np
import pytest
from sklearn import linear_model, neural_network, preprocessing, svm
from sklearn.pipeline import make_pipeline

from ortlearn.exceptions import ConversionError
from ortlearn.models import ModelWriter, find_definition
from ortlearn.models.forms import Transposed
from ortlearn.testing import check_model

RNG = np.random.RandomState(0)
X = RNG.normal(size=(60, 4)) + 0.3
Y = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * RNG.normal(size=60)
TWO, THREE = (Y > 0).astype(int), np.digitize(Y, [-1, 1])
TEXT = np.array(["low", "mid", "top"])[THREE]
SEVERAL = np.column_stack([Y, X[:, 0]])
LABELS = np.column_stack([TWO, X[:, 0] > 0]).astype(int)

REGRESSORS = [
    *("ARDRegression BayesianRidge ElasticNet ElasticNetCV HuberRegressor Lars LarsCV Lasso LassoCV".split()),
    *("LassoLars LassoLarsCV LassoLarsIC LinearRegression OrthogonalMatchingPursuit".split()),
    "QuantileRegressor",
    *("OrthogonalMatchingPursuitCV Ridge RidgeCV SGDRegressor TheilSenRegressor".split()),
]
CLASSIFIERS = [
    linear_model.LogisticRegression(),
    linear_model.LogisticRegression(fit_intercept=False),
    linear_model.SGDClassifier(loss="log_loss", random_state=0),
    linear_model.SGDClassifier(loss="modified_huber", random_state=0),
    linear_model.SGDClassifier(loss="hinge", random_state=0),
    linear_model.Perceptron(random_state=0),
    linear_model.RidgeClassifier(),
    svm.LinearSVC(),
    neural_network.MLPClassifier((5,), max_iter=20, activation="tanh", random_state=0),
]


@pytest.mark.parametrize("name", REGRESSORS)
def test_linear_regressors(name):
    check_model(getattr(linear_model, name)().fit(X, Y), X)


@pytest.mark.parametrize(
    "model",
    [
        linear_model.Ridge(fit_intercept=False),
        linear_model.Ridge(positive=True),
        linear_model.LinearRegression(positive=True),
        svm.LinearSVR(max_iter=10_000, C=0.1),
        neural_network.MLPRegressor(
            hidden_layer_sizes=(5, 3), max_iter=20, activation="logistic", random_state=0
        ),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_other_regressors(model):
    check_model(model.fit(X, Y), X)


@pytest.mark.parametrize(
    "name", ["LinearRegression", "Ridge", "MultiTaskLasso", "MultiTaskElasticNet", "Lars"]
)
def test_several_outputs(name):
    check_model(getattr(linear_model, name)().fit(X, SEVERAL), X)


@pytest.mark.parametrize("power", [0, 1, 1.5, 2])
def test_generalized_linear_models(power):
    check_model(linear_model.TweedieRegressor(power=power).fit(X, np.exp(Y / 3)), X)


@pytest.mark.parametrize("y", [TWO, THREE, TEXT], ids=["two", "three", "text"])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_classifiers(model, y):
    check_model(model.fit(X, y), X)


def test_positive_coefficients():
    check_model(linear_model.RidgeClassifier(positive=True).fit(X, THREE), X)


@pytest.mark.parametrize(
    "model", [linear_model.RidgeClassifier(), neural_network.MLPClassifier((4,), max_iter=20)], ids=str
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_several_labels(model):
    check_model(model.fit(X, LABELS), X)


@pytest.mark.parametrize(
    "model",
    [
        preprocessing.StandardScaler(),
        preprocessing.StandardScaler(with_mean=False),
        preprocessing.StandardScaler(with_std=False),
        preprocessing.RobustScaler(),
        preprocessing.MaxAbsScaler(),
        preprocessing.MinMaxScaler((-1, 2)),
    ],
    ids=str,
)
def test_scalers(model):
    check_model(model.fit(X), X)


def test_pipelines():
    scaler, last = preprocessing.StandardScaler(), linear_model.Ridge()
    check_model(
        make_pipeline(scaler, "passthrough", make_pipeline(preprocessing.RobustScaler(), last)).fit(X, Y), X
    )


def test_subclasses_are_covered_unless_they_override_a_method():
    class Renamed(linear_model.Ridge):
        """A subclass without changes."""

    class Shifted(linear_model.Ridge):
        def predict(self, X):
            return super().predict(X) + 1

    check_model(Renamed().fit(X, Y), X)
    assert find_definition(Shifted()) is None


def test_an_attribute_has_one_form():
    model, op = linear_model.Ridge().fit(X, Y), ModelWriter()
    assert op.parameter(model, "coef_", form=Transposed()) == op.parameter(model, "coef_", form=Transposed())
    with pytest.raises(ConversionError, match="declares coef_ in two forms"):
        op.parameter(model, "coef_")
