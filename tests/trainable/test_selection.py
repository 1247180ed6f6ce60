"""Selection of the weights to train: learned weights, or those that match names and patterns."""

from ast import literal_eval

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, RobustScaler, StandardScaler

from ortlearn.exceptions import ConversionError, NoTrainableWeightError
from ortlearn.models.parameters import CONSTANT, Weight
from ortlearn.trainable.conversion import to_trainable
from ortlearn.trainable.explanation import explain
from ortlearn.trainable.selection import select_weights

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_constant_of_a_classifier_is_not_a_weight(wine):
    model = MLPClassifier((4,), max_iter=5).fit(wine.X_train, wine.y_train == 0)
    trainable = to_trainable(model)
    names = {trainable.original_names[name] for name in trainable.trained}
    assert names == {"coefs_0", "intercepts_0", "coefs_1", "intercepts_1"}
    constants = {name for name, weight in trainable.weights.items() if weight.reason == CONSTANT}
    assert constants and not constants & set(trainable.trained)


PREPROCESSING = [
    make_pipeline(StandardScaler(), PCA(4)),
    make_pipeline(MinMaxScaler(), "passthrough", StandardScaler()),
    make_pipeline(PCA(4, whiten=True)),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("before", PREPROCESSING, ids=["scaler-pca", "minmax-scaler", "whitening"])
def test_preprocessing_is_frozen(diabetes, before, nested, dtype):
    last = MLPRegressor(hidden_layer_sizes=(3,), max_iter=5, random_state=0)
    steps = [step for _, step in before.steps]
    pipeline = (
        make_pipeline(steps[0], make_pipeline(*steps[1:], last)) if nested else make_pipeline(*steps, last)
    )
    model = pipeline.fit(diabetes.X_train, diabetes.y_train)
    trainable = to_trainable(model, dtype=dtype)
    sizes = [array.size for array in trainable.initial_weights().values()]
    n_columns = 10 if "minmaxscaler" in before.named_steps else 4
    assert sorted(sizes) == sorted([n_columns * 3, 3, 3, 1])


def test_weight_equal_to_a_parameter_of_the_scaler():
    X = np.array([[-1.0], [1.0]])
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(X, [-2.0, 2.0])
    # the mean and the intercept are both exactly zero
    assert model[0].mean_ == model[1].intercept_ == 0
    trainable = to_trainable(model)
    assert [array.tolist() for array in trainable.initial_weights().values()] == [[[2.0]], [0.0]]


def test_preprocessing_is_trained_if_named(diabetes):
    model = make_pipeline(StandardScaler(), Ridge()).fit(diabetes.X_train, diabetes.y_train)
    assert to_trainable(model).trained == ["I2_coef", "I3_intercept"]
    assert to_trainable(model, ["mean", "coef"]).trained == ["I0_mean", "I2_coef"]
    assert to_trainable(model, "*").trained == ["I0_mean", "I1_scale", "I2_coef", "I3_intercept"]


WEIGHTS = {
    name: Weight(name, role, learned)
    for name, role, learned in [
        ("I0_mean", "other", False),
        ("I1_coef", "weight", True),
        ("I2_intercept", "intercept", True),
    ]
}
ORIGINAL = {"I0_mean": "scaler.mean", "I1_coef": "net.coef", "I2_intercept": "net.intercept"}


@pytest.mark.parametrize(
    "patterns, expected",
    [
        (None, ["I1_coef", "I2_intercept"]),
        ("*", ["I0_mean", "I1_coef", "I2_intercept"]),
        ("net.*", ["I1_coef", "I2_intercept"]),
        (["I2_*", "I1_*"], ["I1_coef", "I2_intercept"]),
        (["net.coef", "I1_coef"], ["I1_coef"]),
        ("I?_m*", ["I0_mean"]),
        (("scaler.mean",), ["I0_mean"]),
    ],
)
def test_names_and_patterns(patterns, expected):
    assert select_weights(WEIGHTS, patterns, ORIGINAL) == expected


@pytest.mark.parametrize("patterns", ["coef", ["net.*", "NET.coef"], "I3_*", [""]])
def test_error_of_a_pattern_without_matches(patterns):
    with pytest.raises(
        NoTrainableWeightError, match=r"matches no .*'scaler.mean', 'net.coef', 'net.intercept'"
    ):
        select_weights(WEIGHTS, patterns, ORIGINAL)


def test_error_of_a_pattern_that_is_not_a_string():
    with pytest.raises(
        TypeError, match="weights_to_train has the entry 3: names and patterns must be strings"
    ):
        select_weights(WEIGHTS, ["I0_mean", 3], ORIGINAL)


@pytest.mark.parametrize(
    "patterns, text", [(None, "no weight to train"), ([], "weights_to_train is empty: ")]
)
def test_error_if_nothing_is_trained(patterns, text):
    with pytest.raises(NoTrainableWeightError, match=f"{text}.*'scaler.mean'"):
        select_weights({"I0_mean": WEIGHTS["I0_mean"]}, patterns, ORIGINAL)


@pytest.mark.parametrize(
    "pattern, expected",
    [
        ("coefs_[*]", ["coefs_[0]", "coefs_[1]"]),
        ("coefs_[1]*", ["coefs_[1]"]),
        ("coefs_[1]", ["coefs_[1]"]),
        ("*s_[?]", ["coefs_[0]", "coefs_[1]", "intercepts_[0]", "intercepts_[1]"]),
        (["intercepts_[*]", "coefs_[0]"], ["coefs_[0]", "intercepts_[0]", "intercepts_[1]"]),
    ],
)
def test_brackets_are_indices(pattern, expected):
    """Printed names are accepted: ``[*]`` and ``[1]`` are not sets of letters."""
    X = np.random.RandomState(0).normal(size=(20, 3))
    trainable = to_trainable(MLPRegressor(hidden_layer_sizes=4, max_iter=5).fit(X, X[:, 0]), pattern)
    assert sorted(trainable.origins().values()) == expected


def test_names_printed_by_explain_are_accepted():
    X = np.random.RandomState(0).normal(size=(40, 3))
    network = make_pipeline(StandardScaler(), MLPClassifier((4,), max_iter=5)).fit(X, X[:, 0] > 0)
    for row in explain(network).rows:
        if row.attribute:
            trainable = to_trainable(network, f"{row.step}.{row.attribute}")
            assert len(trainable.trained) == len(row.weights)
        assert (
            not row.advice
            or to_trainable(
                network, literal_eval(row.advice.partition("=")[2].removesuffix(" trains it"))
            ).trained
        )


def test_wildcards_select_weights_only():
    """Constants of formulas are trained only if named exactly."""
    X, y = np.random.RandomState(0).normal(size=(30, 3)), np.arange(30) % 2
    classifier = LogisticRegression().fit(X, y)
    default = to_trainable(classifier)
    assert to_trainable(classifier, "*").trained == default.trained
    scaled = make_pipeline(StandardScaler(), classifier).fit(X, y)
    assert sorted(to_trainable(scaled, "*").origins().values()) == [
        "logisticregression: coef_",
        "logisticregression: intercept_",
        "standardscaler: mean_",
        "standardscaler: scale_",
    ]
    constants = [name for name, weight in default.weights.items() if weight.reason == CONSTANT]
    assert constants
    for name in constants:
        with pytest.raises(ConversionError, match="come after the trained scores"):
            to_trainable(classifier, name)
        with pytest.raises(
            NoTrainableWeightError, match="only constants of formulas, which are trained if named"
        ):
            to_trainable(classifier, f"{name[:-1]}?")
        assert to_trainable(classifier, ["coef*", "*"]).trained == default.trained


@pytest.mark.parametrize(
    "step, attributes",
    [
        (StandardScaler(with_mean=False), {"scale_"}),
        (StandardScaler(with_std=False), {"mean_"}),
        (MaxAbsScaler(), {"scale_"}),
        (RobustScaler(with_centering=False), {"scale_"}),
        (Normalizer(), set()),
    ],
    ids=str,
)
def test_wildcards_exclude_constants_of_previous_steps(step, attributes):
    X, y = np.random.RandomState(0).normal(size=(30, 3)), np.arange(30.0)
    model = make_pipeline(step, Ridge()).fit(X, y)
    found = to_trainable(model, "*")
    own = {origin.partition(": ")[2] for origin in found.origins().values()}
    assert own == attributes | {"coef_", "intercept_"}


def test_wildcards_exclude_constants_of_text():
    words = np.array(["red apple", "green pear", "red cherry", "green apple"])
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(words, [0, 1, 0, 1])
    assert all(to_trainable(model, "*", X=words).origins().values())
