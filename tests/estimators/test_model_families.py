"""All families of models are trained, and predict like scikit-learn and like their exported graph."""

import warnings

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import TransformedTargetRegressor
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    RandomForestClassifier,
    StackingRegressor,
    VotingClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.metrics import r2_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
    RegressorChain,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC, OneClassSVM

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import ObjectiveWarning

BOTH = [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer]
RANDOM = np.random.RandomState(0)
X, THREE = load_iris(return_X_y=True)
ORDER = RANDOM.permutation(len(X))[:90]
X = StandardScaler().fit_transform(X[ORDER]).astype(np.float32)
THREE = THREE[ORDER]
TWO = (THREE == 1).astype(int)
NAMES = np.array(["one", "three", "two"])[THREE]
LABELS = np.stack([THREE > 0, THREE > 1, X[:, 0] > 0], axis=1).astype(int)
OUTPUTS = np.stack([NAMES, np.array(["no", "yes"])[TWO]], axis=1)
VALUES = X @ np.array([1.0, -2.0, 0.5, 0.0]) + 3 + 0.1 * RANDOM.normal(size=90)
PAIRS = np.stack([VALUES, X[:, 1] ** 2], axis=1)
INLIERS = np.where(RANDOM.uniform(size=90) < 0.2, -1, 1)


def logistic():
    return LogisticRegression(max_iter=500)


CLASSIFIERS = {
    "one score": (logistic(), TWO),
    "softmax": (logistic(), NAMES),
    "discriminant": (LinearDiscriminantAnalysis(), TWO),
    "quadratic": (QuadraticDiscriminantAnalysis(), NAMES),
    "naive bayes": (GaussianNB(), NAMES),
    "support vectors": (SVC(), NAMES),
    "decisions": (RidgeClassifier(), NAMES),
    "two decisions": (LinearSVC(), TWO),
    "sigmoids": (SGDClassifier(loss="log_loss", random_state=0), NAMES),
    "huber": (SGDClassifier(loss="modified_huber", random_state=0), NAMES),
    "one against the rest": (OneVsRestClassifier(logistic()), NAMES),
    "decisions against the rest": (OneVsRestClassifier(LinearSVC()), TWO),
    "pairs": (OneVsOneClassifier(logistic()), NAMES),
    "forest": (RandomForestClassifier(4, max_depth=3, random_state=0), NAMES),
    "boosting": (AdaBoostClassifier(n_estimators=3, random_state=0), NAMES),
    "bagging": (BaggingClassifier(logistic(), n_estimators=2, random_state=0), NAMES),
    "bagged decisions": (BaggingClassifier(RidgeClassifier(), n_estimators=3, random_state=0), NAMES),
    "calibrated": (CalibratedClassifierCV(LinearSVC(), cv=2), NAMES),
    "soft vote": (VotingClassifier([("a", logistic()), ("b", GaussianNB())], voting="soft"), NAMES),
    "hard vote": (VotingClassifier([("a", logistic()), ("b", RidgeClassifier())]), TWO),
    "threshold": (FixedThresholdClassifier(logistic(), threshold=0.2), TWO),
    "search": (make_pipeline(StandardScaler(), GridSearchCV(logistic(), {"C": [1.0]}, cv=2)), NAMES),
    "labels of a network": (MLPClassifier((5,), max_iter=30, random_state=0), LABELS),
    "labels against the rest": (OneVsRestClassifier(logistic()), LABELS),
    "labels by decisions": (OneVsRestClassifier(LinearSVC()), LABELS),
    "labels of a ridge": (RidgeClassifier(), LABELS),
    "two labels of a network": (MLPClassifier((5,), max_iter=30, random_state=0), LABELS[:, :2]),
    "two labels of a ridge": (RidgeClassifier(), LABELS[:, :2]),
    "opposite labels": (RidgeClassifier(fit_intercept=False), np.stack([TWO, 1 - TWO], axis=1)),
    "labels of a forest": (RandomForestClassifier(4, max_depth=3, random_state=0), LABELS),
    "chain": (ClassifierChain(logistic(), order=[2, 0, 1]), LABELS),
    "chain by decisions": (ClassifierChain(RidgeClassifier()), LABELS),
    "chain by probabilities": (ClassifierChain(logistic(), chain_method="predict_proba"), LABELS),
    "outputs": (MultiOutputClassifier(logistic()), OUTPUTS),
    "outputs by decisions": (MultiOutputClassifier(RidgeClassifier()), LABELS),
}
REGRESSORS = {
    "outputs": (MultiOutputRegressor(Ridge()), PAIRS),
    "chain": (RegressorChain(Ridge(), order=[1, 0]), PAIRS),
    "latent": (PLSRegression(2), PAIRS),
    "stack": (StackingRegressor([("a", Ridge()), ("b", LinearRegression())], cv=2), VALUES),
    "scaled target": (
        make_pipeline(
            StandardScaler(), TransformedTargetRegressor(LinearRegression(), transformer=MinMaxScaler())
        ),
        PAIRS,
    ),
    "bent target": (
        TransformedTargetRegressor(LinearRegression(), func=np.arcsinh, inverse_func=np.sinh),
        VALUES,
    ),
}


