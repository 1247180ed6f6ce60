"""The C++ builder refuses graphs that are not on its positive list, with the reason."""

import numpy as np
import pytest

from ortlearn.differentiation import DerivativeOptions, gradient_of_loss, onnx_derivative
from ortlearn.differentiation.cpp_builder import is_available, refusal
from ortlearn.differentiation.cpp_builder.positive_list import OPERATORS
from ortlearn.exceptions import GradientError, MissingRuntimeError
from ortlearn.graphs import make_initializers_of
from ortlearn.training.steps.forward_backward import OrtGradientForwardBackward
from tests.differentiation.evaluation import run_onnxruntime
from tests.differentiation.models import parse
from tests.differentiation.records import RECORDS
from tests.differentiation.test_rules import node_model, wanted

HEAD = """g (float[3,2] x, float[2] w, float[3,2] q, float[1,2] c, float[N,3] n, float[M,3] m, float e,
    double[3,2] d, int64[3] k) => (float[A,B] y) <int64[1] one = {1}, float[2] powers = {0, 2},
    int64[2] back = {-1, -1}, int64[2] both = {0, 1}, int64[2] low = {0, 0}, int64[2] high = {9, 9}>"""
#: Forms that are refused, and reasons.
FORMS = {
    "[bad] y = Hardmax (x)": "not on the list",
    "[bad] y = Add (n, m)": "which axes are broadcast of the shapes",
    "[bad] y = MatMul (x, w)": "is a vector",
    "t = Transpose (n) [bad] y = Gemm (n, t, n)": "which axes are broadcast",
    "[bad] y = Max (x, w, c)": "two operands",
    "low1 = ReduceMin <keepdims = 0> (q) [bad] y = Clip (x, e)": "a bound has a gradient",
    "g = Greater (x, q) [bad] y = Where (g, w, q)": "an operand is broadcast",
    "[bad] y = Pow (q, x)": "its exponent is not a constant",
    "[bad] y = Pow (x, powers)": "its exponent is not a constant",
    "[bad] y = Softmax (n)": "may be empty",
    "[bad] y = ReduceMean (n, one)": "may be empty",
    "[bad] y = ReduceLogSumExp <keepdims = 0> (x, one)": "its keepdims is 0",
    "[bad] y = ReduceSum <noop_with_empty_axes = 1> (x)": "keeps all axes",
    "[bad] y = Slice (x, high, low, both, back)": "its steps are negative",
    "[bad] y, z = Split <axis = 1, num_outputs = 2> (x)": "one of its outputs is not used",
    '[bad] y = Gelu <approximate = "tanh"> (x)': "approximation by tanh",
    "[bad] y = SoftmaxCrossEntropyLoss (x, k)": "its second output, which is omitted",
    "[bad] z, y = SoftmaxCrossEntropyLoss (x, k)": "its second output has a gradient",
    "[bad] y, p = SoftmaxCrossEntropyLoss (x, k, w)": "its class weights have a gradient",
    "[bad] y = Sqrt (e)": "the gradient of its scalar has an axis",
    "[bad] r = Relu (d) y = Cast <to = 1> (r)": "right in float32 only",
    "[bad] y = ReduceMean (d)": "right in float32 only",
    "[bad] h = Cast <to = 10> (x) y = Cast <to = 1> (h)": "right in float32 only",
    "x_grad = Neg (x) y = Exp (x_grad)": "are those of gradients",
    "zero = Constant <value_float = 0.0> () b = Greater (e, zero) [bad] y = If (b) "
    "<then_branch = a () => (float[3,2] p) { p = Tanh (x) }, "
    "else_branch = o () => (float[3,2] r) { r = Neg (x) }>": "has a subgraph",
}  # fmt: skip


#: Forms, and operators, that opening a file replaces by forms and operators of the list.
REWRITTEN = ("[bad] y = MatMul (x, w)", "[bad] y = ReduceSum <noop_with_empty_axes = 1> (x)")
DECOMPOSED = {"LpNormalization", "ArrayFeatureExtractor", "Scaler", "Normalizer", "Imputer"}


