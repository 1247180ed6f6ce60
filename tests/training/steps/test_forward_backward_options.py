"""Options and errors of forward and backward as two calls."""

import logging

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

from ortlearn.exceptions import DeviceError, GradientError, NoTrainableWeightError
from ortlearn.training.steps.forward_backward import OrtGradientForwardBackward


def test_class_name(mlp):
    owner = OrtGradientForwardBackward(mlp[1], class_name="MyFunction")
    assert type(owner.new_instance()).__name__ == "MyFunction"
    assert "I0_coefs_0" in repr(owner)


def unsorted_model(names):
    text = """
        <ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x) => (float[N,1] y) <float[2,1] FIRST = {1, 2}, float[1] SECOND = {3}>
        { z = MatMul (x, FIRST) y = Add (z, SECOND) }"""
    return parser.parse_model(text.replace("FIRST", names[0]).replace("SECOND", names[1]))


@pytest.mark.parametrize("gradient", ["rules", pytest.param("ort", marks=pytest.mark.needs_training)])
@pytest.mark.parametrize("given", [None, ["b", "a"], ["a", "b"]])
def test_weights_in_any_order(given, gradient):
    function = OrtGradientForwardBackward(unsorted_model(["b", "a"]), given, gradient=gradient).new_instance()
    names = given or ["b", "a"]
    assert function.owner.weights_to_train == names
    x = np.array([[1, 2], [3, 4]], np.float32)
    values = {"b": np.array([[1], [2]], np.float32), "a": np.array([3], np.float32)}
    (y,) = function.forward([x, *(values[name] for name in names)], training=True)
    np.testing.assert_allclose(y.numpy(), x @ values["b"] + 3)
    _, *found = function.backward([np.ones((2, 1), np.float32)])
    expected = {"b": [[4], [6]], "a": [2]}
    for name, got in zip(names, found, strict=True):
        np.testing.assert_allclose(got.numpy(), expected[name])


@pytest.mark.needs_training
def test_a_configuration_of_the_builder_selects_it():
    configured = OrtGradientForwardBackward(unsorted_model(["a", "b"]), graph_builder_config=object())
    assert any(node.op_type == "YieldOp" for node in configured.models_["training"].graph.node)


def test_unknown_and_missing_weights(mlp):
    with pytest.raises(NoTrainableWeightError, match=r"\['nothing'\] are not initializers.*I0_coefs_0"):
        OrtGradientForwardBackward(mlp[1], weights_to_train=["nothing"])
    with pytest.raises(NoTrainableWeightError, match="no floating-point initializer"):
        OrtGradientForwardBackward(mlp[1], weights_to_train=[])
    empty = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N,2] x) => (float[N,2] y) { y = Neg (x) }'
    )
    with pytest.raises(NoTrainableWeightError, match="no floating-point initializer"):
        OrtGradientForwardBackward(empty)


@pytest.mark.parametrize(
    "gradient, operator",
    [
        pytest.param("ort", "Hardmax", marks=pytest.mark.needs_training),
        ("rules", "Det"),
        ("auto", "Det"),
    ],
)
def test_operator_without_gradient(gradient, operator):
    onx = unsorted_model(["a", "b"])
    onx.graph.node[1].output[0] = "s"
    onx.graph.node.append(onnx.helper.make_node(operator, ["s"], ["y"], name="my_node"))
    with pytest.raises(GradientError, match=f"{operator}.*my_node"):
        OrtGradientForwardBackward(onx, gradient=gradient)


def test_providers(mlp):
    assert OrtGradientForwardBackward(mlp[1], providers="cpu").device_.is_cpu
    listed = OrtGradientForwardBackward(mlp[1], providers=["CPUExecutionProvider"])
    assert listed.device_.is_cpu
    for wrong in ("tpu", ["NoSuchExecutionProvider"], [("NoSuchExecutionProvider", {})], []):
        with pytest.raises(DeviceError, match="is unknown|not available"):
            OrtGradientForwardBackward(mlp[1], providers=wrong)


def test_invalid_calls(linear, data):
    owner, weights = linear
    function = owner.new_instance()
    ones = np.ones((30, 1), np.float32)
    with pytest.raises(RuntimeError, match="before backward"):
        function.backward([ones])
    with pytest.raises(RuntimeError, match="Nothing was saved"):
        function.saved_tensors  # noqa: B018
    for training in (False, True):
        with pytest.raises(ValueError, match=r"takes 3 tensors.*'I0_coef', 'I1_intercept'.*got 1"):
            function.forward([data[0]], training=training)
    function.forward([data[0], *weights])
    with pytest.raises(RuntimeError, match="before backward"):
        function.backward([ones])
    function.forward([data[0], *weights], training=True)
    with pytest.raises(ValueError, match=r"one gradient for each of the outputs \['variable'\], but got 2"):
        function.backward([ones, ones])
    assert len(function.backward([ones])) == 3  # the state of forward still exists


def test_debug_checks_types_and_shapes(linear, data):
    owner, weights = linear
    function = OrtGradientForwardBackward(owner.onnx_model, debug=True).new_instance()
    function.forward([data[0], *weights], training=True)
    assert len(function.backward([np.ones((30, 1), np.float32)])) == 3
    with pytest.raises(ValueError, match="'X' must be a tensor.float., but is a tensor.double."):
        function.forward([data[0].astype(np.float64), *weights])
    with pytest.raises(ValueError, match="'I0_coef' must have the shape"):
        function.forward([data[0], weights[0][:3], weights[1]])
    with pytest.raises(ValueError, match="'X' must have the shape"):
        function.forward([data[0][:, :3], *weights], training=True)
    function.forward([data[0], *weights], training=True)
    with pytest.raises(ValueError, match="must be a tensor.float., but is a tensor.double."):
        function.backward([np.ones((30, 1))])


def test_get_initializer(linear):
    owner, _ = linear
    assert owner.get_initializer("I0_coef").shape == (10, 1)
    assert owner.get_initializer("nothing", exc=False) is None
    with pytest.raises(KeyError, match="No initializer is named 'nothing'.*I0_coef"):
        owner.get_initializer("nothing")


def test_logging(mlp, caplog):
    with caplog.at_level(logging.INFO, logger="ortlearn.training"):
        OrtGradientForwardBackward(mlp[1])
        assert not caplog.records
        OrtGradientForwardBackward(mlp[1], enable_logging=True)
    assert caplog.records and {record.name for record in caplog.records} == {"ortlearn.training"}
    assert "I0_coefs_0" in caplog.text


def test_session_options_are_used(linear, data, tmp_path):
    owner, weights = linear
    options = onnxruntime.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "profile")
    profiled = OrtGradientForwardBackward(owner.onnx_model, sess_options=options)
    assert list(tmp_path.glob("profile*.json"))
    expected = owner.new_instance().forward([data[0], *weights])[0].numpy()
    np.testing.assert_array_equal(profiled.new_instance().forward([data[0], *weights])[0].numpy(), expected)


def test_run_options_are_used(linear, data):
    owner, weights = linear
    options = onnxruntime.RunOptions()
    options.terminate = True
    ended = OrtGradientForwardBackward(owner.onnx_model, run_options=options).new_instance()
    with pytest.raises(Exception, match="terminate"):
        ended.forward([data[0], *weights])
