"""The objective of a definition is minimal at the optimum of scikit-learn.

With another hyper-parameter, it decreases in some direction.
"""

import copy

import numpy as np
import pytest
from sklearn import (
    cluster,
    ensemble,
    linear_model,
    mixture,
    svm,
    tree,
)
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import has_fit_parameter

from ortlearn import OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateLBFGS, LearningRateSGD
from ortlearn.models import objective_of
from ortlearn.testing import check_objective
from tests.models.objective_data import AMOUNTS, LABELS, SEVERAL, THREE, TWO, WEIGHTS, X, Y

MIXED = np.column_stack([np.array(["low", "mid", "top"])[THREE], np.array(["no", "yes"])[TWO]])
EXACT = {"tol": 1e-12, "max_iter": 200_000}


def case(model, y, changed, weights=WEIGHTS, **options):
    """Return a case: an estimator, labels, a hyper-parameter to change, and sample weights."""
    name = f"{type(model).__name__}-{'-'.join(f'{k}={v}' for k, v in changed.items())}"
    return pytest.param(model, y, changed, weights, options, id=name)


def boosted(**params):
    """Return a single tree whose leaves are minima."""
    return ensemble.GradientBoostingRegressor(n_estimators=1, learning_rate=1.0, random_state=0, **params)


def binned(**params):
    """Return a single tree on histograms whose leaves are minima."""
    return ensemble.HistGradientBoostingRegressor(
        max_iter=1, learning_rate=1.0, min_samples_leaf=10, early_stopping=False, **params
    )


LINEAR = [
    case(linear_model.LinearRegression(), Y, {}),
    case(linear_model.LinearRegression(positive=True), Y, {}),
    case(linear_model.LinearRegression(fit_intercept=False), SEVERAL, {}),
    *(case(Ridge(alpha), Y, {"alpha": 2 * alpha}) for alpha in (0.5, 30.0)),
    case(Ridge(20.0, positive=True, tol=1e-9), Y, {"alpha": 30.0}),
    case(Ridge(20.0), SEVERAL, {"alpha": 10.0}),
    case(linear_model.RidgeCV((10.0, 20.0)), Y, {"alpha_": 40.0}),
    case(linear_model.RidgeClassifier(5.0), TWO, {"alpha": 10.0}),
    case(linear_model.RidgeClassifier(5.0), THREE, {"alpha": 2.0}),
    case(linear_model.RidgeClassifier(5.0), LABELS, {"alpha": 2.0}),
    case(linear_model.RidgeClassifierCV((5.0, 20.0)), THREE, {"alpha_": 40.0}),
    case(linear_model.BayesianRidge(), Y, {"lambda_": 5.0}),
    *(case(linear_model.Lasso(alpha, **EXACT), Y, {"alpha": alpha / 2}) for alpha in (0.1, 1.0)),
    case(linear_model.Lasso(0.3, positive=True, **EXACT), Y, {"alpha": 0.2}),
    case(linear_model.Lasso(0.3, **EXACT), SEVERAL, {"alpha": 0.2}),
    *(case(linear_model.ElasticNet(0.4, l1_ratio=r, **EXACT), Y, {"l1_ratio": r / 2}) for r in (0.3, 0.8)),
    case(linear_model.ElasticNet(0.4, **EXACT), Y, {"alpha": 0.5}),
    case(linear_model.LassoCV(alphas=[0.2, 0.3], **EXACT), Y, {"alpha_": 0.1}),
    case(linear_model.ElasticNetCV(alphas=[0.2, 0.3], **EXACT), Y, {"l1_ratio_": 0.1}),
    case(linear_model.LassoLars(0.2), Y, {"alpha": 0.1}, None),
    case(linear_model.LassoLarsIC(noise_variance=20.0), Y, {"alpha_": 0.02}, None),
    case(linear_model.LassoLarsCV(cv=3), Y, {"alpha_": 0.3}, None),
    case(linear_model.MultiTaskLasso(0.3, **EXACT), SEVERAL, {"alpha": 0.2}, None),
    case(linear_model.MultiTaskElasticNet(0.3, **EXACT), SEVERAL, {"l1_ratio": 0.2}, None),
    case(linear_model.MultiTaskElasticNetCV(alphas=[0.3], **EXACT), SEVERAL, {"alpha_": 0.2}, None),
    case(linear_model.HuberRegressor(alpha=20.0, **EXACT), Y, {"alpha": 10.0}, rtol=1e-3),
    case(linear_model.HuberRegressor(epsilon=1.1, **EXACT), Y, {"epsilon": 2.0}, rtol=1e-3),
    case(linear_model.QuantileRegressor(quantile=0.8, alpha=0.01), Y, {"quantile": 0.6}),
    case(linear_model.QuantileRegressor(alpha=0.1), Y, {"alpha": 0.2}),
    case(linear_model.PoissonRegressor(alpha=0.5, tol=1e-10), AMOUNTS, {"alpha": 1.0}),
    case(linear_model.GammaRegressor(alpha=0.5, tol=1e-10), AMOUNTS, {"alpha": 1.0}),
    *(
        case(linear_model.TweedieRegressor(power=p, alpha=0.5, tol=1e-10), AMOUNTS, {"alpha": 1.0})
        for p in (0, 1, 1.5, 3)
    ),
    case(linear_model.TweedieRegressor(power=0, link="log", tol=1e-10), AMOUNTS, {"alpha": 2.0}),
]
SPARSE = {"solver": "saga", **EXACT}
if LogisticRegression().penalty != "deprecated":  # before scikit-learn 1.8
    SPARSE["penalty"] = "elasticnet"
