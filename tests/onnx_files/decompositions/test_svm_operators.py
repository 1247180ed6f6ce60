"""Support vector machines as plain operators: what onnxruntime computes, and gradients of formulas."""

from itertools import combinations

import numpy as np
import pytest
from onnx import TensorProto, checker, helper
from onnx.reference import ReferenceEvaluator

from ortlearn.conversion import to_trainable
from ortlearn.differentiation import gradient_of_loss
from ortlearn.exceptions import ConversionError
from ortlearn.graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    graph_names,
    initializer_arrays,
    make_value_info,
)
from ortlearn.onnx_files.decompositions import decompose_operators

N_FEATURES = 4
KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]
PARAMS = [0.3, 0.5, 3.0]
X = np.random.default_rng(0).normal(size=(60, N_FEATURES)).astype(np.float32)
BACKENDS = ["rules", pytest.param("ort", marks=pytest.mark.needs_training)]


def one_node(op_type, outputs, elem_type=TensorProto.FLOAT, **attributes):
    """Return a model of one operator of ai.onnx.ml."""
    attributes = {name: value for name, value in attributes.items() if value != []}
    node = helper.make_node(op_type, ["x"], list(outputs), domain="ai.onnx.ml", **attributes)
    inputs = [helper.make_tensor_value_info("x", elem_type, ["N", N_FEATURES])]
    infos = [helper.make_tensor_value_info(name, *known) for name, known in outputs.items() if name]
    opsets = [helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("", 18)]
    return helper.make_model(
        helper.make_graph([node], "g", inputs, infos), opset_imports=opsets, ir_version=8
    )


def classifier(counts, kernel="RBF", calibrated=False, link="NONE", labels=None, seed=0, **changes):
    """Return an SVMClassifier with random attributes; ``counts`` are the support vectors of each class."""
    rng = np.random.default_rng(seed)
    k, total = len(counts), sum(counts)
    pairs = k * (k - 1) // 2
    labels = labels or list(range(10, 10 + k))
    text = isinstance(labels[0], str)
    attributes = {
        "support_vectors": rng.normal(size=total * N_FEATURES).tolist(),
        "coefficients": rng.normal(size=(k - 1) * total).tolist(),
        "rho": rng.normal(size=pairs).tolist(),
        "vectors_per_class": list(counts),
        "kernel_type": kernel,
        "kernel_params": PARAMS,
        "post_transform": link,
        "classlabels_strings" if text else "classlabels_ints": labels,
    }
    if calibrated:
        attributes["prob_a"] = (-0.2 - rng.random(pairs)).tolist()
        attributes["prob_b"] = rng.normal(size=pairs).tolist()
    columns = k if calibrated or k == 2 else pairs
    label_type = TensorProto.STRING if text else TensorProto.INT64
    outputs = {"label": (label_type, ["N"]), "scores": (TensorProto.FLOAT, ["N", columns])}
    return one_node("SVMClassifier", outputs, **{**attributes, **changes})


def regressor(kernel="RBF", total=7, elem_type=TensorProto.FLOAT, seed=0, **changes):
    """Return an SVMRegressor with random attributes."""
    rng = np.random.default_rng(seed)
    attributes = {
        "support_vectors": rng.normal(size=total * N_FEATURES).tolist(),
        "coefficients": rng.normal(size=total or N_FEATURES).tolist(),
        "rho": [0.4],
        "n_supports": total,
        "kernel_type": kernel,
        "kernel_params": PARAMS,
    }
    outputs = {"y": (TensorProto.FLOAT, ["N", 1])}
    return one_node("SVMRegressor", outputs, elem_type, **{**attributes, **changes})


def check_same(run_onnx, model, X=X, expected=None):
    """Compare a model with its decomposition, and return the latter."""
    before = model.SerializeToString()
    plain = decompose_operators(model)
    assert model.SerializeToString() == before
    checker.check_model(plain, full_check=True)
    assert all(node.domain == "" for node in plain.graph.node)
    expected = run_onnx(model, X) if expected is None else expected
    for one, other in zip(expected, run_onnx(plain, X), strict=True):
        if one.dtype.kind == "f":
            np.testing.assert_allclose(other, one, atol=1e-5, rtol=1e-5)
        else:
            assert other.tolist() == one.tolist()
        assert one.shape == other.shape
    return plain


