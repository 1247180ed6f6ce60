"""Initializers are recognised as the fitted attributes they hold, and nothing else is trained."""

import copy

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, KernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC, LinearSVC

from ortlearn.conversion import learned_parameters, sklearn_to_onnx, to_trainable
from ortlearn.conversion.weights.fitted_attributes import FittedArray, fitted_arrays
from ortlearn.conversion.weights.learned_parameters import Match, match_parameters
from ortlearn.conversion.weights.number_index import NumberIndex, evidence
from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError, NoTrainableWeightError
from ortlearn.graphs import initializer_arrays

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.RandomState(0)
X = RNG.randn(60, 3).astype(np.float32)
Y = (X @ [1.0, -2.0, 0.5] + 0.3 * RNG.randn(60)).astype(np.float32)
LABELS = np.digitize(Y, [-1.0, 1.0])
BINARY = (Y > 0).astype(int)
COUNTS = RNG.poisson(3.0, (60, 3)).astype(np.float32)


def members(attribute, count):
    return [attribute.replace("*", str(i)) for i in range(count)]


#: Estimator, features, labels, and the attributes that are trained.
TRAINED = {
    "linear": (LinearRegression(), X, Y, ["coef_", "intercept_"]),
    "no intercept": (Ridge(fit_intercept=False), X, Y, ["coef_"]),
    "binary": (LogisticRegression(), X, BINARY, ["coef_", "intercept_"]),
    "linear svc": (LinearSVC(), X, LABELS, ["coef_", "intercept_"]),
    "lda": (LinearDiscriminantAnalysis(), X, LABELS, ["coef_", "intercept_"]),
    "mlp": (
        MLPClassifier((4,), max_iter=5, random_state=0),
        X,
        LABELS,
        ["coefs_[0]", "coefs_[1]", "intercepts_[0]", "intercepts_[1]"],
    ),
    "qda": (
        QuadraticDiscriminantAnalysis(),
        X,
        BINARY,
        [*members("means_[*]", 2), "priors_", *members("rotations_[*]", 2), *members("scalings_[*]", 2)],
    ),
    "gaussian": (GaussianNB(), X, LABELS, ["class_prior_", "theta_", "var_"]),
    "bernoulli": (BernoulliNB(), X, LABELS, ["class_log_prior_", "feature_log_prob_"]),
    "multinomial": (MultinomialNB(), COUNTS, LABELS, ["class_log_prior_", "feature_log_prob_"]),
    "categorical": (
        CategoricalNB(),
        np.minimum(COUNTS, 3),
        LABELS,
        ["class_log_prior_", *members("feature_log_prob_[*]", 3)],
    ),
    "kmeans": (KMeans(3, n_init=1, random_state=0), X, None, ["cluster_centers_"]),
    "pca": (PCA(2), X, None, ["components_", "mean_"]),
    "whitened": (PCA(2, whiten=True), X, None, ["components_", "explained_variance_", "mean_"]),
    "scaler": (StandardScaler(), X, None, ["mean_", "scale_"]),
    "power": (PowerTransformer(), X, None, ["_scaler.mean_", "_scaler.scale_", "lambdas_"]),
    "quantiles": (QuantileTransformer(n_quantiles=10), X, None, ["quantiles_"]),
    "svc": (SVC(), X, BINARY, ["dual_coef_", "intercept_", "support_vectors_"]),
    "process": (
        GaussianProcessRegressor(ConstantKernel(1.31234) * RBF(0.71234), alpha=0.1, optimizer=None),
        X,
        Y,
        ["X_train_", "_y_train_mean", "alpha_"],
    ),
    "forest": (RandomForestRegressor(4, random_state=0), X, Y, ["estimators_[*].tree_.value"]),
    "boosting": (
        GradientBoostingRegressor(n_estimators=4, random_state=0),
        X,
        Y,
        ["estimators_[*][0].tree_.value", "init_.constant_"],
    ),
    "bagging": (
        BaggingRegressor(make_pipeline(StandardScaler(), Ridge()), 2, random_state=0),
        X,
        Y,
        [*members("estimators_[*]['ridge'].coef_", 2), *members("estimators_[*]['ridge'].intercept_", 2)],
    ),
    "voting": (
        VotingRegressor([("a", Ridge()), ("b", LinearRegression())]),
        X,
        Y,
        [*members("estimators_[*].coef_", 2), *members("estimators_[*].intercept_", 2)],
    ),
    "stacking": (
        StackingRegressor([("a", Ridge()), ("b", LinearRegression())], Ridge(2.0), cv=2),
        X,
        Y,
        [
            *members("estimators_[*].coef_", 2),
            *members("estimators_[*].intercept_", 2),
            "final_estimator_.coef_",
            "final_estimator_.intercept_",
        ],
    ),
    "one against the rest": (
        OneVsRestClassifier(LogisticRegression()),
        X,
        LABELS,
        [*members("estimators_[*].coef_", 3), *members("estimators_[*].intercept_", 3)],
    ),
    "calibrated": (
        CalibratedClassifierCV(LogisticRegression(), cv=2),
        X,
        BINARY,
        [
            f"calibrated_classifiers_[{i}].{name}"
            for i in range(2)
            for name in ("calibrators[0].a_", "calibrators[0].b_", "estimator.coef_", "estimator.intercept_")
        ],
    ),
    "search": (GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2), X, Y, ["coef_", "intercept_"]),
    "columns": (
        ColumnTransformer([("a", StandardScaler(), [0]), ("b", MinMaxScaler(), [1, 2])]),
        X,
        None,
        [
            "named_transformers_['a'].mean_",
            "named_transformers_['a'].scale_",
            "named_transformers_['b'].min_",
            "named_transformers_['b'].scale_",
        ],
    ),
    "union": (
        FeatureUnion([("a", PCA(1)), ("b", MinMaxScaler())]),
        X,
        None,
        ["['a'].components_", "['a'].mean_", "['b'].min_", "['b'].scale_"],
    ),
    "kernel pca": (
        KernelPCA(2, kernel="rbf"),
        X[:20],
        None,
        ["X_fit_", "_centerer.K_fit_all_", "_centerer.K_fit_rows_", "eigenvectors_ / sqrt(eigenvalues_)"],
    ),
}


