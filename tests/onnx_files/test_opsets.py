"""Models of opsets 7 to the newest are equivalent after conversion to an opset that onnxruntime runs."""

import numpy as np
import pytest
from onnx import defs, helper, parser, reference

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError
from ortlearn.graphs import opset_versions
from ortlearn.onnx_files.versions import MIN_OPSET, OPSET, pin_versions
from ortlearn.runtime.readable_versions import FLOOR_OPSET, newest_opset

X = np.random.RandomState(0).rand(1, 3, 4, 4).astype(np.float32)
SCALES = "float[4] s = {1, 1, 2, 2}"
CHANNELS = (
    "float[3] s = {1, 2, 3}, float[3] b = {0, 1, 2}, float[3] m = {0.1, 0.2, 0.3}, float[3] v = {1, 2, 3}"
)
#: Operators whose specification changed after opset 7, in their older form.
OLDER = [
    (7, 'y = Upsample <mode = "nearest", scales = [1.0, 1.0, 2.0, 2.0]> (x)', ""),
    (8, 'y = Upsample <mode = "linear", scales = [1.0, 1.0, 2.0, 2.0]> (x)', ""),
    (9, 'y = Upsample <mode = "linear"> (x, s)', SCALES),
    (10, 'y = Resize <mode = "nearest"> (x, s)', "float[4] s = {1, 1, 1.5, 1.5}"),
    (10, 'y = Resize <mode = "linear"> (x, s)', "float[4] s = {1, 1, 1.5, 1.5}"),
    (9, "y = Slice <axes = [2], starts = [1], ends = [3]> (x)", ""),
    (9, 'y = Pad <mode = "constant", pads = [0, 0, 1, 1, 0, 0, 1, 1], value = 2.0> (x)', ""),
    (9, 'y = Pad <mode = "reflect", pads = [0, 0, 1, 1, 0, 0, 1, 1]> (x)', ""),
    (7, "y = Clip <min = 0.2, max = 0.6> (x)", ""),
    (10, "y = Clip <max = 0.6> (x)", ""),
    (7, "y = Dropout <ratio = 0.4> (x)", ""),
    (10, "y = Dropout <ratio = 0.4> (x)", ""),
    (7, "y = BatchNormalization (x, s, b, m, v)", CHANNELS),
    (8, "y = BatchNormalization <momentum = 0.8> (x, s, b, m, v)", CHANNELS),
    (9, "y, i = TopK <axis = 1, k = 2> (x)", ""),
    (11, "y, z = Split <axis = 2, split = [1, 3]> (x)", ""),
    (11, "y, z = Split <axis = 2> (x)", ""),
    (11, "u = Unsqueeze <axes = [1]> (x) y = Squeeze <axes = [1]> (u)", ""),
    (11, "y = ReduceSum <axes = [1, 2], keepdims = 0> (x)", ""),
    (12, "y = ReduceMean <axes = [1, 2], keepdims = 0> (x)", ""),
    (7, "y = ReduceL2 (x)", ""),
    (7, "y = Softmax (x)", ""),
    (11, "y = LogSoftmax <axis = 2> (x)", ""),
    (11, "y = Hardmax <axis = 2> (x)", ""),
    (9, "y = Scatter <axis = 1> (x, i, u)", "int64[1,1,1,1] i = {2}, float[1,1,1,1] u = {9}"),
    (7, "y = PRelu (x, s)", "float[3,1,1] s = {1, 2, 3}"),
    (7, "d = Cast <to = 11> (x) y = Cast <to = 1> (d)", ""),
    (
        7,
        "y = Loop (n, go, x) <body = b (int64 i, bool c, float[N,3,4,4] s) => (bool d, float[N,3,4,4] t) "
        "{ d = Identity (c) q = Clip <min = 0.1, max = 0.7> (s) u = Unsqueeze <axes = [1]> (q) "
        "t = Squeeze <axes = [1]> (u) }>",
        "int64 n = {2}, bool go = {1}",
    ),
]
#: Operators added or changed by opsets newer than that of the oldest supported onnxruntime.
NEWER = [
    (22, "y = HardSwish (x)", ""),
    (23, "y = Identity (x)", ""),
    (23, "y = RMSNormalization (x, s)", "float[4] s = {1, 2, 3, 4}"),
    (23, "y = Attention (x, x, x)", ""),
    (24, "y = Swish <alpha = 2.0> (x)", ""),
    (25, "t = Exp (x) y = Neg (t)", ""),
    (27, "t = Exp (x) y = Neg (t)", ""),
    (28, "y = SwiGLU <alpha = 0.5> (x, x)", ""),
    (28, "q = QuantizeLinear (x, s) y = DequantizeLinear (q, s)", "float s = {0.01}"),
]
#: Operators that need an onnxruntime of their opset.
NEWEST = [
    (
        24,
        "y = TensorScatter <axis = 2> (x, u)",
        "float[1,3,1,4] u = {1,2,3,4,5,6,7,8,9,1,2,3}",
    ),
    (26, "y = CumProd <exclusive = 1> (x, axis)", "int64 axis = {1}"),
    (
        27,
        "r = Range <stash_type = 1> (s, t, s) y = Add (x, r)",
        "float s = {1}, float t = {5}",
    ),
]
#: Opsets that onnx 1.23 defines; the floor of the requirements defines up to 27.
OPSETS = range(7, defs.onnx_opset_version() + 1)


