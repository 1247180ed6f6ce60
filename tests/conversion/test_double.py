"""Graphs of float32 in float64."""

import numpy as np
import pytest
from onnx import checker, parser
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC

from ortlearn.conversion import sklearn_to_onnx, to_trainable
from ortlearn.conversion.double import is_double, to_double
from ortlearn.exceptions import ConversionError
from ortlearn.graphs import initializer_arrays

HEADER = '<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3, "com.microsoft": 1]>'
GRAPHS = {
    "constants": "{ c = Constant <value_floats = [0.5, 2.0]> () y = Mul (x, c) }",
    "a constant tensor": "{ c = Constant <value = float {0.25}> () y = Mul (x, c) }",
    "a shape filled": """{ h = Shape (x) c = ConstantOfShape <value = float[1] {3}> (h)
        y = Mul (x, c) }""",
    "casts": "{ i = Cast <to = 7> (x) f = Cast <to = 1> (i) y = Add (f, x) }",
    "comparisons": "{ c = Greater (x, w) y = Where (c, x, w) }",
    "float32 only": "{ a = ai.onnx.ml.Binarizer <threshold = 0.5> (x) b = Mul (a, w) y = Add (b, x) }",
    "unknown operators": "{ a = com.microsoft.BiasGelu (x, w) y = Mul (a, x) }",
    "products of columns": """{ p = ReduceProd (x, one) q = ReduceProd <keepdims = 0> (x, one)
        r = Unsqueeze (q, one) s = Mul (p, r) y = Mul (x, s) }""",
}


def graph(body):
    constants = "<float[2] w = {0.5, 1.5}, int64[1] one = {1}>"
    return parser.parse_model(f"{HEADER} g (float[N,2] x) => (float[N,2] y) {constants} {body}")


@pytest.mark.parametrize("name", list(GRAPHS))
def test_the_same_in_float64(name, run_onnx):
    model = graph(GRAPHS[name])
    wide = to_double(model)
    checker.check_model(wide)
    assert is_double(wide) and not is_double(model)
    x = np.random.RandomState(0).normal(size=(7, 2)) * 3
    (expected,) = run_onnx(model, x.astype(np.float32))
    (got,) = run_onnx(wide, x)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_computed_in_float64(run_onnx):
    x = np.array([[1.0, 1e-9], [2.0, 3e-9]])
    (got,) = run_onnx(to_double(graph("{ m = ReduceMax (x, one) d = Sub (m, x) y = Sub (m, d) }")), x)
    np.testing.assert_allclose(got, x, rtol=1e-6)  # float32 has 0 for the small ones


def test_exact_values():
    model = graph("{ y = Mul (x, w) }")
    for exact in ([0.5, 1.5 + 1e-9], [[0.5 + 1e-10], [1.5]], [-0.5, -1.5 - 1e-9], [2.0, 1 / (1.5 + 1e-9)]):
        wide = initializer_arrays(to_double(model, [np.array(exact)]))["w"]
        assert (wide != [0.5, 1.5]).any() and np.abs(wide - [0.5, 1.5]).max() < 1e-8
    assert initializer_arrays(to_double(model, [np.array([0.5, 1.6])]))["w"].tolist() == [0.5, 1.5]
    narrow = to_double(model, [np.array([0.5, 1.5], dtype=np.float32)])
    assert initializer_arrays(narrow)["w"].dtype == np.float64


def test_mixed_types_are_found():
    mixed = parser.parse_model(f"""{HEADER} g (double[N,2] x) => (double[N,2] y) <float[2] w = {{1, 2}}>
        {{ y = Mul (x, w) }}""")
    assert not is_double(mixed)
    cast = parser.parse_model(
        f"""{HEADER} g (float[N,2] x) => (double[N,2] y) {{ y = Cast <to = 11> (x) }}"""
    )
    assert is_double(cast)


def branches(operator):
    return parser.parse_model(f"""{HEADER} g (float[N] x, bool c) => (float[N] y) {{
        y = If (c) <then_branch = a () => (float[N] p) <float s = {{0.25}}>
                        {{ r = {operator} (x) p = Mul (r, s) }},
                    else_branch = b () => (float[N] q) {{ q = Abs (x) }}> }}""")


def test_branches(run_onnx):
    wide = to_double(branches("Neg"))
    checker.check_model(wide, full_check=True)
    x = np.array([1 / 3, -2.0])
    for condition, expected in ((True, -x / 4), (False, abs(x))):
        got = run_onnx(wide, x=x, c=np.array(condition))[0]
        assert got.tolist() == expected.tolist()


def test_branches_without_a_form_in_float64_are_refused():
    with pytest.raises(ConversionError, match="Binarizer in a branch or a loop"):
        to_double(branches("ai.onnx.ml.Binarizer"))


def test_vectors_in_float32_are_no_double(run_onnx):
    model = parser.parse_model(f"""{HEADER} g (double[N,2] x) => (double[N,2] y) <float[2] w = {{0.5, 1.5}}>
        {{ a = Cast <to = 1> (x) b = Mul (a, w) y = Cast <to = 11> (b) }}""")
    assert not is_double(model)


@pytest.mark.parametrize("kind", ["binary", "multi-class"])
@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(),
        RidgeClassifier(),
        make_pipeline(PolynomialFeatures(3), StandardScaler(), LogisticRegression()),
        make_pipeline(PolynomialFeatures(2, interaction_only=True), MinMaxScaler(), RidgeClassifier()),
    ],
    ids=lambda model: type(model[0] if hasattr(model, "steps") else model).__name__,
)
def test_models_that_skl2onnx_writes_in_float32_only(model, kind, wine, run_onnx):
    X = StandardScaler().fit_transform(wine.X_train[:, :5].astype(np.float64))
    fitted = model.fit(X, wine.y_train if kind == "multi-class" else wine.y_train == 1)
    trainable = to_trainable(fitted, dtype=np.float64)
    assert trainable.head.dtype == np.float64
    label, scores = run_onnx(trainable.model, X)
    if hasattr(fitted, "predict_proba"):
        expected = fitted.predict_proba(X)
    else:
        expected = fitted.decision_function(X).reshape(len(X), -1)
    np.testing.assert_allclose(scores[:, -expected.shape[1] :], expected, rtol=1e-9, atol=1e-11)
    assert label.tolist() == fitted.predict(X).tolist()


def test_encoders_before_weights_in_float64(run_onnx):
    X = np.random.RandomState(0).randint(0, 3, (40, 2)).astype(float)
    fitted = make_pipeline(OneHotEncoder(), Ridge()).fit(X, X[:, 0] ** 2)
    model = sklearn_to_onnx(fitted, 2, np.float64)
    (got,) = run_onnx(model, X)
    np.testing.assert_allclose(got.ravel(), fitted.predict(X), rtol=1e-12, atol=1e-13)


def test_texts_before_weights_in_float64(run_onnx):
    texts = ["one two", "two three", "three", "one one three"]
    fitted = make_pipeline(TfidfVectorizer(), Ridge()).fit(texts, [1, 2, 3, 4])
    trainable = to_trainable(fitted, X=texts, dtype=np.float64)
    assert {array.dtype.name for array in trainable.initial_weights().values()} == {"float64"}
    (got,) = run_onnx(trainable.model, np.array(texts, dtype=object).reshape(-1, 1))
    np.testing.assert_allclose(got.ravel(), fitted.predict(texts), rtol=1e-6)
