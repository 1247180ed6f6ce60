"""Powers and quantiles of columns: values as scikit-learn's, gradients that are finite and right."""

import numpy as np
import pytest
from onnx import TensorProto
from sklearn.preprocessing import PowerTransformer, QuantileTransformer

from ortlearn.conversion import sklearn_to_onnx, to_trainable
from ortlearn.differentiation import gradient_of_loss
from ortlearn.exceptions import ConversionError
from ortlearn.graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    graph_names,
    initializer_arrays,
    make_inputs_of,
    make_value_info,
)

RNG = np.random.default_rng(0)
#: Columns of both signs, with ties at the ends and in the middle.
X = RNG.normal(size=(80, 3)).astype(np.float32).astype(np.float64) * [1.0, 5.0, 0.125] + [0.0, 2.0, 0.0]
X[:20, 2], X[20:30, 0], X[30:40, 1] = X[0, 2], X[:, 0].min(), X[:, 1].max()
#: Rows between, at and beyond those of the fit.
ROWS = np.vstack([X[::4], RNG.normal(size=(20, 3)).astype(np.float32) * 8.0])

MODELS = {
    "yeo-johnson": PowerTransformer(),
    "not standardized": PowerTransformer(standardize=False),
    "box-cox": PowerTransformer("box-cox"),
    **{f"{n} quantiles": QuantileTransformer(n_quantiles=n) for n in (1, 2, 7, 64, 80)},
}


def positive(name, data):
    return np.abs(data) + 0.125 if name == "box-cox" else data


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values(run_onnx, name, dtype):
    model = MODELS[name].fit(positive(name, X))
    rows = positive(name, ROWS)
    (found,) = run_onnx(sklearn_to_onnx(model, 3, dtype), rows.astype(dtype))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, model.transform(rows), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("powers", [[0.0, 2.0, 1.0], [1e-6, 2 - 1e-6, 0.999], [-1.5, 3.5, 0.5]])
def test_powers_with_logarithms(run_onnx, powers):
    model = PowerTransformer(standardize=False).fit(X)
    model.lambdas_ = np.array(powers)
    (found,) = run_onnx(sklearn_to_onnx(model, 3), X.astype(np.float32))
    np.testing.assert_allclose(found, model.transform(X), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["yeo-johnson", "7 quantiles"])
def test_what_is_missing_stays_missing(run_onnx, name):
    rows = ROWS.astype(np.float32)
    rows[3, 1] = np.nan
    (found,) = run_onnx(sklearn_to_onnx(MODELS[name].fit(X), 3), rows)
    assert np.argwhere(np.isnan(found)).tolist() == [[3, 1]]


def test_quantiles_of_a_normal_distribution():
    model = QuantileTransformer(n_quantiles=10, output_distribution="normal").fit(X)
    with pytest.raises(ConversionError, match="no form in ONNX"):
        sklearn_to_onnx(model, 3)


def with_loss(model, weights, dtype):
    """Return the graph of a sum of squares of the output, the weights as inputs."""
    onx = make_inputs_of(model, weights)
    op = GraphBuilder(existing_names=graph_names(onx.graph))
    output = onx.graph.output[0].name
    op.ReduceSum(op.Mul(output, output), keepdims=0, outputs=["loss"])
    elem_type = {np.float32: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE}[dtype]
    return append_nodes(onx, op, outputs=[make_value_info("loss", TensorType(elem_type, ()))])


@pytest.mark.needs_training
@pytest.mark.parametrize("backend", ["rules", "ort"])
@pytest.mark.parametrize("name", ["yeo-johnson", "box-cox", "7 quantiles"])
def test_gradients(run_onnx, name, backend):
    fitted = MODELS[name].fit(positive(name, RNG.normal(size=(60, 3))))
    rows = positive(name, RNG.normal(size=(20, 3)))  # none is at a quantile, where the slope jumps
    single, double = (to_trainable(fitted, dtype=dtype) for dtype in (np.float32, np.float64))
    assert single.trained == double.trained
    weights = list(single.trained)
    feeds = {"X": rows.astype(np.float32), **initializer_arrays(single.model, weights)}
    gradient = gradient_of_loss(with_loss(single.model, weights, np.float32), "loss", weights, backend)
    _, *found = run_onnx(gradient, **feeds)
    loss = with_loss(double.model, weights, np.float64)
    exact = {"X": rows, **initializer_arrays(double.model, weights)}
    for weight, values in zip(weights, found, strict=True):
        assert np.isfinite(values).all()
        direction = np.random.default_rng(1).normal(size=values.shape)
        up, down = (run_onnx(loss, **{**exact, weight: exact[weight] + step * direction})[0]
                    for step in (1e-7, -1e-7))  # fmt: skip
        np.testing.assert_allclose((values * direction).sum(), (up - down) / 2e-7, rtol=1e-4)
