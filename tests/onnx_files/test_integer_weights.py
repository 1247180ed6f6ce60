"""Integer weights: networks quantised by onnxruntime are trained and written back."""

import logging

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, checker, helper, load, numpy_helper, parser, save
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import ConversionError, GradientError, NoTrainableWeightError
from ortlearn.onnx_files import LoRA
from ortlearn.onnx_files.integer_weights import RANGES
from ortlearn.onnx_files.loading import load_onnx
from ortlearn.onnx_files.named_weights import with_named_weights
from ortlearn.onnx_files.weight_locations import weight_locations, with_values
from ortlearn.trainable.explanation import explain

BOTH = [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer]
RNG = np.random.default_rng(0)
HEAD = '<ir_version: 8, opset_import: ["": 18]>'
TEXTS = {
    "layers": "g (float[N,8] x) => (float[N,2] y)"
    " { a = Gemm <transB = 1> (x, w1, b1) h = Relu (a) y = Gemm <transB = 1> (h, w2, b2) }",
    "convolution": """g (float[N,1,6,6] x) => (float[N,2] y)
        { a = Conv <pads = [1,1,1,1]> (x, w1, b1) h = Relu (a)
          p = MaxPool <kernel_shape = [2,2], strides = [2,2]> (h) f = Flatten (p)
          y = Gemm <transB = 1> (f, w2, b2) }""",
}
SHAPES = {
    "layers": {"w1": (16, 8), "b1": (16,), "w2": (2, 16), "b2": (2,)},
    "convolution": {"w1": (4, 1, 3, 3), "b1": (4,), "w2": (2, 36), "b2": (2,)},
}
X = {
    "layers": RNG.normal(size=(120, 8)).astype(np.float32),
    "convolution": RNG.normal(size=(80, 1, 6, 6)).astype(np.float32),
}
WEIGHTS = {"w1_quantized", "b1_quantized", "w2_quantized", "b2_quantized"}
OPTIONS = {"warm_start": True, "random_state": 0, "max_iter": 30, "learning_rate": "Adam"}


@pytest.fixture(scope="module")
def run_onnx():
    """Run a model without the fusions of onnxruntime 1.32, which round activations of integer products."""

    def run(model, samples):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        providers = ["CPUExecutionProvider"]
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)
        return session.run(None, {session.get_inputs()[0].name: samples})

    return run


def network(name):
    model = parser.parse_model(f"{HEAD} {TEXTS[name]}")
    rng = np.random.default_rng(1)
    model.graph.initializer.extend(
        numpy_helper.from_array(rng.normal(0, 0.3, shape).astype(np.float32), key)
        for key, shape in SHAPES[name].items()
    )
    return model


class Reader(CalibrationDataReader):
    def __init__(self, samples):
        self.rows = iter([{"x": samples}])

    def get_next(self):
        return next(self.rows, None)


def quantised(folder, name, weight_type=QuantType.QInt8, activation_type=QuantType.QInt8, per_channel=False):
    """Return a network quantised by onnxruntime, with QuantizeLinear and DequantizeLinear."""
    save(network(name), folder / "float.onnx")
    logging.disable(logging.WARNING)  # advice to preprocess the file
    quantize_static(
        folder / "float.onnx",
        folder / "quantised.onnx",
        Reader(X[name]),
        quant_format=QuantFormat.QDQ,
        weight_type=weight_type,
        activation_type=activation_type,
        per_channel=per_channel,
    )
    logging.disable(logging.NOTSET)
    return load(folder / "quantised.onnx")


def targets(name, run_onnx, file):
    """Return labels near the outputs of a file, within the ranges of its activations."""
    found = run_onnx(file, X[name])[0]
    return (0.7 * found[:, ::-1]).astype(np.float32)


def assert_equal_but_for_ties(found, expected, file):
    """Allow one quantisation step: integer and float kernels may round ties differently."""
    step = next(float(numpy_helper.to_array(t)) for t in file.graph.initializer if t.name == "y_scale")
    assert abs(found - expected).max() <= 1.01 * step and np.isclose(found, expected).mean() > 0.95


