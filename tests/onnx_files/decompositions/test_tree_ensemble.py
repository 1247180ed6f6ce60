"""TreeEnsemble, written with older operators, against the reference evaluator of onnx."""

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from ortlearn.graphs import initializer_arrays, opset_versions
from ortlearn.onnx_files.decompositions import decompose_operators
from ortlearn.trainable.conversion import to_trainable

LEQ, LT, GTE, GT, EQ, NEQ, MEMBER = range(7)
X = np.random.default_rng(0).integers(-3, 4, size=(50, 3)).astype(np.float32)


def tree_ensemble(splits, leaves, roots, dtype=np.float32, members=None, **attributes):
    """Return a model of splits (feature, mode, threshold, yes, no, tracks) and leaves (target, weight).

    A branch is the index of a split, or ``("leaf", index)``.
    """
    features, modes, thresholds, yes, no, tracks = zip(*splits, strict=True)
    targets, weights = zip(*leaves, strict=True)

    def tensor(values, kind=dtype):
        return numpy_helper.from_array(np.array(values, dtype=kind))

    def indices(side):
        return [branch[1] if isinstance(branch, tuple) else branch for branch in side]

    def flags(side):
        return [int(isinstance(branch, tuple)) for branch in side]

    if members is not None:
        attributes["membership_values"] = tensor(members)
    node = helper.make_node(
        "TreeEnsemble",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        n_targets=1 + max(targets),
        nodes_featureids=list(features),
        nodes_modes=tensor(modes, np.uint8),
        nodes_splits=tensor(thresholds),
        nodes_truenodeids=indices(yes),
        nodes_trueleafs=flags(yes),
        nodes_falsenodeids=indices(no),
        nodes_falseleafs=flags(no),
        nodes_missing_value_tracks_true=list(tracks),
        leaf_targetids=list(targets),
        leaf_weights=tensor(weights),
        tree_roots=list(roots),
        **attributes,
    )
    elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x = helper.make_tensor_value_info("x", elem_type, ["N", 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 1 + max(targets)])
    opsets = [helper.make_opsetid("ai.onnx.ml", 5), helper.make_opsetid("", 18)]
    return helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=opsets, ir_version=10)


def leaf(number):
    return ("leaf", number)


#: Two trees of three and two splits.
SPLITS = [
    (0, LEQ, 0.5, 1, 2, 0),
    (1, LT, 1.0, leaf(0), leaf(1), 1),
    (2, GTE, -1.0, leaf(2), leaf(3), 0),
    (2, GT, 0.0, leaf(4), 4, 1),
    (1, NEQ, 2.0, leaf(5), leaf(6), 0),
]
VALUES = [0.5, -1.0, 2.0, 0.25, -0.75, 3.0, 1.5]


def check_same(run_onnx, model, samples=X):
    expected = ReferenceEvaluator(model).run(None, {"x": samples})[0]
    plain = decompose_operators(model)
    checker.check_model(plain, full_check=True)
    assert opset_versions(plain)["ai.onnx.ml"] < 5
    (found,) = run_onnx(plain, samples)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    return plain


@pytest.mark.parametrize("aggregate", range(4), ids=["average", "sum", "min", "max"])
def test_one_target(run_onnx, aggregate):
    model = tree_ensemble(SPLITS, [(0, value) for value in VALUES], [0, 3], aggregate_function=aggregate)
    plain = check_same(run_onnx, model)
    assert sorted(initializer_arrays(plain)["leaf_values"].tolist()) == sorted(VALUES)


def test_several_targets(run_onnx):
    leaves = [(number % 3, value) for number, value in enumerate(VALUES)]
    plain = check_same(run_onnx, tree_ensemble(SPLITS, leaves, [0, 3]))
    assert initializer_arrays(plain)["leaf_values"].shape == (len(VALUES), 3)


def test_missing_values(run_onnx):
    samples = np.where(np.random.default_rng(1).uniform(size=X.shape) < 0.4, np.float32(np.nan), X)
    check_same(run_onnx, tree_ensemble(SPLITS, [(0, value) for value in VALUES], [0, 3]), samples)


def test_tree_of_one_leaf(run_onnx):
    leaves = [(0, value) for value in [*VALUES, 9.0]]
    without = ReferenceEvaluator(tree_ensemble(SPLITS, leaves, [0, 3])).run(None, {"x": X})[0]
    splits = [*SPLITS, (0, LEQ, 0.0, leaf(7), leaf(7), 0)]
    plain = decompose_operators(tree_ensemble(splits, leaves, [0, 5, 3]))
    np.testing.assert_allclose(run_onnx(plain, X)[0], without + 9, rtol=1e-6)


@pytest.mark.parametrize("tracks", [0, 1])
def test_membership(run_onnx, tracks):
    splits = [
        (0, MEMBER, 0.0, 1, leaf(0), tracks),
        (1, LEQ, 0.0, leaf(1), 2, 0),
        (2, MEMBER, 0.0, leaf(2), leaf(3), tracks),
    ]
    members = [1.0, -2.0, 3.0, np.nan, 2.0, np.nan]
    model = tree_ensemble(splits, [(0, v) for v in VALUES[:4]], [0], members=members)
    samples = np.where(np.random.default_rng(1).uniform(size=X.shape) < 0.1, np.float32(np.nan), X)
    check_same(run_onnx, model, samples)


def test_float64_thresholds(run_onnx):
    splits = [(0, LEQ, 1 / 3, leaf(0), leaf(1), 0)]
    model = tree_ensemble(splits, [(0, 1.0), (0, 2.0)], [0], dtype=np.float64)
    samples = np.array([[1 / 3 - 1e-9, 0, 0], [1 / 3 + 1e-9, 0, 0]])
    plain = decompose_operators(model)
    assert run_onnx(plain, samples)[0].ravel().tolist() == [1.0, 2.0]


@pytest.mark.parametrize("link, apply", [(1, lambda s: np.exp(s)), (2, lambda s: 1 / (1 + np.exp(-s)))])
def test_transforms(run_onnx, link, apply):
    leaves = [(number % 2, value) for number, value in enumerate(VALUES)]
    raw = ReferenceEvaluator(tree_ensemble(SPLITS, leaves, [0, 3])).run(None, {"x": X})[0]
    expected = apply(raw) / (np.exp(raw).sum(axis=1, keepdims=True) if link == 1 else 1)
    plain = decompose_operators(tree_ensemble(SPLITS, leaves, [0, 3], post_transform=link))
    np.testing.assert_allclose(run_onnx(plain, X)[0], expected, rtol=1e-5, atol=1e-6)


def test_trained_weights():
    trainable = to_trainable(tree_ensemble(SPLITS, [(0, value) for value in VALUES], [0, 3]))
    assert [trainable.original_names[name] for name in trainable.trained] == ["leaf_values"]
    assert (trainable.scores.task, trainable.scores.n_outputs) == ("regression", 1)