C_MODELS = [
    *(case(LogisticRegression(C=C, tol=1e-9), TWO, {"C": 2 * C}) for C in (0.01, 1.0)),
    case(LogisticRegression(C=0.1, tol=1e-9), THREE, {"C": 0.2}),
    case(LogisticRegression(C=0.1, tol=1e-9, class_weight={0: 2.0, 1: 1.0, 2: 0.5}), THREE, {"C": 0.2}),
    case(linear_model.LogisticRegressionCV(Cs=[0.1], cv=2, tol=1e-9), THREE, {"C_": 0.2}),
    case(LogisticRegression(C=np.inf, tol=1e-9), THREE, {"C": 1.0}),
    case(LogisticRegression(C=0.1, solver="liblinear", tol=1e-9), TWO, {"intercept_scaling": 3.0}),
    case(
        LogisticRegression(C=0.1, solver="liblinear", intercept_scaling=0.5, tol=1e-9),
        TWO,
        {"intercept_scaling": 0.6},
    ),
    case(LogisticRegression(C=0.1, solver="liblinear", fit_intercept=False, tol=1e-9), TWO, {"C": 1}),
    case(LogisticRegression(C=0.1, l1_ratio=0.6, **SPARSE), THREE, {"C": 0.2}),
    case(LogisticRegression(C=0.1, l1_ratio=1.0, **SPARSE), TWO, {"l1_ratio": 0.5}),
    case(svm.LinearSVC(C=0.02, **EXACT), TWO, {"C": 0.04}),
    case(svm.LinearSVC(C=0.02, intercept_scaling=2.0, **EXACT), THREE, {"intercept_scaling": 1.0}),
    case(svm.LinearSVC(C=0.02, loss="hinge", random_state=0, **EXACT), TWO, {"C": 0.04}),
    case(svm.LinearSVC(C=0.05, penalty="l1", dual=False, **EXACT), THREE, {"C": 0.1}),
    case(svm.LinearSVR(C=0.02, **EXACT), Y, {"C": 0.04}),
    case(svm.LinearSVR(C=0.02, epsilon=0.7, loss="squared_epsilon_insensitive", **EXACT), Y, {"epsilon": 1}),
]
OTHERS = [
    case(MLPRegressor(hidden_layer_sizes=(), alpha=5.0, solver="lbfgs", **EXACT), Y, {"alpha": 10.0}),
    case(MLPClassifier((), alpha=5.0, solver="lbfgs", **EXACT), TWO, {"alpha": 10.0}),
    case(MLPClassifier((), alpha=5.0, solver="lbfgs", **EXACT), THREE, {"alpha": 10.0}),
    case(
        MLPClassifier((3,), "tanh", alpha=5.0, solver="lbfgs", random_state=0, **EXACT), LABELS, {"alpha": 1}
    ),
    case(tree.DecisionTreeRegressor(max_depth=3), SEVERAL, {"criterion": "absolute_error"}),
    case(
        tree.DecisionTreeRegressor(max_depth=3, criterion="absolute_error"), Y, {"criterion": "friedman_mse"}
    ),
    case(boosted(loss="squared_error"), Y, {"loss": "absolute_error"}),
    case(boosted(loss="absolute_error"), Y, {"loss": "squared_error"}),
    case(boosted(loss="quantile", alpha=0.8), Y, {"alpha": 0.5}),
    case(binned(loss="absolute_error"), Y, {"loss": "squared_error"}),
    case(binned(l2_regularization=5.0), Y, {"l2_regularization": 2.0}, names={"leaf_values"}),
    case(cluster.KMeans(3, n_init=2, random_state=0, tol=0), None, {}),
    case(
        mixture.GaussianMixture(
            2, covariance_type="diag", tol=1e-13, reg_covar=0, max_iter=5000, random_state=0
        ),
        None,
        {},
        None,
    ),
    case(MultiOutputRegressor(Ridge(20.0)), SEVERAL, {"estimators_[*].alpha": 10.0}),
    case(OneVsRestClassifier(LogisticRegression(C=0.1, tol=1e-9)), THREE, {"estimators_[*].C": 0.3}, None),
    case(MultiOutputClassifier(LogisticRegression(C=0.1, tol=1e-9)), LABELS, {"estimators_[*].C": 0.3}),
    case(MultiOutputClassifier(LogisticRegression(C=0.1, tol=1e-9)), MIXED, {"estimators_[*].C": 0.3}),
    case(ensemble.VotingRegressor([("a", Ridge(9.0)), ("b", Ridge(9.0))]), Y, {"estimators_[*].alpha": 20.0}),
    case(
        ensemble.VotingClassifier(
            [(name, LogisticRegression(C=0.1, tol=1e-9)) for name in "ab"], voting="soft"
        ),
        THREE,
        {"estimators_[*].C": 0.3},
    ),
    case(ensemble.BaggingRegressor(Ridge(9.0), 3, bootstrap=False), Y, {"estimators_[*].alpha": 20.0}, None),
]
#: Averages over many epochs are near the minimum.
SLOW = {"average": 100_000, "tol": None, "max_iter": 3000, "random_state": 0, "learning_rate": "invscaling"}
SLOW |= {"eta0": 0.1, "power_t": 0.6}
MEAN_ONE = WEIGHTS / WEIGHTS.mean()
STOCHASTIC = [
    *(
        case(SGDRegressor(loss, alpha=0.3, epsilon=0.5, **SLOW), Y, {"alpha": 0.9}, MEAN_ONE, rtol=0.04)
        for loss in ("squared_error", "huber", "squared_epsilon_insensitive", "epsilon_insensitive")
    ),
    *(
        case(SGDClassifier(loss, alpha=0.1, **SLOW), y, {"alpha": 0.3}, MEAN_ONE, rtol=0.04)
        for loss, y in (("log_loss", THREE), ("modified_huber", TWO), ("squared_hinge", TWO), ("hinge", TWO))
    ),
    *(
        case(SGDClassifier(loss, alpha=0.1, epsilon=0.5, **SLOW), TWO, {"alpha": 0.3}, MEAN_ONE, rtol=0.04)
        for loss in ("squared_error", "huber", "squared_epsilon_insensitive")
    ),
]