@pytest.mark.parametrize("kernel", KERNELS)
def test_regressor(run_onnx, kernel):
    plain = check_same(run_onnx, regressor(kernel))
    shapes = {name: array.shape for name, array in initializer_arrays(plain).items()}
    assert shapes["support_vectors"] == (7, 4)
    assert (shapes["dual_coef"], shapes["intercept"]) == ((1, 7), (1,))
    assert ("gamma" in shapes) == (kernel != "LINEAR")


@pytest.mark.parametrize("degree", [0.0, 1.0, 2.0, 5.0, 2.5, 40.0])
def test_degrees_of_the_polynomial_kernel(run_onnx, degree):
    # A base above zero, for degrees that are no integers, and below one for large ones.
    model = regressor("POLY", kernel_params=[0.02, 0.5, degree])
    check_same(run_onnx, model, np.clip(X, -1, 1))


def test_one_class(run_onnx):
    plain = check_same(run_onnx, regressor(one_class=1, rho=[-0.1]))
    assert set(run_onnx(plain, X)[0].ravel().tolist()) == {1.0, -1.0}


def test_regressor_without_support_vectors(run_onnx):
    plain = check_same(run_onnx, regressor("RBF", total=0))
    assert initializer_arrays(plain)["coef"].shape == (4, 1)


@pytest.mark.parametrize("elem_type", [TensorProto.DOUBLE, TensorProto.INT64])
def test_other_types_of_input(run_onnx, elem_type):
    # onnxruntime has no kernel of SVMRegressor for them: its float32 one says what is right.
    data = (X if elem_type == TensorProto.DOUBLE else np.round(X)).astype(
        helper.tensor_dtype_to_np_dtype(elem_type)
    )
    expected = run_onnx(regressor(), data.astype(np.float32))
    check_same(run_onnx, regressor(elem_type=elem_type), data, expected)


@pytest.mark.parametrize("offset", [0.0, 100.0, -2000.0])
def test_far_from_zero_the_rbf_kernel_keeps_its_digits(run_onnx, offset):
    vectors = np.random.default_rng(0).normal(size=(7, N_FEATURES)) + offset
    model = regressor(support_vectors=vectors.ravel().tolist())
    plain = check_same(run_onnx, model, (X + offset).astype(np.float32))
    stored = initializer_arrays(plain)["support_vectors"]
    np.testing.assert_array_equal(stored, vectors.astype(np.float32))


@pytest.mark.parametrize(
    "changes",
    [
        {"post_transform": "LOGISTIC"},
        {"kernel_type": "LAPLACE"},
        {"coefficients": [1.0, 2.0]},
        {"n_supports": 5},
        {"rho": []},
    ],
)
def test_a_regressor_it_cannot_write_is_refused(changes):
    with pytest.raises(ConversionError, match="SVMRegressor .* has invalid attributes"):
        decompose_operators(regressor(**changes))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("calibrated", [False, True], ids=["scores", "calibrated"])
