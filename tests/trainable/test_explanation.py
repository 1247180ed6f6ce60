"""explain lists trained weights, and the reason and advice for all others."""

import pickle
import sys
from ast import literal_eval

import numpy as np
import pytest
from onnx import parser
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier, VotingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.mixture import BayesianGaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError, NoTrainableWeightError
from ortlearn.preprocessing.initial_fit import is_fitted
from ortlearn.trainable.conversion import to_trainable
from ortlearn.trainable.explanation import explain
from tests.curves import Curves

RNG = np.random.RandomState(0)
X = RNG.randn(60, 3).astype(np.float32)
Y = (X @ [1.0, -2.0, 0.5] + 0.3 * RNG.randn(60)).astype(np.float32)
LABELS = np.digitize(Y, [-1.0, 1.0])
CATEGORIES = RNG.randint(0, 3, (60, 2)).astype(np.int64)


def only(rows, **wanted):
    """Return the only row with these values."""
    (row,) = [row for row in rows if all(getattr(row, name) == value for name, value in wanted.items())]
    return row


def test_pipeline():
    table = explain(make_pipeline(StandardScaler(), PCA(2), LogisticRegression()).fit(X, LABELS))
    assert table.trainable and table.problem == ""
    assert [row.step for row in table.rows if row.step] == [
        *["standardscaler"] * 2,
        *["pca"] * 2,
        *["logisticregression"] * 2,
    ]
    coefficients = only(table.rows, attribute="coef_")
    assert (coefficients.operator, coefficients.weights) == ("MatMul", ("coef",))
    assert coefficients.trainable and not coefficients.reason and not coefficients.advice
    components = only(table.rows, attribute="components_")
    assert not components.trainable and components.reason == "prepares the features of the trained step"
    assert components.advice == "weights_to_train='pca.components_' trains it"


@pytest.mark.parametrize("attribute", ["components_", "scale_"])
def test_advice(attribute):
    model = make_pipeline(StandardScaler(), PCA(2), LogisticRegression()).fit(X, LABELS)
    row = only(explain(model).rows, attribute=attribute)
    pattern = literal_eval(row.advice.partition("=")[2].removesuffix(" trains it"))
    trained = to_trainable(model, pattern)
    assert list(trained.origins().values()) == [f"{row.step}: {attribute}"]


def test_advice_for_all_members():
    members = [("a", make_pipeline(PCA(2), Ridge())), ("b", make_pipeline(PCA(1), Ridge()))]
    model = VotingRegressor(members).fit(X, Y)
    row = only(explain(model).rows, attribute="estimators_[*]['pca'].components_")
    pattern = literal_eval(row.advice.partition("=")[2].removesuffix(" trains it"))
    assert sorted(to_trainable(model, pattern).origins().values()) == [
        "estimators_[0]['pca'].components_",
        "estimators_[1]['pca'].components_",
    ]


@pytest.mark.parametrize("model", [3, LogisticRegression], ids=["number", "class"])
def test_other_objects(model):
    with pytest.raises(TypeError, match="explain takes an estimator, such as LogisticRegression()"):
        explain(model)


def test_members_share_a_row():
    table = explain(VotingRegressor([(str(i), Ridge(i)) for i in range(5)]).fit(X, Y))
    row = only(table.rows, attribute="estimators_[*].coef_")
    assert len(row.weights) == 5 and row.trainable
    assert "coef, coef_0, coef_1, ... (5)" in str(table)


def test_constraints():
    reasons = {row.attribute: row.reason for row in explain(GaussianNB(), X, LABELS).rows if row.attribute}
    assert reasons == {"theta_": "", "var_": "kept positive", "class_prior_": "kept on the simplex"}


def test_weights_of_the_fit():
    table = explain(GaussianProcessRegressor(alpha=0.1), X, Y)
    assert {row.attribute for row in table.rows if row.trainable} == {"X_train_", "alpha_", "_y_train_mean"}
    mixture = explain(BayesianGaussianMixture(n_components=2, random_state=0), X)
    assert {row.attribute for row in mixture.rows if row.trainable} == {"means_", "precisions_cholesky_"}