def fitted(estimator, features, labels):
    return estimator.fit(features) if labels is None else estimator.fit(features, labels)


@pytest.mark.parametrize("case", TRAINED, ids=str)
def test_what_is_trained_is_what_was_fitted(case):
    estimator, features, labels, expected = TRAINED[case]
    trainable = to_trainable(fitted(estimator, features, labels))
    assert sorted(trainable.weights[name].attribute or "" for name in trainable.trained) == sorted(expected)


@pytest.mark.parametrize("case", ["binary", "mlp", "qda", "lda", "process", "calibrated"])
def test_attributes_are_found_in_float64_too(case):
    estimator, features, labels, expected = TRAINED[case]
    trainable = to_trainable(fitted(estimator, features, labels), dtype=np.float64)
    assert sorted(trainable.weights[name].attribute or "" for name in trainable.trained) == sorted(expected)


#: Estimators with writable attributes, and those to change.
CHANGED = {
    "linear": ["coef_", "intercept_"],
    "binary": ["coef_", "intercept_"],
    "qda": ["priors_", "rotations_", "scalings_"],
    "gaussian": ["theta_", "class_prior_"],
    "multinomial": ["feature_log_prob_", "class_log_prior_"],
    "mlp": ["coefs_", "intercepts_"],
    "pca": ["components_", "mean_"],
    "process": ["alpha_"],
}


