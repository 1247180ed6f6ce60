"""Invalid and malicious models raise errors instead of stopping the process or hanging."""

import cProfile
import os
import pstats
import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from scipy.sparse import csr_matrix
from sklearn.linear_model import Ridge

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import ConversionError, ExecutionError, OrtlearnError
from ortlearn.graphs import with_loop_limits
from ortlearn.onnx_files.decompositions import decompose_operators
from ortlearn.onnx_files.loading import load_onnx
from ortlearn.onnx_files.model_checks import MAX_NODES
from ortlearn.runtime.errors import runtime_errors
from ortlearn.trainable.conversion import to_trainable

X = np.random.RandomState(0).normal(size=(20, 3)).astype(np.float32)
y = X[:, 0]
HEAD = '<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3, "own": 1]>'
LINEAR = """g (float[N,3] x) => (float[N,1] y) <float[3,1] w = {1, 2, 3}> { y = MatMul (x, w) }"""
TREE = (
    "nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], nodes_featureids = [FEATURES], "
    'nodes_values = [0.5, 0.0, 0.0], nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], '
    "nodes_truenodeids = [TRUE], nodes_falsenodeids = [2, 0, 0], target_treeids = [0, 0], "
    "target_nodeids = [1, 2], target_ids = [IDS], target_weights = [WEIGHTS], n_targets = 1"
)


def fused(operator, attributes, columns=3, outputs="y"):
    types = {"y": "float[N,1] y", "label, y": "int64[N] label, float[N,K] y"}[outputs]
    node = f"{outputs} = ai.onnx.ml.{operator} <{attributes}> (x)"
    return parser.parse_model(f"{HEAD} g (float[N,{columns}] x) => ({types}) {{ {node} }}")


def tree(features="1, 0, 0", true="1, 0, 0", ids="0, 0", weights="1.0, 2.0"):
    values = {"FEATURES": features, "TRUE": true, "IDS": ids, "WEIGHTS": weights}
    text = TREE
    for name, value in values.items():
        text = text.replace(name, value)
    return fused("TreeEnsembleRegressor", text)


def svm(**changes):
    values = {
        "coefficients": "[0.1, 0.2]", "kernel_params": "[0.1, 0.2, 3.0]", "kernel_type": '"RBF"',
        "n_supports": "2", "rho": "[0.5]", "support_vectors": "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]", **changes,
    }  # fmt: skip
    return fused("SVMRegressor", ", ".join(f"{name} = {value}" for name, value in values.items()))


CLASSES = "classlabels_ints = [0, 1, 2], coefficients = [COEFFICIENTS]"
NINE = ", ".join(["0.5"] * 9)


@pytest.mark.parametrize(
    "model, words",
    [
        (tree(features="7, 0, 0"), "nodes_featureids has values outside"),
        (tree(features="-1, 0, 0"), "nodes_featureids has values outside"),
        (tree(features="1, 0"), "nodes_featureids has 2 values instead of 3"),
        (tree(true="0, 0, 0"), "a tree has a cycle"),
        (tree(true="9, 0, 0"), "refers to a node that does not exist"),
        (tree(ids="0, 5"), "target_ids has values outside of 0 to 0"),
        (tree(weights="1.0"), "target_ids has 2 values instead of 1"),
        (svm(kernel_params="[0.1]"), "kernel_params has 1 values instead of 0 or 3"),
        (svm(rho="[0.5, 1.0]"), "rho has 2 values"),
        (svm(support_vectors="[1.0, 2.0]"), "support_vectors has 1 values in a row"),
        (svm(coefficients="[0.1]"), "coefficients has 1 values instead of 2"),
        (
            fused("LinearRegressor", "coefficients = [1.0, 2.0]"),
            "2 values in a row, but the input has 3 columns",
        ),
        (fused("LinearRegressor", "coefficients = [1.0, 2.0], targets = 0"), "not a multiple of 0 rows"),
        (fused("Scaler", "offset = [1.0, 2.0], scale = [1.0, 2.0]"), "offset has 2 values"),
        (fused("Imputer", "imputed_value_floats = [1.0, 2.0]"), "imputed_value_floats has 2 values"),
        (
            fused("LinearClassifier", CLASSES.replace("COEFFICIENTS", "1.0, 2.0"), outputs="label, y"),
            "not a multiple of 3 rows",
        ),
        (
            fused("LinearClassifier", f"coefficients = [{NINE}]", outputs="label, y"),
            "has no classes",
        ),
    ],
)
def test_inconsistent_attributes(model, words):
    with pytest.raises(ConversionError, match=words):
        to_trainable(model)


