"""Objectives of meta-estimators, and of models whose fits only approach a minimum or have none."""

import numpy as np
import pytest
from sklearn import (
    calibration,
    ensemble,
    isotonic,
    linear_model,
    mixture,
    model_selection,
    svm,
    tree,
)
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.multiclass import OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, RegressorChain
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

from ortlearn import plugins
from ortlearn.exceptions import PluginError
from ortlearn.losses import (
    AbsoluteErrorLoss,
    EpsilonInsensitiveLoss,
    GammaLoss,
    HingeLoss,
    HuberLoss,
    LogLoss,
    PerceptronLoss,
    PoissonLoss,
    QuantileLoss,
    SignedLabelLoss,
    SquaredErrorLoss,
    SquaredHingeLoss,
)
from ortlearn.models import Objective, objective_of
from ortlearn.models.predictors.linear import LeastSquaresDefinition
from ortlearn.models.registry import public_path
from ortlearn.penalties import ElasticPenalty, L1Penalty, L2Penalty, NoPenalty
from ortlearn.testing import check_loss, check_model
from tests.models.objective_data import AMOUNTS, LABELS, SEVERAL, THREE, TWO, X, Y

HALF = np.where(X[:, 0] > 1, -1, TWO)


def stacked(last):
    """Return a stack with a ridge below the last model."""
    return ensemble.StackingRegressor([("a", Ridge())], last)


