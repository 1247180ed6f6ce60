"""Naive Bayes: graph, constraints and write-back."""

import numpy as np
import pytest
from sklearn import naive_bayes

from ortlearn.graphs import TensorType
from ortlearn.models import write_model
from ortlearn.testing import check_model
from ortlearn.trainable.from_estimator import sklearn_to_onnx

RNG = np.random.RandomState(0)
X = RNG.normal(size=(80, 4)) + 0.3
COUNTS = RNG.randint(0, 4, size=(80, 5)).astype(np.float64)
THREE = np.digitize(X[:, 0] + COUNTS[:, 1], [1, 2.5])
TEXT = np.array(["low", "mid", "top"])[THREE]
CASES = {
    "GaussianNB": (X, {}),
    "BernoulliNB": (X, {"binarize": 0.2}),
    "MultinomialNB": (COUNTS, {"alpha": 0.5}),
    "ComplementNB": (COUNTS, {"norm": True}),
    "CategoricalNB": (COUNTS, {}),
}


@pytest.mark.parametrize("y", [THREE > 0, THREE, TEXT], ids=["two", "three", "text"])
@pytest.mark.parametrize("name", CASES)
def test_definitions(name, y, run):
    columns, params = CASES[name]
    check_model(getattr(naive_bayes, name)(**params).fit(columns, y), columns, run=run)


def test_binary_columns(run):
    columns = (COUNTS > 1).astype(np.float64)
    check_model(naive_bayes.BernoulliNB(binarize=None).fit(columns, THREE), columns, run=run)


def test_names_and_constraints():
    shares, table = "kept on the simplex", "feature_log_prob_"
    expected = {
        "GaussianNB": {"class_prior_": shares, "var_": "kept positive", "theta_": None},
        "BernoulliNB": {"class_log_prior_": shares, table: "kept below 0, the logarithm of a probability"},
        "MultinomialNB": {"class_log_prior_": shares, table: shares},
        "ComplementNB": {table: None},
        "CategoricalNB": {"class_log_prior_": shares, **{f"{table}[{i}]": shares for i in range(5)}},
    }
    for name, (columns, params) in CASES.items():
        model = getattr(naive_bayes, name)(**params).fit(columns, THREE)
        parameters = write_model(model, {"X": TensorType(1, (None, columns.shape[1]))}).parameters.values()
        found = {p.attribute: p.constraint and p.constraint.text for p in parameters}
        assert found == expected[name]


def test_a_column_that_was_constant_in_the_fit(run_onnx):
    """Its variance is near zero, which amplifies rounding errors in float32."""
    columns = X.copy()
    columns[:, 2] = 3.0
    model = naive_bayes.GaussianNB().fit(columns, THREE)
    assert model.var_[:, 2].max() < 1e-7
    label, probabilities = run_onnx(sklearn_to_onnx(model), X.astype(np.float32))
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-4)


def test_unknown_categories_are_an_error(run):
    model = naive_bayes.CategoricalNB().fit(COUNTS, THREE)
    written = write_model(model, {"X": TensorType(1, (None, 5))})
    with pytest.raises(Exception, match="out of data bounds"):
        run(written.model, {"X": np.full((1, 5), 9, dtype=np.float32)})