def changed_copy(model, values):
    """Return a copy of a fitted model with other hyper-parameters."""
    model = copy.deepcopy(model)
    for path, value in values.items():
        *parent, name = path.split(".")
        owners = model.estimators_ if parent else [model]
        for owner in owners:
            setattr(owner, name, value)
    return model


@pytest.mark.sweep(27)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("model, y, changed, weights, options", [*LINEAR, *C_MODELS, *OTHERS, *STOCHASTIC])
def test_fits_minimise_the_objective(model, y, changed, weights, options, run):
    unweighted = weights is None or not has_fit_parameter(model, "sample_weight")
    for given in [{}] if unweighted else [{}, {"sample_weight": weights}]:
        fitted = clone(model).fit(X, y, **given)
        effective = given.get("sample_weight", np.ones(len(X)))
        if getattr(model, "class_weight", None):
            effective = effective * compute_sample_weight(model.class_weight, y)
        check_objective(fitted, X, y, effective, run=run, **options)
        if changed:
            with pytest.raises(AssertionError, match="falls along"):
                check_objective(changed_copy(fitted, changed), X, y, effective, run=run, **options)


TRAINED = [
    (make_pipeline(StandardScaler(), Ridge(20.0)), Y),
    (linear_model.RidgeClassifier(5.0), THREE),
    (linear_model.HuberRegressor(alpha=20.0, **EXACT), Y),
    (linear_model.PoissonRegressor(alpha=0.5, tol=1e-10), AMOUNTS),
    (LogisticRegression(C=0.1, tol=1e-9), THREE),
    (make_pipeline(StandardScaler(), svm.LinearSVC(C=0.02, intercept_scaling=0.3, **EXACT)), TWO),
    (OneVsRestClassifier(svm.LinearSVC(C=0.02, intercept_scaling=0.3, **EXACT)), THREE),
    (svm.LinearSVR(C=0.02, loss="squared_epsilon_insensitive", intercept_scaling=3.0, **EXACT), Y),
]


