"""partial_fit(classes=...): valid and invalid values."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier

from ortlearn.targets.given_classes import read_classes
from ortlearn.trainable.from_estimator import sklearn_to_onnx

RNG = np.random.RandomState(0)
X = RNG.randn(30, 3).astype(np.float32)
Y = np.arange(30) % 3
LABELS = (X > 0).astype(int)
#: A column of three classes and a column of two words.
COLUMNS = np.stack([Y, Y % 2], axis=1)


def test_labels_without_these_classes(optimizer):
    with pytest.raises(ValueError, match="classes"):
        SGDClassifier().partial_fit(X, Y, classes=[0, 1])
    model = optimizer(LogisticRegression())
    with pytest.raises(ValueError, match=r"classes=\[0, 1\] must include all labels of y: \[2\] are missing"):
        model.partial_fit(X, Y, classes=[0, 1])
    assert not hasattr(model, "onnx_")


@pytest.mark.parametrize("classes", [[2, 0, 3, 1], (3, 2, 1, 0), np.array([0, 0, 1, 2, 3])], ids=str)
def test_classes_in_any_order(classes, optimizer):
    model = optimizer(LogisticRegression(), random_state=0).partial_fit(X, Y, classes=classes)
    assert model.classes_.tolist() == [0, 1, 2, 3]
    model.partial_fit(X, Y, classes=[3, 1, 2, 0])
    assert model.predict_proba(X).shape == (30, 4)


def test_text_classes(optimizer):
    words = np.array(["b", "c", "a"])[Y]
    model = optimizer(LogisticRegression(), random_state=0).partial_fit(X, words, classes=["d", *"abc"])
    assert model.classes_.tolist() == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "classes", [[], 3, np.array(3), "ab", {0, 1}, np.array([]), [[0, 1, 2]], [[0, 1], [2, 3]]], ids=str
)
def test_invalid_classes(classes, optimizer):
    with pytest.raises(ValueError, match="must be (an array with all|one array of) classes"):
        optimizer(LogisticRegression()).partial_fit(X, Y, classes=classes)


@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2, 3], [], [5, 6, 7]], ids=str)
def test_classes_of_a_fitted_model(classes, optimizer):
    fitted = LogisticRegression().fit(X, Y)
    for source in (fitted, sklearn_to_onnx(fitted, 3)):
        known = optimizer(source).partial_fit(X, Y, classes=[2, 1, 0])
        assert known.classes_.tolist() == [0, 1, 2]
        with pytest.raises(ValueError, match=r"differ from the classes of the first call|must be an array"):
            known.partial_fit(X[:3], Y[:3], classes=classes)
        with pytest.raises(ValueError, match=r"classes of the model|must (include|be an array)"):
            optimizer(source).partial_fit(X, Y, classes=classes)


@pytest.mark.parametrize("classes", [[0, 1, 2], [2, 1, 0], [[0, 1]] * 3], ids=str)
def test_classes_of_several_outputs(classes, optimizer):
    expected = MLPClassifier((2,), random_state=0).partial_fit(X, LABELS, classes=[0, 1, 2]).classes_
    model = optimizer(MLPClassifier((2,)), random_state=0).partial_fit(X, LABELS, classes=classes)
    np.testing.assert_array_equal(model.classes_, expected)
    assert model.partial_fit(X, LABELS, classes=classes).predict(X).shape == (30, 3)


@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2, 3], [0, 1, 5], [[0, 1]] * 2, [[0, 2]] * 3], ids=str)
def test_invalid_classes_of_several_outputs(classes, optimizer):
    with pytest.raises(ValueError, match="must be 3 arrays of classes|must include all labels"):
        optimizer(MLPClassifier((2,))).partial_fit(X, LABELS, classes=classes)


def test_classes_of_columns(optimizer):
    make = MultiOutputClassifier(LogisticRegression())
    model = optimizer(make, random_state=0).partial_fit(X, COLUMNS, classes=[[2, 1, 0, 4], [1, 0]])
    assert [known.tolist() for known in model.classes_] == [[0, 1, 2, 4], [0, 1]]
    with pytest.raises(ValueError, match="differ from the classes of the first call"):
        model.partial_fit(X, COLUMNS, classes=[[0, 1, 2], [0, 1]])
    with pytest.raises(ValueError, match=r"must include all labels of y: \[2\] are missing"):
        optimizer(make).partial_fit(X, COLUMNS, classes=[[0, 1], [0, 1]])


def test_classes_of_a_regressor():
    assert read_classes(None, Y) is None