def test_constants_are_the_last_row():
    rows = explain(GaussianNB(), X, LABELS).rows
    assert rows[-1].reason == "constant of a formula" and not rows[-1].trainable
    assert rows[-1].weights and rows[-1].attribute == rows[-1].operator == ""


#: Estimators with nothing to train, samples, and a part of the reason.
HOPELESS = {
    "votes": (KNeighborsClassifier(3), X, "votes of the nearest training samples"),
    "bins": (KBinsDiscretizer(3, encode="ordinal", strategy="uniform"), X, "index of a bin"),
    "categories": (OneHotEncoder(sparse_output=False), CATEGORIES, "learns categories"),
    "selector": (SelectKBest(k=2), X, "selects columns"),
    "threshold": (VarianceThreshold(), X, "selects columns"),
    "polynomials": (PolynomialFeatures(2), X, "no parameters"),
    "norms": (Normalizer(), X, "no parameters"),
}


def test_a_fitted_trainer_is_explained_as_its_trained_estimator():
    trainer = OrtGradientOptimizer(RandomForestClassifier(3, random_state=0), random_state=0).fit(X, LABELS)
    assert explain(trainer).rows == explain(trainer.to_sklearn()).rows
    of_file = OrtGradientOptimizer(trainer.get_trained_onnx(), random_state=0).fit(X, LABELS)
    assert "objective of an ONNX file" in str(explain(of_file))


@pytest.mark.parametrize("case", HOPELESS)
def test_reason_if_nothing_is_trained(case):
    estimator, features, reason = HOPELESS[case]
    fitted = estimator.fit(features, LABELS)
    table = explain(fitted)
    assert not table.trainable and table.problem.startswith("The model has no weight to train")
    row = only(table.rows, operator=type(estimator).__name__)
    assert reason in row.reason and row.advice
    with pytest.raises(NoTrainableWeightError, match=reason) as caught:
        to_trainable(fitted)
    assert list(caught.value.facts) == table.rows and row.advice in str(caught.value)


def test_errors_of_estimators_have_the_same_facts():
    with pytest.raises(NoTrainableWeightError, match=r"votes of the nearest training samples.*zero gradient"):
        OrtGradientOptimizer(KNeighborsClassifier(3)).fit(X, LABELS)


def test_advice_names_only_weights_with_a_gradient():
    with pytest.raises(NoTrainableWeightError, match="no weight to train") as caught:
        to_trainable(KNeighborsClassifier(3).fit(X, LABELS))
    assert "weights_to_train" not in str(caught.value)


def test_errors_are_pickled_with_facts():
    with pytest.raises(NoTrainableWeightError) as caught:
        to_trainable(SelectKBest(k=2).fit(X, LABELS))
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.facts == caught.value.facts and str(again) == str(caught.value)


def test_reason_if_votes_cannot_be_converted():
    table = explain(KNeighborsClassifier(weights=lambda distances: 1 / (1 + distances)).fit(X, LABELS))
    assert "no model definition" in table.problem and "counts votes" in table.rows[0].reason


def test_selector_before_a_model():
    table = explain(make_pipeline(SelectKBest(k=2), LogisticRegression()), X, LABELS)
    row = only(table.rows, step="selectkbest")
    assert not row.trainable and "selects columns" in row.reason and row.advice == ""
    assert only(table.rows, attribute="coef_").trainable


def test_step_without_converter_stays_in_scikit_learn():
    table = explain(make_pipeline(StandardScaler(), Curves(), Ridge()), X, Y)
    for step in ("standardscaler", "curves"):
        assert "runs once, in scikit-learn" in only(table.rows, step=step).reason
    assert only(table.rows, attribute="coef_").step == "ridge"


