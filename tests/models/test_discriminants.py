"""Discriminant analysis: what its definitions promise."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from ortlearn.conversion import to_trainable
from ortlearn.exceptions import ConversionError
from ortlearn.graphs import TensorType
from ortlearn.models import write_model
from ortlearn.testing import check_model

RNG = np.random.RandomState(0)
X = RNG.normal(size=(90, 4)) + 0.3
THREE = np.digitize(X[:, 0] - X[:, 1] ** 2, [-1.5, 0.0])
TEXT = np.array(["low", "mid", "top"])[THREE]


@pytest.mark.parametrize("y", [THREE > 0, THREE, TEXT], ids=["two", "three", "text"])
@pytest.mark.parametrize(
    "model",
    [
        LinearDiscriminantAnalysis(),
        LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.2),
        LinearDiscriminantAnalysis(solver="eigen"),
        QuadraticDiscriminantAnalysis(),
        QuadraticDiscriminantAnalysis(reg_param=0.1, priors=None),
    ],
    ids=str,
)
def test_definitions(model, y, run):
    check_model(model.fit(X, y), X, run=run)


@pytest.mark.parametrize("n_components", [None, 1])
@pytest.mark.parametrize("solver", ["svd", "eigen"])
def test_coordinates_of_a_step(solver, n_components, run):
    steps = LinearDiscriminantAnalysis(solver=solver, n_components=n_components), LogisticRegression()
    model = make_pipeline(*steps).fit(X, THREE)
    check_model(model, X, run=run)
    written = write_model(model, {"X": TensorType(11, (None, 4))}, np.float64)
    shift = ["xbar_"] if solver == "svd" else []
    found = [p.expression for p in written.parameters.values() if p.step == "lineardiscriminantanalysis"]
    assert found == [*shift, "scalings_"]


def test_a_step_without_coordinates_is_refused():
    model = make_pipeline(LinearDiscriminantAnalysis(solver="lsqr"), LogisticRegression())
    model.steps = [(name, step.fit(X, THREE)) for name, step in model.steps]
    with pytest.raises(ConversionError, match="does not transform"):
        write_model(model, {"X": TensorType(1, (None, 4))})


def test_a_classifier_is_trained_on_its_decisions_alone():
    trainable = to_trainable(LinearDiscriminantAnalysis().fit(X, THREE))
    assert trainable.declared
    assert set(trainable.origins().values()) == {"coef_", "intercept_"}
    assert not {"xbar", "scalings"} & set(trainable.original_names.values())


def test_names_and_constraints():
    written = write_model(QuadraticDiscriminantAnalysis().fit(X, THREE), {"X": TensorType(1, (None, 4))})
    found = {p.expression: p.constraint and p.constraint.text for p in written.parameters.values()}
    assert found == {
        **{f"means_[{i}]": None for i in range(3)},
        **{f"rotations_[{i}]": None for i in range(3)},
        **{f"scalings_[{i}]": "kept positive" for i in range(3)},
        "priors_": "kept on the simplex",
    }
