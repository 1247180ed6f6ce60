"""Batched graphs give the results of the graphs of single candidates."""

import itertools

import numpy as np
import onnxruntime
import pytest
from onnx import numpy_helper, parser

from ortlearn.transforms.batching import NotBatchable, align, batched_model
from ortlearn.transforms.batching.elementwise import OPERATORS
from ortlearn.transforms.batching.rules import RULES

SIZE = 3
#: Elementwise operators with several inputs or other types.
BINARY = set(
    "Add And Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or PRelu Pow".split()
)
BINARY |= set("Sub Sum Xor".split())
BOOLEAN = {"And", "Or", "Xor"}


def model(inputs, nodes, outputs, opset=18):
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g ({inputs}) => ({outputs}) {{ {nodes} }}'
    )


def elementwise(name):
    if name == "Cast":
        return model("float[4,3] x", "y = Cast <to: int = 11> (x)", "double[4,3] y")
    if name == "Where":
        return model(
            "float[3] a, float[4,1] b, float[4,3] x", "c = Less (a, x) y = Where (c, a, b)", "float[4,3] y"
        )
    if name == "Not":
        return model("float[4,3] x, float[3] a", "c = Less (x, a) y = Not (c)", "bool[4,3] y")
    if name in BOOLEAN:
        nodes = f"c = Less (x, a) d = Less (a, b) y = {name} (c, d)"
        return model("float[4,3] x, float[3] a, float b", nodes, "bool[4,3] y")
    if name == "PRelu":
        return model("float[4,3] x, float[3] a", "y = PRelu (x, a)", "float[4,3] y")
    if name in BINARY:
        attribute = "<fmod: int = 1>" if name == "Mod" else ""
        kind = "bool" if name in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual") else "float"
        nodes = f"c = {name} {attribute} (a, x) y = {name} {attribute} (x, b) z = {name} {attribute} (b, a)"
        return model("float[4,3] x, float[3] a, float b", nodes, f"{kind}[4,3] c, {kind}[4,3] y, {kind}[3] z")
    kind = "bool" if name in ("IsInf", "IsNaN") else "float"
    return model("float[4,3] x", f"y = {name} (x)", f"{kind}[4,3] y")


