"""ONNX models whose inputs are passed by name."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from onnx import parser

TWO_INPUTS = """<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]>
    g (float[N,1] size, string[N,1] city, int64[N] floor) => (float[N,1] price)
    <float[3,1] coef = {0.1, 0.2, 0.3}, int64[2] column = {-1, 1}>
    { c = ai.onnx.ml.LabelEncoder <keys_strings = ["Oslo", "Lima"], values_floats = [1.0, -1.0]> (city)
      i = Cast <to = 1> (floor) f = Reshape (i, column) a = Concat <axis = 1> (size, c, f)
      price = MatMul (a, coef) }"""


@pytest.fixture
def houses():
    random = np.random.RandomState(0)
    X = {
        "city": random.choice(["Oslo", "Lima"], 80),
        "size": random.uniform(0, 2, 80),
        "floor": random.randint(0, 3, 80),
    }
    return X, 2 * X["size"] + np.where(X["city"] == "Oslo", 1, -1) - X["floor"]


def test_several_inputs(optimizer, houses):
    X, y = houses
    model = optimizer(parser.parse_model(TWO_INPUTS), learning_rate=0.1, max_iter=40, random_state=0)
    model.fit(X, y)
    np.testing.assert_allclose(model.trained_coef_["coef"].ravel(), [2, 1, -1], atol=0.15)
    expected = model.predict(X)
    for form in (
        pd.DataFrame(X),
        pl.DataFrame(X),
        {name: np.reshape(values, (-1, 1)) for name, values in X.items()},
    ):
        np.testing.assert_array_equal(model.predict(form), expected)
    np.testing.assert_array_equal(model.fit(pd.DataFrame(X), y).predict(X), expected)
    assert model.score(X, y) > 0.99 and model.losses(X, y).shape == (80,)
    assert [value.name for value in model.onnx_.graph.input] == ["size", "city", "floor"]
    model.partial_fit(X, y)


def test_invalid_data(optimizer, houses):
    X, y = houses
    model = optimizer(parser.parse_model(TWO_INPUTS), max_iter=1, random_state=0)
    with pytest.raises(ValueError, match=r"Columns are missing: \['floor'\]"):
        model.fit({"city": X["city"], "size": X["size"]}, y)
    with pytest.raises(ValueError, match=r"takes the columns \['size', 'city', 'floor'\] by name"):
        model.fit(np.ones((80, 3)), y)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[80, 79\]"):
        model.fit(X, y[1:])
    with pytest.raises(ValueError, match="differ in length"):
        model.fit({**X, "size": X["size"][1:]}, y)
    with pytest.raises(ValueError, match="Column 'size' of X must hold numbers"):
        model.fit({**X, "size": X["city"]}, y)


OWN_LOSS = """<ir_version: 8, opset_import: ["": 18]>
    g (float[N,1] size, int64[N,1] floor, float[N,1] label) => (float loss, float[N,1] price)
    <float[2,1] coef = {0.1, 0.2}>
    { f = Cast <to = 1> (floor) a = Concat <axis = 1> (size, f) price = MatMul (a, coef)
      d = Sub (price, label) q = Mul (d, d) loss = ReduceMean <keepdims = 0> (q) }"""


@pytest.mark.parametrize("hoist", [True, False])
def test_model_with_loss(hoist, optimizer, houses):
    X, _ = houses
    y = 2 * X["size"] - X["floor"]
    model = optimizer(
        parser.parse_model(OWN_LOSS), learning_rate=0.05, max_iter=40, random_state=0, precompute=hoist
    )
    model.fit({"size": X["size"], "floor": X["floor"]}, y)
    np.testing.assert_allclose(model.trained_coef_["coef"].ravel(), [2, -1], atol=0.1)
    assert model.predict({"size": X["size"][:3], "floor": X["floor"][:3]}).shape == (3,)


def test_one_input(optimizer, numbers):
    X, y = numbers
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,3] rows) => (float[N,1] score) <float[3,1] coef = {0.1, 0.1, 0.1}>
        { score = MatMul (rows, coef) }""")
    trained = optimizer(model, max_iter=3, random_state=0).fit({"rows": X}, y)
    np.testing.assert_array_equal(trained.predict(X), trained.predict({"rows": X}))
