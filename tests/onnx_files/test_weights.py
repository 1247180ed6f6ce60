"""Weights to train are found by their use in the graph, or selected by name."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from sklearn.linear_model import Ridge

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError, NoTrainableWeightError
from ortlearn.onnx_files.weights import find_weights, get_train_initializer
from ortlearn.trainable.conversion import to_trainable
from ortlearn.trainable.from_estimator import sklearn_to_onnx


def graph(body, shape="N,2", **initializers):
    """Return a graph whose initializers are ones (if given by a shape) or a list of integers."""
    text = f'<ir_version: 8, opset_import: ["": 18]> g (float[{shape}] x) => (float[N,K] y) {{ {body} }}'
    model = parser.parse_model(text)
    for name, value in initializers.items():
        array = np.array(value) if isinstance(value, list) else np.ones(value, np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def learned(model):
    return [weight.name for weight in find_weights(model).values() if weight.learned]


AFFINE = {"w": (2, 3), "b": (3,)}


@pytest.mark.parametrize(
    "body, initializers, expected",
    [
        ("z = MatMul (x, w)  y = Add (z, b)", AFFINE, ["w", "b"]),
        ("z = MatMul (x, w)  y = Add (b, z)", AFFINE, ["w", "b"]),
        ("z = MatMul (x, w)  r = Reshape (z, k)  y = Add (r, b)", {**AFFINE, "k": [-1, 3]}, ["w", "b"]),
        ("y = Gemm <transB = 1> (x, w, b)", {"w": (3, 2), "b": (3,)}, ["w", "b"]),
        ("t = Transpose (w)  y = MatMul (x, t)", {"w": (3, 2)}, ["w"]),
        ("t = Identity (w)  u = Transpose (t)  y = MatMul (x, u)", {"w": (3, 2)}, ["w"]),
        ("c = Sub (x, m)  d = Div (c, s)  y = MatMul (d, w)", {"m": (2,), "s": (2,), "w": (2, 3)}, ["w"]),
        ("z = MatMul (x, w)  p = Sigmoid (z)  y = Sub (one, p)", {"w": (2, 3), "one": (1,)}, ["w"]),
        ("z = MatMul (x, w)  y = Mul (z, two)", {"w": (2, 3), "two": (1,)}, ["w"]),
        # without products, shifts and scales are learned, scalar constants are not
        ("z = Sub (x, b)  y = Mul (z, s)", {"b": (2,), "s": (2,)}, ["b", "s"]),
        ("z = Mul (x, s)  y = Mul (z, two)", {"s": (2,), "two": ()}, ["s"]),
        ("y = Pow (x, two)", {"two": (1,)}, []),
        # tables are learned if their indices are computed, not if they are constant
        ("i = ArgMax (x)  y = Gather (t, i)", {"t": (4, 3)}, ["t"]),
        ("i = ArgMax (x)  u = Identity (t)  y = GatherElements (u, i)", {"t": (4, 3)}, ["t"]),
        ("z = Gather (t, k)  y = Pow (x, z)", {"t": (4, 2), "k": [1, 2]}, []),
        ("k = Constant <value_ints = [1]> ()  z = Gather (t, k)  y = Pow (x, z)", {"t": (4, 2)}, []),
    ],
)
def test_learned_weights_by_use(body, initializers, expected):
    assert learned(graph(body, **initializers)) == expected


#: Layers: nodes, and the roles of the learned inputs.
FUSED = {
    "LSTM": ("a, y = LSTM <hidden_size = 3> (x, w, r, b, , h, c, p)", "wrp weight, b intercept"),
    "GRU": ("a, y = GRU <hidden_size = 4> (x, w, r, b, , h)", "wr weight, b intercept"),
    "RNN": ("a, y = RNN <hidden_size = 12> (x, w, r, b)", "wr weight, b intercept"),
    "Attention": ("y = com.microsoft.Attention <num_heads = 2> (x, w, b, m)", "w weight, b intercept"),
    "FusedGemm": ("y = com.microsoft.FusedGemm (x, w, b)", "w weight, b intercept"),
    "FusedConv": ("y = com.microsoft.FusedConv (x, w, b, h)", "w weight, b intercept"),
    "FusedMatMul": ("z = com.microsoft.FusedMatMul (x, w) y = Add (z, b)", "w weight, b intercept"),
    "FastGelu": ("z = com.microsoft.FastGelu (x, b) y = Div (z, s)", "b intercept"),
    "Skip": (
        "y = com.microsoft.SkipLayerNormalization (x, x, s, b, i)",
        "s scale, bi intercept",
    ),
    "Embedding": (
        "y = com.microsoft.EmbedLayerNormalization (x, , w, r, , s, b)",
        "wr table, s scale, b intercept",
    ),
    "RMSNormalization": ("y = RMSNormalization (x, s)", "s scale"),
    "Einsum": ('y = Einsum <equation = "ij,jk->ik"> (x, w)', "w weight"),
    "attention mask": ("t = Transpose (x) z = MatMul (x, t) y = Add (z, m) q = MatMul (y, w)", "w weight"),
}


@pytest.mark.parametrize("name", FUSED)
def test_learned_inputs_of_layers(name):
    body, text = FUSED[name]
    roles = {letter: role for names, role in (part.split() for part in text.split(", ")) for letter in names}
    shapes = {"w": (1, 12, 5), "r": (1, 12, 3), **dict.fromkeys("bhcpmsi", (1, 12))}
    if name in ("Attention", "FusedGemm", "FusedMatMul", "Einsum"):
        shapes["w"] = (5, 12)
    model = graph(body, "N,4,5", **shapes)
    assert {n: w.role for n, w in find_weights(model).items() if w.learned} == roles


@pytest.mark.parametrize(
    "name, fans", [("LSTM", (5, 3)), ("GRU", (5, 4)), ("RNN", (5, 12)), ("Attention", (5, 4))]
)
def test_fans_of_stacked_blocks(name, fans):
    """Each gate, and each of queries, keys and values, has its own outputs."""
    shapes = {"w": (5, 12) if name == "Attention" else (1, 12, 5), "r": (1, 12, 3)}
    model = graph(FUSED[name][0], "N,4,5", **shapes, **dict.fromkeys("bhcpm", (1, 12)))
    assert find_weights(model)["w"].fans == fans


def test_scalar_constants_are_trained_only_if_named():
    model = graph("z = MatMul (x, w) p = Pow (z, w_two) y = Div (p, w_root)", w=(2, 3), w_two=(), w_root=(1,))
    assert list(to_trainable(model, "w*").origins()) == ["w"]
    assert list(to_trainable(model, ["w", "w_root"]).origins()) == ["w", "w_root"]


NETWORK = """
    ["/body/layer.0/fc/MatMul"] a = MatMul (x, v) ["/body/layer.0/fc/Add"] b = Add (a, c)
    ["/body/layer.0/Div"] d = Div (b, s) r = Relu (d)
    ["/body/layer.1/Gemm"] e = Gemm (r, w, u) ["/last/Gemm"] y = Gemm (e, body_t)"""
NETWORK_SHAPES = {"v": (2, 3), "c": (3,), "s": (3,), "w": (3, 3), "u": (3,), "body_t": (3, 1)}


@pytest.mark.parametrize(
    "pattern, expected",
    [
        ("/body/layer.0/fc/MatMul", ["v"]),
        ("/body/layer.1/Gemm", ["w", "u"]),
        ("Gemm", ["w", "u", "body_t"]),
        ("/body/layer.0", ["v", "c"]),
        ("body/layer.0", ["v", "c"]),
        ("body", ["v", "c", "w", "u"]),
        ("*/fc/*", ["v", "c"]),
        ("*MatMul*", ["v"]),
        ("body*", ["v", "c", "w", "u", "body_t"]),
        (["last", "s"], ["s", "body_t"]),
    ],
)
def test_selection_by_nodes_operators_and_layers(pattern, expected):
    """Weights that are not learned, as the divisor, are trained only if named."""
    assert list(to_trainable(graph(NETWORK, **NETWORK_SHAPES), pattern).origins()) == expected


def test_selection_by_prefixes_of_names():
    shapes = {"net.0.weight": (2, 3), "net.1.weight": (3, 3), "net.1.bias": (3,), "out.weight": (3, 1)}
    body = """a = MatMul (x, "net.0.weight") b = Gemm (a, "net.1.weight", "net.1.bias")
        y = MatMul (b, "out.weight")"""
    model = graph(body, **shapes)
    assert list(to_trainable(model, "net.1").origins()) == ["net.1.weight", "net.1.bias"]
    assert list(to_trainable(model, "net").origins()) == list(shapes)[:3]


def test_roles_and_fans():
    model = graph(
        "a = Sub (x, m)  t = MatMul (a, w)  u = Add (t, b)  v = Relu (u)  z = Gemm <transB = 1> (v, g, c)  "
        "y = Pow (z, e)",
        m=(2,),
        w=(2, 3),
        b=(3,),
        g=(4, 3),
        c=(4,),
        e=(),
    )
    found = find_weights(model)
    assert {name: (w.role, w.learned) for name, w in found.items()} == {
        "m": ("intercept", False),
        "w": ("weight", True),
        "b": ("intercept", True),
        "g": ("weight", True),
        "c": ("intercept", True),
        "e": ("other", False),
    }
    assert (found["w"].fans, found["g"].fans, found["m"].fans) == ((2, 3), (3, 4), (1, 1))


def test_fans_of_a_convolution():
    model = graph("y = Conv (x, k, b)", "N,3,9,9", k=(8, 3, 5, 5), b=(8,))
    found = find_weights(model)
    assert found["k"].fans == (75, 200) and found["b"].role == "intercept"


def test_weight_after_the_scores_is_rejected():
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[N,2] x) => (int64[N] label, float[N,2] p)
        <float[2,2] w = {1, 2, 3, 4}, float[2] tail = {1, 1}>
        { z = MatMul (x, w)  s = Softmax (z)  p = Mul (s, tail)
          label = ArgMax <axis = 1, keepdims = 0> (p) }"""
    )
    assert sorted(to_trainable(model, ["w", "tail"]).origins()) == ["tail", "w"]
    model.graph.output[1].name = "s"
    with pytest.raises(ConversionError, match=r"\['tail'\] come after the trained scores"):
        to_trainable(model, ["w", "tail"])


