"""Gradients and scores of support vector machines in ONNX files, against formulas in float64."""

from itertools import combinations

import numpy as np
import onnxruntime
import pytest

from ortlearn.differentiation import gradient_of_loss
from ortlearn.graphs import initializer_arrays
from ortlearn.onnx_files.decompositions import decompose_operators
from ortlearn.trainable.conversion import to_trainable
from tests.onnx_files.decompositions.comparisons import with_loss
from tests.onnx_files.decompositions.svm_models import KERNELS, N_FEATURES, PARAMS, X, classifier, regressor


def kernel64(x, vectors, kind, gamma, coef0):
    products = x @ vectors.T
    if kind == "LINEAR":
        return products
    if kind == "RBF":
        return np.exp(-gamma * np.square(x[:, None] - vectors[None]).sum(axis=2))
    inner = gamma * products + coef0
    return inner ** PARAMS[2] if kind == "POLY" else np.tanh(inner)


def pairs64(x, weights, kind, counts):
    """Return the scores s_ij of the pairs of classes, or minus s_01 for two classes."""
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
    """Return the probabilities of one sample, which solve the optimality conditions."""
    matrix = np.zeros((n_classes + 1, n_classes + 1))
    matrix[-1, :-1] = matrix[:-1, -1] = 1
    for r, (i, j) in zip(first, combinations(range(n_classes), 2), strict=True):
        matrix[i, i] += (1 - r) ** 2
        matrix[j, j] += r**2
        matrix[i, j] = matrix[j, i] = -r * (1 - r)
    return np.linalg.solve(matrix, np.eye(n_classes + 1)[-1])[:-1]


def scores64(x, weights, kind, counts):
    """Return the scores that are trained."""
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


def check_gradients(trainable, formula, x, rng):
    """Compare the gradient of a weighted sum of scores with slopes of a formula in float64."""
    graph = trainable.score_graph()
    names = {trainable.original_names[name]: name for name in trainable.trained}
    arrays = initializer_arrays(trainable.model, trainable.trained)
    weights = {
        short: arrays[name] * rng.uniform(0.8, 1.2, arrays[name].shape) for short, name in names.items()
    }
    expected = formula(x.astype(np.float64), weights)
    mix = rng.normal(size=expected.shape)
    graph = with_loss(graph, trainable.scores.score, mix.astype(np.float32))
    gradient = gradient_of_loss(graph, "loss", trainable.trained)
    feeds = {trainable.input_name: x, **{n: weights[s].astype(np.float32) for s, n in names.items()}}
    session = onnxruntime.InferenceSession(gradient.SerializeToString(), providers=["CPUExecutionProvider"])
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


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("counts", [(3, 4), (4, 5, 3)], ids=len)
def test_gradients_of_scores(kernel, counts):
    names = ["support_vectors", "dual_coef", "intercept"]
    names += {"LINEAR": [], "RBF": ["gamma"]}.get(kernel, ["gamma", "coef0"])
    trainable = to_trainable(classifier(counts, kernel), names)
    check_gradients(
        trainable,
        lambda x, weights: scores64(x, weights, kernel, counts),
        X[:12],
        np.random.default_rng(1),
    )


@pytest.mark.parametrize("counts", [(3, 4), (4, 5, 3), (4, 0, 3, 1)], ids=len)
def test_gradients_of_calibrated_scores(counts):
    names = ["support_vectors", "dual_coef", "intercept", "prob_a", "prob_b", "gamma"]
    trainable = to_trainable(classifier(counts, calibrated=True), names)
    check_gradients(
        trainable,
        lambda x, weights: scores64(x, weights, "RBF", counts),
        X[:12],
        np.random.default_rng(1),
    )


@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_gradients_of_a_regression(offset):
    vectors = np.random.default_rng(0).normal(size=(7, N_FEATURES)) + offset
    model = regressor(support_vectors=vectors.ravel().tolist())
    trainable = to_trainable(model, ["dual_coef", "intercept", "gamma"])

    def formula(x, weights):
        kernel = kernel64(x, vectors.astype(np.float32).astype(float), "RBF", weights["gamma"], None)
        return kernel @ weights["dual_coef"].T + weights["intercept"]

    x = (X[:12] + offset).astype(np.float32)
    check_gradients(trainable, formula, x, np.random.default_rng(1))


@pytest.mark.parametrize("n_classes", [3, 5])
def test_coupled_probabilities_are_optimal(run_onnx, n_classes):
    model = classifier((3,) * n_classes, calibrated=True)
    trainable = to_trainable(model, ["dual_coef"])
    assert "Loop" in {node.op_type for node in trainable.model.graph.node}
    graph = trainable.score_graph()
    assert "Loop" not in {node.op_type for node in graph.graph.node}
    (scores,) = run_onnx(graph, X, *trainable.initial_weights().values())
    arrays = initializer_arrays(decompose_operators(model))
    expected = scores64(X.astype(np.float64), arrays, "RBF", (3,) * n_classes)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    # The operator stops near the minimum.
    np.testing.assert_allclose(run_onnx(model, X)[1], np.exp(expected), atol=5e-3)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("counts", [(3, 4), (4, 5, 3)], ids=len)
def test_trained_weights(kernel, counts):
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
def test_scores(run_onnx, counts, calibrated, link):
    model = classifier(counts, calibrated=calibrated, labels=["b", "a", "c"][: len(counts)])
    trainable = to_trainable(model)
    scores = trainable.scores
    assert (scores.link, scores.n_outputs) == (link, 1 if len(counts) == 2 else len(counts))
    assert scores.classes.tolist() == ["b", "a", "c"][: len(counts)]
    (raw,) = run_onnx(trainable.score_graph(), X, *trainable.initial_weights().values())
    label, values = run_onnx(model, X)
    if len(counts) == 2:
        # a calibrated operator labels by the decisions before the calibration
        plain = run_onnx(classifier(counts, labels=["b", "a"]), X)[1][:, 0] if calibrated else raw.ravel()
        assert label.tolist() == np.where(plain >= 0, "a", "b").tolist()
        odds = np.log(values[:, 1] / values[:, 0]) if calibrated else values[:, 0]
        np.testing.assert_allclose(raw.ravel(), odds, rtol=0.02, atol=0.02)
    else:
        np.testing.assert_allclose(np.exp(raw), values, atol=5e-3)
