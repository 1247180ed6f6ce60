"""Support vector machines as standard operators, against onnxruntime."""

from itertools import combinations

import numpy as np
import pytest
from onnx import TensorProto, checker, helper
from onnx.reference import ReferenceEvaluator

from ortlearn.exceptions import ConversionError
from ortlearn.graphs import initializer_arrays
from ortlearn.onnx_files.decompositions import decompose_operators
from ortlearn.trainable.conversion import to_trainable
from tests.onnx_files.decompositions.comparisons import check_same
from tests.onnx_files.decompositions.svm_models import KERNELS, N_FEATURES, X, classifier, regressor


@pytest.mark.parametrize("kernel", KERNELS)
def test_regressor(run_onnx, kernel):
    plain = check_same(run_onnx, regressor(kernel))
    shapes = {name: array.shape for name, array in initializer_arrays(plain).items()}
    assert shapes["support_vectors"] == (7, 4)
    assert (shapes["dual_coef"], shapes["intercept"]) == ((1, 7), (1,))
    assert ("gamma" in shapes) == (kernel != "LINEAR")


@pytest.mark.parametrize("degree", [0.0, 1.0, 2.0, 5.0, 2.5, 40.0])
def test_degrees_of_the_polynomial_kernel(run_onnx, degree):
    # The base is positive for fractional degrees, and below one for large degrees.
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
    # onnxruntime has a float32 kernel of SVMRegressor only.
    data = (X if elem_type == TensorProto.DOUBLE else np.round(X)).astype(
        helper.tensor_dtype_to_np_dtype(elem_type)
    )
    expected = run_onnx(regressor(), data.astype(np.float32))
    check_same(run_onnx, regressor(elem_type=elem_type), data, expected)


@pytest.mark.parametrize("offset", [0.0, 100.0, -2000.0])
def test_rbf_kernel_is_precise_far_from_zero(run_onnx, offset):
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
def test_unsupported_regressors_are_rejected(changes):
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
    check_same(run_onnx, classifier((2, 3, 2)[:n_classes], labels=labels[:n_classes]))


def test_ties_of_votes_are_won_by_the_first_class(run_onnx):
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
    # onnxruntime 1.19 omits the sigmoid.
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
def test_unsupported_classifiers_are_rejected(changes):
    with pytest.raises(ConversionError, match="SVMClassifier .* has invalid attributes"):
        decompose_operators(classifier((4, 5, 3), **changes))


def test_missing_labels(run_onnx):
    model = classifier((4, 5, 3))
    expected = run_onnx(model, X)[1]
    del model.graph.output[0]
    model.graph.node[0].output[0] = ""
    plain = decompose_operators(model)
    np.testing.assert_allclose(run_onnx(plain, X)[0], expected, atol=1e-5)
    assert "ArgMax" not in {node.op_type for node in plain.graph.node}


def test_couplings_in_the_reference_evaluator(run_onnx):
    plain = decompose_operators(classifier((4, 5, 3), calibrated=True))
    expected = ReferenceEvaluator(plain).run(None, {"x": X})
    np.testing.assert_allclose(run_onnx(plain, X)[1], expected[1], atol=1e-5)
