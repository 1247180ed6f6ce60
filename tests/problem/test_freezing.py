"""Selection of trained or penalised weights by name, pattern or step."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import NoTrainableWeightError, PluginError
from ortlearn.graphs import initializer_arrays
from ortlearn.penalties import L2Penalty
from ortlearn.trainable.conversion import to_trainable


@pytest.fixture(scope="module")
def shifted(diabetes_units):
    """Return a regression problem with features that are not centred."""
    X, y = diabetes_units
    return X * np.arange(1, 11) + np.arange(10), y


@pytest.fixture(scope="module")
def layers(shifted):
    """Return a fitted pipeline with nested steps."""
    X, y = shifted
    numbers = make_pipeline(StandardScaler(), PCA(2))
    columns = ColumnTransformer([("numbers", numbers, [0, 1, 2, 3]), ("rest", MinMaxScaler(), [4, 5, 6])])
    union = FeatureUnion([("pca", PCA(3)), ("scale", StandardScaler())])
    return Pipeline([("columns", columns), ("union", union), ("ridge", Ridge())]).fit(X, y)


CHOICES = {
    "ridge": {"ridge: coef_", "ridge: intercept_"},
    "union": {"union: ['pca'].components_", "union: ['pca'].mean_", "union: ['scale'].mean_"},
    "columns": {"columns: named_transformers_['numbers']['pca'].mean_"},
    "rest": {"columns: named_transformers_['rest'].scale_", "columns: named_transformers_['rest'].min_"},
    "numbers": {"columns: named_transformers_['numbers']['pca'].components_"},
    "union__pca": {"union: ['pca'].components_", "union: ['pca'].mean_"},
    "columns__numbers__standardscaler": {"columns: named_transformers_['numbers']['standardscaler'].mean_"},
    "pca": {
        "columns: named_transformers_['numbers']['pca'].components_",
        "columns: named_transformers_['numbers']['pca'].mean_",
        "union: ['pca'].components_",
        "union: ['pca'].mean_",
    },
    "coef_": {"ridge: coef_"},
    "ridge.*": {"ridge: coef_", "ridge: intercept_"},
}
#: Weights that the name of a step does not select.
OTHERS = {
    "ridge": "union|columns",
    "union": "ridge|columns",
    "columns": "ridge|union",
    "rest": "ridge|union|numbers",
    "numbers": "ridge|union|rest",
    "union__pca": "ridge|scale|columns",
    "columns__numbers__standardscaler": "ridge|union|pca|rest",
    "pca": "ridge|scale|rest",
    "coef_": "intercept|union|columns",
    "ridge.*": "union|columns",
}


@pytest.mark.parametrize("pattern", CHOICES)
def test_step_selects_all_of_its_weights(pattern, layers, shifted):
    X, y = shifted
    options = {
        "warm_start": True,
        "max_iter": 2,
        "learning_rate": 1e-3,
        "random_state": 0,
        "dtype": "float64",
    }
    model = OrtGradientOptimizer(layers, weights_to_train=pattern, **options).fit(X, y)
    origins = set(model.weights_to_train_.values())
    assert origins >= CHOICES[pattern]
    assert not any(part in origin for origin in origins for part in OTHERS[pattern].split("|"))
    converted = to_trainable(layers, X=X, dtype=np.float64)
    arrays = initializer_arrays(converted.model)
    found = initializer_arrays(model.onnx_)
    for stable, weight in converted.weights.items():
        name = converted.original_names[stable]
        same = found[name].tobytes() == arrays[stable].tobytes()
        assert same == (name not in model.trained_coef_), weight.origin


@pytest.mark.parametrize("warm_start", [False, True])
def test_frozen_weights_are_unchanged(warm_start, optimizer, wine, fit_quietly):
    X, y = wine
    source = make_pipeline(StandardScaler(), MLPClassifier((5, 4), max_iter=9, random_state=0))
    fit_quietly(source, X, y)
    model = optimizer(source, weights_to_train=["coefs_[2]", "intercepts_[2]"], warm_start=warm_start)
    model.set_params(max_iter=3, random_state=0, dtype="float64").fit(X, y).partial_fit(X, y)
    found = initializer_arrays(model.onnx_)
    network, trained = source[-1], model.trained_coef_
    for name, array in zip(("coefs_0", "coefs_1"), network.coefs_, strict=False):
        assert found[name].tobytes() == array.tobytes()
    assert [array.shape for array in trained.values()] == [(4, 3), (1, 3)]
    assert all((found[name] == array).all() for name, array in trained.items())
    assert np.abs(trained["coefs_2"] - network.coefs_[2]).max() > 1e-3


def test_two_steps(optimizer, wine):
    X, y = wine
    model = optimizer(make_pipeline(StandardScaler(), PCA(4), LogisticRegression()), max_iter=2)
    model.set_params(weights_to_train=["pca", "logisticregression"], random_state=0).fit(X, y)
    assert sorted({origin.partition(":")[0] for origin in model.weights_to_train_.values()}) == [
        "logisticregression",
        "pca",
    ]


def test_error_of_an_unknown_name_lists_the_known_names(optimizer, layers, shifted):
    X, y = shifted
    with pytest.raises(
        NoTrainableWeightError, match=r"'scaler' matches no.*'coef' \(ridge: coef_\)"
    ) as caught:
        optimizer(layers, weights_to_train="scaler").fit(X, y)
    for name in ("'columns'", "'columns__numbers__pca'", "'union__scale'", "'ridge'"):
        assert name in str(caught.value).partition("no step among")[2]


def test_step_without_weights(optimizer, wine):
    X, y = wine
    model = optimizer(
        Pipeline([("same", "passthrough"), ("last", LogisticRegression())]), weights_to_train="same"
    )
    with pytest.raises(NoTrainableWeightError, match=r"'same' matches no.*no step among \['last'\]"):
        model.fit(X, y)


@pytest.mark.slow
def test_penalty_for_a_step(layers, shifted):
    X, y = shifted
    options = {"weights_to_train": ["union__pca", "ridge"], "warm_start": True, "max_iter": 1}
    options |= {"learning_rate": 1e-30, "batch_size": 1000, "dtype": "float64"}
    plain = OrtGradientOptimizer(layers, **options).fit(X, y)
    for weights in ("pca", "ridge", ["coef_", "union"]):
        penalty = L2Penalty(0.5, weights=weights)
        model = OrtGradientOptimizer(layers, learning_penalty=penalty, **options).fit(X, y)
        patterns = {"pca": ["union"], "ridge": ["ridge"]}.get(str(weights), ["coef_", "union"])
        expected = sum(
            0.5 * (model.trained_coef_[name] ** 2).sum()
            for name, origin in model.weights_to_train_.items()
            if any(pattern in origin for pattern in patterns)
        )
        found = model.train_losses_[0] - plain.train_losses_[0]
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    with pytest.raises(PluginError, match=r"L2Penalty: weights='columns' must name trained weights"):
        OrtGradientOptimizer(layers, learning_penalty=L2Penalty(0.5, weights="columns"), **options).fit(X, y)
