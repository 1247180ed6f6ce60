"""repr and HTML diagram show the wrapped estimator, or describe an ONNX model."""

import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateAdam
from ortlearn.losses import HuberLoss

LABEL = re.compile(r"<label[^>]*>(.*?)</label>", re.S)
NAME = re.compile(r"<div><div>(.*?)</div>")


def large_model(n_weights=200_000, text="""linear (float[N,K] X) => (float[N,1] f) { f = MatMul (X, w) }"""):
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')
    weights = np.random.RandomState(0).randn(n_weights, 1).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    return model


MODEL = large_model()


def labels(estimator):
    """Return the labels of the boxes of a diagram."""
    return [unescape(NAME.findall(label)[0]) for label in LABEL.findall(estimator._repr_html_())]


@pytest.mark.parametrize("kind", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
def test_diagram_shows_the_wrapped_estimator(kind):
    assert labels(kind(Ridge())) == [kind.__name__, "estimator: Ridge", "Ridge"]


def test_diagram_of_a_pipeline():
    columns = make_column_transformer((StandardScaler(), ["a"]), remainder="drop")
    found = labels(OrtGradientOptimizer(make_pipeline(columns, Ridge())))
    assert found[:2] == ["OrtGradientOptimizer", "estimator: Pipeline"]
    assert found[-1] == "Ridge" and "StandardScaler" in found


@pytest.mark.parametrize(
    "outer", [lambda e: make_pipeline(StandardScaler(), e), lambda e: GridSearchCV(e, {})]
)
def test_diagram_of_a_meta_estimator(outer):
    assert labels(outer(OrtGradientOptimizer(Ridge())))[-2:] == ["estimator: Ridge", "Ridge"]
    assert labels(outer(OrtGradientOptimizer(MODEL)))[-2:] == [
        "estimator: ONNX model",
        "<ONNX model: X -> f, 1 node>",
    ]


def test_diagram_of_a_fitted_estimator():
    X, y = np.eye(4), np.arange(4.0)
    trainer = OrtGradientOptimizer(LinearRegression(), max_iter=1)
    assert "<span>Not fitted</span>" in trainer._repr_html_()
    html = trainer.fit(X, y)._repr_html_()
    assert "<span>Fitted</span>" in html and "<span>Not fitted</span>" not in html
    assert labels(trainer)[1] == "estimator: LinearRegression"


def test_description_of_a_model():
    assert repr(OrtGradientOptimizer(MODEL, max_iter=7)) == (
        "OrtGradientOptimizer(estimator=<ONNX model: X -> f, 1 node>, max_iter=7)"
    )
    serialized = MODEL.SerializeToString()
    expected = f"<ONNX model of {len(serialized)} bytes: X -> f, 1 node>"
    for source in (serialized, bytearray(serialized)):
        assert repr(OrtGradientOptimizer(source)) == f"OrtGradientOptimizer(estimator={expected})"


def test_many_names_are_abbreviated():
    inputs = ", ".join(f"float[N,1] x{i}" for i in range(9))
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g ({inputs}) => (float[N,1] y, float[N,1] z)'
        "{ y = Add (x0, x1) z = Neg (y) }"
    )
    expected = "<ONNX model: x0, x1, x2, x3, x4 and 4 more -> y, z, 2 nodes>"
    assert repr(OrtGradientOptimizer(model)) == f"OrtGradientOptimizer(estimator={expected})"


def test_weights_among_the_inputs_of_old_models():
    model = large_model(3, "g (float[N,3] X, float[3,1] w) => (float[N,1] f) { f = MatMul (X, w) }")
    assert "X -> f" in repr(OrtGradientOptimizer(model))


def test_invalid_bytes_are_not_printed():
    trainer = OrtGradientOptimizer(b"\xff" * 1000)
    assert repr(trainer) == "OrtGradientOptimizer(estimator=<1000 bytes, not an ONNX model>)"
    assert labels(trainer)[-1] == "<1000 bytes, not an ONNX model>"


@pytest.mark.parametrize("source", ["model.onnx", Path("model.onnx")], ids=["str", "Path"])
def test_path(source):
    trainer = OrtGradientOptimizer(source)
    assert repr(trainer) == f"OrtGradientOptimizer(estimator={source!r})"
    assert labels(trainer)[1] == "estimator: ONNX model" and "model.onnx" in labels(trainer)[2]


@pytest.mark.parametrize("source", [MODEL, MODEL.SerializeToString()], ids=["ModelProto", "bytes"])
def test_diagram_of_a_large_model_is_short(source):
    html = OrtGradientOptimizer(source)._repr_html_()
    assert len(html) < len(OrtGradientOptimizer("model.onnx")._repr_html_()) + 1000
    assert "X -&gt; f, 1 node" in html


def test_mimebundle_has_text_and_html():
    bundle = OrtGradientOptimizer(MODEL)._repr_mimebundle_()
    assert "<ONNX model: X -> f, 1 node>" in bundle["text/plain"]
    assert "estimator: ONNX model" in bundle["text/html"]


def test_parameter_is_the_model():
    trainer = OrtGradientOptimizer(MODEL, learning_rate=LearningRateAdam())
    repr(trainer), trainer._repr_html_()
    assert trainer.estimator is MODEL and trainer.get_params()["estimator"] is MODEL
    assert isinstance(clone(trainer).estimator, ModelProto)


def test_repr_of_plugin_objects():
    trainer = OrtGradientOptimizer(
        Ridge(), learning_rate=LearningRateAdam(0.5), learning_loss=HuberLoss(delta=2.0)
    )
    assert "learning_rate=LearningRateAdam(eta0=0.5)" in repr(trainer)
    assert "learning_loss=HuberLoss(delta=2.0)" in repr(trainer)
    text = unescape(trainer._repr_html_())
    assert "HuberLoss(delta=2.0)" in text and "learning_rate=LearningRateAdam(eta0=0.5)" in text


@pytest.mark.parametrize("source", [3, None, Ridge], ids=["int", "None", "class"])
def test_invalid_sources_are_shown(source):
    trainer = OrtGradientOptimizer(source)
    assert repr(trainer) == f"OrtGradientOptimizer(estimator={source!r})"
    assert labels(trainer) == ["OrtGradientOptimizer"]


def test_repr_equals_scikit_learns():
    inner = make_pipeline(StandardScaler(), Ridge(alpha=3))
    assert repr(OrtGradientOptimizer(inner)).replace(" ", "").replace("\n", "") == (
        "OrtGradientOptimizer(estimator=Pipeline(steps=[('standardscaler',StandardScaler()),"
        "('ridge',Ridge(alpha=3))]))"
    )
