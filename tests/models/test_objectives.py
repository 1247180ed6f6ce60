"""The objective of a definition is the one that scikit-learn minimised, and no other.

At scikit-learn's optimum, ours falls in no direction; with another hyper-parameter it does.
"""

import copy
import operator

import numpy as np
import pytest
from sklearn import calibration, cluster, ensemble, isotonic, linear_model, mixture, model_selection, svm, tree
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor, RegressorChain
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from ortlearn.losses import (
    AbsoluteErrorLoss,
    EpsilonInsensitiveLoss,
    HingeLoss,
    HuberLoss,
    LogLoss,
    ModifiedHuberLoss,
    PerceptronLoss,
    SignedLabelLoss,
    SquaredErrorLoss,
    SquaredHingeLoss,
)
from ortlearn.models import objective_of
from ortlearn.penalties import L1Penalty, L2Penalty, NoPenalty
from ortlearn.testing import check_loss, check_model, check_objective

RNG = np.random.RandomState(0)
X = RNG.normal(size=(80, 4)) + 0.3
Y = X @ [1.0, -2.0, 0.5, 0.0] + RNG.normal(size=80) + 1.0
TWO, THREE = (Y > 0).astype(int), np.digitize(Y, [-1, 1])
SEVERAL = np.column_stack([Y, X[:, 0] - Y / 2 + RNG.normal(size=80)])
LABELS = np.column_stack([TWO, SEVERAL[:, 1] > 0]).astype(int)
AMOUNTS = np.exp(Y / 3)
WEIGHTS = RNG.uniform(0.2, 3.0, size=80)
EXACT = {"tol": 1e-12, "max_iter": 200_000}


def case(model, y, changed, weighted=True, **options):
    """Return a case: an estimator, its labels, and a hyper-parameter that was not the fitted one."""
    name = f"{type(model).__name__}-{'-'.join(f'{k}={v}' for k, v in changed.items())}"
    return pytest.param(model, y, changed, weighted, options, id=name)