def test_onnx_model():
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x, int64[N] row) => (float[N,3] y)
        <float[2] mean = {0.1, 0.7}, float[2,3] w = {1, 2, 3, 4, 5, 6}, float[4,3] embedding = {1, 2, 3}>
        { c = Sub (x, mean) z = MatMul (c, w) e = Gather (embedding, row) y = Add (z, e) }"""
    )
    model.graph.initializer[2].float_data.extend(range(9))
    table = explain(model)
    assert {row.weights[0]: row.trainable for row in table.rows} == {
        "mean": False,
        "w": True,
        "embedding": True,
    }
    row = only(table.rows, weights=("mean",))
    assert row.operator == "Sub" and row.advice == "weights_to_train='mean' trains it"
    assert row.reason == "not a factor of a product, a bias of one, or a table"
    assert (table.rows[0].step, table.rows[0].attribute) == ("Sub_0", "")
    assert row.shapes == ((2,),) and table.summary == "trained: 18 of 20 numbers, in 2 of 3 weights"


def test_reason_names_the_operator_without_gradient():
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[N,2] x) => (float[N,1] y)
        <float[2,1] w = {1, 2}, float[2,1] v = {3, 4}>
        { a = MatMul (x, w) r = Round (a) b = MatMul (x, v) y = Add (r, b) }"""
    )
    assert to_trainable(model).trained == ["I1_v"]
    row = only(explain(model).rows, weights=("w",))
    assert row.reason == "every path to the trained output passes Round, which has no gradient"


def test_to_dict_and_to_frame():
    table = explain(RandomForestClassifier(3, random_state=0), X, LABELS)
    columns = table.to_dict()
    assert list(columns) == ["step", "operator", "weights", "attribute", "trainable", "reason", "advice"]
    assert columns["attribute"][0] == "estimators_[*].tree_.value"
    pandas = pytest.importorskip("pandas")
    frame = table.to_frame()
    assert isinstance(frame, pandas.DataFrame) and frame.shape == (len(table.rows), 7)
    assert frame["trainable"].tolist() == columns["trainable"]


def test_to_frame_without_pandas(monkeypatch):
    table = explain(LinearRegression().fit(X, Y))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"Explanation.to_frame requires pandas"):
        table.to_frame()


def test_unfitted_estimator_requires_X_and_is_not_changed():
    with pytest.raises(ConversionError, match=r"Ridge is not fitted: fit it first, or pass X"):
        explain(Ridge())
    model = Ridge()
    assert explain(model, X, Y).trainable and not hasattr(model, "coef_")


def test_text_model_requires_X():
    words = np.array(["red apple", "green pear", "red cherry", "green apple"])
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(words, [0, 1, 0, 1])
    with pytest.raises(
        ConversionError, match=r"X is required.*types of the columns.*call explain\(model, X\)"
    ):
        explain(pipeline)
    assert only(explain(pipeline, words).rows, attribute="coef_").trainable


def test_str_is_a_table():
    lines = str(explain(make_pipeline(StandardScaler(), Ridge()), X, Y)).splitlines()
    assert lines[0].split() == ["step", "operator", "weights", "attribute", "trainable", "reason", "advice"]
    position = lines[0].index("attribute")
    assert [line[position:].split()[0] for line in lines[1:5]] == ["mean_", "scale_", "coef_", "intercept_"]


def test_unfitted_estimator_that_predicts_is_fitted():
    model = GaussianProcessRegressor(alpha=0.1)
    assert not is_fitted(model) and is_fitted(clone(model).fit(X, Y))
    assert is_fitted(Normalizer().fit(X)) and not is_fitted(Ridge())


def test_fitted_model_after_an_unfitted_transformer():
    model = Ridge().fit(X, Y)
    assert not is_fitted(make_pipeline(StandardScaler(), model))
    assert is_fitted(make_pipeline("passthrough", FunctionTransformer(), StandardScaler().fit(X), model))
    for scaler in (StandardScaler(), StandardScaler().fit(X)):  # the last step of each pipeline is fitted
        for nested in (
            make_pipeline(FunctionTransformer(), make_pipeline(scaler, model)),
            make_pipeline(make_pipeline(scaler, FunctionTransformer()), model),
        ):
            assert is_fitted(nested) == hasattr(scaler, "mean_")


def test_weight_read_in_a_body_only():
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x) => (float[N,2] y) <float[2,2] w = {1, 2, 3, 4}, float[2] v = {3, 4}>
        { z = MatMul (x, w)
          m = ReduceMax <keepdims = 0> (x)  c = Cast <to = 9> (m)
          y = If (c) <then_branch = t () => (float[N,2] p) { p = Mul (z, v) },
                      else_branch = e () => (float[N,2] q) { q = Identity (z) }> }""")
    assert {row.weights: row.operator for row in explain(model).rows} == {("w",): "MatMul", ("v",): "If"}
