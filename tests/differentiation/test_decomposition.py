"""Gradients of decomposed operators in whole models."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, parser

from ortlearn.differentiation.gradient_model import gradient_model
from ortlearn.exceptions import GradientError
from ortlearn.testing import check_gradient_rule, make_node_model
from tests.differentiation.evaluation import run, run_onnxruntime

SINGLE = {"step": 1e-2, "rtol": 5e-3, "atol": 1e-3, "run": run_onnxruntime}
HEADER = '<ir_version: 8, opset_import: ["": 18, "com.microsoft": 1]>'


def test_block_of_a_transformer():
    """Nodes after fused operators read their types, and one tensor is three inputs of a node."""
    model = parser.parse_model(f"""{HEADER}
        g (float[N,S,8] x, float[8] scale, float[8] shift, float[8,16] w, float[16] b, float[16,8] v)
            => (float[N,S,8] y, float[N,S,4] first) <int64[2] sizes = {{4, 4}}> {{
            a = com.microsoft.MultiHeadAttention <num_heads = 2, unidirectional = 1> (x, x, x)
            n, , , t = com.microsoft.SkipLayerNormalization <epsilon = 0.01> (x, a, scale, shift)
            m = MatMul (n, w) h = com.microsoft.BiasGelu (m, b) o = MatMul (h, v)
            y = Add (o, t) first, last = Split <axis = 2> (n, sizes) }}""")
    rng = np.random.default_rng(0)
    shapes = [(2, 3, 8), (8,), (8,), (8, 16), (16,), (16, 8)]
    values = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    check_gradient_rule(model, *values, **SINGLE)


def test_decomposition_is_computed_once():
    """The simpler operators replace the fused one, even if its output is an output of the model."""
    x, b = np.ones((2, 3), np.float32), np.ones(3, np.float32)
    model, _, names = make_node_model("BiasGelu", x, b, domain="com.microsoft", run=run_onnxruntime)
    onx = gradient_model(model, None, names, fill_ones=True, keep_outputs=True)
    kinds = [node.op_type for node in onx.graph.node]
    assert kinds.count("Erf") == 1 and "BiasGelu" not in kinds


def test_outputs_that_are_not_decomposed():
    """The operator itself computes an output without gradient that other nodes read."""
    model = parser.parse_model(
        f"""{HEADER}
        g (int32[2,3] ids, int32[2,3] mask, float[4,8] w, float[3,8] p, float[8] scale, float[8] shift)
            => (float[2,3,8] y) {{
            e, counts = com.microsoft.EmbedLayerNormalization (ids, , w, p, , scale, shift, mask)
            c = Cast <to = 1> (counts) s = ReduceSum <keepdims = 0> (c) y = Mul (e, s) }}"""
    )
    rng = np.random.default_rng(0)
    ids, mask = np.array([[0, 2, 1], [3, 3, 0]], np.int32), np.array([[1, 1, 1], [1, 1, 0]], np.int32)
    floats = [rng.normal(size=shape).astype(np.float32) for shape in ((4, 8), (3, 8), (8,), (8,))]
    check_gradient_rule(model, ids, mask, *floats, wrt=[2, 3, 4, 5], **SINGLE)


def test_in_a_loop():
    model = parser.parse_model(f"""{HEADER}
        g (float[2,3] x, float[3] b) => (float[2,3] y) <int64 three = {{3}}, bool yes = {{1}}> {{
            y = Loop (three, yes, x) <body = step (int64 i, bool c, float[2,3] v) => (bool d, float[2,3] w) {{
                d = Identity (c) w = com.microsoft.BiasGelu (v, b) }}> }}""")
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 3)).astype(np.float32), rng.normal(size=3).astype(np.float32)
    check_gradient_rule(model, *values, **SINGLE)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample(mode):
    """The operator is older than supported opsets: only its gradient runs."""

    def model_of(node):
        return parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
            g (double[2,1,3,4] x) => (double[2,1,6,6] y) <float[4] s = {{1, 1, 2, 1.5}}> {{ y = {node} }}""")

    options = f'mode = "{mode}", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"'
    old, new = model_of(f'Upsample <mode = "{mode}"> (x, s)'), model_of(f"Resize <{options}> (x, , s)")
    feeds = {"x": np.zeros((2, 1, 3, 4)), "y_grad": np.random.default_rng(0).normal(size=(2, 1, 6, 6))}
    left, right = (run(gradient_model(model, None, ["x"]), feeds) for model in (old, new))
    np.testing.assert_array_equal(left, right)
    assert np.ptp(left) > 0


@pytest.mark.parametrize(
    "op_type, shapes, attributes, reason",
    [
        ("MultiHeadAttention", [(2, 3, 2, 3, 4)], {"num_heads": 2}, "packed"),
        ("Attention", [(2, 3, 8), (8, 24), (24,)], {"num_heads": 2, "do_rotary": 1}, "do_rotary"),
        ("FusedConv", [(2, 3, 8), (4, 3, 3)], {"activation": "Swish"}, "'Swish'"),
        ("BiasSoftmax", [(2, 3), (1, 3)], {"is_inner_broadcast": 0}, "is_inner_broadcast"),
    ],
)
def test_unsupported_forms(op_type, shapes, attributes, reason):
    nodes = ", ".join(f"float[{','.join(map(str, shape))}] x{i}" for i, shape in enumerate(shapes))
    model = parser.parse_model(f"{HEADER} g ({nodes}) => (float[?] y) {{ y = com.microsoft.{op_type} (x0) }}")
    node = model.graph.node[0]
    node.input[:] = [value.name for value in model.graph.input]
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    with pytest.raises(GradientError, match=f"{op_type}.*{reason}"):
        gradient_model(model, None, ["x0"])
