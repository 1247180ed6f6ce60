"""Both estimators in scikit-learn's searches, ensembles, chains and pipelines, and their tags."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingRegressor, RandomForestClassifier, StackingRegressor, VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.model_selection import StratifiedKFold, cross_val_predict, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputRegressor, RegressorChain
from sklearn.naive_bayes import MultinomialNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.utils import get_tags

from ortlearn.learning_rates import LearningRateSGD
from ortlearn.trainable.from_estimator import sklearn_to_onnx

from .models import OPTIMIZERS


@pytest.fixture(params=list(OPTIMIZERS))
def optimizer(request):
    return OPTIMIZERS[request.param]


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X), (y - y.mean()) / y.std()


@pytest.fixture
def regressor(optimizer):
    return optimizer(LinearRegression(), learning_rate=LearningRateSGD(), max_iter=8, random_state=0)


@pytest.fixture
def classifier(optimizer):
    return optimizer(
        LogisticRegression(), learning_rate=LearningRateSGD(eta0=0.05), max_iter=8, random_state=0
    )


@pytest.mark.slow
def test_predictions_of_folds(classifier, wine):
    X, y = wine
    folds = StratifiedKFold(3)
    found = cross_val_predict(classifier, X, y, cv=folds, method="predict_proba")
    for train, test in folds.split(X, y):
        alone = clone(classifier).fit(X[train], y[train])
        assert_array_equal(found[test], alone.predict_proba(X[test]))
    decisions = cross_val_predict(classifier, X, y, cv=folds, method="decision_function")
    assert_array_equal(decisions.argmax(axis=1), found.argmax(axis=1))


def test_several_scores(classifier, wine):
    scores = cross_validate(classifier, *wine, cv=2, scoring=["accuracy", "roc_auc_ovr", "neg_log_loss"])
    assert scores["test_accuracy"].min() > 0.9 and scores["test_roc_auc_ovr"].min() > 0.95
    assert scores["test_neg_log_loss"].max() < 0


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibration(method, optimizer, wine):
    X, y = wine
    model = optimizer(SGDClassifier(), learning_rate=0.05, max_iter=20, random_state=0)
    calibrated = CalibratedClassifierCV(model, method=method, cv=2).fit(X, y)
    assert calibrated.score(X, y) > 0.9
    assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)


def test_stacking(regressor, diabetes):
    stack = StackingRegressor([("ours", regressor), ("ridge", Ridge())], final_estimator=Ridge(), cv=2)
    assert stack.fit(*diabetes).score(*diabetes) > 0.45
    assert stack.named_estimators_["ours"].predict(diabetes[0]).shape == (442,)


def test_voting(classifier, wine):
    vote = VotingClassifier([("ours", classifier), ("theirs", LogisticRegression())], voting="soft")
    assert vote.fit(*wine).score(*wine) > 0.95


def test_bagging_of_features(regressor, diabetes):
    X, y = diabetes
    bag = BaggingRegressor(regressor, n_estimators=3, max_features=0.5, random_state=0).fit(X, y)
    parts = [
        model.predict(X[:, columns])
        for model, columns in zip(bag.estimators_, bag.estimators_features_, strict=True)
    ]
    assert_allclose(bag.predict(X), np.mean(parts, axis=0))
    assert len({model.random_state for model in bag.estimators_}) == 3


def test_transformed_targets(regressor, diabetes):
    X, y = diabetes
    model = TransformedTargetRegressor(regressor, transformer=StandardScaler()).fit(X, 100 * y + 50)
    assert_allclose(model.predict(X), 100 * clone(regressor).fit(X, y).predict(X) + 50, rtol=1e-3, atol=0.05)


def test_last_step_of_a_pipeline(classifier, wine):
    X, y = wine
    names = [f"column {i}" for i in range(X.shape[1])]
    frame = pd.DataFrame(100 * X + 3, columns=names)
    pipeline = clone(make_pipeline(StandardScaler().set_output(transform="pandas"), classifier))
    pipeline.set_params(**{f"{pipeline.steps[-1][0]}__learning_rate__eta0": 0.1}).fit(frame, y)
    assert pipeline[-1].learning_rate.eta0 == 0.1
    assert pipeline[-1].feature_names_in_.tolist() == names
    assert pipeline.score(frame, y) > 0.95
    with pytest.raises(ValueError, match="feature names should match"):
        pipeline.predict(frame[names[::-1]])


def test_several_models_of_one_output(regressor, classifier, diabetes, wine):
    X, y = diabetes
    both = np.stack([y, -y], axis=1)
    for tool in (MultiOutputRegressor(regressor), RegressorChain(regressor)):
        assert tool.fit(X, both).score(X, both) > 0.4
    X, y = wine
    labels = np.stack([y == 0, y == 1], axis=1).astype(int)
    assert ClassifierChain(classifier).fit(X, labels).score(X, labels) > 0.9
    assert OneVsRestClassifier(classifier).fit(X, y).score(X, y) > 0.9


def test_importance_of_columns(regressor, diabetes):
    X, y = diabetes
    X = np.hstack([X, np.zeros((len(X), 1))])
    found = permutation_importance(regressor.fit(X, y), X, y, n_repeats=2, random_state=0)
    assert found.importances_mean.max() > 0.01 and found.importances_mean[-1] == 0


def test_tags_of_the_model(optimizer):
    def tags(model):
        return get_tags(optimizer(model))

    for model, has_several in [
        (Ridge(), True),
        (SGDRegressor(), False),
        (MLPRegressor(), True),  # supported, but not declared by scikit-learn
        (make_pipeline(StandardScaler(), MLPRegressor()), True),
        (RandomForestClassifier(), True),
        (LogisticRegression(), False),
    ]:
        assert tags(model).target_tags.multi_output is has_several
        assert tags(model).target_tags.single_output is True
        assert tags(model).target_tags.required is True
    assert tags(MultiOutputRegressor(Ridge())).target_tags.single_output is False
    assert (
        tags(make_pipeline(StandardScaler(), MultiOutputRegressor(Ridge()))).target_tags.single_output
        is False
    )
    assert tags(MLPClassifier()).classifier_tags.multi_label is True
    assert tags(LogisticRegression()).classifier_tags.multi_label is False
    assert tags(KMeans()).target_tags.required is False
    assert tags(MultinomialNB()).input_tags.positive_only is True
    assert tags(SVC(kernel="precomputed")).input_tags.pairwise is True
    assert tags(PCA()).transformer_tags.preserves_dtype == []
    assert tags(LinearDiscriminantAnalysis()).transformer_tags is None  # the estimator only classifies
    assert not tags(Ridge()).non_deterministic


def test_tags_of_supported_inputs(optimizer, wine):
    def tags(model):
        return get_tags(optimizer(model)).input_tags

    centred = make_pipeline(StandardScaler(), LogisticRegression())
    assert tags(LogisticRegression()).sparse and not tags(centred).sparse
    assert tags(centred.fit(*wine)).sparse  # converted to dense chunks
    missing = [
        (Ridge(), False),
        (make_pipeline(SimpleImputer(), Ridge()), True),
        (make_pipeline(StandardScaler(), Ridge()), False),
        (make_pipeline(StandardScaler(), MinMaxScaler(), SimpleImputer(), Ridge()), True),
    ]
    assert [tags(model).allow_nan for model, _ in missing] == [allowed for _, allowed in missing]


def test_tags_of_graphs(optimizer, diabetes, wine):
    regression = get_tags(optimizer(sklearn_to_onnx(Ridge().fit(*diabetes), diabetes[0].shape[1])))
    assert regression.estimator_type == "regressor" and regression.regressor_tags.poor_score
    assert regression.target_tags.multi_output and regression.classifier_tags is None
    classes = get_tags(optimizer(sklearn_to_onnx(LogisticRegression().fit(*wine), wine[0].shape[1])))
    assert classes.estimator_type == "classifier" and classes.classifier_tags.multi_class
    assert classes.regressor_tags is None and classes.input_tags.sparse
