"""fit(classes=...): classes absent from y, and errors of labels and classes."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.trainable.from_estimator import sklearn_to_onnx

RNG = np.random.RandomState(0)
X = RNG.randn(60, 3).astype(np.float32)
Y = np.array(["a", "b"])[(X[:, 0] > 0).astype(int)]
ALL = np.array(["a", "b", "c"])[np.arange(60) % 3]


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        MLPClassifier((3,), max_iter=5),
        LinearDiscriminantAnalysis(),
        RandomForestClassifier(3, max_depth=3, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression()),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # of rare classes and unconverged networks
def test_absent_class(model, warm_start, optimizer):
    trainer = optimizer(model, max_iter=3, random_state=0, learning_rate=0.01, warm_start=warm_start)
    trainer.fit(X, Y, classes=["c", "a", "b"])
    assert trainer.classes_.tolist() == ["a", "b", "c"] and trainer.predict_proba(X).shape == (60, 3)
    trainer.partial_fit(X, ALL)
    assert trainer.fit(X, Y, classes=["a", "b", "c"]).predict_proba(X).shape == (60, 3)


def test_equal_to_partial_fit(optimizer):
    options = {"random_state": 0, "learning_rate": 0.1}
    first = optimizer(LogisticRegression(), max_iter=1, **options).fit(X, Y, classes=["a", "b", "c"])
    second = optimizer(LogisticRegression(), **options).partial_fit(X, Y, classes=["a", "b", "c"])
    np.testing.assert_array_equal(first.trained_coef_["coef"], second.trained_coef_["coef"])


def test_single_class_in_y(optimizer):
    trainer = optimizer(LogisticRegression(), max_iter=2, random_state=0)
    with pytest.raises(ValueError, match=r"y has 1 class: \['a'\].*fit\(X, y, classes=\.\.\.\)"):
        trainer.fit(X, np.full(60, "a"))
    assert trainer.fit(X, np.full(60, "a"), classes=["a", "b"]).classes_.tolist() == ["a", "b"]


def test_with_early_stopping_weights_and_several_outputs(optimizer):
    trainer = optimizer(LogisticRegression(), max_iter=5, random_state=0, early_stopping=True, tol=9.0)
    trainer.set_params(n_iter_no_change=1)
    trainer.set_params(class_weight={"a": 2.0, "b": 1.0, "c": 1.0})
    assert len(trainer.fit(X, Y, np.ones(60), classes=["a", "b", "c"]).classes_) == 3
    columns = np.stack([Y, ALL], axis=1)
    several = optimizer(MultiOutputClassifier(LogisticRegression()), max_iter=2, random_state=0)
    classes = [["a", "b", "z"], ["a", "b", "c"]]
    assert [len(own) for own in several.fit(X, columns, classes=classes).classes_] == [3, 3]


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_invalid_classes(method, optimizer):
    def call(model, y, classes):
        return getattr(optimizer(model, max_iter=1, random_state=0), method)(X, y, classes=classes)

    with pytest.raises(ValueError, match=r"must include all labels of y: \['b'\] are missing. Add"):
        call(LogisticRegression(), Y, ["a", "c"])
    with pytest.raises(ValueError, match="classes applies to classifiers only, .* is not a classifier: omit"):
        call(Ridge(), X[:, 0], [0, 1])
    fitted = LogisticRegression().fit(X, ALL)
    for source in (fitted, sklearn_to_onnx(fitted, 3)):
        assert call(source, Y, ["c", "b", "a"]).classes_.tolist() == ["a", "b", "c"]
        with pytest.raises(ValueError, match="differ from the classes of the model"):
            call(source, Y, ["a", "b"])


def test_classes_of_a_fitted_model_are_kept(optimizer):
    trainer = optimizer(LogisticRegression().fit(X, ALL), max_iter=2, random_state=0, warm_start=True)
    assert trainer.fit(X, Y).predict_proba(X).shape == (60, 3)
    assert trainer.fit(X, np.full(60, "c")).classes_.tolist() == ["a", "b", "c"]


def test_warm_start_with_absent_class(optimizer):
    trainer = optimizer(LogisticRegression(), max_iter=2, random_state=0, warm_start=True).fit(X, ALL)
    with pytest.raises(ValueError, match=r"other shapes .*pass all classes: fit\(X, y, classes=\.\.\.\)"):
        trainer.fit(X, Y)
    assert trainer.fit(X, Y, classes=["a", "b", "c"]).predict_proba(X).shape == (60, 3)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_unknown_labels(method, optimizer):
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    trainer = optimizer(model, max_iter=1, random_state=0)
    with pytest.raises(ValueError) as caught:
        getattr(trainer, method)(X, ALL)
    message = str(caught.value)
    assert message.startswith("y has classes ['c'] that the model does not know: ")
    assert "has ['a', 'b']" in message and "such as sklearn.base.clone(estimator)" in message
    assert optimizer(clone(model), max_iter=1, random_state=0).fit(X, ALL).classes_.tolist() == [
        "a",
        "b",
        "c",
    ]


def test_labels_of_another_type(optimizer):
    fitted = LogisticRegression().fit(X, (Y == "a").astype(int))
    with pytest.raises(ValueError, match="The labels are texts and the classes numbers: convert y"):
        optimizer(fitted).fit(X, (Y == "a").astype(int).astype(str))
    with pytest.raises(ValueError, match="numbers and the classes texts"):
        optimizer(LogisticRegression().fit(X, Y)).fit(X, np.arange(60) % 2)
    with pytest.raises(ValueError, match=r"\[2, 3, .*, 11\] and 19 more that the model does not know"):
        optimizer(fitted).fit(X, np.where(np.arange(60) < 31, 0, np.arange(60) - 29))