@pytest.mark.parametrize(
    "node, words",
    [
        ("ai.onnx.ml.LinearRegressor <coefficients = [1.0, 2.0, 3.0, 4.0]> (x)", "is in a subgraph"),
        ("ai.onnx.ml.Scaler <offset = [1.0]> (x)", "scale has 0 values"),
    ],
)
def test_operators_in_branches_are_checked(node, words):
    model = parser.parse_model(f"""{HEAD} g (float[N,3] x, bool c) => (float[N,K] y) {{ y = If (c) <
        then_branch = one () => (float[N,K] a) {{ a = {node} }},
        else_branch = two () => (float[N,K] b) {{ b = Neg (x) }}> }}""")
    with pytest.raises(ConversionError, match=words):
        decompose_operators(model)


def test_consistent_attributes():
    for model in (
        tree(),
        svm(),
        fused("LinearClassifier", CLASSES.replace("COEFFICIENTS", NINE), outputs="label, y"),
    ):
        decompose_operators(load_onnx(model))


def test_a_classifier_without_intercepts_trains():
    model = fused("LinearClassifier", CLASSES.replace("COEFFICIENTS", NINE), outputs="label, y")
    assert OrtGradientOptimizer(model, max_iter=1).fit(X, np.arange(20) % 3).predict(X).shape == (20,)


def doubling(depth):
    """Return a model whose nested functions each call the next one twice, ``depth`` levels deep."""
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    functions = []
    for i in range(depth + 1):
        kind = (f"f{i + 1}", "own") if i < depth else ("Neg", "")
        nodes = [helper.make_node(kind[0], [x], [y], domain=kind[1]) for x, y in (("u", "t"), ("t", "v"))]
        functions.append(helper.make_function("own", f"f{i}", ["u"], ["v"], nodes, imports))
    model = parser.parse_model(HEAD + LINEAR.replace("y = MatMul (x, w)", "z = MatMul (x, w) y = own.f0 (z)"))
    model.functions.extend(functions)
    return model


def test_number_of_inlined_nodes_is_limited():
    assert len(load_onnx(doubling(5)).graph.node) == 2**6 + 1
    with pytest.raises(ConversionError, match=f"{2**22 + 1} nodes with inlined functions.* {MAX_NODES}"):
        load_onnx(doubling(21))


def test_recursive_functions():
    model = doubling(0)
    model.functions[0].node[0].op_type, model.functions[0].node[0].domain = "f0", "own"
    with pytest.raises(ConversionError, match="have recursive functions"):
        load_onnx(model)


def looping(trips, condition="c"):
    return parser.parse_model(f"""{HEAD} g (float[N,3] x) => (float[N,1] y)
        <float[3,1] w = {{1, 2, 3}}, int64 trips = {{{trips or 1}}}, bool go = {{1}}, float step = {{0.5}}>
        {{ z = MatMul (x, w)
          y = Loop ({"trips" if trips else ""}, go, z) <body = turn (int64 i, bool c, float[N,1] v)
              => (bool d, float[N,1] u) {{ d = Identity (c)  u = Mul (v, step) }}> }}""")


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
@pytest.mark.parametrize("trips", [2**40, None])
def test_unbounded_loops(optimizer, trips):
    with pytest.raises(ExecutionError, match="A Loop of the model exceeds"):
        optimizer(looping(trips), max_iter=1, warm_start=True).fit(X, y)


@pytest.mark.parametrize("trips", [5, 6, 2**40, None])
def test_limit_of_iterations(trips, run_onnx):
    model = with_loop_limits(looping(trips), "", 5)
    if trips == 5:
        np.testing.assert_allclose(run_onnx(model, X)[0], X @ [[1], [2], [3]] / 2**5, rtol=1e-6)
        return
    with pytest.raises(ExecutionError, match="A Loop of the model exceeds"), runtime_errors():
        run_onnx(model, X)


def test_trusted_loops_are_not_limited():
    model = looping(6)
    assert with_loop_limits(model, "go", 5) is model


def test_pipes_and_devices_are_rejected(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero", tmp_path):
        with pytest.raises(ConversionError, match="cannot be read"):
            load_onnx(path)


def changed(change):
    model = parser.parse_model(HEAD + LINEAR)
    change(model)
    return model


def with_raw(model):
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones((3, 1), np.float32), "w"))
    return model.graph.initializer[0]