@pytest.mark.parametrize(
    "case, attribute", [(case, attribute) for case, names in CHANGED.items() for attribute in names]
)
def test_another_value_of_an_attribute_changes_its_initializers_and_no_others(case, attribute):
    estimator, features, labels, _ = TRAINED[case]
    estimator = fitted(estimator, features, labels)
    changed = copy.deepcopy(estimator)
    value = getattr(changed, attribute)
    if isinstance(value, list):
        for array in value:
            array *= 1.1 + 0.1 * np.arange(array.size).reshape(array.shape)  # in place
    else:
        setattr(changed, attribute, value * (1.1 + 0.1 * np.arange(np.size(value)).reshape(np.shape(value))))
    before, after = (sklearn_to_onnx(e, features.shape[1]) for e in (estimator, changed))
    old, new = initializer_arrays(before), initializer_arrays(after)
    different = {name for name in old if not np.array_equal(old[name], new[name])}
    found = learned_parameters(before, estimator)
    assert different == {n for n, match in found.items() if match.arrays[0].key[1] == attribute}
    assert different == {
        n for n, m in learned_parameters(after, changed).items() if m.arrays[0].key[1] == attribute
    }


def test_steps_and_origins():
    model = make_pipeline(StandardScaler(), make_pipeline(PCA(2), Ridge())).fit(X, Y)
    trainable = to_trainable(model)
    assert trainable.origins() == {
        "coef": "pipeline: ['ridge'].coef_",
        "intercept": "pipeline: ['ridge'].intercept_",
    }
    frozen = {w.origin for w in trainable.weights.values() if not w.learned and w.attribute}
    assert frozen == {
        "standardscaler: mean_",
        "standardscaler: 1 / scale_",
        "pipeline: ['pca'].components_",
        "pipeline: ['pca'].mean_",
    }


def test_a_last_step_that_does_nothing_is_no_model():
    with pytest.raises(ConversionError, match="ends with 'passthrough', where nothing is trained"):
        to_trainable(make_pipeline(PCA(2), "passthrough").fit(X))


def test_a_member_given_as_frozen_is_not_trained():
    member = FrozenEstimator(LinearRegression().fit(X, Y))
    model = StackingRegressor([("a", Ridge()), ("b", member)], Ridge(2.0), cv=2).fit(X, Y)
    coefficients = {a.attribute: a.trained for a in fitted_arrays(model) if a.attribute.endswith("coef_")}
    assert coefficients == {
        "estimators_[0].coef_": True,
        "estimators_[1].estimator.coef_": False,
        "final_estimator_.coef_": True,
    }


@pytest.mark.parametrize(
    "patterns, expected",
    [
        ("pca.*", {"pca: components_", "pca: mean_"}),
        ("pca.components_", {"pca: components_"}),
        (["mean_", "ridge.coef_"], {"standardscaler: mean_", "pca: mean_", "ridge: coef_"}),
        ("*.intercept_", {"ridge: intercept_"}),
    ],
)
def test_weights_are_named_by_step_and_attribute(patterns, expected):
    model = make_pipeline(StandardScaler(), PCA(2), Ridge()).fit(X, Y)
    assert set(to_trainable(model, patterns).origins().values()) == expected


def test_brackets_of_an_attribute_are_taken_as_they_are():
    model = VotingRegressor([("a", Ridge()), ("b", LinearRegression())]).fit(X, Y)
    assert list(to_trainable(model, "estimators_[1].coef_").origins().values()) == ["estimators_[1].coef_"]
    with pytest.raises(NoTrainableWeightError, match=r"matches no .*\(estimators_\[0\].coef_\)"):
        to_trainable(model, "estimators_[2].coef_")


def test_weights_to_train_of_an_estimator_tells_the_origins():
    model = make_pipeline(StandardScaler(), LogisticRegression())
    trained = OrtGradientOptimizer(model, max_iter=1, random_state=0).fit(X, LABELS)
    expected = {"coef": "logisticregression: coef_", "intercept": "logisticregression: intercept_"}
    assert trained.weights_to_train_ == expected
    assert trained.trained_coef_.keys() == expected.keys()


