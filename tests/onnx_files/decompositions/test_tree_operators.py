"""Decision trees, as a table of leaf values, against onnxruntime."""

from types import SimpleNamespace

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, numpy_helper

from ortlearn.graphs import initializer_arrays, value_types
from ortlearn.models.trees.nodes import MAX_LEAVES
from ortlearn.onnx_files.decompositions import decompose_operators
from ortlearn.onnx_files.decompositions.tree_operators import Trees, scores_of_leaves
from tests.onnx_files.decompositions.comparisons import assert_same_outputs

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
X = np.random.default_rng(0).integers(-3, 4, size=(60, 4)).astype(np.float32)


def random_trees(n_trees=3, depth=3, modes=("BRANCH_LEQ",), missing=False, seed=0, uneven=True):
    """Return the attributes ``nodes_*`` of random trees, and their leaves as (tree, node)."""
    rng = np.random.default_rng(seed)
    names = "treeids nodeids featureids modes values truenodeids falsenodeids missing_value_tracks_true"
    nodes = {f"nodes_{name}": [] for name in names.split()}
    leaves = []

    def add(*values):
        for column, value in zip(nodes.values(), values, strict=True):
            column.append(value)

    for tree in range(n_trees):
        identifier = 10 * tree + 2
        levels = depth + (tree % 2 if uneven else 0)
        for node in range(2 ** (levels + 1) - 1):
            if node >= 2**levels - 1:
                add(identifier, node, 0, "LEAF", 0.0, 0, 0, 0)
                leaves.append((identifier, node))
            else:
                mode = str(rng.choice(list(modes)))
                threshold = float(rng.integers(-2, 3))
                tracks = int(rng.integers(2)) if missing else 0
                add(
                    identifier,
                    node,
                    int(rng.integers(4)),
                    mode,
                    threshold,
                    2 * node + 1,
                    2 * node + 2,
                    tracks,
                )
    return nodes, leaves


def weights(prefix, entries):
    """Return the attributes of the leaves from (tree, node, output, weight)."""
    trees, nodes, outputs, values = zip(*entries, strict=True)
    return {
        f"{prefix}_treeids": list(trees),
        f"{prefix}_nodeids": list(nodes),
        f"{prefix}_ids": list(outputs),
        f"{prefix}_weights": list(values),
    }


def entries(leaves, outputs_of, seed=1, positive=False):
    """Return random weights of leaves, one for each output of a leaf."""
    rng = np.random.default_rng(seed)

    def draw():
        return float(rng.uniform(0, 0.3) if positive else rng.normal())

    return [(tree, node, output, draw()) for tree, node in leaves for output in outputs_of(tree, node)]