def huge(model):
    shape = numpy_helper.from_array(np.array([2**31, 2**20], np.int64), "shape")
    model.graph.initializer.append(shape)
    model.graph.node.append(helper.make_node("ConstantOfShape", ["shape"], ["big"]))


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda m: with_raw(m).dims.__setitem__(0, 2**40), "invalid values for its type 1 and shape"),
        (lambda m: with_raw(m).dims.__setitem__(0, -3), "the negative size"),
        (lambda m: setattr(with_raw(m), "raw_data", b"abc"), "invalid values for its type 1 and shape"),
        (lambda m: setattr(with_raw(m), "data_location", TensorProto.EXTERNAL), "pass the path of the model"),
        (lambda m: setattr(with_raw(m), "data_type", 99), "invalid values for its type 99"),
        (huge, "'big' of shape .* GiB exceed the"),
    ],
)  # fmt: skip
def test_tensors_with_inconsistent_contents(change, words):
    with pytest.raises(ConversionError, match=words):
        load_onnx(changed(change))


def test_names_that_are_not_utf8():
    content = changed(lambda m: setattr(m.graph.node[0], "name", "ABCDEF")).SerializeToString()
    with pytest.raises(ConversionError, match="NodeProto with text that is not UTF-8"):
        load_onnx(content.replace(b"ABCDEF", b"\xff\xfeCDEF"))


def test_error_names_the_node_of_contradicting_shapes():
    model = parser.parse_model(
        f"""{HEAD} g (float[N,3] x) => (float[N,1] y) <float[3,1] w = {{1, 2, 3}}, int64[2] shape = {{7, -1}}>
        {{ z = MatMul (x, w)  [stuck] t = Reshape (z, shape)  y = Add (z, t) }}"""
    )
    for gradient in ("rules", "auto"):
        with pytest.raises(OrtlearnError, match="'stuck'"):
            OrtGradientOptimizer(model, max_iter=1, gradient=gradient).fit(X, y)


@pytest.mark.parametrize("optimizer", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
@pytest.mark.parametrize(
    "last, shape",
    [
        ("y = Concat <axis = 0> (z, z)", (6, 1)),
        ("y = Slice (z, zero, one)", (1, 1)),  # would be broadcast to the labels
        ("y = ReduceSum <keepdims = 1> (z, zero)", (1, 1)),
    ],
)
def test_outputs_with_another_number_of_samples(optimizer, last, shape):
    model = parser.parse_model(
        f"""{HEAD} g (float[N,3] x) => (float[N,1] y)
        <float[3,1] w = {{1, 2, 3}}, int64[1] zero = {{0}}, int64[1] one = {{1}}>
        {{ z = MatMul (x, w)  {last} }}"""
    )
    with pytest.raises(ExecutionError, match=rf"the shape {re.escape(str(shape))} for 3 samples"):
        optimizer(model, max_iter=1).fit(X, y)


def test_message_on_missing_kernels():
    model = parser.parse_model(
        f"""{HEAD} g (double[N,3] x) => (double[N,1] y) <double[3,1] w = {{1, 2, 3}}>
        {{ z = MatMul (x, w)  y = Atan (z) }}"""
    )
    for gradient in ("rules", "auto"):
        with pytest.raises(OrtlearnError) as caught:
            OrtGradientOptimizer(model, max_iter=1, gradient=gradient).fit(X, y)
        assert "Atan" in str(caught.value) and "gradient='rules'" not in str(caught.value)


def damaged_sparse(kind):
    """Return a sparse matrix with an index out of bounds."""
    matrix = csr_matrix(np.eye(8, 3)).asformat(kind)
    if kind in ("csr", "csc", "bsr"):
        matrix.indices[0] = 10**6
    elif kind == "coo":
        matrix.row[0] = 10**6
    elif kind == "lil":
        matrix.rows[0][0] = 10**6
    else:
        # A dict before scipy 1.11.
        dict.update(getattr(matrix, "_dict", matrix), {(10**6, 0): 1.0})
    return matrix


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "lil", "dok"])
def test_sparse_indices_out_of_bounds(kind):
    labels, bad = np.arange(8.0), damaged_sparse(kind)
    model = OrtGradientOptimizer(Ridge(), max_iter=1).fit(csr_matrix(np.eye(8, 3)), labels)
    for call in (
        lambda: model.predict(bad),
        lambda: model.fit(bad, labels),
        lambda: model.partial_fit(bad, labels),
    ):
        with pytest.raises(ValueError, match=r"matrix of shape \(8, 3\) is invalid \(.+\)"):
            call()