L2 = L2Penalty(0.01)
#: Fitted on 80 samples; ridges of 1.6 have l2 = 0.01.
KNOWN = [
    (SGDRegressor(penalty="l1", alpha=0.1), Y, SquaredErrorLoss(), L1Penalty(0.1)),
    (SGDRegressor("huber", penalty="elasticnet", alpha=0.2), Y, HuberLoss(0.1), ElasticPenalty(0.03, 0.085)),
    (SGDRegressor(penalty=None), Y, SquaredErrorLoss(), NoPenalty()),
    (SGDClassifier(loss="perceptron", alpha=0.02), TWO, PerceptronLoss(), L2),
    (linear_model.Perceptron(), TWO, PerceptronLoss(), NoPenalty()),
    (linear_model.Perceptron(penalty="l2", alpha=0.02), TWO, PerceptronLoss(), L2),
    (MLPRegressor(hidden_layer_sizes=(3,), alpha=0.8, batch_size=40, max_iter=3), Y, SquaredErrorLoss(), L2),
    (MLPClassifier((3,), alpha=1.6, max_iter=3), THREE, LogLoss(), L2),
    (make_pipeline(StandardScaler(), Ridge(1.6)), Y, SquaredErrorLoss(), L2),
    (model_selection.GridSearchCV(Ridge(), {"alpha": [1.6]}), Y, SquaredErrorLoss(), L2),
    (TransformedTargetRegressor(Ridge(1.6), transformer=StandardScaler()), Y, SquaredErrorLoss(), L2),
    (model_selection.FixedThresholdClassifier(SGDClassifier("hinge", alpha=0.02)), TWO, HingeLoss(), L2),
    (RegressorChain(Ridge(1.6)), SEVERAL, SquaredErrorLoss(), L2),
    (ClassifierChain(SGDClassifier("hinge", alpha=0.02)), LABELS, HingeLoss(), L2),
    (ensemble.BaggingRegressor(Ridge(1.6), 4, max_samples=0.5), Y, SquaredErrorLoss(), L2Penalty(0.005)),
    (ensemble.BaggingClassifier(SGDClassifier("hinge")), TWO, None, None),
    (ensemble.VotingRegressor([("a", Ridge(1.0)), ("b", Ridge(2.0))]), Y, None, None),
    (ensemble.VotingRegressor([("a", Ridge(1.0)), ("b", KNeighborsRegressor())]), Y, None, None),
    (stacked(linear_model.LinearRegression()), Y, SquaredErrorLoss(), NoPenalty()),
    (stacked(Ridge()), Y, None, None),
    (ensemble.RandomForestRegressor(3, criterion="absolute_error"), Y, AbsoluteErrorLoss(), NoPenalty()),
    (ensemble.RandomForestRegressor(3, criterion="poisson"), AMOUNTS, None, None),
    (ensemble.RandomForestClassifier(3, criterion="entropy"), THREE, LogLoss(), NoPenalty()),
    (tree.DecisionTreeClassifier(), THREE, None, None),
    (ensemble.GradientBoostingClassifier(n_estimators=3), THREE, LogLoss(), NoPenalty()),
    (ensemble.GradientBoostingClassifier(n_estimators=3, loss="exponential"), TWO, None, None),
    (ensemble.HistGradientBoostingRegressor(loss="gamma", max_iter=3), AMOUNTS, GammaLoss(), NoPenalty()),
    (
        ensemble.HistGradientBoostingClassifier(max_iter=3, learning_rate=0.5, l2_regularization=0.4),
        TWO,
        LogLoss(),
        L2,
    ),
    (calibration.CalibratedClassifierCV(svm.LinearSVC(), cv=2), TWO, LogLoss(), NoPenalty()),
    (calibration.CalibratedClassifierCV(svm.LinearSVC(), method="isotonic", cv=2), TWO, None, None),
    (isotonic.IsotonicRegression(out_of_bounds="clip"), Y, SquaredErrorLoss(), NoPenalty()),
    (mixture.BayesianGaussianMixture(n_components=2, random_state=0), None, None, None),
    (linear_model.TweedieRegressor(power=1.5, link="identity", max_iter=3), AMOUNTS, None, None),
    (Ridge(np.array([1.0, 2.0])), SEVERAL, None, None),
    (svm.LinearSVC(multi_class="crammer_singer"), THREE, None, None),
    *((model, Y, None, None) for model in (linear_model.Lars(), linear_model.ARDRegression(), svm.SVR())),
    (svm.SVC(), TWO, None, None),
    (svm.NuSVC(), TWO, None, None),
    (GaussianNB(), TWO, None, None),
    (linear_model.RANSACRegressor(random_state=0), Y, None, None),
    (StandardScaler(), None, None, None),
    (DummyRegressor(), Y, SquaredErrorLoss(), NoPenalty()),
    (DummyRegressor(strategy="median"), Y, AbsoluteErrorLoss(), NoPenalty()),
    (DummyRegressor(strategy="quantile", quantile=0.8), Y, QuantileLoss(0.8), NoPenalty()),
    (DummyRegressor(strategy="constant", constant=1.0), Y, None, None),
    (DummyClassifier(), THREE, LogLoss(), NoPenalty()),
    (OneVsRestClassifier(Ridge(1.6)), THREE, None, None),
    (OutputCodeClassifier(LogisticRegression()), THREE, None, None),
    (SelfTrainingClassifier(LogisticRegression()), HALF, LogLoss(), L2Penalty(1 / 160)),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("model, y, loss, penalty", KNOWN, ids=lambda value: type(value).__name__)
def test_objectives_that_fits_only_approach(model, y, loss, penalty):
    features = X[:, :1] if isinstance(model, isotonic.IsotonicRegression) else X
    found = objective_of(model.fit(features, y), total_weight=80)
    if loss is None:
        assert found is None
        return
    assert type(found.loss) is type(loss) and found.loss.get_params() == loss.get_params()
    assert type(found.penalty) is type(penalty)
    assert found.penalty.get_params() == pytest.approx(penalty.get_params())


@pytest.mark.filterwarnings("ignore:Class PassiveAggressive:FutureWarning")
@pytest.mark.parametrize(
    "name, y, params, loss",
    [
        ("Classifier", TWO, {"C": 0.1}, HingeLoss()),
        ("Classifier", TWO, {"loss": "squared_hinge"}, SquaredHingeLoss()),
        ("Regressor", Y, {"epsilon": 0.5}, EpsilonInsensitiveLoss(0.5)),
    ],
)
def test_passive_aggressive_models_have_no_penalty(name, y, params, loss):
    found = objective_of(getattr(linear_model, f"PassiveAggressive{name}")(**params).fit(X, y), 80)
    assert (repr(found.loss), repr(found.penalty)) == (repr(loss), "NoPenalty()")


def test_delta_of_huber_boosting():
    model = ensemble.GradientBoostingRegressor(loss="huber", n_estimators=1, random_state=0).fit(X, Y)
    first = np.median(Y)
    assert objective_of(model, 80).loss.delta == pytest.approx(np.quantile(np.abs(Y - first), 0.9), rel=0.05)


def test_penalty_falls_with_the_number_of_samples():
    fitted = LogisticRegression(C=2.0).fit(X, TWO)
    assert [objective_of(fitted, n).penalty.l2 for n in (10, 1000)] == [0.025, 0.00025]


@pytest.mark.parametrize(
    "params, l1, l2",
    [
        ({"penalty": "l1"}, 0.1, 0.0),
        ({"penalty": "l2"}, 0.0, 0.05),
        ({"penalty": "elasticnet", "l1_ratio": 0.5}, 0.05, 0.025),
        ({"penalty": None}, 0.0, 0.0),
    ],
)
def test_penalties_of_older_releases(params, l1, l2):
    """Before scikit-learn 1.8, ``penalty`` selects what ``l1_ratio`` and ``C`` select now."""
    fitted = LogisticRegression(C=0.125).fit(X, TWO)
    vars(fitted).update({"l1_ratio": None, **params})
    found = objective_of(fitted, 80).penalty.get_params()
    assert (found.get("l1", 0.0), found.get("l2", 0.0)) == pytest.approx((l1, l2))


def test_objectives_with_a_strength_per_class_are_not_declared():
    fitted = LogisticRegression().fit(X, THREE)
    fitted.C_ = np.array([0.1, 1.0, 1.0])
    assert objective_of(fitted, 80) is None


@pytest.mark.parametrize("loss", [SquaredErrorLoss(), HuberLoss(0.5), EpsilonInsensitiveLoss()])
def test_losses_of_signs(loss):
    check_loss(SignedLabelLoss(loss))


class Misdeclared(linear_model.LinearRegression):
    """Linear regression with a wrong definition."""


class PoissonDefinition(LeastSquaresDefinition):
    def objective(self, model, total_weight):
        return Objective(PoissonLoss(), NoPenalty())


class NamingDefinition(LeastSquaresDefinition):
    def objective(self, model, total_weight):
        return Objective(SquaredErrorLoss(), L2Penalty(weights="scale_"))


@pytest.mark.parametrize(
    "definition, message",
    [
        (PoissonDefinition, "has link 'log', the scores have 'identity'"),
        (NamingDefinition, "name no parameter"),
    ],
)
def test_check_model_rejects_wrong_objectives(definition, message):
    fitted = Misdeclared().fit(X, Y)
    with plugins.temporary(plugins.MODELS, public_path(Misdeclared), definition):
        with pytest.raises((AssertionError, PluginError), match=message):
            check_model(fitted, X)
