"""Transforms of linear operators, as standard operators, against onnxruntime."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from ortlearn.graphs import initializer_arrays, value_types
from ortlearn.onnx_files.decompositions import decompose_operators
from tests.onnx_files.decompositions.comparisons import check_same

ROWS = np.array([[0.5, -1.0, 2.0], [1.0, 0.25, -0.5], [-2.0, 0.1, 0.3]], np.float32)
LINKS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]
#: Near one half, the probit is a difference of nearly equal float32 values.
ATOL = {"PROBIT": 1e-4}
X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)


def linear(op_type, outputs, **attributes):
    """Return a model of one linear operator."""
    node = helper.make_node(op_type, ["x"], [name for name, *_ in outputs], domain="ai.onnx.ml", **attributes)
    infos = [helper.make_tensor_value_info(*output) for output in outputs]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])]
    graph = helper.make_graph([node], "g", inputs, infos)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8)


def for_link(link, columns):
    """Return coefficients, intercepts and samples whose scores are in the domain of the transform."""
    rows, intercepts = ROWS[:columns].copy(), np.array([0.1, -0.2, 0.3], np.float32)[:columns]
    data = X.copy()
    if link == "PROBIT":  # scores between 0 and 1
        return rows * 0.1, intercepts * 0.5 + 0.5, np.clip(data, -0.9, 0.9)
    if link == "SOFTMAX_ZERO":
        intercepts[:] = 0
        data[:5, :] = 0  # scores of exactly zero
        rows[0, 0] = 0
        data[5:10, 1:] = 0  # one score of zero
        data[5] = [3.0, 0.0, 0.0]
    return rows, intercepts, data


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("targets", [1, 2, 3])
def test_linear_regressor(run_onnx, link, targets):
    rows, intercepts, data = for_link(link, targets)
    if link == "SOFTMAX_ZERO":
        data = data[5:]  # without samples whose scores are all zero
    model = linear(
        "LinearRegressor",
        [("y", TensorProto.FLOAT, ["N", targets])],
        coefficients=rows.ravel().tolist(),
        intercepts=intercepts.tolist(),
        targets=targets,
        post_transform=link,
    )
    plain = check_same(run_onnx, model, data, atol=ATOL.get(link, 1e-5))
    shapes = {name: array.shape for name, array in initializer_arrays(plain).items()}
    assert shapes["coef"] == (3, targets) and shapes["intercept"] == (targets,)
    assert value_types(plain)["y"].shape == ("N", targets)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("classes", [2, 3])
def test_linear_classifier(run_onnx, link, classes):
    rows, intercepts, data = for_link(link, classes)
    outputs = [("label", TensorProto.INT64, ["N"]), ("scores", TensorProto.FLOAT, ["N", classes])]
    model = linear(
        "LinearClassifier",
        outputs,
        coefficients=rows.ravel().tolist(),
        intercepts=intercepts.tolist(),
        classlabels_ints=[3, -1, 8][:classes],
        post_transform=link,
        multi_class=0,
    )
    if link == "SOFTMAX_ZERO":
        data = data[5:]
    assert initializer_arrays(check_same(run_onnx, model, data, atol=ATOL.get(link, 1e-5)))["coef"].shape == (
        3,
        classes,
    )


def test_zeros_stay_zero_after_softmax_zero(run_onnx):
    _, _, data = for_link("SOFTMAX_ZERO", 3)
    model = linear(
        "LinearRegressor",
        [("y", TensorProto.FLOAT, ["N", 3])],
        coefficients=[0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0],
        targets=3,
        post_transform="SOFTMAX_ZERO",
    )
    (found,) = run_onnx(decompose_operators(model), np.array([[1.0, 0.0, 0.0]], np.float32))
    np.testing.assert_allclose(found, [[0.0, 1 / (1 + np.e), np.e / (1 + np.e)]], rtol=1e-5)