def test_sparse_rows_with_more_values_than_indices():
    matrix = csr_matrix(np.eye(3)).tolil()
    matrix.data[0] = [1.0] * 9
    with pytest.raises(ValueError, match="the numbers of values and indices differ"):
        OrtGradientOptimizer(Ridge(), max_iter=1).fit(matrix, np.arange(3.0))


@pytest.mark.parametrize("indptr", [[0, 2, 1, 3], [0, 1, 2, 9], [1, 1, 2, 3]])
def test_invalid_index_pointers(indptr):
    matrix = csr_matrix(np.eye(3))
    matrix.indptr[:] = indptr
    with pytest.raises(ValueError, match=r"is invalid \(.*(index pointer|indptr)"):
        OrtGradientOptimizer(Ridge(), max_iter=1).fit(matrix, np.arange(3.0))


def test_only_runtime_errors_are_translated():
    with pytest.raises(RuntimeError, match="mine"), runtime_errors():
        raise RuntimeError("mine")
    with pytest.raises(ExecutionError, match="onnx cannot process the model"), runtime_errors():
        onnx.checker.check_model(onnx.ModelProto())


@pytest.mark.slow
def test_cost_is_linear_in_the_number_of_nodes():
    def calls(n_nodes):
        nodes = [helper.make_node("MatMul", ["x", "w"], ["t0"])]
        nodes += [helper.make_node(("Tanh", "Neg")[i % 2], [f"t{i}"], [f"t{i + 1}"]) for i in range(n_nodes)]
        model = parser.parse_model(HEAD + LINEAR)
        del model.graph.node[:]
        model.graph.node.extend([*nodes, helper.make_node("Identity", [f"t{n_nodes}"], ["y"])])
        profile = cProfile.Profile()
        trainer = OrtGradientOptimizer(model, max_iter=1, gradient="rules")
        profile.runcall(trainer.fit, X, y)
        return pstats.Stats(profile).total_calls

    calls(10)  # imports
    small = calls(200)
    assert calls(1000) < 6 * small


def test_sparse_input_is_not_changed():
    matrix = csr_matrix(np.eye(8, 3))
    before = matrix.indices.copy(), matrix.indptr.copy(), matrix.data.copy()
    OrtGradientOptimizer(Ridge(), max_iter=1).fit(matrix, np.arange(8.0))
    for array, original in zip((matrix.indices, matrix.indptr, matrix.data), before, strict=True):
        np.testing.assert_array_equal(array, original)


def single(node, x, initializers="", types="float"):
    """Return a linear model with one more node."""
    return parser.parse_model(
        f"""{HEAD} g ({types}[{x}] x, float[N,3] data) => (float[N,1] y)
        <float[3,1] w = {{1, 2, 3}}{initializers}>
        {{ y = MatMul (data, w)  [culprit] o = {node} }}"""
    )


@pytest.mark.parametrize(
    "model",
    [
        single("Conv (x, k)", "3,2,2", ", float[1,1,1,1] k = {1}"),
        single("MaxPool <kernel_shape = [2]> (x)", "3,2"),
        single("AveragePool <kernel_shape = [2, 2], strides = [1]> (x)", "1,1,4,4"),
        single("MaxPool <kernel_shape = [2], strides = [0]> (x)", "1,1,4"),
        single("ReduceSum (x, axis)", "3,2", ", int64 axis = {0}"),
        single("ReduceMax (x)", "3,0"),
        single("LpNormalization <axis = 1> (x)", "3,0"),
        single("RandomNormalLike <scale = 0.0> (x)", "3,2"),
        single("RandomUniformLike <high = -1.0> (x)", "3,2"),
        single('Einsum <equation = "AB"> (x)', "3,2"),
        single("GatherND <batch_dims = -3> (x, i)", "3", ", int64[1,1] i = {0}"),
        single("Mod (x, zero)", "3", ", int64[1] zero = {0}", "int64"),
        single("Div (x, zero)", "3", ", int64[1] zero = {0}", "int64"),
        single("SoftmaxCrossEntropyLoss (x, i)", "3", ", int64 i = {0}"),
    ],
)
def test_operators_that_crash_onnxruntime(model):
    with pytest.raises(ConversionError, match="node 'culprit'"):
        load_onnx(model)


def test_valid_divisions_and_windows():
    for model in (
        single("Div (x, two)", "3", ", int64[1] two = {2}", "int64"),
        single("Div (x, zero)", "3", ", float[1] zero = {0}"),
        single("Conv (x, k)", "1,1,4,4", ", float[1,1,1,1] k = {1}"),
        single("AveragePool <kernel_shape = [2, 2], pads = [0, 0, 1, 1]> (x)", "1,1,4,4"),
    ):
        load_onnx(model)
