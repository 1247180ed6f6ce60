"""ONNX models of networks with random weights, as written by exporters."""

import numpy as np
from onnx import helper, numpy_helper, parser

#: Nodes, shapes of weights, and constants by name; x has 24 columns, the output y two.
NETWORKS = {
    "perceptron": (
        """["/0/Gemm"] a = Gemm <transB = 1, alpha = 0.5> (x, w0, b0) ["/1/Relu"] r = Tanh (a)
        ["/2/MatMul"] m = MatMul (r, w1) ["/2/Add"] y = Add (m, b1)""",
        {"w0": (6, 24), "b0": (6,), "w1": (6, 2), "b1": (2,)},
        {},
    ),
    "convolution": (
        """i = Reshape (x, image) ["/conv1/Conv"] c = Conv <pads = [1, 1, 1, 1]> (i, k, b)
        t = Tanh (c) ["/conv2/Conv"] d = Conv <group = 2> (t, g)
        s = Tanh (d) p = GlobalAveragePool (s) f = Flatten (p) ["/fc/Gemm"] y = Gemm (f, w, c2)""",
        {"k": (4, 2, 2, 2), "b": (4,), "g": (6, 2, 3, 3), "w": (6, 2), "c2": (2,)},
        {"image": [-1, 2, 3, 4]},
    ),
    "transformer": (
        """s = Reshape (x, steps) ["/enc/query/MatMul"] q = MatMul (s, wq)
        ["/enc/key/MatMul"] k = MatMul (s, wk)
        ["/enc/value/MatMul"] v = MatMul (s, wv)
        ["/enc/Transpose"] t = Transpose <perm = [0, 2, 1]> (k)
        ["/enc/MatMul"] h = MatMul (q, t) e = Softmax <axis = 2> (h) c = MatMul (e, v)
        ["/enc/out/MatMul"] o = MatMul (c, wo) ["/enc/out/Add"] p = Add (o, bo) n = Add (s, p)
        l = LayerNormalization <axis = -1> (n, ls, lb) ["/head/Flatten"] f = Flatten (l)
        ["/head/MatMul"] y = MatMul (f, wy)""",
        {
            **dict.fromkeys(("wq", "wk", "wv", "wo"), (4, 4)),
            **{"bo": (4,), "ls": (4,), "lb": (4,), "wy": (24, 2)},
        },
        {"steps": [-1, 6, 4]},
    ),
    "experts": (
        """s = Reshape (x, steps) ["/experts/MatMul"] e = MatMul (s, we) t = Tanh (e)
        m = ReduceMean <keepdims = 0> (t, axis) ["/head/MatMul"] y = MatMul (m, wy)""",
        {"we": (3, 8, 5), "wy": (5, 2)},
        {"steps": [-1, 3, 1, 8], "axis": [1, 2]},
    ),
    "recurrent": (
        """s = Reshape (x, steps) t = Transpose <perm = [1, 0, 2]> (s)
        ["/lstm/LSTM"] all, h, c = LSTM <hidden_size = 3, direction = "bidirectional"> (t, wi, wh, b)
        n = Transpose <perm = [1, 0, 2]> (h) f = Reshape (n, flat) ["/head/MatMul"] y = MatMul (f, wy)""",
        {"wi": (2, 12, 4), "wh": (2, 12, 3), "b": (2, 24), "wy": (6, 2)},
        {"steps": [-1, 6, 4], "flat": [-1, 6]},
    ),
    "shared": (
        """["/a/Gemm"] a = Gemm <transB = 1> (x, w, b) t = Transpose (w) ["/b/MatMul"] d = MatMul (x, t)
        y = Mul (a, d)""",
        {"w": (2, 24), "b": (2,)},
        {},
    ),
}


def network_file(name, dtype=np.float32, opset=18, constants=False):
    """Return a model whose weights are initializers or constants."""
    nodes, shapes, numbers = NETWORKS[name]
    kind = {np.float32: "float", np.float64: "double", np.float16: "float16"}[dtype]
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g ({kind}[N,24] x) => ({kind}[N,2] y) {{ {nodes} }}'
    )
    rng = np.random.default_rng(0)
    arrays = {key: (rng.normal(size=shape) / 2).astype(dtype) for key, shape in shapes.items()}
    tensors = [numpy_helper.from_array(array, key) for key, array in arrays.items()]
    if constants:
        own = [helper.make_node("Constant", [], [t.name], value=t) for t in tensors]
        own += list(model.graph.node)
        del model.graph.node[:]
        model.graph.node.extend(own)
    else:
        model.graph.initializer.extend(tensors)
    for key, value in numbers.items():
        model.graph.initializer.append(numpy_helper.from_array(np.array(value), key))
    return model


def samples(dtype=np.float32, n=40):
    """Return features and labels for these models."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 24)).astype(dtype)
    return X, np.stack([np.tanh(X[:, 0]), X[:, 1] * X[:, 2] / 2], axis=1).astype(dtype)
