"""Errors for data that do not match an ONNX model."""

import numpy as np
import pytest
from onnx import parser
from skl2onnx import to_onnx
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError

X, CLASSES = load_iris(return_X_y=True)
X = X.astype(np.float32)
NAMES = np.array(["setosa", "versicolor", "virginica"])[CLASSES]
STILL = {"warm_start": True, "max_iter": 1, "learning_rate": 1e-30}


@pytest.fixture(scope="module")
def files():
    model = LogisticRegression(max_iter=1000)
    return {kind: to_onnx(model.fit(X, y), X[:1]) for kind, y in (("texts", NAMES), ("numbers", CLASSES))}


def scores(columns=3, end="y = Identity (z)"):
    """Return a model without a label output."""
    values = ", ".join(["0.1"] * 4 * columns)
    return parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[N,4] x) => (float[N,{columns}] y)
        <float[4,{columns}] w = {{{values}}}> {{ z = MatMul (x, w) {end} }}"""
    )


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    "kind, y, message",
    [
        ("texts", np.where(CLASSES == 2, "daisy", NAMES), r"\['daisy'\].*has \['setosa', .*the samples"),
        (
            "numbers",
            np.where(CLASSES == 2, 7, CLASSES),
            r"classes \[7\].*it has \[0, 1, 2\].*remove the samples",
        ),
        ("texts", CLASSES, "The labels are numbers and the classes texts: convert y"),
        ("numbers", NAMES, "The labels are texts and the classes numbers: convert y"),
    ],
)
def test_unknown_classes(files, kind, y, message, method):
    with pytest.raises(ValueError, match=message):
        getattr(OrtGradientOptimizer(files[kind], **STILL), method)(X, y)


def test_new_samples_without_some_classes(files):
    for samples in (slice(100), slice(40)):
        trained = OrtGradientOptimizer(files["texts"], **STILL).fit(X[samples], NAMES[samples])
        assert trained.classes_.tolist() == ["setosa", "versicolor", "virginica"]
        assert trained.predict_proba(X).shape == (150, 3)


@pytest.mark.parametrize("end", ["y = Identity (z)", "y = Softmax (z)"])
@pytest.mark.parametrize("y", [CLASSES, CLASSES[:, None], NAMES, NAMES.astype(object)])
def test_classification_loss_is_required_without_label_output(y, end):
    with pytest.raises(
        ValueError, match=r"the ONNX file is treated as a regressor.*learning_loss='log_loss'"
    ):
        OrtGradientOptimizer(scores(end=end), **STILL).fit(X, y)
    cured = OrtGradientOptimizer(scores(end=end), learning_loss="log_loss", **STILL)
    assert cured.fit(X, NAMES).classes_.tolist() == ["setosa", "versicolor", "virginica"]


@pytest.mark.parametrize("columns, n_samples", [(3, 100), (3, 40), (1, 40)])
def test_absent_classes_of_a_file_without_class_names(columns, n_samples):
    model = OrtGradientOptimizer(scores(columns), learning_loss="log_loss", **STILL)
    numbers = [0, 1, 2] if columns == 3 else [0, 1]
    assert model.fit(X[:n_samples], CLASSES[:n_samples]).classes_.tolist() == numbers
    with pytest.raises(
        ValueError, match=r"y lacks some classes, pass all of them: fit\(X, y, classes=|1 class"
    ):
        model.fit(X[:n_samples], NAMES[:n_samples])
    names = ["versicolor", "setosa", "virginica"][: len(numbers)]
    assert (
        clone(model).partial_fit(X[:n_samples], NAMES[:n_samples], classes=names).classes_.tolist() == names
    )
    with pytest.raises(ValueError, match="must contain each class once"):
        model.fit(X[:n_samples], NAMES[:n_samples], classes=["setosa"] * 3)


def test_unknown_classes_of_y_val():
    y_val = np.array(["setosa", "rose"])
    with pytest.raises(ValueError, match=r"y_val has classes \['rose'\] that the model does not know.*X_val"):
        OrtGradientOptimizer(LogisticRegression(), **STILL).fit(X, NAMES, X_val=X[:2], y_val=y_val)


def test_classes_are_in_the_order_of_scores():
    file = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[N,4] x) => (float[N,3] y, int64[N] label)
        <float[4,3] w = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}>
        { y = MatMul (x, w) label = ArgMax <axis = 1, keepdims = 0> (y) }"""
    )
    names = np.array(["virginica", "setosa", "versicolor"])
    best = names[X[:, :3].argmax(axis=1)]
    trained = OrtGradientOptimizer(file, **STILL).fit(X, best, classes=names)
    assert trained.classes_.tolist() == names.tolist()
    np.testing.assert_array_equal(trained.predict(X), best)


def test_more_classes_than_scores():
    with pytest.raises(ConversionError, match="3 scores for the classes.*a score for each class"):
        OrtGradientOptimizer(scores(), learning_loss="log_loss", **STILL).fit(X, np.arange(150) % 4)


def with_loss(feature):
    """Return a model with a loss and a feature of this name."""
    return parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,1] size, float[N,1] {feature}, float[N,1] target) => (float[N,1] y, float loss)
        <float[2,1] w = {{0.1, 0.2}}> {{ c = Concat <axis = 1> (size, {feature}) y = MatMul (c, w)
          d = Sub (y, target) e = Mul (d, d) loss = ReduceSum <keepdims = 0> (e) }}"""
    )


@pytest.mark.parametrize(
    "feature, wrong, parameter, right",
    [
        ("sample_weight", {}, "weight_name", {"weight_name": "none"}),
        ("weight", {"weight_name": "weight"}, "weight_name", {}),
        ("label", {"label_name": "label"}, "label_name", {}),
    ],
)
def test_features_named_like_labels_or_weights(feature, wrong, parameter, right):
    samples, options = {"size": X[:, :1], feature: X[:, 1:2]}, {"label_name": "target", **STILL}
    with pytest.raises(ValueError, match=f"column '{feature}'.* If .* is a feature, set {parameter}"):
        OrtGradientOptimizer(with_loss(feature), **{**options, **wrong}).fit(samples, X[:, 2])
    trained = OrtGradientOptimizer(with_loss(feature), **{**options, **right}).fit(samples, X[:, 2])
    np.testing.assert_allclose(trained.predict(samples), X[:, :2] @ [0.1, 0.2], rtol=1e-4)


@pytest.mark.parametrize("name", ["weight", "sample_weight", "label"])
def test_feature_names_without_loss(name):
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[N,1] {name}) => (float[N,1] y)
        <float[1,1] w = {{2}}> {{ y = MatMul ({name}, w) }}"""
    )
    trained = OrtGradientOptimizer(model, **STILL).fit(X[:, :1], X[:, 1], sample_weight=np.ones(150))
    np.testing.assert_allclose(trained.predict(X[:, :1]), 2 * X[:, 0], rtol=1e-5)
