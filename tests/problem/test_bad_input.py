"""Invalid data and parameters are rejected before training, and the estimator is not changed."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier

from ortlearn.exceptions import (
    ConversionError,
    DeviceError,
    GradientError,
    NoTrainableWeightError,
    PluginError,
    UnknownPluginError,
)
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD, LearningRateSGDNesterov

HARDMAX = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 18]>
    g (float[N,10] x) => (float[N,1] y)
    <float[10,1] coef = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, float[1] intercept = {0}>
    { z = MatMul (x, coef) s = Add (z, intercept) y = Hardmax (s) }""")
HARDMAX.graph.node[2].name = "my_hardmax"


def with_value(array, value):
    array = np.array(array, dtype=float)
    array[3] = value
    return array


def as_is(X, y):
    return X, y


DATA = {
    "nan_in_X": (lambda X, y: (with_value(X, np.nan), y), {}, "Input X contains NaN"),
    "inf_in_X": (lambda X, y: (with_value(X, np.inf), y), {}, "Input X contains infinity"),
    "large_X": (lambda X, y: (with_value(X, 1e39), y), {}, "X .*too large for dtype.'float32'"),
    "nan_in_y": (lambda X, y: (X, with_value(y, np.nan)), {}, "Input y contains NaN"),
    "inf_in_y": (lambda X, y: (X, with_value(y, -np.inf)), {}, "Input y contains infinity"),
    "large_y": (lambda X, y: (X, with_value(y, 1e39)), {}, "y .*too large for dtype.'float32'"),
    "lengths": (lambda X, y: (X, y[:-1]), {}, r"inconsistent numbers of samples.*\[40, 39\]"),
    "no_rows": (lambda X, y: (X[:0], y[:0]), {}, "0 sample"),
    "flat_X": (lambda X, y: (X[:, 0], y), {}, "Expected 2D array, got 1D array"),
    "features": (lambda X, y: (X[:, :9], y), {}, "X has 9 features, but .* 10 features"),
    "negative_weight": (as_is, {"sample_weight": with_value(np.ones(40), -1)}, "[Nn]egative"),
    "nan_weight": (as_is, {"sample_weight": with_value(np.ones(40), np.nan)}, "sample_weight contains NaN"),
    "weight_length": (as_is, {"sample_weight": np.ones(39)}, r"has the shape \(39,\) for 40 samples"),
    "weight_shape": (as_is, {"sample_weight": np.ones((40, 2))}, "[Ss]ample.?weights? must be 1D"),
    "zero_weights": (as_is, {"sample_weight": np.zeros(40)}, "zero for every sample|at least one non-zero"),
    "X_val_alone": (as_is, {"X_val": np.ones((3, 10))}, "pass both X_val and y_val, or neither"),
    "y_val_alone": (as_is, {"y_val": np.ones(3)}, "X_val is missing"),
    "features_of_X_val": (as_is, {"X_val": np.ones((3, 9)), "y_val": np.ones(3)}, "X has 9 features"),
    "nan_in_y_val": (as_is, {"X_val": np.ones((3, 10)), "y_val": [0, 1, np.nan]}, "y_val contains NaN"),
    "lengths_val": (as_is, {"X_val": np.ones((3, 10)), "y_val": np.ones(4)}, "inconsistent numbers"),
}


@pytest.fixture
def samples(diabetes_units):
    """Return forty samples of a regression problem."""
    return diabetes_units[0][:40], diabetes_units[1][:40]


@pytest.fixture
def fitted(optimizer, samples):
    """Return a fitted estimator around a fitted model."""
    return optimizer(LinearRegression().fit(*samples), max_iter=2, random_state=0).fit(*samples)


@pytest.mark.parametrize("name", list(DATA))
def test_data(name, fitted, samples, unchanged):
    spoil, arguments, message = DATA[name]

    def fails():
        with pytest.raises(ValueError, match=message):
            fitted.fit(*spoil(*samples), **arguments)

    unchanged(fitted, samples[0], fails)


