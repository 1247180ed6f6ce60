"""For large offsets, preprocessing is computed in float64, or a warning is given."""

import warnings

import numpy as np
import pandas
import pytest
from onnx import TensorProto, parser
from scipy.sparse import csr_matrix
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import FallbackWarning, PrecisionWarning
from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session

rng = np.random.default_rng(0)
Z = rng.normal(size=(200, 3))
X = 1.6e9 + 50 * Z
Y = Z @ [1.0, 2.0, 3.0]
TRAIN = {"max_iter": 50, "random_state": 0}
STILL = {"max_iter": 1, "learning_rate": 1e-30}
DOUBLE = "requires double .* for input 'X'"


def scaled(last):
    return make_pipeline(StandardScaler(), last)


@pytest.mark.parametrize("fitted", [False, True])
def test_scaler_is_computed_in_float64(optimizer, fitted):
    model = scaled(Ridge()).fit(X, Y) if fitted else scaled(Ridge())
    with pytest.warns(PrecisionWarning, match=DOUBLE):
        trained = optimizer(model, **TRAIN).fit(X, Y)
    assert trained.score(X, Y) > 0.999
    assert {array.dtype for array in trained.trained_coef_.values()} == {np.dtype(np.float32)}
    np.testing.assert_allclose(trained.to_sklearn().predict(X), trained.predict(X), rtol=1e-4, atol=1e-4)
    trained.partial_fit(X, Y)
    session = make_session(trained.get_trained_onnx(), Device("cpu"))
    assert session.get_inputs()[0].type == "tensor(double)"
    np.testing.assert_allclose(session.run(None, {"X": X})[0].ravel(), trained.predict(X), rtol=1e-5)


def test_values_exact_in_float32_stay_in_float32(optimizer):
    for values in (Z, Z.astype(np.float32), np.round(Z * 1000).astype(int), csr_matrix(Z)):
        model = make_pipeline(StandardScaler(with_mean=False), Ridge())
        trained = optimizer(model, **TRAIN).fit(values, Y)
        assert trained.onnx_.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT


def test_data_frame(optimizer):
    frame = pandas.DataFrame({"time": X[:, 0], "size": Z[:, 1], "city": rng.choice(["Oslo", "Lima"], 200)})
    columns = make_column_transformer((StandardScaler(), ["time", "size"]), (OneHotEncoder(), ["city"]))
    with pytest.warns(PrecisionWarning, match="rounds column 'time' of X .* for inputs 'time', 'size'"):
        trained = optimizer(make_pipeline(columns, Ridge()), **TRAIN).fit(frame, Z[:, 0])
    assert trained.score(frame, Z[:, 0]) > 0.999


def test_after_steps_in_scikit_learn(optimizer):
    bins = make_pipeline(KBinsDiscretizer(5, encode="ordinal", strategy="uniform"), StandardScaler(), Ridge())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        warnings.simplefilter("ignore", PrecisionWarning)
        trained = optimizer(bins, **TRAIN).fit(X, Y)
    assert trained.score(X, Y) > 0.85


def test_warning_without_preprocessing(optimizer):
    with pytest.warns(PrecisionWarning, match="columns 0, 1, 2 of X.*scaler.*or set dtype='float64'"):
        optimizer(LinearRegression().fit(Z, Y), dtype="float32", max_iter=1, learning_rate=1e-30).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer(scaled(Ridge()), dtype="float64", **TRAIN).fit(X, Y)


def test_trained_preprocessing_is_computed_in_float32(optimizer):
    with pytest.warns(PrecisionWarning, match="put a scaler before the model"):
        trained = optimizer(scaled(Ridge()), weights_to_train="*", dtype="float32", **STILL).fit(X, Y)
    assert {array.dtype for array in trained.trained_coef_.values()} == {np.dtype(np.float32)}


def test_onnx_model(optimizer):
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[N,3] x) => (float[N,1] y) <float[3,1] w = {1, 1, 1}> { y = MatMul (x, w) }""")
    with pytest.warns(PrecisionWarning, match="columns 0, 1, 2 of X"):
        optimizer(model, max_iter=1, learning_rate=1e-30).fit(X, Y)


def test_labels(optimizer):
    with pytest.warns(PrecisionWarning, match="float32 rounds y"):
        optimizer(Ridge(), dtype="float32", **STILL).fit(Z, 1.6e9 + 50 * Y)


def test_classes_are_not_rounded():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OrtGradientOptimizer(LogisticRegression(), **TRAIN).fit(Z, 1_600_000_001 + (Y > 0))
