"""What skl2onnx gets wrong is put right: the graphs then give what scikit-learn gives."""

import warnings

import numpy as np
import pytest
from onnx import parser
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from ortlearn.conversion import sklearn_to_onnx
from ortlearn.conversion.corrections import correct_graph
from ortlearn.conversion.output_shapes import with_computed_shapes
from ortlearn.graphs import initializer_arrays, value_types

X, CLASSES = load_iris(return_X_y=True)
X = X.astype(np.float32) + np.random.RandomState(0).uniform(0, 0.01, X.shape).astype(np.float32)
TWO = (CLASSES == 1).astype(int)
ROWS = X[::3] + np.float32(0.05)  # not the rows of the training


@pytest.mark.parametrize(
    "model, y",
    [
        (LinearDiscriminantAnalysis(), TWO),
        (CalibratedClassifierCV(LogisticRegression(max_iter=500), method="isotonic", cv=2), TWO),
        (CalibratedClassifierCV(LogisticRegression(max_iter=500), method="isotonic", cv=2), CLASSES),
        (KNeighborsClassifier(weights="distance"), CLASSES),
    ],
    ids=["lda", "isotonic", "isotonic-classes", "neighbours"],
)
def test_probabilities(model, y, run_onnx):
    fitted = model.fit(X, y)
    labels, probabilities = run_onnx(sklearn_to_onnx(fitted, 4), ROWS)
    np.testing.assert_allclose(probabilities, fitted.predict_proba(ROWS), atol=1e-4)
    np.testing.assert_array_equal(labels, fitted.predict(ROWS))


def test_discriminants_of_two_classes_in_float64(run_onnx):
    fitted = LinearDiscriminantAnalysis().fit(X, TWO)
    rows = ROWS.astype(np.float64)
    labels, probabilities = run_onnx(sklearn_to_onnx(fitted, 4, np.float64), rows)
    np.testing.assert_allclose(probabilities, fitted.predict_proba(rows), atol=1e-9)
    np.testing.assert_array_equal(labels, fitted.predict(rows))


@pytest.mark.parametrize("rows", [X, ROWS], ids=["training", "others"])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_neighbours_weighted_by_distance(rows, metric, run_onnx):
    fitted = KNeighborsRegressor(weights="distance", metric=metric).fit(X, X[:, 0] ** 2)
    (predicted,) = run_onnx(sklearn_to_onnx(fitted, 4), rows)
    np.testing.assert_allclose(predicted.ravel(), fitted.predict(rows), rtol=1e-4)


@pytest.mark.parametrize("target", [X[:, 0].astype(np.float64), CLASSES], ids=["float64", "int64"])
def test_targets_of_neighbours_have_the_type_of_the_graph(target, run_onnx):
    fitted = KNeighborsRegressor().fit(X, target)
    model = sklearn_to_onnx(fitted, 4)
    tables = [a for a in initializer_arrays(model).values() if a.shape == target.shape]
    assert [table.dtype for table in tables] == [np.float32]
    np.testing.assert_allclose(run_onnx(model, ROWS)[0].ravel(), fitted.predict(ROWS), rtol=1e-5)


def test_a_vote_for_the_best_of_one_column(run_onnx):
    members = [("a", RidgeClassifier()), ("b", RidgeClassifier(10.0)), ("c", LogisticRegression())]
    voting = VotingClassifier(members, flatten_transform=False).fit(X, TWO)
    assert 0 < voting.predict(X).mean() < 1
    np.testing.assert_array_equal(run_onnx(sklearn_to_onnx(voting, 4), X)[0], voting.predict(X))


def test_what_is_right_stays():
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]>
        g (float[N,2] x) => (int64[N] label, float[N,2] p)
        { label, p = ai.onnx.ml.LinearClassifier <classlabels_ints = [0, 1], post_transform = "SOFTMAX",
          coefficients = [1.0, 2.0, -1.0, 2.0], intercepts = [0.5, -0.5]> (x) }"""
    )
    assert correct_graph(model) == model


@pytest.mark.parametrize("columns", [1, 2])
def test_declared_shapes_of_outputs(columns):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = PLSRegression(2).fit(X, X[:, :columns])
    model = sklearn_to_onnx(fitted, 4)
    assert value_types(model)["variable"].shape[1] == columns


def test_shapes_that_nobody_knows_stay_as_declared():
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[N,2] x, int64[2] s) => (float[N,7] y)
        { y = Reshape (x, s) }"""
    )
    assert with_computed_shapes(model) == model