@pytest.mark.parametrize("model, y", TRAINED, ids=lambda value: type(value).__name__)
def test_training_with_the_objective_reaches_the_fit(model, y):
    fitted = clone(model).fit(X, y)
    found = objective_of(fitted, len(X))
    trainer = OrtGradientOptimizer(
        model,
        learning_loss=found.loss,
        learning_penalty=found.penalty,
        learning_rate=LearningRateLBFGS(gtol=1e-9),
        max_iter=500,
        dtype="float64",
        random_state=0,
    ).fit(X, y)
    # scores of several classes are unique up to a constant
    methods = ("predict_proba", "decision_function", "predict")
    method = next(method for method in methods if hasattr(fitted, method))
    expected = getattr(fitted, method)(X)
    np.testing.assert_allclose(getattr(trainer, method)(X).reshape(expected.shape), expected, atol=2e-4)


def test_two_penalties_of_one_weight_are_trained():
    model = linear_model.MultiTaskElasticNet(0.3, **EXACT).fit(X, SEVERAL)
    trainer = OrtGradientOptimizer(
        model,
        learning_penalty=objective_of(model, len(X)).penalty,
        learning_rate=LearningRateSGD(eta0=0.1, learning_rate="constant"),
        max_iter=1000,
        batch_size=len(X),
        dtype="float64",
        random_state=0,
    ).fit(X, SEVERAL)
    np.testing.assert_allclose(trainer.predict(X), model.predict(X), atol=1e-3)


@pytest.mark.parametrize("model", [svm.LinearSVC(), SGDClassifier()], ids=lambda model: type(model).__name__)
def test_class_weights_of_several_classes(model):
    """scikit-learn weights the positive class of each one-vs-rest model only."""
    weighted = clone(model).set_params(class_weight="balanced", random_state=0)
    for source, labels, differs in ((weighted, THREE, True), (weighted, TWO, False), (model, THREE, False)):
        assert bool(objective_of(clone(source).fit(X, labels), 1.0).differs) == differs
    if isinstance(model, svm.LinearSVC):
        is_first = THREE == 0
        of_samples = np.where(is_first, compute_sample_weight("balanced", THREE), 1.0)
        first = clone(model).set_params(random_state=0).fit(X, is_first, sample_weight=of_samples)
        np.testing.assert_allclose(weighted.fit(X, THREE).coef_[0], first.coef_[0], rtol=1e-3, atol=1e-3)
