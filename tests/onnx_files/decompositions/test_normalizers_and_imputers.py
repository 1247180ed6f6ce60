"""Normalizer, LpNormalization and Imputer, as standard operators, against onnxruntime."""

import numpy as np
import pytest
from onnx import TensorProto, checker, helper

from ortlearn.differentiation import gradient_of_loss
from ortlearn.exceptions import ConversionError
from ortlearn.graphs import initializer_arrays, make_inputs_of
from ortlearn.onnx_files.decompositions import decompose_operators
from tests.onnx_files.decompositions.comparisons import with_loss

#: Weights of the columns in the loss.
WEIGHTS = np.array([1.0, 2.0, 4.0], np.float32)
#: Positive, negative and mixed samples, one of zeros, and one whose largest value is zero.
SAMPLES = np.array(
    [[1, -3, 2], [3, 4, 12], [0, 0, 0], [-1, -2, -4], [0, -1, -2], [1e-9, 0, 2e-9]], np.float32
)
NUMBER = {np.float32: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE, np.int64: TensorProto.INT64}


def single(op_type, domain="ai.onnx.ml", dtype=np.float32, result=np.float32, columns=3, **attributes):
    """Return a model of one operator from x to y."""
    node = helper.make_node(op_type, ["x"], ["y"], domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", NUMBER[dtype], ["N", columns])],
        [helper.make_tensor_value_info("y", NUMBER[result], ["N", columns])],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def plain_of(model):
    plain = decompose_operators(model)
    checker.check_model(plain, full_check=True)
    assert {node.domain for node in plain.graph.node} == {""}
    return plain


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_normalizer(run_onnx, norm, dtype):
    model = single("Normalizer", dtype=dtype, norm=norm)
    data = SAMPLES.astype(dtype)
    (expected,) = run_onnx(model, data)
    (found,) = run_onnx(plain_of(model), data)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)
    assert found.dtype == np.float32


def test_normalizer_of_another_norm_is_rejected():
    with pytest.raises(ConversionError, match="norm is 'L7'"):
        decompose_operators(single("Normalizer", norm="L7"))


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lp_normalization(run_onnx, p, axis, dtype):
    model = single("LpNormalization", "", dtype, dtype, p=p, axis=axis)
    data = SAMPLES[:5].astype(dtype)
    data[:, 2] = 0
    (expected,) = run_onnx(model, data)
    (found,) = run_onnx(plain_of(model), data)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)
    assert found.dtype == dtype


@pytest.mark.parametrize("op_type, domain, attributes", [
    *(("Normalizer", "ai.onnx.ml", {"norm": norm}) for norm in ("MAX", "L1", "L2")),
    *(("LpNormalization", "", {"p": p}) for p in (1, 2)),
])  # fmt: skip
def test_gradients_of_norms(run_onnx, op_type, domain, attributes):
    model = with_loss(plain_of(single(op_type, domain, **attributes)), "y", WEIGHTS)
    data = SAMPLES[[0, 1, 3]]
    _, gradient = run_onnx(gradient_of_loss(model, "loss", ["x"]), data)
    norm = {"MAX": lambda v: v.max(1), "L1": lambda v: np.abs(v).sum(1), 1: lambda v: np.abs(v).sum(1)}
    size = norm.get(next(iter(attributes.values())), lambda v: np.sqrt((v * v).sum(1)))

    def loss(v):
        return (v / size(v)[:, None] * [1.0, 2.0, 4.0]).sum()

    x = data.astype(np.float64)
    expected = np.zeros_like(x)
    for index in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[index] = 1e-6
        expected[index] = (loss(x + step) - loss(x - step)) / 2e-6
    np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_gradient_of_zeros_is_finite(run_onnx, norm):
    model = with_loss(plain_of(single("Normalizer", norm=norm)), "y", WEIGHTS)
    _, gradient = run_onnx(gradient_of_loss(model, "loss", ["x"]), SAMPLES)
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(gradient[2], [1.0, 2.0, 4.0], rtol=1e-6)  # not divided by the norm


MISSING = np.array([[1, np.nan, 0], [np.nan, -1, 2], [4, 5, np.nan]], np.float32)


@pytest.mark.parametrize("missing", [np.nan, -1.0, 0.0])
@pytest.mark.parametrize("imputed", [[5.0, 6.0, 7.0], [9.0]])
def test_imputer(run_onnx, missing, imputed):
    model = single("Imputer", imputed_value_floats=imputed, replaced_value_float=missing)
    plain = plain_of(model)
    np.testing.assert_array_equal(run_onnx(plain, MISSING)[0], run_onnx(model, MISSING)[0])
    np.testing.assert_array_equal(initializer_arrays(plain)["imputed_value"], imputed)


def test_imputer_of_integers(run_onnx):
    attributes = {"imputed_value_int64s": [5, 6, 7], "replaced_value_int64": 2}
    model = single("Imputer", dtype=np.int64, result=np.int64, **attributes)
    data = np.array([[1, 2, 0], [2, 3, 2]])
    np.testing.assert_array_equal(run_onnx(plain_of(model), data)[0], [[1, 6, 0], [5, 3, 7]])
    np.testing.assert_array_equal(run_onnx(model, data)[0], [[1, 6, 0], [5, 3, 7]])


def test_imputer_of_float64(run_onnx):
    # onnxruntime has no kernel for it.
    attributes = {"imputed_value_floats": [5.0, 6.0, 7.0], "replaced_value_float": np.nan}
    plain = plain_of(single("Imputer", dtype=np.float64, result=np.float64, **attributes))
    (found,) = run_onnx(plain, MISSING.astype(np.float64))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [[1, 6, 0], [5, -1, 2], [4, 5, 7]])


def test_invalid_imputers():
    with pytest.raises(ConversionError, match="imputed_value_floats has 0 values"):
        decompose_operators(single("Imputer", replaced_value_float=np.nan))


def test_imputed_values_have_a_gradient(run_onnx):
    model = single("Imputer", imputed_value_floats=[5.0, 6.0, 7.0], replaced_value_float=np.nan)
    model = with_loss(plain_of(model), "y", WEIGHTS)
    model = make_inputs_of(model, ["imputed_value"])
    gradient = gradient_of_loss(model, "loss", ["imputed_value", "x"])
    data = np.where(np.isnan(MISSING), np.float32(np.nan), MISSING)
    data[2, 0] = np.nan
    values = np.array([5.0, 6.0, 7.0], np.float32)
    _, imputed, x = run_onnx(gradient, data, values)
    np.testing.assert_array_equal(imputed, [2.0, 2.0, 4.0])
    np.testing.assert_array_equal(x, np.where(np.isnan(data), 0.0, [1.0, 2.0, 4.0]))