def model_of(body):
    return parse(f"{HEAD} {{ {body} }}", 20)


@pytest.mark.needs_training
@pytest.mark.parametrize("body", FORMS)
def test_forms_outside_of_the_list(body):
    model = model_of(body)
    message = ("bad.*" if "[bad]" in body else "") + FORMS[body]
    wrt = [name for name in "xwqcnmed" if any(name in node.input for node in model.graph.node)]
    for options in () if body in REWRITTEN else (DerivativeOptions.Zero, DerivativeOptions.KeepYieldOp):
        with pytest.raises(GradientError, match=message):
            onnx_derivative(model, [], wrt, options, backend="ort")
    weights = sorted(wrt)[:1]
    with pytest.raises(GradientError, match=message):
        OrtGradientForwardBackward(make_initializers_of(model, weights), weights, gradient="ort")


def outside():
    """Return one record of each operator that is not on the list."""
    listed = {("", name) for name in OPERATORS} | {("", "Softplus")}
    found = {(r.domain, r.op_type): r for r in RECORDS if (r.domain, r.op_type) not in listed}
    return list(found.values())


@pytest.mark.needs_training
@pytest.mark.parametrize("record", outside(), ids=str)
def test_operators_outside_of_the_list(record):
    model, feeds, names = node_model(record, record.opsets[-1], np.float32)
    wrt = wanted(record, feeds, names)
    assert wrt
    if record.op_type in DECOMPOSED:
        outputs = [value.name for value in model.graph.output]
        assert "not on the list" in refusal(model, outputs, wrt)
        return
    with pytest.raises(
        GradientError, match="not on the list|has a subgraph|rounds|right in float32 only|its opset is"
    ):
        onnx_derivative(model, [], wrt, backend="ort")


def test_auto_uses_the_rules():
    model = parse("g (float[3] x) => (float loss) { h = Hardmax (x) s = Mul (h, x) p = Elu (s) "
                  "loss = ReduceSum <keepdims = 0> (p) }")  # fmt: skip
    assert gradient_of_loss(model, "loss", ["x"]) == gradient_of_loss(model, "loss", ["x"], "rules")
    listed = parse("g (float[3] x) => (float loss) { h = Tanh (x) loss = ReduceSum <keepdims = 0> (h) }")
    assert refusal(listed, ["loss"], ["x"]) is None
    assert gradient_of_loss(listed, "loss", ["x"]) == gradient_of_loss(listed, "loss", ["x"], "rules")


@pytest.mark.parametrize("opset", [12, 22])
def test_versions_that_were_not_compared(opset):
    model = parse("g (float[3] x) => (float[3] y) { y = Tanh (x) }", opset)
    assert f"its opset is {opset}, not 13 to 21" in refusal(model, ["y"], ["x"])


def test_graph_off_the_path_is_not_restricted():
    model = parse("g (float[3] x, float[3] z) => (float[3] y) { h = Hardmax (z) e = Elu (h) y = Mul (x, e) }")
    assert refusal(model, ["y"], ["x"]) is None
    assert "Elu" in refusal(model, ["y"], ["x", "z"]) or "Hardmax" in refusal(model, ["y"], ["x", "z"])


def test_plain_onnxruntime(monkeypatch):
    if is_available():  # simulate a build without gradients
        from onnxruntime.capi import _pybind_state

        monkeypatch.delattr(_pybind_state, "GradientGraphBuilder")
    assert not is_available()
    model = parse("g (float[3] x) => (float loss) { h = Tanh (x) loss = ReduceSum <keepdims = 0> (h) }")
    message = r"no gradient builder. Install onnxruntime-training: pip install 'ortlearn\[training\]'"
    with pytest.raises(MissingRuntimeError, match=message):
        gradient_of_loss(model, "loss", ["x"], "ort")
    with pytest.raises(ImportError, match=message):
        OrtGradientForwardBackward(make_initializers_of(model, ["x"]), gradient="ort")
    run_onnxruntime(gradient_of_loss(model, "loss", ["x"]), {"x": np.ones(3, np.float32)})