def test_wildcards_omit_weights_after_the_scores():
    model = graph("y = MatMul (x, w)  z = MatMul (y, w_t)", w=(2, 3), w_t=(3, 2))
    model.graph.output.append(helper.make_tensor_value_info("z", 1, ["N", 2]))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, ["N", 3]))
    assert list(to_trainable(model, "w*").origins()) == ["w"]
    with pytest.raises(ConversionError, match=r"\['w_t'\] come after the trained scores"):
        to_trainable(model, "w_*")
    with pytest.raises(ConversionError, match=r"\['w_t'\] come after the trained scores"):
        to_trainable(model, ["w*", "w_t"])


def test_only_floats_are_train_initializers(diabetes):
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x) => (float[N,1] y)
        <int64[1] i = {1}, float[1] f = {1}, bool yes = {1}, double[1] d = {2}, int32[1] j = {1}>
        { y = Neg (x) }"""
    )
    model.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float16), "half"))
    model.graph.initializer.append(helper.make_tensor("s", TensorProto.STRING, [1], ["a"]))
    found = get_train_initializer(model)
    assert list(found) == ["f", "d"]
    array, tensor = found["d"]
    assert array.dtype == np.float64 and tensor.name == "d" and array.tolist() == [2.0]
    converted = sklearn_to_onnx(Ridge().fit(diabetes.X_train, diabetes.y_train), 10)
    assert [array.shape for array, _ in get_train_initializer(converted).values()] == [(10, 1), (1,)]


NORMALIZED = {"w": (2, 3), "scale": (3,), "shift": (3,), "mean": (3,), "var": (3,), "v": (3, 1)}
LAYERS = (
    "z = MatMul (x, w) n = BatchNormalization (z, scale, shift, mean, var) r = Relu (n) y = MatMul (r, v)"
)


@pytest.mark.parametrize(
    "body, shape, initializers, expected",
    [
        (LAYERS, "N,2", NORMALIZED, ["w", "scale", "shift", "v"]),
        ("y = BatchNormalization (x, s, b, m, v)", "N,3", dict.fromkeys("sbmv", (3,)), ["s", "b"]),
        ("y = BatchNormalization (x, one, zero, zero, one)", "N,3", {"one": (3,), "zero": (3,)}, []),
        ("y = LayerNormalization (x, s, b)", "N,3", {"s": (3,), "b": (3,)}, ["s", "b"]),
    ],
    ids=["network", "alone", "shared", "layer"],
)
def test_scales_and_shifts_of_normalizations(body, shape, initializers, expected):
    assert learned(graph(body, shape, **initializers)) == expected


def test_roles_of_a_batch_normalization():
    weights = find_weights(graph(LAYERS, **NORMALIZED))
    assert (weights["scale"].role, weights["shift"].role) == ("scale", "intercept")
    assert not weights["mean"].drawn and "running statistic" in weights["var"].reason


def test_running_statistics_are_trained_only_if_named():
    model = graph(LAYERS, **NORMALIZED)
    for pattern in (None, "*"):
        assert list(to_trainable(model, pattern).origins()) == ["w", "scale", "shift", "v"]
    assert list(to_trainable(model, ["mean", "v*"]).origins()) == ["mean", "v"]
    with pytest.raises(
        NoTrainableWeightError, match="'mea.' matches only running statistics, which are trained if named"
    ):
        to_trainable(model, "mea*")


def test_training_changes_scale_and_shift_but_not_the_statistics():
    model = graph(LAYERS, **NORMALIZED)
    X = np.random.RandomState(0).normal(size=(60, 2)).astype(np.float32)
    before = {name: array for name, (array, _) in get_train_initializer(model).items()}
    for start in (True, False):
        trained = OrtGradientOptimizer(
            model, warm_start=start, learning_rate=0.01, max_iter=10, random_state=0
        ).fit(X, X[:, 0])
        after = {name: array for name, (array, _) in get_train_initializer(trained.onnx_).items()}
        for name, array in after.items():
            assert (array == before[name]).all() == (name in ("mean", "var")), name
        assert trained.train_losses_[-1] < trained.train_losses_[0]