def test_intercepts_of_zero_are_found_by_their_place():
    model = MLPRegressor(hidden_layer_sizes=(3, 3), max_iter=2, random_state=0).fit(X, Y)
    for array in model.intercepts_:
        array[:] = 0
    trainable = to_trainable(model)
    attributes = [trainable.weights[name].attribute for name in trainable.trained]
    assert sorted(attributes) == sorted([*members("coefs_[*]", 3), *members("intercepts_[*]", 3)])


def test_fitted_hyper_parameters_are_trained_by_name_only():
    estimator, features, labels, _ = TRAINED["process"]
    model = fitted(estimator, features, labels)
    weights = to_trainable(model).weights.values()
    kernel = {w.attribute: w.reason for w in weights if w.attribute and w.attribute.startswith("kernel_")}
    assert set(kernel) == {"kernel_.k1.constant_value", "kernel_.k2.length_scale"}
    assert set(kernel.values()) == {"fitted hyper-parameter of the kernel"}
    chosen = to_trainable(model, "kernel_.*").origins()
    assert set(chosen.values()) == set(kernel)


def test_the_table_of_a_target_encoder_ends_with_a_number_of_its_own():
    categories = RNG.randint(0, 4, (60, 2)).astype(np.int64)
    encoder = TargetEncoder(random_state=0).fit(categories.astype(str), Y)
    index = {array.attribute: array.values for array in fitted_arrays(encoder)}
    table = np.append(index["encodings_[1]"], encoder.target_mean_).astype(np.float32)
    found = match_parameters({"table": table}, fitted_arrays(encoder))
    assert found["table"].attribute == "encodings_[1]"


@pytest.mark.parametrize(
    "case, drawn",
    [("binary", True), ("mlp", True), ("svc", False), ("gaussian", False), ("forest", False), ("pca", False)],
)
def test_only_weights_of_linear_models_and_networks_are_drawn_anew(case, drawn):
    estimator, features, labels, _ = TRAINED[case]
    trainable = to_trainable(fitted(estimator, features, labels))
    assert {trainable.weights[name].drawn for name in trainable.trained} == {drawn}


def test_nothing_is_recognised_by_numbers_that_every_formula_has():
    fit = fitted_arrays(LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0]))
    assert {array.attribute for array in fit} >= {"coef_", "intercept_"}
    constants = {"two": np.array([2.0]), "one": np.array(1.0), "half": np.array([0.5, 0.0])}
    assert match_parameters(constants, fit) == {}


@pytest.mark.parametrize(
    "name, change",
    [
        ("identity", lambda v: v),
        ("negative", lambda v: -v),
        ("log", np.log),
        ("reciprocal", lambda v: 1 / v),
        ("square", np.square),
        ("sqrt", np.sqrt),
        ("exp", np.exp),
        ("reciprocal sqrt", lambda v: 1 / np.sqrt(v)),
        ("negative log", lambda v: -np.log(v)),
    ],
)
def test_transforms_of_converters(name, change):
    values = np.abs(X[:5, 0]).astype(np.float64)
    array = FittedArray("values_", None, values, "Estimator")
    converted = change(values).astype(np.float32)[::-1].reshape(1, -1)  # in any order and shape
    assert match_parameters({"w": converted}, [array])["w"] == Match((array,), name)
    assert match_parameters({"w": converted * 1.01}, [array]) == {}


def test_members_are_recognised_together_and_one_by_one():
    model = VotingRegressor([("a", Ridge(0.1)), ("b", Ridge(9.0)), ("c", LinearRegression())]).fit(X, Y)
    stacked = np.stack([member.coef_ for member in model.estimators_], axis=1).astype(np.float32)
    fit = fitted_arrays(model)
    found = match_parameters({"all": stacked, "one": stacked[:, 1], "none": stacked + 0.1}, fit)
    assert {name: match.attribute for name, match in found.items()} == {
        "all": "estimators_[*].coef_",
        "one": "estimators_[1].coef_",
    }


