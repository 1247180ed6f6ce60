"""Distances written with Scan or CDist: their values and gradients as standard operators."""

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, numpy_helper, parser
from scipy.spatial.distance import cdist

from ortlearn.differentiation import gradient_of_loss
from ortlearn.graphs import make_inputs_of
from ortlearn.models.formulas import distances
from ortlearn.onnx_files.decompositions import decompose_operators
from ortlearn.onnx_files.rewrites.scan_distances import rewrite_scan_distances

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 3)).astype(np.float32)
CENTRES = RNG.normal(size=(4, 3)).astype(np.float32)
CENTRES[0] = X[0]  # a distance of zero
#: Enough to compute distances by products.
MANY = np.vstack([CENTRES, RNG.normal(0, 0.1, size=(distances.EXACT // 3, 3)).astype(np.float32)])

#: Nodes of the body that compute ``item`` from the difference ``d``, and the metric of SciPy.
BODIES = {
    "sum of squares": ("item = ReduceSumSquare <keepdims = 0> (d, axes)", {"metric": "sqeuclidean"}),
    "sum of products": (
        "p = Mul (d, d) item = ReduceSum <keepdims = 0> (p, axes)", {"metric": "sqeuclidean"}),
    "root in the body": (
        "q = ReduceSumSquare <keepdims = 0> (d, axes) item = Sqrt (q)", {"metric": "euclidean"}),
    "norm": ("item = ReduceL2 <keepdims = 0> (d, axes)", {"metric": "euclidean"}),
    "sum of magnitudes": ("a = Abs (d) item = ReduceSum <keepdims = 0> (a, axes)", {"metric": "cityblock"}),
    "absolute norm": ("item = ReduceL1 <keepdims = 0> (d, axes)", {"metric": "cityblock"}),
    "largest": ("a = Abs (d) item = ReduceMax <keepdims = 0> (a, axes)", {"metric": "chebyshev"}),
    "identities": (
        "e = Identity (d) q = ReduceSumSquare <keepdims = 0> (e, axes) item = Identity (q)",
        {"metric": "sqeuclidean"}),
}  # fmt: skip


def scan(body, after="y = Transpose (t)", centres=CENTRES, dtype="float", carried="s2 = Identity (s)"):
    """Return the model of a Scan over the rows of ``centres``; its body reduces the difference ``d``."""
    columns = centres.shape[1]
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
        g ({dtype}[N,{columns}] x) => ({dtype}[N,{len(centres)}] y) {{
            u, t = Scan <num_scan_inputs = 1, body = b ({dtype}[N,{columns}] s, {dtype}[{columns}] row)
                => ({dtype}[N,{columns}] s2, {dtype}[N] item)
                <int64[1] axes = {{1}}> {{ {carried} d = Sub (s, row) {body} }}> (x, centres)
            {after}
        }}""")
    array = centres.astype({"float": np.float32, "double": np.float64}[dtype])
    model.graph.initializer.append(numpy_helper.from_array(array, "centres"))
    return model


def without_scan(model):
    plain = rewrite_scan_distances(model)
    checker.check_model(plain, full_check=True)
    assert "Scan" not in {node.op_type for node in plain.graph.node}
    return plain


@pytest.mark.parametrize("name", BODIES)
def test_bodies(run_onnx, name):
    body, metric = BODIES[name]
    model = scan(body)
    expected = cdist(X, CENTRES, **metric)
    np.testing.assert_allclose(run_onnx(model, X)[0], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run_onnx(without_scan(model), X)[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_powers(run_onnx, dtype):
    kind = {"float": np.float32, "double": np.float64}[dtype]
    body = "a = Abs (d) p = Pow (a, three) item = ReduceSum <keepdims = 0> (p, axes)"
    model = scan(body, dtype=dtype)
    model.graph.initializer.append(numpy_helper.from_array(np.array([3.0], kind), "three"))
    (found,) = run_onnx(without_scan(model), X.astype(kind))
    np.testing.assert_allclose(found, cdist(X, CENTRES, "minkowski", p=3) ** 3, rtol=1e-4, atol=1e-7)
    assert found.dtype == kind


def test_result_without_a_transpose(run_onnx):
    model = scan("item = ReduceSumSquare <keepdims = 0> (d, axes)", "y = Identity (t)")
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    expected = cdist(CENTRES, X, "sqeuclidean")
    np.testing.assert_allclose(run_onnx(rewrite_scan_distances(model), X)[0], expected, rtol=1e-5, atol=1e-6)


def test_carried_values_of_a_scan(run_onnx):
    model = scan("item = ReduceSumSquare <keepdims = 0> (d, axes)", "v = Transpose (t) y = MatMul (v, u)")
    expected = cdist(X[:4], CENTRES, "sqeuclidean") @ X[:4]
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3]))
    np.testing.assert_allclose(run_onnx(without_scan(model), X[:4])[0], expected, rtol=1e-5)


@pytest.mark.parametrize("body, carried", [
    ("q = Mul (d, d) item = ReduceMax <keepdims = 0> (q, axes)", "s2 = Identity (s)"),
    ("item = ReduceSumSquare <keepdims = 0> (d, axes)", "s2 = Neg (s)"),
    ("q = Exp (d) item = ReduceSumSquare <keepdims = 0> (q, axes)", "s2 = Identity (s)"),
    ("q = Add (s, row) item = ReduceSumSquare <keepdims = 0> (q, axes)", "s2 = Identity (s)"),
    ("q = Mul (d, s) item = ReduceSum <keepdims = 0> (q, axes)", "s2 = Identity (s)"),
])  # fmt: skip
def test_other_scans_are_unchanged(body, carried):
    model = scan(body, carried=carried)
    assert rewrite_scan_distances(model) is model


def test_backward_scan_is_unchanged():
    model = scan("item = ReduceSumSquare <keepdims = 0> (d, axes)")
    model.graph.node[0].attribute.append(helper.make_attribute("scan_input_directions", [1]))
    assert rewrite_scan_distances(model) is model


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
@pytest.mark.parametrize("exact", [True, False])
def test_distances_by_products(run_onnx, metric, exact):
    root = "item = Sqrt (q)" if metric == "euclidean" else "item = Identity (q)"
    far = (CENTRES if exact else MANY)[1:] + 100  # where products lose digits
    model = without_scan(scan(f"q = ReduceSumSquare <keepdims = 0> (d, axes) {root}", centres=far))
    assert ("Gemm" in {node.op_type for node in model.graph.node}) is not exact
    np.testing.assert_allclose(run_onnx(model, X + 100)[0], cdist(X + 100, far, metric), rtol=1e-5)


def test_many_centres_of_a_metric_without_products():
    body = "a = Abs (d) item = ReduceSum <keepdims = 0> (a, axes)"
    assert (
        rewrite_scan_distances(scan(body, centres=np.zeros((distances.MANY, 2)))).graph.node[0].op_type
        == "Scan"
    )


#: Nodes from the distances to the loss.
AFTER = "y = Transpose (t) w = Exp (y) loss = ReduceSum <keepdims = 0> (w)"
ROOT = "v = Transpose (t) y = Sqrt (v) w = Exp (y) loss = ReduceSum <keepdims = 0> (w)"
THIRD = "v = Transpose (t) y = Pow (v, third) w = Exp (y) loss = ReduceSum <keepdims = 0> (w)"
SQUARES = "item = ReduceSumSquare <keepdims = 0> (d, axes)"
CUBES = "a = Abs (d) p = Pow (a, three) item = ReduceSum <keepdims = 0> (p, axes)"


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("body, after, metric", [
    (SQUARES, AFTER, {"metric": "sqeuclidean"}),
    (SQUARES, ROOT, {"metric": "euclidean"}),
    ("a = Abs (d) item = ReduceSum <keepdims = 0> (a, axes)", AFTER, {"metric": "cityblock"}),
    (CUBES, THIRD, {"metric": "minkowski", "p": 3}),
], ids=["squares", "root", "sizes", "cubes"])  # fmt: skip
def test_gradients(run_onnx, exact, body, after, metric):
    centres = CENTRES if exact else MANY
    model = scan(body, after, centres)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("loss", TensorProto.FLOAT, []))
    for name, value in (("three", 3.0), ("third", 1 / 3)):
        model.graph.initializer.append(numpy_helper.from_array(np.array([value], np.float32), name))
    plain = make_inputs_of(decompose_operators(model), ["centres"])
    onx = gradient_of_loss(plain, "loss", ["x", "centres"])
    loss, dx, dcentres = run_onnx(onx, X, centres)

    def total(x, centres):
        return np.exp(cdist(x, centres, **metric)).sum()

    np.testing.assert_allclose(loss, total(X, centres), rtol=1e-5)
    assert np.isfinite(dx).all() and np.isfinite(dcentres).all()
    # The distance of X[0] to CENTRES[0], zero, is not differentiable.
    for index in [(1, 0), (3, 2), (5, 1)]:
        step = np.zeros(X.shape)
        step[index] = 1e-6
        expected = (total(X + step, centres) - total(X - step, centres)) / 2e-6
        np.testing.assert_allclose(dx[index], expected, rtol=1e-3, atol=1e-3)
        index = (index[0] % 3 + 1, index[1])
        step = np.zeros(centres.shape)
        step[index] = 1e-6
        expected = (total(X, centres + step) - total(X, centres - step)) / 2e-6
        np.testing.assert_allclose(dcentres[index], expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
@pytest.mark.parametrize("elem_type", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_cdist(run_onnx, metric, elem_type):
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    node = helper.make_node("CDist", ["x", "c"], ["y"], domain="com.microsoft", metric=metric)
    inputs = [helper.make_tensor_value_info(name, elem_type, ["N" if name == "x" else 4, 3]) for name in "xc"]
    output = helper.make_tensor_value_info("y", elem_type, ["N", 4])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "g", inputs, [output])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    plain = decompose_operators(model)
    checker.check_model(plain, full_check=True)
    assert {node.domain for node in plain.graph.node} == {""}
    (found,) = run_onnx(plain, X.astype(dtype), CENTRES.astype(dtype))
    np.testing.assert_allclose(found, cdist(X, CENTRES, metric), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found, run_onnx(model, X.astype(dtype), CENTRES.astype(dtype))[0], atol=1e-3)
    assert found.dtype == dtype


def test_cdist_of_another_metric_is_unchanged():
    node = helper.make_node("CDist", ["x", "c"], ["y"], domain="com.microsoft", metric="cosine")
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 3]) for name in "xcy"]
    graph = helper.make_graph([node], "g", infos[:2], infos[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("com.microsoft", 1)], ir_version=8)
    assert decompose_operators(model) is model
