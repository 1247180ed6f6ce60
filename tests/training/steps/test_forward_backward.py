"""Forward and backward as two calls, for custom training loops."""

import pickle

import cloudpickle
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser
from sklearn.linear_model import LinearRegression

from ortlearn.exceptions import DeviceError
from ortlearn.models.weight_names import onnx_rename_weights
from ortlearn.trainable.from_estimator import sklearn_to_onnx
from ortlearn.training.steps.forward_backward import OrtGradientForwardBackward

C_API = onnxruntime.capi._pybind_state

ORT = pytest.param("ort", marks=pytest.mark.needs_training)


def as_arrays(values):
    return [value.numpy() for value in values]


def wrap(kind, arrays):
    """Convert arrays to each type of input of forward."""
    if kind == "arrays":
        return list(arrays)
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(a)) for a in arrays]
    if kind == "public":
        return values
    if kind == "c":
        return [value._ortvalue for value in values]
    vector = C_API.OrtValueVector()
    for value in values:
        vector.push_back(value._ortvalue)
    return vector


@pytest.mark.parametrize("kind", ["arrays", "public", "c", "vector"])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("gradient", [ORT, "rules"])
def test_forward_equals_scikit_learn(kind, training, gradient, mlp, data):
    model, onx = mlp
    weights = ["I0_coefs_0", "I1_intercepts_0", "I2_coefs_1", "I3_intercepts_1"]
    owner = OrtGradientForwardBackward(onx, weights_to_train=weights, gradient=gradient)
    function = owner.new_instance()
    arrays = [data[0], *(owner.get_initializer(name) for name in weights)]
    inputs = wrap(kind, arrays)
    (output,) = as_arrays(function.forward(inputs, training=training))
    np.testing.assert_allclose(output.ravel(), model.predict(data[0]), rtol=1e-4, atol=1e-5)
    if training:
        assert len(function.saved_tensors) == 5
        gradients = function.backward(wrap(kind, [np.ones_like(output)]))
        assert [g.numpy().shape for g in gradients] == [array.shape for array in arrays]


def test_forward_uses_its_weights(linear, data):
    owner, (coef, intercept) = linear
    function = owner.new_instance()
    for training in (False, True):
        (output,) = as_arrays(function.forward([data[0], 2 * coef, intercept + 1], training=training))
        np.testing.assert_allclose(output, 2 * data[0] @ coef + intercept + 1, rtol=1e-4, atol=1e-4)


