"""plot_graph draws all elements of a graph, and names fit into the figure."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from onnx import parser
from sklearn.neural_network import MLPRegressor

from ortlearn.differentiation import DerivativeOptions, onnx_derivative
from ortlearn.inspection import plot_graph
from ortlearn.losses import add_loss_output
from ortlearn.trainable.from_estimator import sklearn_to_onnx
from tests.graphs.branches import BRANCHES


@pytest.fixture(autouse=True)
def close_figures():
    plt.close("all")  # of other tests in this process
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def gradient():
    """The gradient graph of a network, more than thirty elements."""
    X = np.random.RandomState(0).randn(20, 4).astype(np.float32)
    network = MLPRegressor(hidden_layer_sizes=(3,), solver="lbfgs", max_iter=2, random_state=0)
    network.coefs_ = [np.ones((4, 3)), np.ones((3, 1))]
    network.intercepts_ = [np.zeros(3), np.zeros(1)]
    network.n_layers_, network.out_activation_, network.n_outputs_, network.n_features_in_ = (
        3,
        "identity",
        1,
        4,
    )
    model = add_loss_output(sklearn_to_onnx(network, X.shape[1]))
    return onnx_derivative(model, options=DerivativeOptions.Loss, label="label")


def test_everything_is_shown():
    texts = [text.get_text() for text in plot_graph(BRANCHES).texts if text.get_text()]
    assert sorted(texts) == sorted(
        [
            "x\nfloat32[N, 2]",
            "condition\nbool[]",
            "w\n[2x1]",
            "bias\n[scalar]",
            "MatMul",
            "ai.onnx.ml.Scaler",
            "If",
            "y\nfloat32[N, 1]",
            "scaled\nfloat32[N, 2]",
        ]
    )


def test_names_fit_and_do_not_touch(gradient):
    ax = plot_graph(gradient)
    ax.figure.canvas.draw()
    renderer = ax.figure.canvas.get_renderer()
    boxes = [text.get_bbox_patch().get_window_extent(renderer) for text in ax.texts if text.get_text()]
    assert len(boxes) > 30
    figure = ax.figure.bbox
    for i, box in enumerate(boxes):
        assert figure.x0 <= box.x0 and box.x1 <= figure.x1 and figure.y0 <= box.y0 and box.y1 <= figure.y1
        assert not any(box.overlaps(other) for other in boxes[:i])


def test_arrows_end_at_the_boxes(gradient):
    ax = plot_graph(gradient)
    heads = [text for text in ax.texts if not text.get_text()]
    arrows = sum(len(set(node.input)) for node in gradient.graph.node) + len(gradient.graph.output)
    assert len(heads) == len(ax.lines) == arrows


def test_on_given_axes():
    _, axes = plt.subplots(1, 2, figsize=(12, 6))
    assert plot_graph(BRANCHES, axes[1]) is axes[1]
    assert not axes[0].texts and axes[1].texts and len(plt.get_fignums()) == 1


def test_too_large_graph_is_rejected():
    lines = "\n".join(f"x{i + 1} = Neg (x{i})" for i in range(300))
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g (float[N] x0) => (float[N] x300) {{ {lines} }}'
    )
    with pytest.raises(ValueError, match="302 elements, but plot_graph draws at most 250.*draw_graph"):
        plot_graph(model)
    assert not plt.get_fignums()


def test_axes_must_be_axes():
    with pytest.raises(TypeError, match="ax must be a matplotlib Axes object, not int"):
        plot_graph(BRANCHES, ax=3)