MAT = "float[4,3] a, float[3,2] b"
CASES = {
    **{name: [elementwise(name)] for name in OPERATORS},
    "Clip": [
        model("float[4,3] x, float l, float h", "y = Clip (x, l, h)", "float[4,3] y"),
        model("float[4,3] x, float h", "y = Clip (x, , h)", "float[4,3] y"),
    ],
    "MatMul": [
        model(MAT, "y = MatMul (a, b)", "float[4,2] y"),
        model("float[4,3] a, float[3,1] b", "y = MatMul (a, b)", "float[4,1] y"),
        model("float[4,1] a, float[1,2] b", "y = MatMul (a, b)", "float[4,2] y"),
        model("float[5,4,3] a, float[3,2] b", "y = MatMul (a, b)", "float[5,4,2] y"),
    ],
    "Gemm": [
        model(
            f"float[{'3,4' if left else '4,3'}] a, float[{f'{n},3' if right else f'3,{n}'}] b, float{c} c",
            f"y = Gemm <transA: int = {left}, transB: int = {right}, alpha: float = 1.5{beta}> (a, b, c)",
            f"float[4,{n}] y",
        )
        for left, right, n, c, beta in itertools.product(
            (0, 1), (0, 1), (1, 2), ("", "[1]", "[1,1]", "[4,1]"), ("", ", beta: float = 0.5")
        )
    ]
    + [
        model(
            "float[2,8] a, float[9,8] b",
            "y = Gemm <transB: int = 1, alpha: float = 2.0> (a, b)",
            "float[2,9] y",
        ),
        model(f"{MAT}, float[2] c", "y = Gemm (a, b, c)", "float[4,2] y"),
        model(MAT, "y = Gemm (a, b)", "float[4,2] y"),
    ],
    **{
        f"Reduce{name}": [
            model(
                "float[4,3,2] x", f"y = Reduce{name} <keepdims: int = {keep}> (x{axes})", f"float[{dims}] y"
            )
            for keep, axes, dims in (
                (0, "", ""),
                (1, "", "1,1,1"),
                (0, ", axes", "4,2"),
                (1, ", axes", "4,1,2"),
            )
        ]
        + [model("float x", f"y = Reduce{name} <keepdims: int = 0> (x)", "float y")]
        for name in "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()
    },
    **{
        name: [
            model("float[4,3] x", f"y = {name} <axis: int = {axis}> (x)", "float[4,3] y") for axis in (0, -1)
        ]
        for name in ("Softmax", "LogSoftmax", "Hardmax")
    },
    **{
        name: [model("float[4,3] x", f"y = {name} <axis: int = 1> (x)", "int64[4,1] y")]
        for name in ("ArgMax", "ArgMin")
    },
    "CumSum": [
        model("float[4,3] x", "axis = Constant <value_int: int = 1> () y = CumSum (x, axis)", "float[4,3] y"),
        # onnxruntime also takes an axis of shape (1,)
        model("float[4,3] x", "axis = Constant <value_ints = [1]> () y = CumSum (x, axis)", "float[4,3] y"),
    ],
    "SoftmaxCrossEntropyLoss": [
        model(
            "float[4,3] x, int64[4] labels",
            f'y, z = SoftmaxCrossEntropyLoss <reduction: string = "{reduction}"> (x, labels)',
            f"float{dims} y, float[4,3] z",
        )
        for reduction, dims in (("none", "[4]"), ("mean", ""), ("sum", ""))
    ],
    "Concat": [model("float[4,3] a, float[4,2] b", "y = Concat <axis: int = 1> (a, b)", "float[4,5] y")],
    "Einsum": [model(MAT, 'y = Einsum <equation: string = "ij,jk->ki"> (a, b)', "float[2,4] y")],
    "Expand": [
        model("float[3] x", "s = Constant <value_ints: ints = [4,3]> () y = Expand (x, s)", "float[4,3] y")
    ],
    "Flatten": [model("float[4,3,2] x", "y = Flatten <axis: int = 2> (x)", "float[12,2] y")],
    "Reshape": [
        model(
            "float[4,3,2] x",
            f"s = Constant <value_ints: ints = {shape}> () y = Reshape (x, s)",
            "float[4,6] y",
        )
        for shape in ("[4,6]", "[0,-1]")
    ],
    "Shape": [
        model(
            "float[4,3] x",
            "s = Shape (x) y = Expand (x, s) n = Cast <to: int = 1> (s)",
            "float[4,3] y, float[2] n",
        )
    ],
    "Slice": [
        model(
            "float[4,3] x",
            "s = Constant <value_ints: ints = [1]> () e = Constant <value_ints: ints = [3]> () "
            f"a = Constant <value_ints: ints = [1]> () y = Slice (x, s, e{axes})",
            f"float[{dims}] y",
        )
        for axes, dims in (("", "2,3"), (", a", "4,2"))
    ],
    "Split": [
        model(
            "float[4,6] x",
            "y, z = Split <axis: int = 1, num_outputs: int = 2> (x)",
            "float[4,3] y, float[4,3] z",
        )
    ],
    "Squeeze": [
        model("float[4,1,2] x", "y = Squeeze (x)", "float[4,2] y"),
        model(
            "float[4,1,2] x", "a = Constant <value_ints: ints = [1]> () y = Squeeze (x, a)", "float[4,2] y"
        ),
    ],
    "Unsqueeze": [
        model(
            "float[4,2] x",
            f"a = Constant <value_ints: ints = [{axis}]> () y = Unsqueeze (x, a)",
            f"float[{dims}] y",
        )
        for axis, dims in ((1, "4,1,2"), (-1, "4,2,1"))
    ],
    "Tile": [
        model("float[4,3] x", "r = Constant <value_ints: ints = [1,2]> () y = Tile (x, r)", "float[4,6] y")
    ],
    "Transpose": [
        model("float[4,3,2] x", "y = Transpose <perm: ints = [1,0,2]> (x)", "float[3,4,2] y"),
        model("float[4,3] x", "y = Transpose (x)", "float[3,4] y"),
    ],
    "Gather": [
        model("float[4,3] x, int64[2] i", "y = Gather (x, i)", "float[2,3] y"),
        model("float[4,3] x, int64 i", "y = Gather (x, i)", "float[3] y"),
    ],
    "GatherElements": [
        model("float[4,3] x, int64[4,2] i", "y = GatherElements <axis: int = 1> (x, i)", "float[4,2] y")
    ],
    "GatherND": [model("float[4,3] x, int64[2,1] i", "y = GatherND (x, i)", "float[2,3] y")],
    "OneHot": [
        model(
            "int64[4] i",
            "d = Constant <value_int: int = 3> () v = Constant <value_floats: floats = [0.0, 1.0]> () "
            "y = OneHot (i, d, v)",
            "float[4,3] y",
        )
    ],
    "ScatterElements": [
        model(
            "float[4,3] x, int64[4,1] i, float[4,1] u",
            "y = ScatterElements <axis: int = 1> (x, i, u)",
            "float[4,3] y",
        )
    ],
    "Loop": [
        model(
            "int64 n, bool ortlearn_condition, float[2] w, float rate",
            "last, shared, all = Loop (n, ortlearn_condition, w, rate) "
            "<body = step (int64 i, bool c, float[2] a, float r) "
            "=> (bool d, float[2] b, float q, float s) { b = Mul (a, rate) q = Identity (r) "
            "s = ReduceSum <keepdims: int = 0> (b) big = Constant <value_float: float = 1e30> () "
            "d = Less (s, big) }>",
            "float[2] last, float shared, float[k] all",
        )
    ],
}
CASES["ReduceMax"] += [
    model("float[4,3] x", "y = ReduceMax <axes: ints = [1]> (x)", "float[4,1] y", opset=13)
]