def quietly(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def untrained(optimizer, model, y, **options):
    """Return an estimator with the weights of the fitted model."""
    options = {"max_iter": 1, "learning_rate": 1e-30, "random_state": 0, **options}
    return optimizer(model, warm_start=True, **options).fit(X, y)


def permuted_in_part(y):
    """Return labels of which a quarter is permuted."""
    y, samples = y.copy(), np.arange(0, len(y), 4)
    y[samples] = y[np.roll(samples, 3)]
    return y


def trained(optimizer, model, y, **options):
    """Return a model fitted on partly permuted labels and trained on the true ones."""
    start = quietly(model, X, permuted_in_part(y))
    options = {"learning_rate": 0.02, "max_iter": 15, "batch_size": 30, "random_state": 0, **options}
    return optimizer(start, warm_start=True, **options).fit(X, y)


def assert_alike(ours, theirs, atol=1e-4):
    if isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert_alike(mine, other, atol)
    elif theirs.dtype.kind == "f":
        np.testing.assert_allclose(ours, theirs, atol=atol, rtol=1e-3)
    else:
        np.testing.assert_array_equal(ours, theirs)


def check(name, cases, optimizer, run_onnx):
    """Check predictions before and after training; return the trained model and its labels."""
    model, y = cases[name]
    fitted = quietly(model, X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no difference from scikit-learn
        warnings.simplefilter("ignore", ObjectiveWarning)  # parameters ignored by a loss
        same = untrained(optimizer, fitted, y)
    assert_alike(same.predict(X), fitted.predict(X))
    if hasattr(fitted, "predict_proba"):
        assert_alike(same.predict_proba(X), fitted.predict_proba(X))
    better = trained(optimizer, model, y)
    assert better.train_losses_[-1] < better.train_losses_[0]
    output = next(iter(run_onnx(better.onnx_, X).values()))
    assert_alike(better.predict(X), output.reshape(better.predict(X).shape))
    return fitted, same, better, y


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, run_onnx):
    optimizer = BOTH[list(CLASSIFIERS).index(name) % 2]
    fitted, same, better, y = check(name, CLASSIFIERS, optimizer, run_onnx)
    assert_alike(list(same.classes_), list(fitted.classes_))
    if hasattr(fitted, "decision_function") and name != "bagged decisions":  # which has votes
        assert same.decision_function(X).shape == fitted.decision_function(X).shape
    assert hasattr(same, "predict_proba") == hasattr(fitted, "predict_proba")
    assert better.losses(X, y).shape == (90,)
    assert better.score(X, y) == (better.predict(X) == y).reshape(90, -1).all(axis=1).mean()


@pytest.mark.parametrize("name", ["discriminant", "labels of a network", "outputs by decisions", "hard vote"])
def test_classifiers_in_float64(name, run_onnx):
    model, y = CLASSIFIERS[name]
    fitted = quietly(model, X, y)
    same = untrained(OrtGradientOptimizer, fitted, y, dtype="float64")
    assert_alike(same.predict(X), fitted.predict(X))
    if hasattr(fitted, "predict_proba"):
        assert_alike(same.predict_proba(X), fitted.predict_proba(X), atol=1e-9)
    assert all(array.dtype == np.float64 for array in same.trained_coef_.values())
    np.testing.assert_array_equal(run_onnx(same.onnx_, X.astype(np.float64))["label"], same.predict(X))


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name, run_onnx):
    optimizer = BOTH[list(REGRESSORS).index(name) % 2]
    _, _, better, y = check(name, REGRESSORS, optimizer, run_onnx)
    assert better.predict(X).shape == y.shape


@pytest.mark.parametrize("optimizer", BOTH)
def test_losses_encode_labels(optimizer):
    model = trained(optimizer, MultiOutputClassifier(logistic()), OUTPUTS, max_iter=2)
    first, second = model.predict_proba(X)
    chosen = first[np.arange(90), THREE], second[np.arange(90), TWO]
    np.testing.assert_allclose(model.losses(X, OUTPUTS), -np.log(chosen).sum(axis=0), rtol=1e-3)
    for wrong, message in ((NAMES, "columns of classes"), (OUTPUTS[:, ::-1], "does not know")):
        with pytest.raises(ValueError, match=message):
            model.losses(X, wrong)


