"""Quantised files: the same scales and integers as onnxruntime.quantization, integer kernels, LSQ."""

import logging

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, checker, numpy_helper, parser, save
from onnx import load as load_file
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from ortlearn import OrtGradientOptimizer
from ortlearn.compress import quantize
from ortlearn.compress.files import File
from ortlearn.compress.layers import find_layers
from ortlearn.compress.qdq import Plan, write_quantised, write_trainable
from ortlearn.compress.ranges import activation_levels, weight_levels
from ortlearn.differentiation import onnx_derivative
from ortlearn.graphs import initializer_arrays
from ortlearn.graphs.view import GraphView
from ortlearn.runtime.deployment import optimized_operators
from ortlearn.runtime.devices import Device
from ortlearn.runtime.graph_run import run_graph
from ortlearn.runtime.sessions import make_session
from ortlearn.saving import export_training, load_training

RNG = np.random.default_rng(0)
HEAD = '<ir_version: 8, opset_import: ["": 17]>'
TEXTS = {
    "gemm": """g (float[N,8] x) => (float[N,3] y)
        { a = Gemm <transB = 1> (x, w1, b1) h = Relu (a) y = Gemm (h, w2, b2) }""",
    "matmul": """g (float[N,8] x) => (float[N,3] y)
        { a = MatMul (x, w1) p = Add (b1, a) h = Relu (p) c = MatMul (h, w2) y = Add (c, b2) }""",
    "conv": """g (float[N,1,6,6] x) => (float[N,3] y)
        { a = Conv <pads = [1,1,1,1]> (x, w1, b1) h = Relu (a)
          p = MaxPool <kernel_shape = [2,2], strides = [2,2]> (h) f = Flatten (p)
          y = Gemm (f, w2, b2) }""",
    "sequence": """g (float[N,4,8] x) => (float[N,4,3] y)
        { a = MatMul (x, w1) p = Add (a, b1) h = Tanh (p) y = MatMul (h, w2) }""",
}
SHAPES = {
    "gemm": [(16, 8), (16,), (16, 3), (3,)],
    "matmul": [(8, 16), (16,), (16, 3), (1, 3)],
    "conv": [(4, 1, 3, 3), (4,), (36, 3), (3,)],
    "sequence": [(8, 16), (16,), (16, 3)],
}
X = {
    "gemm": RNG.normal(size=(120, 8)).astype(np.float32),
    "conv": RNG.normal(size=(80, 1, 6, 6)).astype(np.float32),
    "sequence": RNG.normal(size=(80, 4, 8)).astype(np.float32),
}
X["matmul"] = X["gemm"]
KERNELS = {
    "gemm": {"QGemm": 2},
    "matmul": {"QGemm": 2},
    "conv": {"QLinearConv": 1, "QGemm": 1},
    "sequence": {"MatMulIntegerToFloat": 2},
}
#: Newer versions of quantize_static give the result of a layer before Relu the range after it.
IS_NEWER = tuple(map(int, onnxruntime.__version__.split(".")[:2])) > (1, 19)


def network(name):
    model = parser.parse_model(f"{HEAD} {TEXTS[name]}")
    rng = np.random.default_rng(1)
    model.graph.initializer.extend(
        numpy_helper.from_array(rng.normal(0, 0.3, shape).astype(np.float32), key)
        for key, shape in zip(("w1", "b1", "w2", "b2"), SHAPES[name], strict=False)
    )
    return model


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("name", TEXTS)
def test_integer_kernels_and_interface(name, symmetric):
    model = network(name)
    found = quantize(model, X[name], held_out=(X[name], None), symmetric=symmetric)
    checker.check_model(found.onnx, full_check=True)
    assert list(found.onnx.graph.input) == list(model.graph.input)
    assert list(found.onnx.graph.output) == list(model.graph.output)
    assert found.facts["integer kernels"] == KERNELS[name] and set(found.layers) == {"w1", "w2"}
    operators = optimized_operators(found.onnx)
    assert name != "conv" or symmetric or "NhwcMaxPool" in operators  # pooling of integers
    assert 0.99 < found.scores["r2"]["new"]["value"] < 1
    assert found.n_bytes["new"] < found.n_bytes["old"] + 3000 and found.metric == "r2"


class Reader(CalibrationDataReader):
    def __init__(self, samples):
        self.samples = iter([{"x": samples}])

    def get_next(self):
        return next(self.samples, None)


@pytest.mark.parametrize("symmetric, reduce_range", [(False, True), (True, False)])
@pytest.mark.parametrize("name", ["gemm", "conv"])
def test_equals_static_quantisation_of_onnxruntime(tmp_path, name, symmetric, reduce_range):
    """At the same settings: scales and zero points of layers, and the integers of weights and biases."""
    save(network(name), tmp_path / "float.onnx")
    logging.disable(logging.WARNING)
    quantize_static(
        tmp_path / "float.onnx",
        tmp_path / "int8.onnx",
        Reader(X[name]),
        quant_format=QuantFormat.QDQ,
        weight_type=QuantType.QInt8,
        activation_type=QuantType.QInt8,
        per_channel=True,
        reduce_range=reduce_range,
        extra_options={"ActivationSymmetric": symmetric},
    )
    logging.disable(logging.NOTSET)
    theirs = initializer_arrays(load_file(tmp_path / "int8.onnx"))
    options = {"held_out": (X[name], None), "symmetric": symmetric, "reduce_range": reduce_range}
    ours = initializer_arrays(quantize(network(name), X[name], **options).onnx)
    shared = set(ours) & set(theirs)
    assert {"x_scale", "x_zero_point", "w1_scale", "w1_quantized", "w2_scale", "w2_quantized"} <= shared
    assert {"b1_quantized", "b2_quantized"} <= shared
    # Newer versions give the result of a layer before Relu the range after it.
    before_relu = {"a_scale", "a_zero_point"} if symmetric and IS_NEWER else set()
    for key in shared - {"b1_scale", "b2_scale", "b1_zero_point", "b2_zero_point"} - before_relu:
        assert ours[key].dtype == theirs[key].dtype
        steps = 1 if "_quantized" in key or "zero_point" in key else 0  # ties of another rounding
        np.testing.assert_allclose(
            ours[key].astype(float), theirs[key].astype(float), rtol=1e-5, atol=steps, err_msg=key
        )
        assert (ours[key] == theirs[key]).mean() > 0.9 or not steps