KINDS = [
    (QuantType.QInt8, QuantType.QInt8, False),
    (QuantType.QInt8, QuantType.QUInt8, True),
    (QuantType.QUInt8, QuantType.QUInt8, False),
    (QuantType.QInt16, QuantType.QUInt16, False),  # by operators of onnxruntime below opset 21
]


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: " ".join(str(part) for part in kind))
@pytest.mark.parametrize("name", TEXTS)
def test_quantised_networks(tmp_path, run_onnx, name, kind, cls):
    file = quantised(tmp_path, name, *kind)
    y = targets(name, run_onnx, file)
    trained = cls(file, straight_through=True, **OPTIONS).fit(X[name], y)
    assert set(trained.trained_coef_) == WEIGHTS
    result = trained.get_trained_onnx()
    checker.check_model(result, full_check=True)
    before, after = (np.square(run_onnx(model, X[name])[0] - y).mean() for model in (file, result))
    assert after < 0.4 * before
    assert_equal_but_for_ties(trained.predict(X[name]), run_onnx(result, X[name])[0], file)
    changed = {
        old.name
        for old, new in zip(file.graph.initializer, result.graph.initializer, strict=True)
        if old != new
    }
    assert changed == WEIGHTS
    for old, new in zip(file.graph.initializer, result.graph.initializer, strict=True):
        assert (old.name, old.data_type, old.dims) == (new.name, new.data_type, new.dims)
    for model in (file, result):
        del model.graph.initializer[:]
    assert file == result


def test_standard_rounding_to_16_bits_requires_opset_21(tmp_path):
    file = quantised(tmp_path, "layers", QuantType.QInt16, QuantType.QUInt16)
    for node in file.graph.node:
        node.domain = ""
    for item in file.opset_import:  # newer onnxruntime quantises in opset 21
        item.version = 18 if item.domain == "" else item.version
    with pytest.raises(ConversionError, match=r"opset 18 have no integers of 4 and 16 bits.*opset 21"):
        load_onnx(file)


def test_trained_levels_are_written_back(tmp_path, run_onnx):
    """The graph of training rounds weights as the file does."""
    file = quantised(tmp_path, "layers", per_channel=True)
    trained = OrtGradientOptimizer(file, straight_through=True, **OPTIONS)
    trained.fit(X["layers"], targets("layers", run_onnx, file))
    upgraded = trained.get_trained_onnx(keep_upgrade=True)
    assert {t.name for t in upgraded.graph.initializer if t.data_type == TensorProto.FLOAT} >= WEIGHTS
    pair = (run_onnx(model, X["layers"])[0] for model in (upgraded, trained.get_trained_onnx()))
    assert_equal_but_for_ties(*pair, file)


@pytest.mark.parametrize("cls", BOTH)
def test_error_suggests_straight_through(tmp_path, cls):
    file = quantised(tmp_path, "layers")
    y = X["layers"][:, :2]
    with pytest.raises(
        NoTrainableWeightError, match=r"'w1_quantized'.* stored as integers: pass straight_th"
    ):
        cls(file).fit(X["layers"], y)
    with pytest.raises(
        NoTrainableWeightError, match=r"matches no .* stored as integers: pass straight_throu"
    ):
        cls(file, "w1_quantized").fit(X["layers"], y)
    with pytest.raises(NoTrainableWeightError, match="matches no floating-point") as error:
        cls(file, "w3", straight_through=True).fit(X["layers"], y)
    assert "stored as integers" not in str(error.value)


@pytest.mark.parametrize("cls", BOTH)
def test_dynamic_quantisation_is_rejected(tmp_path, cls):
    save(network("layers"), tmp_path / "float.onnx")
    logging.disable(logging.WARNING)
    quantize_dynamic(tmp_path / "float.onnx", tmp_path / "quantised.onnx")
    logging.disable(logging.NOTSET)
    y = X["layers"][:, :2]
    for straight_through in (False, True):
        model = cls(tmp_path / "quantised.onnx", straight_through=straight_through)
        with pytest.raises(
            ConversionError, match=r"'w1_.*quantized', 'w2_.* MatMulInteger, which cannot.*quantize_static"
        ):
            model.fit(X["layers"], y)
    with pytest.raises(GradientError, match="QuantizeLinear whose scale is stored, from calibration"):
        cls(tmp_path / "quantised.onnx", ["b1"]).fit(X["layers"], y)
    trained = cls(tmp_path / "quantised.onnx", ["b2"], **OPTIONS).fit(X["layers"], y)
    assert set(trained.trained_coef_) == {"b2"}


# -- other layouts of quantised weights ----------------------------------------------------------------