def test_later_classes_of_several_outputs():
    known = [np.unique(column) for column in OUTPUTS.T]
    model = OrtGradientOptimizer(MultiOutputClassifier(logistic()), learning_rate=0.05, random_state=0)
    first = (THREE > 0) & (TWO == 0)
    model.partial_fit(X[first], OUTPUTS[first], classes=known)
    assert_alike(model.classes_, known)
    assert model.partial_fit(X, OUTPUTS, classes=known).predict(X).shape == OUTPUTS.shape
    with pytest.raises(ValueError, match="differ from the classes of the first call"):
        model.partial_fit(X, OUTPUTS, classes=known[::-1])


@pytest.mark.parametrize("optimizer", BOTH)
def test_mixture_increases_the_likelihood(optimizer, run_onnx):
    start = GaussianMixture(3, random_state=0).fit(X[:60])
    same = untrained(optimizer, start, None)
    np.testing.assert_allclose(same.score_samples(X), start.score_samples(X), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(same.losses(X), -start.score_samples(X), rtol=1e-4, atol=1e-4)
    assert same.score(X) == pytest.approx(start.score(X), rel=1e-4)
    model = optimizer(start, warm_start=True, learning_rate=1e-3, max_iter=10, random_state=0).fit(X)
    assert model.score(X) > start.score(X)
    outputs = list(run_onnx(model.onnx_, X).values())
    np.testing.assert_array_equal(model.predict(X), outputs[0].ravel())
    np.testing.assert_allclose(model.predict_proba(X), outputs[1], atol=1e-6)
    assert not hasattr(model, "decision_function") and not hasattr(model, "classes_")


@pytest.mark.parametrize("optimizer", BOTH)
def test_kmeans_decreases_the_inertia(optimizer, run_onnx):
    start = KMeans(3, n_init=1, random_state=0).fit(X[:20])
    model = optimizer(start, warm_start=True, learning_rate=0.02, max_iter=10, random_state=0).fit(X)
    assert model.score(X) > start.score(X)
    assert model.score(X) == pytest.approx(-(model.transform(X).min(axis=1) ** 2).sum(), rel=1e-4)
    outputs = list(run_onnx(model.onnx_, X).values())
    np.testing.assert_array_equal(model.predict(X), outputs[0])
    np.testing.assert_allclose(model.transform(X), outputs[1], rtol=1e-5)
    model.fit(X, sample_weight=np.arange(90.0), X_val=X[:20])
    assert len(model.validation_losses_) > 0
    assert model.partial_fit(X).n_iter_ == 11


def test_outlier_detector_is_trained_on_labels(run_onnx):
    start = OneClassSVM().fit(X)
    model = OrtGradientOptimizer(start, warm_start=True, learning_rate=0.02, max_iter=10, random_state=0)
    with pytest.raises(ValueError, match=r"requires y to be passed.*\[-1, 1\]"):
        model.fit(X)
    model.fit(X, INLIERS)
    assert model.train_losses_[-1] < model.train_losses_[0]
    assert set(model.predict(X)) <= {-1, 1} and not hasattr(model, "classes_")
    np.testing.assert_array_equal(model.predict(X), np.where(model.decision_function(X) > 0, 1, -1))
    np.testing.assert_array_equal(model.predict(X), run_onnx(model.onnx_, X)["label"].ravel())


@pytest.mark.parametrize("optimizer", BOTH)
def test_transformer_is_trained_on_targets(optimizer, run_onnx):
    start = make_pipeline(StandardScaler(), PCA(2)).fit(X)
    target = start.transform(X) * 1.5 + 1
    model = optimizer(start, warm_start=True, learning_rate=0.05, max_iter=20, random_state=0)
    with pytest.raises(ValueError, match="2 columns that transform returns"):
        model.fit(X)
    model.fit(X, target)
    assert r2_score(target, model.transform(X)) > 0.9
    assert not hasattr(model, "predict")
    (output,) = run_onnx(model.onnx_, X).values()
    np.testing.assert_allclose(model.transform(X), output, rtol=1e-5)


def test_unfitted_models_of_several_outputs():
    model = OrtGradientOptimizer(
        OneVsRestClassifier(logistic()), learning_rate=0.1, max_iter=30, random_state=0
    )
    assert model.fit(X, LABELS).score(X, LABELS) > 0.8
    network = OrtGradientOptimizer(MLPClassifier((8,)), learning_rate=0.1, max_iter=60, random_state=0)
    assert network.fit(X, LABELS).score(X, LABELS) > 0.8