@pytest.mark.parametrize("counts", [(3, 4), (4, 5, 3), (4, 0, 3, 1), (3,) * 7], ids=len)
def test_classifier(run_onnx, kernel, calibrated, counts):
    plain = check_same(run_onnx, classifier(counts, kernel, calibrated))
    shapes = {name: array.shape for name, array in initializer_arrays(plain).items()}
    k, total = len(counts), sum(counts)
    assert shapes["support_vectors"] == (total, N_FEATURES)
    assert shapes["dual_coef"] == (k - 1, total)
    assert shapes["intercept"] == (k * (k - 1) // 2,)
    assert ("prob_a" in shapes) == ("prob_b" in shapes) == calibrated


@pytest.mark.parametrize("labels", [[7, -3, 5], ["b", "é", "a"]], ids=["ints", "text"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels(run_onnx, labels, n_classes):
    plain = check_same(run_onnx, classifier((2, 3, 2)[:n_classes], labels=labels[:n_classes]))
    assert set(run_onnx(plain, X)[0].tolist()) <= set(labels)


def test_many_classes_have_equal_votes_and_the_first_wins(run_onnx):
    model = classifier((2,) * 9, "SIGMOID", seed=3)
    plain = check_same(run_onnx, model, np.repeat(X, 5, axis=0))
    pairs = run_onnx(plain, X)[1]
    votes = np.zeros((len(X), 9))
    for number, (i, j) in enumerate(combinations(range(9), 2)):
        votes[:, i] += pairs[:, number] > 0
        votes[:, j] += pairs[:, number] <= 0
    ties = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1
    assert ties.sum() > 5
    assert run_onnx(plain, X)[0].tolist() == (10 + votes.argmax(axis=1)).tolist()


def test_a_score_of_zero_votes_for_the_second_class(run_onnx):
    model = classifier((1, 1), "LINEAR", coefficients=[0.0, 0.0], rho=[0.0])
    plain = check_same(run_onnx, model)
    assert set(run_onnx(plain, X)[0].tolist()) == {11}


@pytest.mark.parametrize("opset", [13, 17, 21])
@pytest.mark.parametrize("calibrated", [False, True])
def test_opsets_of_files(run_onnx, opset, calibrated):
    model = classifier((4, 5, 3), calibrated=calibrated)
    expected = run_onnx(model, X)
    model.opset_import[1].version = opset
    check_same(run_onnx, model, X, expected)
    score = to_trainable(model).score_graph()
    checker.check_model(score, full_check=True)
    assert {node.domain for node in score.graph.node} == {""}


@pytest.mark.parametrize("link", ["LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("counts, calibrated", [((2, 3), True), ((2, 3, 2), False), ((2, 3, 2), True)])
def test_transforms(run_onnx, link, counts, calibrated):
    check_same(run_onnx, classifier(counts, calibrated=calibrated, link=link))


@pytest.mark.parametrize("link", ["SOFTMAX", "SOFTMAX_ZERO"])
def test_softmax_of_a_single_score(run_onnx, link):
    check_same(run_onnx, classifier((2, 3), link=link))


def test_logistic_of_a_single_score(run_onnx):
    # onnxruntime 1.19 leaves the sigmoid out, later ones do not.
    label, scores = run_onnx(classifier((2, 3)), X)
    probabilities = 1 / (1 + np.exp(-scores.astype(np.float64)))
    check_same(run_onnx, classifier((2, 3), link="LOGISTIC"), X, [label, probabilities.astype(np.float32)])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("sign", [1, 0, -1], ids=["positive", "mixed", "negative"])
def test_classifier_without_support_vectors(run_onnx, n_classes, sign):
    rows = np.random.default_rng(1).normal(size=n_classes * N_FEATURES)
    rows = sign * np.abs(rows) if sign else rows
    model = classifier(
        (0,) * n_classes,
        coefficients=rows.tolist(),
        rho=[0.3],
        support_vectors=[],
        vectors_per_class=[],
    )
    model.graph.output[1].type.tensor_type.shape.dim[1].dim_value = n_classes
    plain = check_same(run_onnx, model)
    assert initializer_arrays(plain)["coef"].shape == (N_FEATURES, n_classes)


@pytest.mark.parametrize(
    "changes",
    [
        {"post_transform": "PROBIT"},
        {"kernel_type": "LAPLACE"},
        {"coefficients": [1.0]},
        {"rho": [1.0]},
        {"prob_a": [1.0] * 3},
        {"vectors_per_class": [7, 5]},
    ],
)
def test_a_classifier_it_cannot_write_is_refused(changes):
    with pytest.raises(ConversionError, match="SVMClassifier .* has invalid attributes"):
        decompose_operators(classifier((4, 5, 3), **changes))


def test_a_label_nobody_names(run_onnx):
    model = classifier((4, 5, 3))
    expected = run_onnx(model, X)[1]
    del model.graph.output[0]
    model.graph.node[0].output[0] = ""
    plain = decompose_operators(model)
    np.testing.assert_allclose(run_onnx(plain, X)[0], expected, atol=1e-5)
    assert "ArgMax" not in {node.op_type for node in plain.graph.node}


def test_couplings_run_elsewhere_too(run_onnx):
    plain = decompose_operators(classifier((4, 5, 3), calibrated=True))
    expected = ReferenceEvaluator(plain).run(None, {"x": X})
    np.testing.assert_allclose(run_onnx(plain, X)[1], expected[1], atol=1e-5)


# -- formulas in float64 ---------------------------------------------------------------------------


def kernel64(x, vectors, kind, gamma, coef0):
    products = x @ vectors.T
    if kind == "LINEAR":
        return products
    if kind == "RBF":
        return np.exp(-gamma * np.square(x[:, None] - vectors[None]).sum(axis=2))
    inner = gamma * products + coef0
    return inner ** PARAMS[2] if kind == "POLY" else np.tanh(inner)


def pairs64(x, weights, kind, counts):
    """Return the scores s_ij; of two classes minus s_01, as the weights are."""
    kernel = kernel64(x, weights["support_vectors"], kind, weights.get("gamma"), weights.get("coef0"))
    if len(counts) == 2:
        return kernel @ weights["dual_coef"].T + weights["intercept"]
    ends = np.cumsum(counts)
    parts = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    columns = []
    for number, (i, j) in enumerate(combinations(range(len(counts)), 2)):
        one = kernel[:, parts[i]] @ weights["dual_coef"][j - 1, parts[i]]
        other = kernel[:, parts[j]] @ weights["dual_coef"][i, parts[j]]
        columns.append(one + other + weights["intercept"][number])
    return np.stack(columns, axis=1)


def coupled64(first, n_classes):
    """Return the probabilities of one row: the linear system of the conditions of optimality."""
    matrix = np.zeros((n_classes + 1, n_classes + 1))
    matrix[-1, :-1] = matrix[:-1, -1] = 1
    for r, (i, j) in zip(first, combinations(range(n_classes), 2), strict=True):
        matrix[i, i] += (1 - r) ** 2
        matrix[j, j] += r**2
        matrix[i, j] = matrix[j, i] = -r * (1 - r)
    return np.linalg.solve(matrix, np.eye(n_classes + 1)[-1])[:-1]


def scores64(x, weights, kind, counts):
    """Return what is trained."""
    k, scores = len(counts), pairs64(x, weights, kind, counts)
    if "prob_a" in weights and k == 2:
        return weights["prob_b"] - weights["prob_a"] * scores
    if "prob_a" in weights:
        first = 1 / (1 + np.exp(weights["prob_a"] * scores + weights["prob_b"]))
        return np.log([coupled64(row, k) for row in first])
    if k == 2:
        return scores
    sums = np.zeros((len(x), k))
    for number, (i, j) in enumerate(combinations(range(k), 2)):
        sums[:, i] += scores[:, number]
        sums[:, j] -= scores[:, number]
    return sums


def check_gradients(trainable, formula, backend, x, rng):
    """Compare the gradient of a weighted sum of scores with slopes of a formula in float64."""
    graph = trainable.score_graph()
    names = {trainable.original_names[name]: name for name in trainable.trained}
    arrays = initializer_arrays(trainable.model, trainable.trained)
    weights = {
        short: arrays[name] * rng.uniform(0.8, 1.2, arrays[name].shape) for short, name in names.items()
    }
    expected = formula(x.astype(np.float64), weights)
    mix = rng.normal(size=expected.shape)
    op = GraphBuilder(18, existing_names=graph_names(graph.graph))
    op.ReduceSum(op.Mul(trainable.head.score, mix.astype(np.float32)), keepdims=0, outputs=["loss"])
    graph = append_nodes(graph, op, outputs=[make_value_info("loss", TensorType(TensorProto.FLOAT, ()))])
    gradient = gradient_of_loss(graph, "loss", trainable.trained, backend)
    feeds = {trainable.input_name: x, **{n: weights[s].astype(np.float32) for s, n in names.items()}}
    session = pytest.importorskip("onnxruntime").InferenceSession(
        gradient.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    outputs = [value.name for value in gradient.graph.output]
    found = dict(zip(outputs, session.run(None, feeds), strict=True))
    np.testing.assert_allclose(found["loss"], (expected * mix).sum(), rtol=1e-4, atol=1e-4)
    for short, name in names.items():
        for _ in range(2):
            direction = rng.normal(size=weights[short].shape)
            slope = 0.0
            for sign in (1, -1):
                moved = {**weights, short: weights[short] + sign * 1e-5 * direction}
                slope += sign * (formula(x.astype(np.float64), moved) * mix).sum() / 2e-5
            products = found[f"{name}_grad"] * direction
            assert abs(slope - products.sum()) < 2e-4 * (1 + np.abs(products).sum()), short


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("counts", [(3, 4), (4, 5, 3)], ids=len)
def test_gradients_of_scores(backend, kernel, counts):
    names = ["support_vectors", "dual_coef", "intercept"]
    names += {"LINEAR": [], "RBF": ["gamma"]}.get(kernel, ["gamma", "coef0"])
    trainable = to_trainable(classifier(counts, kernel), names)
    check_gradients(
        trainable,
        lambda x, weights: scores64(x, weights, kernel, counts),
        backend,
        X[:12],
        np.random.default_rng(1),
    )


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("counts", [(3, 4), (4, 5, 3), (4, 0, 3, 1)], ids=len)
def test_gradients_of_calibrated_scores(backend, counts):
    names = ["support_vectors", "dual_coef", "intercept", "prob_a", "prob_b", "gamma"]
    trainable = to_trainable(classifier(counts, calibrated=True), names)
    check_gradients(
        trainable,
        lambda x, weights: scores64(x, weights, "RBF", counts),
        backend,
        X[:12],
        np.random.default_rng(1),
    )


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_gradients_of_a_regression(backend, offset):
    vectors = np.random.default_rng(0).normal(size=(7, N_FEATURES)) + offset
    model = regressor(support_vectors=vectors.ravel().tolist())
    trainable = to_trainable(model, ["dual_coef", "intercept", "gamma"])

    def formula(x, weights):
        kernel = kernel64(x, vectors.astype(np.float32).astype(float), "RBF", weights["gamma"], None)
        return kernel @ weights["dual_coef"].T + weights["intercept"]

    x = (X[:12] + offset).astype(np.float32)
    check_gradients(trainable, formula, backend, x, np.random.default_rng(1))


@pytest.mark.parametrize("n_classes", [3, 5])
def test_couplings_go_to_the_minimum_in_training(run_onnx, n_classes):
    model = classifier((3,) * n_classes, calibrated=True)
    trainable = to_trainable(model, ["dual_coef"])
    assert "Loop" in {node.op_type for node in trainable.model.graph.node}
    graph = trainable.score_graph()
    assert "Loop" not in {node.op_type for node in graph.graph.node}
    (scores,) = run_onnx(graph, X, *trainable.initial_weights().values())
    arrays = initializer_arrays(decompose_operators(model))
    expected = scores64(X.astype(np.float64), arrays, "RBF", (3,) * n_classes)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    # What the operator computes is near.
    np.testing.assert_allclose(run_onnx(model, X)[1], np.exp(expected), atol=5e-3)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("counts", [(3, 4), (4, 5, 3)], ids=len)
def test_weights_are_found_in_files_too(kernel, counts):
    for calibrated in (False, True):
        trainable = to_trainable(classifier(counts, kernel, calibrated))
        names = {trainable.original_names[name] for name in trainable.trained}
        assert names == {"support_vectors", "dual_coef", "intercept"}
    far = np.random.default_rng(0).normal(size=7 * N_FEATURES) + 50
    trainable = to_trainable(regressor(kernel, support_vectors=far.tolist()))
    assert {trainable.original_names[name] for name in trainable.trained} == names


@pytest.mark.parametrize(
    "counts, calibrated, link",
    [((3, 4), False, "sigmoid"), ((3, 4), True, "sigmoid"), ((2, 3, 2), True, "softmax")],
)
def test_heads(run_onnx, counts, calibrated, link):
    model = classifier(counts, calibrated=calibrated, labels=["b", "a", "c"][: len(counts)])
    trainable = to_trainable(model)
    head = trainable.head
    assert (head.link, head.n_outputs) == (link, 1 if len(counts) == 2 else len(counts))
    assert head.classes.tolist() == ["b", "a", "c"][: len(counts)]
    (scores,) = run_onnx(trainable.score_graph(), X, *trainable.initial_weights().values())
    label, values = run_onnx(model, X)
    if len(counts) == 2:  # above zero the second class wins
        assert (
            label.tolist() == np.array(["b", "a"])[(scores.ravel() >= 0).astype(int)].tolist() or calibrated
        )
        odds = np.log(values[:, 1] / values[:, 0]) if calibrated else values[:, 0]
        np.testing.assert_allclose(scores.ravel(), odds, rtol=0.02, atol=0.02)
    else:
        np.testing.assert_allclose(np.exp(scores), values, atol=5e-3)