LINEAR = "g (float[N,3] x) => (float[N,2] y) <{}> {{ {} w = DequantizeLinear {} y = MatMul (x, w) }}"
VALUES = "{10, -20, 30, -40, 50, -60}"
LAYOUTS = {
    "per tensor": LINEAR.format(
        f"int8[3,2] k = {VALUES}, float s = {{0.02}}, int8 z = {{3}}", "", "(k, s, z)"
    ),
    "no zero point": LINEAR.format(f"int8[3,2] k = {VALUES}, float s = {{0.02}}", "", "(k, s)"),
    "per row": LINEAR.format(
        f"int8[3,2] k = {VALUES}, float[3] s = {{0.02, 0.01, 0.03}}, int8[3] z = {{1, 0, -5}}",
        "",
        "<axis = 0> (k, s, z)",
    ),
    "per column, no zero point": LINEAR.format(
        f"int8[3,2] k = {VALUES}, float[2] s = {{0.02, 0.01}}", "", "<axis = -1> (k, s)"
    ),
    "constants": LINEAR.format(
        "int8 z = {3}",
        f"k = Constant <value = int8[3,2] {VALUES}> () s = Constant <value_float = 0.02> ()",
        "(k, s, z)",
    ),
    "int32": LINEAR.format(f"int32[3,2] k = {VALUES}, float s = {{0.02}}", "", "(k, s)"),
    "int16": LINEAR.format(f"int16[3,2] k = {VALUES}, float s = {{0.02}}, int16 z = {{2}}", "", "(k, s, z)"),
    "two readers": LINEAR.format(
        f"int8[3,2] k = {VALUES}, float s = {{0.02}}", "v = DequantizeLinear (k, s)", "(k, s)"
    ).replace("y = MatMul (x, w)", "a = MatMul (x, w) b = MatMul (x, v) y = Add (a, b)"),
    "a branch": f"""g (float[N,3] x) => (float[N,2] y) <float s = {{0.02}}> {{
        t = ReduceSum <keepdims = 0> (x) c = Cast <to = 9> (t)
        y = If (c) <then_branch = a () => (float[N,2] p) <int8[3,2] k = {VALUES}>
              {{ w = DequantizeLinear (k, s) p = MatMul (x, w) }},
            else_branch = b () => (float[N,2] q) {{ k = Constant <value = int8[3,2] {VALUES}> ()
              w = DequantizeLinear (k, s) q = MatMul (x, w) }}> }}""",
}
SAMPLES = RNG.normal(size=(60, 3)).astype(np.float32)


#: Types without literals in the text format.
TYPES = {"int4": TensorProto.INT4, "uint4": TensorProto.UINT4, "uint16": TensorProto.UINT16}


def layout(name):
    if name not in TYPES:
        opset = 21 if name == "int16" else 18
        return parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> {LAYOUTS[name]}')
    file, dtype = layout("int16"), helper.tensor_dtype_to_np_dtype(TYPES[name])
    values = {"k": [[1, 2], [3, 4], [5, 6]], "z": 2}
    for tensor in file.graph.initializer:
        if tensor.name in values:
            array = np.array(values[tensor.name]).astype(dtype)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        else:
            tensor.float_data[:] = [0.3]
    return file


@pytest.mark.parametrize("name", [*LAYOUTS, *TYPES])
def test_dequantised_weights(run_onnx, name):
    file = layout(name)
    expected = run_onnx(file, SAMPLES)[0]
    lifted = with_named_weights(file, integers=True)
    checker.check_model(lifted, full_check=True)
    np.testing.assert_allclose(run_onnx(lifted, SAMPLES)[0], expected, rtol=1e-5, atol=1e-6)
    locations = {n: p for n, p in weight_locations(file).items() if p.quantisation is not None}
    assert set(locations) <= {tensor.name for tensor in lifted.graph.initializer}
    same = with_values(file, {key: location.value() for key, location in locations.items()})
    for key, location in locations.items():
        np.testing.assert_array_equal(
            numpy_helper.to_array(weight_locations(same)[key].tensor), numpy_helper.to_array(location.tensor)
        )
    far = with_values(file, {key: np.full(location.shape, 1e9) for key, location in locations.items()})
    for location in weight_locations(far).values():
        if location.quantisation is not None:
            assert (numpy_helper.to_array(location.tensor) == RANGES[location.tensor.data_type][1]).all()


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("name", [*LAYOUTS, *TYPES])
def test_layouts_are_trained(run_onnx, name, cls):
    file = layout(name)
    y = SAMPLES @ np.array([[0.5, -1], [1, 0.3], [-0.4, 0.8]], np.float32)
    options = {**OPTIONS, "max_iter": 60, "learning_rate": 0.05}
    trained = cls(file, straight_through=True, **options).fit(SAMPLES, y)
    result = trained.get_trained_onnx()
    assert [node.op_type for node in result.graph.node] == [node.op_type for node in file.graph.node]
    before, after = (np.square(run_onnx(model, SAMPLES)[0] - y).mean() for model in (file, result))
    assert after < 0.1 * before
    np.testing.assert_allclose(trained.predict(SAMPLES), run_onnx(result, SAMPLES)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        # two scales
        LINEAR.format(
            f"int8[3,2] k = {VALUES}, float s = {{0.02}}, float t = {{0.03}}",
            "v = DequantizeLinear (k, t)",
            "(k, s)",
        ).replace("y = MatMul (x, w)", "a = MatMul (x, w) b = MatMul (x, v) y = Add (a, b)"),
        # a second reader
        LINEAR.format(
            f"int8[3,2] k = {VALUES}, float s = {{0.02}}", "v = Cast <to = 1> (k)", "(k, s)"
        ).replace("y = MatMul (x, w)", "a = MatMul (x, w) b = MatMul (x, v) y = Add (a, b)"),
        # a computed scale
        LINEAR.format(f"int8[3,2] k = {VALUES}", "s = ReduceMean <keepdims = 0> (x)", "(k, s)"),
        # scales of strings, of another size, of zero, and along an axis out of bounds
        LINEAR.format(f'int8[3,2] k = {VALUES}, string s = {{"a"}}', "", "(k, s)"),
        LINEAR.format(f"int8[3,2] k = {VALUES}, float[4] s = {{1, 2, 3, 4}}", "", "(k, s)"),
        LINEAR.format(f"int8[3,2] k = {VALUES}, float s = {{0}}", "", "(k, s)"),
        LINEAR.format(f"int8[3,2] k = {VALUES}, float[3] s = {{1, 2, 3}}", "", "<axis = 5> (k, s)"),
    ],
)  # fmt: skip
def test_ambiguous_integers_are_not_weights(text):
    file = parser.parse_model(f"{HEAD} {text}")
    assert all(location.quantisation is None for location in weight_locations(file).values())
    assert {t.name for t in with_named_weights(file, integers=True).graph.initializer} == {
        t.name for t in file.graph.initializer
    }