@pytest.mark.parametrize("name", [n for n in DATA if "val" not in n])
def test_data_of_partial_fit(name, fitted, samples, unchanged):
    spoil, arguments, message = DATA[name]

    def fails():
        with pytest.raises(ValueError, match=message):
            fitted.partial_fit(*spoil(*samples), **arguments)

    unchanged(fitted, samples[0], fails)


@pytest.mark.parametrize("name", [n for n in DATA if n != "features"])
def test_data_of_the_first_fit(name, optimizer, samples):
    spoil, arguments, message = DATA[name]
    model = optimizer(LinearRegression(), max_iter=2)
    before = dict(model.__dict__)
    with pytest.raises(ValueError, match=message):
        model.fit(*spoil(*samples), **arguments)
    assert model.__dict__ == before
    with pytest.raises(NotFittedError):
        model.predict(samples[0])


@pytest.mark.parametrize("name", ["nan_in_X", "inf_in_X", "large_X", "features", "flat_X", "no_rows"])
def test_data_of_predict(name, fitted, samples, unchanged):
    spoil, _, message = DATA[name]
    X, y = spoil(*samples)

    def fails():
        for method in (fitted.predict, lambda X: fitted.losses(X, y), lambda X: fitted.score(X, y)):
            with pytest.raises(ValueError, match=message):
                method(X)

    unchanged(fitted, samples[0], fails)


PARAMETERS = [
    ({"device": "tpu"}, DeviceError, "device='tpu' is unknown. Use 'cpu', 'cuda'"),
    ({"device": "cpu:3"}, DeviceError, "device='cpu:3' is unknown"),
    ({"learning_loss": "squarederror"}, UnknownPluginError, "Did you mean 'squared_error'"),
    ({"learning_loss": "(label - score)**2"}, UnknownPluginError, r"pass learning_loss='expression: \(label"),
    ({"learning_penalty": "elastik"}, UnknownPluginError, "Did you mean 'elastic'"),
    ({"learning_rate": "Adamm"}, UnknownPluginError, "Did you mean 'Adam'"),
    ({"learning_loss": 3}, PluginError, "is not a loss: pass a name .*huber.*BaseLoss"),
    (
        {"learning_loss": "log_loss"},
        PluginError,
        "LogLoss is for .* multilabel, and the model is for regression",
    ),
    ({"learning_rate": 0.0}, PluginError, "eta0=0.0 must be"),
    ({"learning_rate": -1}, PluginError, "eta0=-1.0 must be"),
    ({"learning_rate": float("nan")}, PluginError, "eta0=nan must be"),
    ({"learning_rate": LearningRateSGD(eta0=0)}, PluginError, "eta0=0 must be"),
    ({"learning_rate": LearningRateSGD(learning_rate="linear")}, PluginError, "'linear' is not a schedule"),
    ({"learning_rate": LearningRateSGDNesterov(momentum=1)}, PluginError, "momentum=1 must be"),
    ({"learning_rate": LearningRateAdam(beta_1=-1)}, PluginError, "beta_1=-1 must be"),
    ({"max_iter": 0}, ValueError, "'max_iter' parameter"),
    ({"max_iter": 1.5}, ValueError, "'max_iter' parameter"),
    ({"batch_size": 0}, ValueError, "'batch_size' parameter"),
    ({"validation_every": 0.0}, ValueError, "'validation_every' parameter"),
    ({"validation_every": 1.5}, ValueError, "'validation_every' parameter"),
    ({"shuffle": "no"}, ValueError, "'shuffle' parameter"),
    ({"warm_start": "no"}, ValueError, "'warm_start' parameter"),
    ({"random_state": "x"}, ValueError, "'random_state' parameter"),
    ({"gradient": "magic"}, ValueError, "'gradient' parameter"),
    ({"dtype": "int8"}, ValueError, "'dtype' parameter"),
    ({"verbose": -1}, ValueError, "'verbose' parameter"),
    ({"weights_to_train": "zebra*"}, NoTrainableWeightError, "'zebra\\*' matches no .*'coef'"),
    ({"weights_to_train": []}, NoTrainableWeightError, "weights_to_train is empty"),
    ({"estimator": Ridge}, ConversionError, "must be a scikit-learn estimator object .*not <class"),
    ({"estimator": 3}, ConversionError, "must be a scikit-learn estimator object .*not 3"),
    ({"estimator": None}, ConversionError, "must be a scikit-learn estimator object .*not None"),
    ({"estimator": b"garbage" * 10}, ConversionError, "bytes given are not an ONNX model"),
    ({"estimator": b""}, ConversionError, "bytes given are not an ONNX model"),
    ({"estimator": "nowhere/model.onnx"}, ConversionError, "'nowhere/model.onnx' cannot be read"),
    ({"estimator": onnx.ModelProto()}, ConversionError, "not an ONNX model"),
    pytest.param(
        {"estimator": HARDMAX, "gradient": "ort", "weights_to_train": "coef"},
        GradientError,
        "Hardmax.*my_hardmax",
        marks=pytest.mark.needs_training,
    ),
]