def model_of(opset, body, initializers=""):
    constants = f"<{initializers}>" if initializers else ""
    text = f'<ir_version: 8, opset_import: ["": {opset}]> g (float[N,3,4,4] x) => (float y) {constants}'
    model = parser.parse_model(f"{text} {{ {body} }}")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


@pytest.mark.parametrize("opset, body, initializers", OLDER)
def test_older_opsets(run_onnx, opset, body, initializers):
    model = model_of(opset, body, initializers)
    pinned = pin_versions(model)
    assert opset_versions(pinned) == {"": OPSET}
    np.testing.assert_allclose(run_onnx(pinned, X)[0], run_onnx(model, X)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("opset, body, initializers", [case for case in NEWER + NEWEST if case[0] in OPSETS])
def test_newer_opsets(run_onnx, opset, body, initializers):
    model = model_of(opset, body, initializers)
    if opset > newest_opset() and (opset, body, initializers) in NEWEST:
        words = rf"reads opsets up to {newest_opset()}\. .*'ortlearn\[onnxruntime\]'"
        with pytest.raises(ConversionError, match=words):
            pin_versions(model)
        return
    pinned = pin_versions(model)
    assert opset_versions(pinned)[""] in {FLOOR_OPSET, min(opset, newest_opset())}
    (expected,) = reference.ReferenceEvaluator(model).run(["y"], {"x": X})
    np.testing.assert_allclose(run_onnx(pinned, X)[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("opset", OPSETS)
def test_trained_file_replaces_the_original(run_onnx, opset):
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": {opset}]> g (float[N,2] x) => (float[N,1] y)
        <float[2,4] w = {{1, 2, 3, 4, -1, 0, 1, 2}}, float[6,1] v = {{1, 2, 1, 2, 1, 2}}, float[1] b = {{3}},
        int64[2] k = {{-1, 4}}>
        {{ z = MatMul (x, w) r = Relu (z)
        t = Reshape (r, k) c = Concat <axis = 1> (t, x) y = Gemm (c, v, b) }}"""
    )
    samples = X.reshape(-1, 2)
    trained = OrtGradientOptimizer(model, max_iter=2, warm_start=True, keep_better=False)
    trained.fit(samples, samples.sum(1, keepdims=True))
    result = trained.get_trained_onnx()
    if opset <= newest_opset():  # others run in a newer onnxruntime
        np.testing.assert_allclose(run_onnx(result, samples)[0], trained.predict(samples), rtol=1e-5)
    assert np.abs(trained.trained_coef_["b"] - 3).max() > 0
    for name, array in trained.trained_coef_.items():
        (tensor,) = (t for t in result.graph.initializer if t.name == name)
        assert tensor.raw_data == array.tobytes()
    del result.graph.initializer[:]
    del model.graph.initializer[:]
    assert result == model


@pytest.mark.parametrize(
    "opset, body, words",
    [
        (8, "y = BatchNormalization <spatial = 0> (x, s, s, s, s)", r"opset 8, and .*\['Batch.*spatial"),
        (9, "y, a, b, c, d = BatchNormalization (x, s, s, s, s)", r"\['BatchNormalization'\]"),
        (8, "y = Scan <num_scan_inputs = 1, body = b (float i) => (float o) { o = Neg (i) }> (, x)", "Scan"),
    ],
)  # fmt: skip
def test_error_names_unsupported_operators(opset, body, words):
    with pytest.raises(ConversionError, match=words):
        pin_versions(model_of(opset, body, "float s = {1}"))


@pytest.mark.parametrize("opset", sorted({MIN_OPSET, 17, FLOOR_OPSET, newest_opset()}))
def test_supported_opsets_are_unchanged(opset):
    assert opset_versions(pin_versions(model_of(opset, "y = Neg (x)"))) == {"": opset}


@pytest.mark.parametrize("opset", [999, 2**40, -1])
def test_unknown_opsets_are_rejected(opset):
    model = model_of(17, "y = Neg (x)")
    model.opset_import[0].version = opset
    newest = defs.onnx_opset_version()
    with pytest.raises(
        ConversionError, match=f"opset {opset}, which does not exist .* 1 to {newest}.*{newest_opset()}"
    ):
        pin_versions(model)
    model.opset_import[0].version = newest
    assert opset_versions(pin_versions(model)) == {"": newest if newest == newest_opset() else FLOOR_OPSET}
    model.opset_import.add(domain="ai.onnx.ml", version=opset)
    with pytest.raises(ConversionError, match=f"opset {opset} of the domain 'ai.onnx.ml', which does not"):
        pin_versions(model)
    model.opset_import[1].CopyFrom(helper.make_opsetid("elsewhere", 999))  # whose versions are unknown
    assert opset_versions(pin_versions(model))["elsewhere"] == 999