def values_of(value, rng, name):
    kind, shape = (
        value.type.tensor_type.elem_type,
        [dim.dim_value for dim in value.type.tensor_type.shape.dim],
    )
    if name == "n":
        return np.array(4)
    if kind == 9:
        return np.array(True)
    if kind == 7:
        return (
            np.stack([rng.permutation(2)[: max(shape[0], 1)] for _ in range(SIZE)])[0]
            if shape == [2]
            else rng.integers(0, 2, shape)
        )
    return rng.uniform(0.3, 0.9, shape).astype(np.float32)


def run(found, feeds):
    session = onnxruntime.InferenceSession(found.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {name: np.asarray(value) for name, value in feeds.items()})


def with_axes(found):
    """Return a model with the constant ``axes``, [1]."""
    if any("axes" in node.input for node in found.graph.node):
        found.graph.initializer.append(numpy_helper.from_array(np.array([1]), "axes"))
    return found


@pytest.mark.sweep(110)
@pytest.mark.parametrize("name, number", [(n, i) for n, found in CASES.items() for i in range(len(found))])
def test_results_equal_single_candidates(name, number):
    """With all inputs batched, each alone, and all but one."""
    found, rng = with_axes(CASES[name][number]), np.random.default_rng(number)
    infos = [value for value in found.graph.input if value.name not in ("n", "ortlearn_condition")]
    names = [value.name for value in infos]
    feeds = {
        value.name: [values_of(value, rng, value.name) for _ in range(SIZE)] for value in found.graph.input
    }
    for batched in {
        frozenset(some) for k in (1, len(names) - 1, len(names)) for some in itertools.combinations(names, k)
    }:
        if not batched:
            continue
        together = batched_model(found, batched, {}, SIZE)
        own = [{n: feeds[n][j] if n in batched else feeds[n][0] for n in feeds} for j in range(SIZE)]
        results = run(together, {n: np.stack(feeds[n]) if n in batched else feeds[n][0] for n in feeds})
        assert [value.name for value in together.graph.input] == [value.name for value in found.graph.input]
        for j in range(SIZE):
            for result, expected in zip(results, run(found, own[j]), strict=True):
                assert result[j].dtype == expected.dtype and result[j].shape == expected.shape
                np.testing.assert_allclose(result[j], expected, rtol=2e-6, atol=1e-6)


