"""The error function, compared with SciPy."""

import numpy as np
from onnx import helper
from scipy import special

from ortlearn.differentiation import gradient_of_loss
from ortlearn.graphs import GraphBuilder, TensorType
from ortlearn.models.formulas.special_functions import erf


def test_error_function_and_its_derivative(run_onnx):
    x = np.concatenate([np.linspace(-7, 7, 2001), [0.0, 1e-9, -1 / 32, 1 / 32, 40.0]])
    op = GraphBuilder(dtype=np.float64, types={"x": TensorType(11, x.shape)})
    total = op.ReduceSum(erf(op, "x"), keepdims=0)
    values = op.Add(erf(op, "x"), 0.0)
    graph = helper.make_graph(
        op.nodes,
        "erf",
        [helper.make_tensor_value_info("x", 11, x.shape)],
        [helper.make_tensor_value_info(total, 11, []), helper.make_tensor_value_info(values, 11, x.shape)],
        op.initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    np.testing.assert_allclose(run_onnx(model, x=x)[1], special.erf(x), rtol=0, atol=1e-13)
    slopes = run_onnx(gradient_of_loss(model, total, ["x"]), x=x)[-1]
    np.testing.assert_allclose(slopes, 2 / np.sqrt(np.pi) * np.exp(-(x**2)), rtol=0, atol=2e-11)