def test_gradients_of_a_linear_function(linear, data):
    owner, (coef, intercept) = linear
    assert owner.gradient_names_ == ["X_grad", "I0_coef_grad", "I1_intercept_grad"]
    X = data[0]
    slopes = np.random.RandomState(0).normal(size=(30, 1)).astype(np.float32)
    function = owner.new_instance()
    function.forward([X, coef, intercept], training=True)
    of_X, of_coef, of_intercept = as_arrays(function.backward([slopes]))
    np.testing.assert_allclose(of_X, slopes @ coef.T, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(of_coef, X.T @ slopes, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(of_intercept, slopes.sum(axis=0), rtol=1e-4)


@pytest.mark.parametrize("kind", ["contiguous", "strided", "public"])
@pytest.mark.parametrize("gradient", [ORT, "rules"])
def test_inputs_stay_alive_until_backward(kind, gradient, linear, data):
    (coef, intercept), X = linear[1], data[0]
    function = OrtGradientForwardBackward(linear[0].onnx_model, gradient=gradient).new_instance()

    def given(factor):
        if kind == "strided":
            return np.repeat(factor * X, 2, axis=1)[:, ::2]
        return wrap("public", [factor * X])[0] if kind == "public" else factor * X

    factors, slopes = (1, 2, 3), np.ones((30, 1), np.float32)
    for factor in factors:
        function.forward([given(factor), coef, intercept], training=True)
    others = [np.full_like(X, 9) for _ in range(50)]  # would take the memory of inputs that nothing holds
    for factor in reversed(factors):
        of_coef = function.backward([slopes])[1].numpy()
        np.testing.assert_allclose(of_coef, factor * X.T @ slopes, rtol=1e-4, atol=1e-4)
    assert len(others) == 50


@pytest.mark.parametrize("gradient", [ORT, "rules"])
def test_gradients_of_a_network(gradient, mlp, data):
    owner = OrtGradientForwardBackward(mlp[1], gradient=gradient)
    rng = np.random.RandomState(1)
    X = data[0]
    arrays = [
        owner.get_initializer(n) + rng.normal(size=1).astype(np.float32) for n in owner.weights_to_train
    ]
    w1, b1, w2, b2 = arrays
    slopes = rng.normal(size=(30, 1)).astype(np.float32)
    function = owner.new_instance()
    function.forward([X, *arrays], training=True)
    hidden = X @ w1 + b1
    back = (slopes @ w2.T) * (hidden > 0)
    expected = [
        back @ w1.T,
        X.T @ back,
        back.sum(axis=0),
        np.maximum(hidden, 0).T @ slopes,
        slopes.sum(axis=0),
    ]
    for got, wanted in zip(as_arrays(function.backward([slopes])), expected, strict=True):
        np.testing.assert_allclose(got, wanted.reshape(got.shape), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("gradient", ["auto", "rules"])
def test_float64(gradient, data):
    X = data[0].astype(np.float64)
    onx = sklearn_to_onnx(LinearRegression().fit(X, data[1]), 10, np.float64)
    owner = OrtGradientForwardBackward(onnx_rename_weights(onx), gradient=gradient)
    weights = [owner.get_initializer(name) for name in owner.weights_to_train]
    function = owner.new_instance()
    function.forward([X, *weights], training=True)
    gradients = as_arrays(function.backward([np.ones((30, 1))]))
    np.testing.assert_allclose(gradients[1], X.sum(axis=0)[:, None], rtol=1e-12, atol=1e-12)


def test_some_weights_only(mlp, data):
    names = ["I2_coefs_1", "I3_intercepts_1"]
    owner = OrtGradientForwardBackward(mlp[1], weights_to_train=names)
    function = owner.new_instance()
    function.forward([data[0], *(owner.get_initializer(n) for n in names)], training=True)
    assert len(function.backward([np.ones((30, 1), np.float32)])) == len(owner.gradient_names_) == 3


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("gradient", [ORT, "rules"])
def test_output_caches_are_written(training, gradient, linear, data):
    weights = linear[1]
    owner = OrtGradientForwardBackward(linear[0].onnx_model, gradient=gradient)
    function = owner.new_instance()
    output, gradients = np.zeros((30, 1), np.float32), [np.zeros((30, 10), np.float32)]
    gradients += [np.zeros_like(weight) for weight in weights]
    cache, backward_cache = function.input_to_ort([output]), function.input_to_ort(gradients)
    for factor in (1, 3):
        scaled = [factor * weight for weight in weights]
        function.forward([data[0], *scaled], training=training, forward_outputs_cache=cache)
        np.testing.assert_allclose(output, data[0] @ scaled[0] + scaled[1], rtol=1e-4, atol=1e-4)
        if training:
            slopes = np.full((30, 1), factor, np.float32)
            returned = function.backward([slopes], backward_outputs_cache=backward_cache)
            assert returned is backward_cache
            np.testing.assert_allclose(gradients[2], [30 * factor], rtol=1e-5)


def test_instances_are_independent(linear, data):
    owner, weights = linear
    first, second = owner.new_instance(), owner.new_instance()
    assert type(first).__name__ == "TrainingFunction" and first is not second
    first.forward([data[0][:4], *weights], training=True)
    second.forward([data[0][4:10], *weights], training=True)
    ones = np.ones((6, 1), np.float32)
    np.testing.assert_allclose(
        first.backward([ones[:4]])[1].numpy().ravel(), data[0][:4].sum(axis=0), rtol=1e-4
    )
    np.testing.assert_allclose(
        second.backward([ones])[1].numpy().ravel(), data[0][4:10].sum(axis=0), rtol=1e-4
    )
    with pytest.raises(RuntimeError, match="before backward"):
        first.backward([ones])


@pytest.mark.parametrize("gradient", [ORT, "rules"])
def test_two_outputs_one_of_them_inner(gradient):
    onx = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x, float[N,2] z) => (float[N,1] a, float[N,1] b) <float[2,1] w = {1, 2}>
        { a = MatMul (x, w) s = Mul (a, a) m = MatMul (z, w) b = Add (s, m) }""")
    x, z = np.ones((3, 2), np.float32), np.full((3, 2), 2, np.float32)
    w, ones = np.array([[1], [2]], np.float32), np.ones((3, 1), np.float32)
    function = OrtGradientForwardBackward(onx, gradient=gradient).new_instance()
    outputs = as_arrays(function.forward([x, z, w], training=True))
    np.testing.assert_allclose(outputs[1], 9 + 6 * ones)
    slopes = [ones.copy(), 2 * ones]
    of_x, of_z, of_w = as_arrays(function.backward(slopes))
    np.testing.assert_allclose(outputs[1], 9 + 6 * ones)  # outputs are not overwritten
    np.testing.assert_allclose(slopes, [ones, 2 * ones])
    np.testing.assert_allclose(w, [[1], [2]])
    np.testing.assert_allclose(of_x, 13 * ones @ w.T)
    np.testing.assert_allclose(of_z, 2 * ones @ w.T)
    np.testing.assert_allclose(of_w, np.full((2, 1), 3 * 13 + 3 * 4.0))
    one = OrtGradientForwardBackward(onx, output_names=["b"], gradient=gradient)
    np.testing.assert_allclose(one.new_instance().forward([x, z, w])[0].numpy(), outputs[1])


def test_saved_tensors(linear, data):
    owner, weights = linear
    function = owner.new_instance()
    inputs = [data[0], *weights]
    function.forward(inputs, training=True)
    assert all(kept is given for kept, given in zip(function.saved_tensors, inputs, strict=True))
    function.save_for_backward([data[0]])
    assert len(function.saved_tensors) == 1


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
def test_pickle(dumps, linear, data):
    owner, weights = linear
    expected = owner.new_instance().forward([data[0], *weights])[0].numpy()
    back = pickle.loads(dumps(owner))
    assert back.weights_to_train == owner.weights_to_train
    instance = pickle.loads(dumps(owner.new_instance()))
    for function in (back.new_instance(), instance):
        np.testing.assert_array_equal(
            function.forward([data[0], *weights], training=True)[0].numpy(), expected
        )
        assert len(function.backward([np.ones((30, 1), np.float32)])) == 3


@pytest.mark.parametrize(
    "gradient, names",
    [
        pytest.param("ort", {"training", "forward"}, marks=pytest.mark.needs_training),
        ("rules", {"training", "forward", "backward"}),
    ],
)
def test_save_onnx_graph(gradient, names, linear, tmp_path):
    function = OrtGradientForwardBackward(linear[0].onnx_model, gradient=gradient).new_instance()
    paths = function.save_onnx_graph(tmp_path / "a" / "b", prefix="my_", suffix="_1")
    assert {path.name for path in paths.values()} == {f"my_{name}_1.onnx" for name in names}
    nodes = onnx.load(paths["training"]).graph.node
    assert any(node.op_type == "YieldOp" for node in nodes) == (gradient == "ort")
    for name in names if gradient == "rules" else ["forward"]:
        onnx.checker.check_model(paths[name])
    again = function.save_onnx_graph(str(tmp_path))
    assert {path.name for path in again.values()} == {f"{name}.onnx" for name in names}


def test_devices_and_conversion(linear, data):
    function = linear[0].new_instance()
    cpu = C_API.OrtDevice(C_API.OrtDevice.cpu(), C_API.OrtDevice.default_memory(), 0)
    gpu = C_API.OrtDevice(C_API.OrtDevice.cuda(), C_API.OrtDevice.default_memory(), 0)
    assert function.device_name(cpu) == "Cpu"
    assert function.device_name(gpu) == "Gpu"
    vector = function.input_to_ort([data[0], data[1]], [cpu, cpu], debug=True)
    assert isinstance(vector, C_API.OrtValueVector) and len(vector) == 2
    assert function.input_to_ort(vector) is vector
    np.testing.assert_array_equal(vector[0].numpy(), data[0])
    with pytest.raises(DeviceError, match="is on"):
        function.input_to_ort([vector[0]], [gpu], debug=True)


@pytest.mark.parametrize("gradient", [ORT, "rules"])
def test_outputs_and_gradients_are_not_overwritten(gradient, mlp, data):
    owner = OrtGradientForwardBackward(mlp[1], gradient=gradient)
    weights = [owner.get_initializer(name) for name in owner.weights_to_train]
    function = owner.new_instance()
    kept = []
    for factor in (1, 2, 3):
        X, slopes = factor * data[0], np.full((30, 1), factor, np.float32)
        (output,) = function.forward([X, *weights], training=True)
        gradients = list(function.backward([slopes]))
        kept.append(([output, *gradients], [value.numpy().copy() for value in (output, *gradients)]))
        assert (slopes == factor).all()
    for values, copies in kept:
        for value, copied in zip(values, copies, strict=True):
            np.testing.assert_array_equal(value.numpy(), copied)
    for name, weight in zip(owner.weights_to_train, weights, strict=True):
        np.testing.assert_array_equal(weight, owner.get_initializer(name))