def test_every_rule_is_tested():
    assert {name for _, name in RULES} == CASES.keys()


@pytest.mark.parametrize(
    "inputs, nodes, outputs, message",
    [
        ("float[4,3] x", "y = NonZero (x)", "int64[2,k] y", "NonZero has no batching rule"),
        ("float[3] x, float[3] a", "y = MatMul (x, a)", "float y", "vector"),
        (
            "float[4,3] x, int64[2] i",
            "y = Gather <axis: int = 1> (x, i)",
            "float[4,2] y",
            "Gather along axis 1",
        ),
        (
            "bool go, float x",
            "y = Loop (, go, x) <body = step (int64 i, bool c, float a) => (bool d, float b)"
            "{ b = Mul (a, a) e = Constant <value_float: float = 0.1> () d = Less (e, b) }>",
            "float y",
            "Loop with a trip count or condition that differs",
        ),
        (
            "bool go, float x",
            "n = Constant <value_int: int = 3> () t = Constant <value: tensor = bool {1}> () "
            "y = Loop (n, t, x) "
            "<body = step (int64 i, bool c, float a) => (bool d, float b)"
            "{ b = Mul (a, a) e = Constant <value_float: float = 0.1> () d = Less (e, b) }>",
            "float y",
            "a condition that differs",
        ),
        ("float[2] x, int64[1] s", "y = Expand (x, s)", "float[k] y", "Expand with a shape that differs"),
    ],
)
def test_graphs_without_a_batched_form_are_rejected(inputs, nodes, outputs, message):
    found = model(inputs, nodes, outputs)
    with pytest.raises(NotBatchable, match=message):
        batched_model(found, {value.name for value in found.graph.input}, {}, SIZE)


TEXT = """<ir_version: 8, opset_import: ["": 18]> g (float[2,3] x, float[3,1] w) => (float[2,1] y)
    <float a = {%s}, float b = {%s}> {
        z = Gemm <alpha: float = %s> (x, w) h = Mul (z, a) y = Add (h, b) }"""


def test_constants_are_identified_by_their_uses():
    """Equal constants of some graphs are one initializer there, and separate ones in others."""
    texts = [TEXT % ("1", "2", "0.5"), TEXT % ("3", "2", "1.5")]
    shared = texts[0].replace("Add (h, b)", "Add (h, a)").replace("{1}", "{4}").replace(", float b = {2}", "")
    models = [parser.parse_model(text) for text in (*texts, shared)]
    found = align(models)
    together = batched_model(found.model, {"w"}, found.constants, len(models))
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 3)).astype(np.float32), rng.normal(size=(3, 3, 1)).astype(np.float32)
    (results,) = run(together, {"x": x, "w": w})
    for own, weights, result in zip(models, w, results, strict=True):
        np.testing.assert_allclose(result, run(own, {"x": x, "w": weights})[0], rtol=1e-5)
    assert len({result.tobytes() for result in results}) == 3


@pytest.mark.parametrize(
    "other",
    [
        TEXT.replace("Mul (z, a)", "Sub (z, a)"),
        TEXT.replace("Add (h, b)", "Add (b, h)"),
        TEXT.replace("Mul (z, a)", "Mul (z, z)"),
        TEXT.replace("<float a = {%s}", "<float[1] a = {%s}"),
        TEXT.replace("float[2,3] x", "float[5,3] x"),
        TEXT.replace("18]", "19]"),
        TEXT.replace("alpha: float = %s", "transB: int = 0, alpha: float = %s"),
        TEXT.replace("h = Mul", "k = Abs (z) h = Mul"),
    ],
)
def test_graphs_of_different_structure_are_not_aligned(other):
    values = ("1", "2", "0.5")
    assert align([parser.parse_model(text % values) for text in (TEXT, TEXT)]) is not None
    assert align([parser.parse_model(text % values) for text in (TEXT, other)]) is None