def one_operator(op_type, outputs, elem_type=TensorProto.FLOAT, version=3, **attributes):
    """Return a model of one operator of ai.onnx.ml."""
    node = helper.make_node(op_type, ["x"], list(outputs), domain="ai.onnx.ml", **attributes)
    infos = [helper.make_tensor_value_info(name, *known) for name, known in outputs.items()]
    inputs = [helper.make_tensor_value_info("x", elem_type, ["N", 4])]
    graph = helper.make_graph([node], "g", inputs, infos)
    opsets = [helper.make_opsetid("ai.onnx.ml", version), helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def regressor(n_targets=1, **attributes):
    outputs = {"y": (TensorProto.FLOAT, ["N", n_targets])}
    return one_operator("TreeEnsembleRegressor", outputs, n_targets=n_targets, **attributes)


def classifier(classes, **attributes):
    texts = isinstance(classes[0], str)
    key = "classlabels_strings" if texts else "classlabels_int64s"
    outputs = {
        "label": (TensorProto.STRING if texts else TensorProto.INT64, ["N"]),
        "scores": (TensorProto.FLOAT, ["N", len(classes)]),
    }
    return one_operator("TreeEnsembleClassifier", outputs, **{key: list(classes)}, **attributes)


def check_same(run_onnx, model, samples=X, atol=1e-5):
    """Compare a model with its decomposition, and return the latter."""
    before = model.SerializeToString()
    plain = decompose_operators(model)
    assert model.SerializeToString() == before
    checker.check_model(plain, full_check=True)
    routes = [node for node in plain.graph.node if node.domain == "ai.onnx.ml"]
    assert [node.op_type for node in routes] == ["TreeEnsembleRegressor"]
    assert "leaf_values" in initializer_arrays(plain)
    assert_same_outputs(run_onnx(plain, samples), run_onnx(model, samples), atol)
    return plain


@pytest.mark.parametrize("n_targets", [1, 3])
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE"])
@pytest.mark.parametrize("base", [False, True])
def test_regressor(run_onnx, n_targets, aggregate, base):
    nodes, leaves = random_trees()
    values = entries(leaves, lambda tree, node: range(n_targets))
    more = {"base_values": [0.5, -1.0, 2.0][:n_targets]} if base else {}
    model = regressor(n_targets, aggregate_function=aggregate, **nodes, **weights("target", values), **more)
    plain = check_same(run_onnx, model)
    table = initializer_arrays(plain)["leaf_values"]
    assert table.shape == ((len(leaves),) if n_targets == 1 else (len(leaves), n_targets))


@pytest.mark.parametrize("aggregate", ["MIN", "MAX"])
def test_smallest_and_largest_leaf(run_onnx, aggregate):
    nodes, leaves = random_trees()
    values = entries(leaves, lambda tree, node: [0])
    check_same(run_onnx, regressor(aggregate_function=aggregate, **nodes, **weights("target", values)))


def test_smallest_leaf_of_several_targets_stays_fused():
    nodes, leaves = random_trees()
    values = entries(leaves, lambda tree, node: range(2))
    model = regressor(2, aggregate_function="MIN", **nodes, **weights("target", values))
    assert is_unchanged(model)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("missing", [False, True])
def test_branch_modes(run_onnx, mode, missing):
    nodes, leaves = random_trees(modes=[mode], missing=missing)
    samples = X.copy()
    if missing:
        samples[::3, :2] = np.nan
    check_same(run_onnx, regressor(**nodes, **weights("target", entries(leaves, lambda t, n: [0]))), samples)


def test_all_branch_modes_in_one_model(run_onnx):
    nodes, leaves = random_trees(n_trees=6, modes=MODES, missing=True)
    samples = np.where(np.random.default_rng(1).uniform(size=X.shape) < 0.2, np.float32(np.nan), X)
    check_same(run_onnx, regressor(**nodes, **weights("target", entries(leaves, lambda t, n: [0]))), samples)


def test_one_target_per_tree(run_onnx):
    nodes, leaves = random_trees(n_trees=6)
    values = entries(leaves, lambda tree, node: [tree // 10 % 3])
    plain = check_same(run_onnx, regressor(3, **nodes, **weights("target", values)))
    assert initializer_arrays(plain)["leaf_values"].shape == (len(leaves),)


def test_targets_with_unequal_numbers_of_trees(run_onnx):
    nodes, leaves = random_trees(n_trees=6)
    values = entries(leaves, lambda tree, node: [int(tree >= 12) + int(tree >= 42)])
    plain = check_same(run_onnx, regressor(3, **nodes, **weights("target", values)))
    assert initializer_arrays(plain)["leaf_values"].shape == (len(leaves),)


def test_leaves_of_one_tree_that_add_to_several_targets(run_onnx):
    nodes, leaves = random_trees()
    values = entries(leaves, lambda tree, node: [node % 2, 2] if node % 3 else [node % 3])
    plain = check_same(run_onnx, regressor(3, **nodes, **weights("target", values)))
    assert initializer_arrays(plain)["leaf_values"].shape == (len(leaves), 3)


def test_trees_that_are_one_leaf(run_onnx):
    nodes, leaves = random_trees(n_trees=2, depth=0)
    check_same(run_onnx, regressor(**nodes, **weights("target", entries(leaves, lambda t, n: [0]))))


@pytest.mark.parametrize("n_targets", [1, 3])
@pytest.mark.parametrize("link", ["LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"])
def test_transforms_of_a_regression(run_onnx, n_targets, link):
    nodes, leaves = random_trees()
    values = entries(leaves, lambda tree, node: range(n_targets), positive=True)
    model = regressor(n_targets, post_transform=link, **nodes, **weights("target", values))
    # Near zero, the formula of PROBIT loses most digits of float32.
    check_same(run_onnx, model, atol=3e-4 if link == "PROBIT" else 1e-5)


@pytest.mark.parametrize("elem_type", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_values_as_tensors(run_onnx, elem_type):
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    nodes, leaves = random_trees()
    nodes["nodes_values_as_tensor"] = np.array(nodes.pop("nodes_values")) + 1 / 3
    attributes = {**nodes, **weights("target", entries(leaves, lambda t, n: [0]))}
    attributes["target_weights_as_tensor"] = np.array(attributes.pop("target_weights"))
    attributes["base_values_as_tensor"] = np.array([0.25])
    attributes = {
        name: numpy_helper.from_array(value.astype(dtype)) if isinstance(value, np.ndarray) else value
        for name, value in attributes.items()
    }
    samples = np.concatenate([X, X + 1 / 3 + 1e-9, X + 1 / 3 - 1e-9]).astype(dtype)
    check_same(run_onnx, regressor(elem_type=elem_type, **attributes), samples)


@pytest.mark.parametrize("classes", [[0, 1, 2], [7, -3, 5], ["a", "é", "c"]], ids=["range", "ints", "text"])
@pytest.mark.parametrize("link", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("base", [False, True])
def test_three_classes(run_onnx, classes, link, base):
    nodes, leaves = random_trees()
    more = {"base_values": [0.5, -0.25, 0.0]} if base else {}
    values = entries(leaves, lambda tree, node: range(3))
    model = classifier(classes, post_transform=link, **nodes, **weights("class", values), **more)
    check_same(run_onnx, model)


def test_one_class_per_tree(run_onnx):
    nodes, leaves = random_trees(n_trees=6)
    values = entries(leaves, lambda tree, node: [tree // 10 % 3])
    model = classifier([3, 4, 5], post_transform="SOFTMAX", **nodes, **weights("class", values))
    plain = check_same(run_onnx, model)
    assert initializer_arrays(plain)["leaf_values"].shape == (len(leaves),)


@pytest.mark.parametrize("classes", [[0, 1], [5, 3], ["no", "yes"]], ids=["range", "ints", "text"])
def test_probabilities_of_two_classes(run_onnx, classes):
    nodes, leaves = random_trees()
    values = entries(leaves, lambda tree, node: [0], positive=True)
    plain = check_same(run_onnx, classifier(classes, **nodes, **weights("class", values)))
    assert initializer_arrays(plain)["leaf_values"].shape == (len(leaves),)


@pytest.mark.parametrize("classes", [[0, 1], [5, 3], ["no", "yes"]], ids=["range", "ints", "text"])
@pytest.mark.parametrize("base", [False, True])
def test_a_sigmoid_of_two_classes(run_onnx, classes, base):
    nodes, leaves = random_trees()
    more = {"base_values": [-0.5]} if base else {}
    values = entries(leaves, lambda tree, node: [0])
    model = classifier(classes, post_transform="LOGISTIC", **nodes, **weights("class", values), **more)
    check_same(run_onnx, model)


@pytest.mark.parametrize("version", [1, 3])
def test_inferred_number_of_targets(version):
    nodes, leaves = random_trees()
    model = regressor(2, version=version, **nodes, **weights("target", entries(leaves, lambda t, n: [0, 1])))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert value_types(decompose_operators(model))["y"].shape[1:] == (2,)


def is_unchanged(model):
    return decompose_operators(model).SerializeToString() == model.SerializeToString()


def test_leaves_without_a_value_add_nothing(run_onnx):
    nodes, leaves = random_trees()
    values = entries(leaves[::2], lambda tree, node: [0])
    check_same(run_onnx, regressor(**nodes, **weights("target", values)))
    check_same(run_onnx, classifier([0, 1], post_transform="LOGISTIC", **nodes, **weights("class", values)))


def test_a_value_for_each_of_two_classes(run_onnx):
    nodes, leaves = random_trees()
    values = entries(leaves, lambda tree, node: [0, 1])
    model = classifier([4, 9], post_transform="SOFTMAX", **nodes, **weights("class", values))
    label, scores = run_onnx(decompose_operators(model), X)
    np.testing.assert_allclose(scores, run_onnx(model, X)[1], atol=1e-6)
    # The labels of onnxruntime depend on the score of the second class only.
    assert label.tolist() == np.array([4, 9])[scores.argmax(axis=1)].tolist()


@pytest.mark.parametrize("base", [[0.5, 0.25], [0.5]])
def test_two_classes_of_which_onnxruntime_reads_one_stay_fused(base):
    nodes, leaves = random_trees()
    for outputs in ([0, 1], [1]):
        values = entries(leaves, lambda tree, node, outputs=outputs: outputs)
        assert is_unchanged(classifier([0, 1], base_values=base, **nodes, **weights("class", values)))


def test_votes_for_leaves_stay_fused():
    nodes, leaves = random_trees(n_trees=1)
    values = [(tree, node, node, 1.0) for tree, node in leaves]
    classes = list(range(1 + max(node for _, node in leaves)))
    assert is_unchanged(classifier(classes, **nodes, **weights("class", values)))
    numbers = [(tree, node, 0, float(node)) for tree, node in leaves]
    assert is_unchanged(regressor(**nodes, **weights("target", numbers)))


def test_leaves_that_float32_cannot_number_stay_fused():
    values = np.zeros((MAX_LEAVES + 1, 1), dtype=np.float32)
    none = np.zeros(0, dtype=np.int64)
    trees = Trees([], none, none, none, values, values != 0)
    assert scores_of_leaves(SimpleNamespace(op=None), trees, None) is None


def test_order_of_the_trees(run_onnx):
    nodes, leaves = random_trees(n_trees=4)
    nodes["nodes_treeids"] = [100 - tree for tree in nodes["nodes_treeids"]]
    values = entries([(100 - tree, node) for tree, node in leaves], lambda tree, node: [0])
    plain = check_same(run_onnx, regressor(**nodes, **weights("target", values)))
    table = initializer_arrays(plain)["leaf_values"]
    np.testing.assert_allclose(table, [value for *_, value in values], rtol=1e-6)