def test_evidence_and_index():
    assert evidence(np.array([0.0, 1.0, -3.5, 100.0])) == 0
    assert evidence(np.array([0.12345678, 0.12345678, np.inf, np.nan])) == 4
    index = NumberIndex({3: np.array([0.1, 0.2]), 5: np.array([0.2, 0.3])})
    assert index.holders(np.array([0.2, 0.0])) == [3, 5]
    assert index.holders(np.array([-0.1])) == [3]
    assert index.holders(np.array([0.1, 0.3])) == []
    assert index.hold_together([3, 5], np.array([0.1, 0.3]))
    assert not index.hold_together([3, 5], np.array([0.1, 0.4]))
    assert index.holders(np.zeros(2)) == []


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_the_calibration_of_a_frozen_classifier_is_trained_alone(method):
    member = FrozenEstimator(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, BINARY))
    model = CalibratedClassifierCV(member, method=method).fit(X, BINARY)
    names = {"sigmoid": ["a_", "b_"], "isotonic": ["y_thresholds_"]}[method]
    found = sorted(to_trainable(model).origins().values())
    assert found == [f"calibrated_classifiers_[0].calibrators[0].{name}" for name in names]
    frozen = "calibrated_classifiers_[0].estimator.estimator['logisticregression'].coef_"
    assert list(to_trainable(model, frozen).origins().values()) == [frozen]


def test_origins_tell_what_the_graph_holds():
    """The numbers are the expression's, for every weight that has one."""
    scaler = StandardScaler().fit(X)
    trainable = to_trainable(scaler)
    assert trainable.origins() == {"mean": "mean_", "scale": "scale_"}
    mixture = GaussianMixture(2, random_state=0).fit(X)
    (name,) = [name for name, origin in to_trainable(mixture).origins().items() if "weights_" in origin]
    assert to_trainable(mixture).origins()[name] == "log(weights_)"
    trained = OrtGradientOptimizer(mixture, learning_rate=1e-12, max_iter=1, warm_start=True).fit(X)
    np.testing.assert_allclose(np.ravel(trained.trained_coef_[name]), np.log(mixture.weights_), rtol=1e-5)
    names = ["scale_", "1 / scale_"]
    assert all(list(to_trainable(scaler, n).origins()) == ["scale"] for n in names)
    bayes = make_pipeline(StandardScaler(), GaussianNB()).fit(X, np.arange(len(X)) % 2)
    for n in (
        "class_prior_",
        "log(class_prior_)",
        "gaussiannb.log(class_prior_)",
        "gaussiannb: log(class_prior_)",
    ):
        assert list(to_trainable(bayes, n).origins().values()) == ["gaussiannb: log(class_prior_)"]


@pytest.mark.parametrize("order", [["kept", "free"], ["free", "kept"], ["free", "kept", "other", "kept_too"]])
def test_a_frozen_member_with_the_numbers_of_another(order):
    """Which initializer is whose is told by the order then."""
    fitted = LinearRegression().fit(X, Y)
    members = {
        "kept": FrozenEstimator(fitted),
        "kept_too": FrozenEstimator(copy.deepcopy(fitted)),
        "free": LinearRegression(),
        "other": LinearRegression(),
    }
    vote = VotingRegressor([(name, members[name]) for name in order]).fit(X, Y)
    found = to_trainable(vote)
    free = [i for i, name in enumerate(order) if not name.startswith("kept")]
    expected = {f"estimators_[{i}].{name}" for i in free for name in ("coef_", "intercept_")}
    assert set(found.origins().values()) == expected
    trained = OrtGradientOptimizer(vote, warm_start=True, learning_rate=0.1, max_iter=2, random_state=0)
    written = trained.fit(X, -Y).to_sklearn()
    np.testing.assert_allclose(written.predict(X), trained.predict(X), rtol=1e-4, atol=1e-5)
    for i, member in enumerate(written.estimators_):
        same = np.array_equal(getattr(member, "estimator", member).coef_, fitted.coef_)
        assert same == (i not in free)