def test_trained_scale(run_onnx):
    file = layout("per tensor")
    y = SAMPLES @ np.array([[5, -10], [10, 3], [-4, 8]], np.float32)  # beyond 127 steps of the scale
    options = {**OPTIONS, "max_iter": 300, "learning_rate": 0.01, "straight_through": True}
    trained = OrtGradientOptimizer(file, ["k", "s"], **options).fit(SAMPLES, y)
    result = trained.get_trained_onnx()
    fixed = OrtGradientOptimizer(file, "k", **options).fit(SAMPLES, y)
    assert trained.score(SAMPLES, y) > fixed.score(SAMPLES, y) + 0.2
    np.testing.assert_allclose(run_onnx(result, SAMPLES)[0], trained.predict(SAMPLES), rtol=1e-4, atol=1e-4)
    scale, levels = (numpy_helper.to_array(weight_locations(result)[name].tensor) for name in "sk")
    expected = np.clip(np.rint(trained.trained_coef_["k"] / scale) + 3, -128, 127)
    np.testing.assert_array_equal(levels, expected)


def test_lora_of_quantised_weights(run_onnx):
    file = layout("per column, no zero point")
    y = SAMPLES @ np.array([[0.5, -1], [1, 0.3], [-0.4, 0.8]], np.float32)
    trained = OrtGradientOptimizer(file, lora=LoRA(rank=1, target="k"), straight_through=True, **OPTIONS)
    trained.fit(SAMPLES, y)
    np.testing.assert_allclose(
        run_onnx(trained.get_trained_onnx(), SAMPLES)[0], trained.predict(SAMPLES), atol=1e-5
    )
    separate = trained.get_trained_onnx(merged=False)
    np.testing.assert_allclose(run_onnx(separate, SAMPLES)[0], run_onnx(file, SAMPLES)[0], atol=1e-5)


def test_integers_are_frozen_by_default(run_onnx):
    """Intercepts beside frozen integers are trained."""
    file = parser.parse_model(
        f"""{HEAD} g (float[N,3] x) => (float[N,2] y)
        <int8[3,2] k = {VALUES}, float s = {{0.02}}, float[2] b = {{1, 2}}>
        {{ w = DequantizeLinear (k, s) z = MatMul (x, w) y = Add (z, b) }}"""
    )
    y = np.zeros((60, 2), np.float32)
    trained = OrtGradientOptimizer(file, **OPTIONS).fit(SAMPLES, y)
    assert set(trained.trained_coef_) == {"b"}
    assert {t.name: t.data_type for t in load_onnx(file).graph.initializer}["k"] == TensorProto.INT8
    summaries = [explain(file, straight_through=value).summary for value in (False, True)]
    assert summaries == [
        "trained: 2 of 2 numbers, in 1 of 1 weights",
        "trained: 8 of 8 numbers, in 2 of 2 weights",
    ]
    both = OrtGradientOptimizer(file, straight_through=True, **OPTIONS).fit(SAMPLES, y)
    assert set(both.trained_coef_) == {"b", "k"}


def test_initializers_that_are_inputs_too():
    file = layout("per tensor")
    file.ir_version = 3
    file.graph.input.extend(
        helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in file.graph.initializer
    )
    trained = OrtGradientOptimizer(file, straight_through=True, **OPTIONS).fit(SAMPLES, SAMPLES[:, :2])
    assert trained.get_trained_onnx().graph.input == file.graph.input