def trained_graph(last):
    """Return a linear layer that trains its scales, its plan, its weight, and samples beyond the range."""
    model = parser.parse_model(f"{HEAD} g (float[N,3] x) => (float[N,2] y) {{ y = MatMul (x, w) }}")
    w = np.array([[0.31, -0.52], [1.0, 0.77], [-0.13, 0.98]], np.float32)
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    x = np.array([[0.3, -1.2, 2.2], [0.71, 0.05, -3.0]], np.float32)
    weights = {"w": weight_levels(0.8 * w, 1, last)}  # two weights are beyond the range
    activations = {"x": activation_levels(np.array([-1.0, 2.0], np.float32))}
    plan = Plan(find_layers(GraphView(model))[0], weights, activations)
    return write_trainable(model, plan), plan, w, x


@pytest.mark.parametrize("last", [127, 64, 7])
def test_gradients_of_learned_scales(last):
    """Against finite differences of the function whose rounding errors do not change with the scale."""
    (model, logs), plan, w, x = trained_graph(last)
    of_w, of_x = plan.weights["w"], plan.activations["x"]
    zero, v = float(of_x.zero), RNG.normal(size=(2, 2)).astype(np.float32)

    def rounded(value, scale, log_scale, low, high):
        """Return s * (x / s + fixed rounding error), or the end of the range (Esser et al., equation 3)."""
        error = np.rint(value / scale) - value / scale
        outside = (value / scale < low) | (value / scale > high)
        s = scale * np.exp(log_scale)
        return np.where(outside, s * np.clip(np.rint(value / scale), low, high), value + s * error)

    def smooth(log_w, log_x):
        left = rounded(x.astype(float), float(of_x.scale), log_x, of_x.low - zero, of_x.high - zero)
        right = rounded(w.astype(float), of_w.scale.astype(float), log_w, of_w.low, of_w.high)
        return float((v * (left @ right)).sum())

    gradient = onnx_derivative(model, weights=logs, inputs=[], straight_through=True)
    session = make_session(gradient, Device("cpu"))
    values = {**initializer_arrays(model, logs), "x": x, "y_grad": v}
    gradients = dict(zip(logs, session.run([f"{name}_grad" for name in logs], values), strict=True))
    step, none = 1e-6, np.zeros(2)
    steps = [np.array([step, 0.0]), np.array([0.0, step])]
    expected_w = [(smooth(one, 0.0) - smooth(-one, 0.0)) / (2 * step) for one in steps]
    expected_x = (smooth(none, step) - smooth(none, -step)) / (2 * step)
    assert abs(expected_x) > 0.1 and np.abs(expected_w).min() > 1e-4
    np.testing.assert_allclose(gradients["w_log_scale"], expected_w, rtol=2e-3, atol=1e-4)
    np.testing.assert_allclose(gradients["x_log_scale"], expected_x, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("last", [64, 7])
def test_the_trained_graph_equals_the_file(last):
    (model, _), plan, w, x = trained_graph(last)
    x_rounded = (
        np.clip(np.rint(x / plan.activations["x"].scale) + plan.activations["x"].zero, -128, 127)
    ) - float(plan.activations["x"].zero)
    levels = np.clip(np.rint(w / plan.weights["w"].scale), -last, last)
    expected = (x_rounded * plan.activations["x"].scale) @ (levels * plan.weights["w"].scale)
    np.testing.assert_allclose(run_graph(model, {"x": x}), expected, rtol=1e-5, atol=1e-6)
    if last > 7:
        text = f"{HEAD} g (float[N,3] x) => (float[N,2] y) {{ y = MatMul (x, w) }}"
        file = parser.parse_model(text)
        file.graph.initializer.append(numpy_helper.from_array(w, "w"))
        np.testing.assert_allclose(
            run_graph(write_quantised(file, plan), {"x": x}), expected, rtol=1e-5, atol=1e-6
        )


@pytest.mark.slow
def test_a_trained_file_trains_on(tmp_path):
    """A quantised file is one of those that the estimators train straight through."""
    found = quantize(network("gemm"), X["gemm"], held_out=(X["gemm"], None))
    y = File(found.onnx).matrix(X["gemm"])[:, ::-1] * 0.5
    trainer = OrtGradientOptimizer(
        found.onnx, straight_through=True, warm_start=True, learning_rate="Adam", max_iter=3, random_state=0
    )
    trained = trainer.fit(X["gemm"], y)
    assert trained.train_losses_[-1] < trained.train_losses_[0]
    export_training(trained, tmp_path / "package", batch_size=30)  # for programs in other languages
    again = load_training(tmp_path / "package")
    np.testing.assert_allclose(again.predict(X["gemm"]), trained.predict(X["gemm"]), rtol=1e-6)
    assert {
        t.name for t in trained.get_trained_onnx().graph.initializer if t.data_type == TensorProto.INT8
    } >= {
        "w1_quantized",
        "w2_quantized",
    }
