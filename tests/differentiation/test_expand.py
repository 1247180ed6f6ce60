"""Operators without a rule are replaced by their function body."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import defs, parser

from ortlearn.differentiation.gradient_model import gradient_model
from ortlearn.differentiation.registry import load_rules
from ortlearn.testing import check_gradient_rule
from tests.differentiation.evaluation import run, run_onnxruntime, run_reference

X = np.random.default_rng(0).normal(size=(2, 4, 3))


@pytest.mark.parametrize(
    "op_type, inputs, attributes, opset",
    [
        ("MeanVarianceNormalization", (X[..., None],), {"axes": [0, 2, 3]}, 18),
        ("GroupNormalization", (X, np.arange(1.0, 5.0), np.ones(4)), {"num_groups": 2}, 21),
        ("NegativeLogLikelihoodLoss", (X[0], np.array([0, 2, 1, 1])), {"reduction": "sum"}, 18),
        ("CenterCropPad", (X[0], np.array([3, 6])), {}, 18),
    ],
)
def test_function_bodies(op_type, inputs, attributes, opset):
    # Some bodies compute in float32 for all types of inputs.
    inputs = [value.astype(np.float32) if value.dtype.kind == "f" else value for value in inputs]
    options = {"step": 1e-2, "rtol": 5e-3, "atol": 1e-3, "run": run_onnxruntime}
    check_gradient_rule(op_type, *inputs, attributes=attributes, opset=opset, **options)


def test_range():
    values = [np.array(value, np.float32) for value in (0.5, 3.2, 0.7)]
    check_gradient_rule("Range", *values, wrt=(0, 2), step=1e-2, rtol=5e-3, run=run_onnxruntime)


@pytest.mark.skipif(defs.onnx_opset_version() < 23, reason="onnx knows no opset 23")
@pytest.mark.parametrize(
    "op_type, shapes, attributes",
    [
        ("RMSNormalization", [(2, 3, 4), (4,)], {}),
        ("Attention", [(2, 3, 8), (2, 5, 8), (2, 5, 8)], {"q_num_heads": 2, "kv_num_heads": 2}),
        ("Attention", [(2, 4, 3, 4), (2, 2, 3, 4), (2, 2, 3, 4)], {"is_causal": 1, "softcap": 2.0}),
        ("Attention", [(2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), (3, 5)], {"scale": 0.3}),
        ("RotaryEmbedding", [(2, 2, 3, 8), (2, 3, 4), (2, 3, 4)], {}),
        ("RotaryEmbedding", [(2, 3, 16), (2, 3, 4), (2, 3, 4)], {"num_heads": 2, "interleaved": 1}),
    ],
)
def test_function_bodies_of_opset_23(op_type, shapes, attributes):
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    options = {"step": 1e-2, "rtol": 5e-3, "atol": 2e-3, "run": run_reference}
    check_gradient_rule(op_type, *inputs, attributes=attributes, opset=23, **options)


WINDOW = {"left_window_size": 2, "right_window_size": 1}
HEADS = {"q_num_heads": 4, "kv_num_heads": 2}


@pytest.mark.parametrize(
    "opset, op_type, shapes, attributes",
    [
        (24, "Swish", [(2, 3)], {"alpha": 1.5}),
        (25, "Attention", [(1, 2, 4, 3), (1, 2, 6, 3), (1, 2, 6, 3)], WINDOW),
        (25, "Attention", [(1, 2, 4, 3), (1, 1, 6, 3), (1, 1, 6, 3), (4, 6)], {**WINDOW, "is_causal": 1}),
        (27, "CausalConvWithState", [(2, 3, 5), (3, 1, 3)], {}),
        (27, "CausalConvWithState", [(2, 3, 5), (3, 1, 3), (3,), (2, 3, 2)], {"activation": "silu"}),
        *(
            (27, "LinearAttention", shapes, {"update_rule": rule, **HEADS})
            for rule, shapes in {
                "linear": [(2, 3, 8), (2, 3, 4), (2, 3, 6)],
                "gated": [(2, 3, 8), (2, 3, 4), (2, 3, 6), (2, 2, 2, 3), (2, 3, 2)],
                "delta": [(2, 3, 8), (2, 3, 4), (2, 3, 6), (2, 2, 2, 3), None, (2, 3, 2)],
                "gated_delta": [(2, 3, 8), (2, 3, 4), (2, 3, 6), (2, 2, 2, 3), (2, 3, 2), (2, 3, 2)],
            }.items()
        ),
        (28, "SwiGLU", [(2, 3), (2, 3)], {"alpha": 0.5}),
    ],
)
def test_function_bodies_of_newer_opsets(opset, op_type, shapes, attributes):
    if opset > defs.onnx_opset_version():
        pytest.skip(f"onnx knows no opset {opset}")
    rng = np.random.default_rng(0)
    inputs = [shape and rng.normal(scale=0.5, size=shape).astype(np.float32) for shape in shapes]
    options = {"step": 1e-2, "rtol": 5e-3, "atol": 2e-3, "run": run_reference}
    options["n_outputs"] = 2 if opset == 27 else 1
    check_gradient_rule(op_type, *inputs, attributes=attributes, opset=opset, **options)


def test_operators_without_rule():
    table = load_rules()
    for op_type in ("MeanVarianceNormalization", "GroupNormalization", "NegativeLogLikelihoodLoss"):
        assert table.find("", op_type) is None


def test_functions_of_the_model():
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 18, "mine": 1]>
        g (double[3] x, double[3] w) => (double[3] y) { y = mine.Bend<power=3.0>(x, w) }
        <domain: "mine", opset_import: ["": 18]>
        Bend <power> (a, b) => (c) {
            e = Constant<value_float: float = @power>() f = CastLike(e, a) p = Pow(a, f) c = Mul(p, b) }
        """)
    onx = gradient_model(model, None, ["x", "w"])
    assert {node.domain for node in onx.graph.node} == {""}
    x, w, g = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.0]), np.array([1.0, 1.0, 2.0])
    dx, dw = run(onx, {"x": x, "w": w, "y_grad": g})
    np.testing.assert_allclose(dx, 3 * x**2 * w * g)
    np.testing.assert_allclose(dw, x**3 * g)