LINEAR = [
    case(linear_model.LinearRegression(), Y, {}),
    case(linear_model.LinearRegression(positive=True), Y, {}),
    case(linear_model.LinearRegression(fit_intercept=False), SEVERAL, {}),
    *(case(Ridge(alpha), Y, {"alpha": 2 * alpha}) for alpha in (0.5, 30.0)),
    case(Ridge(20.0, positive=True), Y, {"alpha": 30.0}),
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
    case(linear_model.LassoLars(0.2), Y, {"alpha": 0.1}, False),
    case(linear_model.LassoLarsIC(noise_variance=20.0), Y, {"alpha_": 0.02}, False),
    case(linear_model.LassoLarsCV(cv=3), Y, {"alpha_": 0.3}, False),
    case(linear_model.MultiTaskLasso(0.3, **EXACT), SEVERAL, {"alpha": 0.2}, False),
    case(linear_model.MultiTaskElasticNet(0.3, **EXACT), SEVERAL, {"l1_ratio": 0.2}, False),
    case(linear_model.MultiTaskElasticNetCV(alphas=[0.3], **EXACT), SEVERAL, {"alpha_": 0.2}, False),
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
C_MODELS = [
    *(case(LogisticRegression(C=C, tol=1e-9), TWO, {"C": 2 * C}) for C in (0.01, 1.0)),
    case(LogisticRegression(C=0.1, tol=1e-9), THREE, {"C": 0.2}),
    case(LogisticRegression(C=0.1, tol=1e-9, class_weight="balanced"), THREE, {"C": 0.2}),
    case(LogisticRegression(C=np.inf, tol=1e-9), THREE, {"C": 1.0}),
    case(LogisticRegression(C=0.1, solver="liblinear", tol=1e-9), TWO, {"intercept_scaling": 3.0}),
    case(
        LogisticRegression(C=0.1, solver="liblinear", intercept_scaling=0.5, tol=1e-9),
        TWO,
        {"intercept_scaling": 0.6},
    ),
    case(LogisticRegression(C=0.1, solver="liblinear", fit_intercept=False, tol=1e-9), TWO, {"C": 1}),
    case(LogisticRegression(C=0.1, l1_ratio=0.6, solver="saga", **EXACT), THREE, {"C": 0.2}),
    case(LogisticRegression(C=0.1, l1_ratio=1.0, solver="saga", **EXACT), TWO, {"l1_ratio": 0.5}),
    case(svm.LinearSVC(C=0.02, **EXACT), TWO, {"C": 0.04}),
    case(svm.LinearSVC(C=0.02, intercept_scaling=2.0, **EXACT), THREE, {"intercept_scaling": 1.0}),
    case(svm.LinearSVC(C=0.02, loss="hinge", **EXACT), TWO, {"C": 0.04}),
    case(svm.LinearSVC(C=0.05, penalty="l1", dual=False, **EXACT), THREE, {"C": 0.1}),
    case(svm.LinearSVR(C=0.02, **EXACT), Y, {"C": 0.04}),
    case(svm.LinearSVR(C=0.02, epsilon=0.7, loss="squared_epsilon_insensitive", **EXACT), Y, {"epsilon": 1}),
]
OTHERS = [
    case(MLPRegressor((), alpha=5.0, solver="lbfgs", **EXACT), Y, {"alpha": 10.0}),
    case(MLPClassifier((), alpha=5.0, solver="lbfgs", **EXACT), TWO, {"alpha": 10.0}),
    case(MLPClassifier((), alpha=5.0, solver="lbfgs", **EXACT), THREE, {"alpha": 10.0}),
    case(MLPClassifier((3,), "tanh", alpha=5.0, solver="lbfgs", random_state=0, **EXACT), LABELS, {"alpha": 1}),
    case(tree.DecisionTreeRegressor(max_depth=3), SEVERAL, {"criterion": "absolute_error"}),
    case(
        tree.DecisionTreeRegressor(max_depth=3, criterion="absolute_error"), Y, {"criterion": "friedman_mse"}
    ),
    case(isotonic.IsotonicRegression(out_of_bounds="clip"), Y, {}),
    case(
        ensemble.HistGradientBoostingRegressor(
            max_iter=1, learning_rate=1.0, l2_regularization=5.0, min_samples_leaf=10, early_stopping=False
        ),
        Y,
        {"l2_regularization": 2.0},
        names={"leaf_values"},
    ),
    case(cluster.KMeans(3, n_init=2, random_state=0, tol=0), None, {}),
    case(mixture.GaussianMixture(2, tol=1e-13, reg_covar=0, max_iter=5000, random_state=0), None, {}, False),
    case(MultiOutputRegressor(Ridge(20.0)), SEVERAL, {"estimators_[*].alpha": 10.0}),
    case(OneVsRestClassifier(LogisticRegression(C=0.1, tol=1e-9)), THREE, {"estimators_[*].C": 0.3}, False),
    case(MultiOutputClassifier(LogisticRegression(C=0.1, tol=1e-9)), LABELS, {"estimators_[*].C": 0.3}),
]


def changed_copy(model, values):
    """Return a copy whose hyper-parameters are not those it was fitted with."""
    model = copy.deepcopy(model)
    for path, value in values.items():
        *parent, name = path.split(".")
        owners = model.estimators_ if parent else [model]
        for owner in owners:
            setattr(owner, name, value)
    return model


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model, y, changed, weighted, options", [*LINEAR, *C_MODELS, *OTHERS])
def test_scikit_learn_minimised_it(model, y, changed, weighted, options, run):
    features = X[:, :1] if isinstance(model, isotonic.IsotonicRegression) else X
    for weights in [None, WEIGHTS] if weighted else [None]:
        given = {} if weights is None else {"sample_weight": weights}
        fitted = clone(model).fit(features, y, **given)
        if getattr(model, "class_weight", None):
            balanced = compute_sample_weight(model.class_weight, y)
            # the classes of weighted samples are balanced by their weights
            weights = balanced if weights is None else weights * balanced
        check_objective(fitted, features, y, weights, run=run, **options)
        if changed:
            with pytest.raises(AssertionError, match="falls along"):
                check_objective(changed_copy(fitted, changed), features, y, weights, run=run, **options)