@pytest.mark.parametrize("params, error, message", PARAMETERS)
def test_parameters(params, error, message, optimizer, samples, unchanged):
    model = optimizer(LinearRegression(), max_iter=2, random_state=0).fit(*samples).set_params(**params)

    def fails():
        with pytest.raises(error, match=message) as caught:
            model.fit(*samples)
        assert isinstance(caught.value, ValueError)

    device = params.pop("device", None)  # predict requires an existing device
    if device is not None:
        model.set_params(device="cpu").predict(samples[0])
        params["device"] = device
        with pytest.raises(error, match=message):
            optimizer(LinearRegression(), device=device).fit(*samples)
    else:
        unchanged(model, samples[0], fails)


def test_missing_file_in_a_folder(optimizer, samples, tmp_path):
    (tmp_path / "text.onnx").write_text("this is text")
    with pytest.raises(ConversionError, match="text.onnx' are not an ONNX model"):
        optimizer(tmp_path / "text.onnx").fit(*samples)
    with pytest.raises(ConversionError, match="cannot be read"):
        optimizer(tmp_path).fit(*samples)


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_cuda_without_its_provider(device, optimizer, samples, unchanged, monkeypatch):
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    model = optimizer(LinearRegression(), max_iter=1, random_state=0).fit(*samples)
    model.predict(samples[0])
    model.set_params(device=device)

    def fails():
        for method in (model.fit, model.partial_fit):
            with pytest.raises(DeviceError, match=f"device='{device}' needs the CUDAExecutionProvider"):
                method(*samples)

    unchanged(model, samples[0], fails)


@pytest.mark.parametrize("estimator", [LogisticRegression(), MLPClassifier((3,))])
def test_single_class(estimator, optimizer, wine):
    X, y = wine
    with pytest.raises(ValueError, match="at least 2 classes"):
        optimizer(estimator).fit(X, np.zeros(len(y)))


def test_unknown_classes(optimizer, wine, unchanged):
    X, y = wine
    model = optimizer(LogisticRegression().fit(X, y), max_iter=1, random_state=0).fit(X, y)

    def fails():
        for method in (model.fit, model.partial_fit, model.losses):
            with pytest.raises(ValueError, match=r"y has classes \[7\] that the model does not know"):
                method(X, with_value(y, 7).astype(int))

    unchanged(model, X, fails)


def test_regression_targets_for_a_classifier(optimizer, wine):
    X, y = wine
    with pytest.raises(ValueError, match="[Uu]nknown label type"):
        optimizer(LogisticRegression()).fit(X, y + 0.5 * X[:, 0])


def test_regression_loss_for_a_classifier(optimizer, wine):
    with pytest.raises(
        PluginError, match="SquaredErrorLoss is for regression, and the model is for classification"
    ):
        optimizer(LogisticRegression(), learning_loss="squared_error").fit(*wine)


def test_methods_before_fit(optimizer, wine):
    model = optimizer(LogisticRegression())
    calls = [
        lambda: model.predict(wine[0]),
        lambda: model.predict_proba(wine[0]),
        lambda: model.decision_function(wine[0]),
        lambda: model.score(*wine),
        lambda: model.losses(*wine),
        model.get_trained_onnx,
        lambda: model.save_onnx_graph("nowhere"),
    ]
    for call in calls:
        with pytest.raises(NotFittedError, match="not fitted"):
            call()
