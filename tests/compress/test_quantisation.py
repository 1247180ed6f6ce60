"""``quantize``: grades, the gate, what stays in float, bad input."""

from functools import partial

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper, parser
from sklearn.datasets import load_digits, make_friedman1
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.compress import distill, prune, quantize
from ortlearn.compress.files import File, as_file
from ortlearn.exceptions import ConversionError, StartKeptWarning
from ortlearn.graphs import initializer_arrays

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, y = load_digits(return_X_y=True)
HELD = X[1200:], y[1200:]
FEW = {"max_iter": 3, "batch_size": 100, "eta0": 1e-3, "random_state": 0}


@pytest.fixture(scope="module")
def network():
    model = make_pipeline(
        StandardScaler(), MLPClassifier(hidden_layer_sizes=(32, 16), max_iter=25, random_state=0)
    )
    return model.fit(X[:1200], y[:1200])


def kinds(model):
    return {tensor.name: tensor.data_type for tensor in model.graph.initializer}


def test_classifier(network):
    found = quantize(network, X[:1200], y[:1200], held_out=HELD)
    assert found.facts["integer kernels"] == {"QGemm": 3} and abs(found.loss) < 0.01
    with pytest.raises(ConversionError, match="It is quantised already"):
        quantize(found.onnx, X[:1200], y[:1200], held_out=HELD)
    assert [value.name for value in found.onnx.graph.output] == ["label", "probabilities"]
    assert found.scores["accuracy"]["old"]["value"] == pytest.approx(network.score(*HELD), abs=2e-3)
    assert found.n_bytes["new"] < 0.6 * found.n_bytes["old"] and set(found.seconds) == {1, 1000}
    assert "before" in str(found) and "coefs_1: int8 weights, int8 activations" in str(found)
    predictions = File(found.onnx).predictions(*HELD).values
    assert (predictions == HELD[1]).mean() == pytest.approx(found.scores["accuracy"]["new"]["value"])


@pytest.mark.parametrize("to, largest", [("int4", 7), ("int3", 3)])
def test_few_levels(network, to, largest):
    """Two levels are stored in a byte; those of 3 bits are stored as int4."""
    file = quantize(network, X[:200], y[:200], to=to).onnx
    (levels,) = (tensor for tensor in file.graph.initializer if tensor.name == "coefs_0_quantized")
    assert levels.data_type == TensorProto.INT4 and len(levels.raw_data) == 64 * 32 / 2
    assert np.abs(numpy_helper.to_array(levels).astype(int)).max() == largest


@pytest.mark.slow
@pytest.mark.parametrize("labels", [True, False])
def test_training_improves_few_levels(network, labels):
    """With labels, and with the answers of the float model alone."""
    given = y[:1200] if labels else None
    options = {"to": "int4", "activations": True, "held_out": (X[1200:], HELD[1] if labels else None)}
    before = quantize(network, X[:1200], given, **options)
    after = quantize(network, X[:1200], given, grade="training", **options, **FEW)
    assert kinds(after.onnx)["coefs_0_quantized"] == TensorProto.INT4
    assert after.scores["log_loss"]["new"]["value"] < before.scores["log_loss"]["new"]["value"]
    old, new = (initializer_arrays(found.onnx) for found in (before, after))
    assert (old["coefs_0_scale"] != new["coefs_0_scale"]).all() and (new["coefs_0_scale"] > 0).all()


@pytest.mark.slow
def test_scales_alone(network):
    before = quantize(network, X[:1200], y[:1200], held_out=HELD)
    after = quantize(network, X[:1200], y[:1200], held_out=HELD, grade="scales", **FEW)
    old, new = (initializer_arrays(found.onnx) for found in (before, after))
    assert (old["coefs_0_scale"] != new["coefs_0_scale"]).any()
    trained = new["coefs_0_quantized"] * new["coefs_0_scale"]
    weights = network[-1].coefs_[0]
    inside = np.abs(weights / new["coefs_0_scale"]) < 63
    np.testing.assert_allclose(
        np.where(inside, trained - weights, 0), 0, atol=0.51 * new["coefs_0_scale"].max()
    )


@pytest.mark.slow
def test_regression():
    data, target = make_friedman1(300, random_state=0)
    model = MLPRegressor(hidden_layer_sizes=(32,), max_iter=100, random_state=0, learning_rate_init=0.01).fit(
        data, target
    )
    found = quantize(model, data)
    assert found.metric == "r2" and found.loss < 0.02 and found.facts["integer kernels"]
    options = {"to": "int4", "activations": True, **FEW}
    losses = [quantize(model, data, grade=g, **options).loss for g in ("calibration", "training")]
    assert losses[1] < losses[0]


@pytest.mark.slow
def test_a_training_that_does_not_help_is_reported(network):
    with pytest.warns(StartKeptWarning, match="calibrated only: the loss of 20 samples is .*Try eta0=1 or"):
        found = quantize(network, X[:200], y[:200], grade="training", held_out=HELD, **FEW | {"eta0": 3.0})
    calibrated = quantize(network, X[:200], y[:200], held_out=HELD)
    assert found.facts["grade"] == "calibration" and found.onnx == calibrated.onnx
    assert "after the training of grade='training'" in str(found)


@pytest.mark.slow
def test_the_gate_keeps_the_most_sensitive_layers_in_float():
    """A layer with one huge weight per channel has hardly any levels left for the others."""
    rng = np.random.default_rng(0)
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[N,8] x) => (float[N,4] y)
        { a = Gemm (x, w1, b1) h = Tanh (a) y = Gemm (h, w2, b2) }"""
    model = parser.parse_model(text)
    arrays = {
        "w1": rng.normal(size=(8, 16)),
        "b1": np.zeros(16),
        "w2": rng.normal(size=(16, 4)),
        "b2": np.zeros(4),
    }
    arrays["w1"][0] = 400.0  # of a feature that is zero
    model.graph.initializer.extend(
        numpy_helper.from_array(v.astype(np.float32), k) for k, v in arrays.items()
    )
    data = rng.normal(size=(300, 8)).astype(np.float32)
    data[:, 0] = 0
    whole = quantize(model, data)
    assert whole.loss > 0.1
    found = quantize(model, data, max_loss=0.01)
    assert found.loss <= 0.01 and "stays in float" in found.layers["w1"] and "int8" in found.layers["w2"]
    assert (
        kinds(found.onnx)["w1"] == TensorProto.FLOAT and kinds(found.onnx)["w2_quantized"] == TensorProto.INT8
    )
    same = quantize(model, data, keep_float="w1")
    assert "keep_float" in same.layers["w1"] and same.onnx.graph.node == found.onnx.graph.node
    nothing = quantize(model, data, max_loss=0.0, to="int4", calibration="mse")
    assert all("stays in float" in text for text in nothing.layers.values()) and nothing.loss == 0


def test_other_operators_stay_in_float_by_name():
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[N,4] x) => (float[N,2] y)
        { z = MatMul (x, w) n = LayerNormalization (z, s, b) r = Mul (n, c) y = Gemm <alpha = 0.5> (r, v) }"""
    model = parser.parse_model(text)
    rng = np.random.default_rng(0)
    for name, shape in {"w": (4, 3), "s": (3,), "b": (3,), "c": (3,), "v": (3, 2)}.items():
        model.graph.initializer.append(
            numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name)
        )
    found = quantize(model, rng.normal(size=(50, 4)).astype(np.float32))
    assert found.layers["w"].startswith("int8") and "LayerNormalization" in found.layers["n"]
    assert "alpha" in found.layers["y"]


@pytest.mark.slow
def test_dynamic_shapes():
    """Only the ranks of inputs and outputs are known."""
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[N,C,H,W] x) => (float[N,K] y)
        { a = Conv <pads = [1,1,1,1]> (x, w1, b1) h = Relu (a) p = GlobalAveragePool (h) f = Flatten (p)
          y = MatMul (f, w2) }"""
    model, rng = parser.parse_model(text), np.random.default_rng(0)
    for name, shape in {"w1": (4, 1, 3, 3), "b1": (4,), "w2": (4, 3)}.items():
        values = rng.normal(size=shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    images = rng.normal(size=(60, 1, 6, 6)).astype(np.float32)
    found = quantize(model, images)
    assert found.scores["r2"]["new"]["value"] > 0.99 and "QLinearConv" in found.facts["integer kernels"]
    assert File(found.onnx).matrix(images[:, :, :5, :4]).shape == (60, 3)
    assert set(quantize(model, images, grade="scales", **FEW).layers) == {"w1", "w2"}
    assert prune(model, images, rng.integers(0, 3, 60), sparsity=0.5, max_iter=1, steps=1).layers == {
        "hidden units": "4 -> 2"
    }


def test_no_layer():
    model = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X[:200], y[:200])
    with pytest.raises(ConversionError, match="no linear layer or convolution.*Its operators are"):
        quantize(model, X[:200], y[:200])


@pytest.mark.parametrize(
    "kind, message, call",
    [
        ("float16", "takes or returns float16", quantize),
        ("double", "its weight is not float32", quantize),
        ("double", "computes in float64", partial(prune, sparsity=0.5)),
        ("double", "computes in float64", lambda file, X, y: distill(file, file, X, y)),
    ],
)
def test_files_of_other_types(kind, message, call):
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g ({kind}[N,2] x) => ({kind}[N,1] y)
        <{kind}[2,3] w = {{1, 2, 3, 4, 5, 6}}, {kind}[3,1] v = {{1, 2, 3}}>
        {{ a = MatMul (x, w) h = Tanh (a) y = MatMul (h, v) }}"""
    )
    samples = np.ones((50, 2), np.float16 if kind == "float16" else np.float64)
    with pytest.raises(ConversionError, match=message):
        call(model, samples, np.zeros(50))


def test_bad_input(network):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        quantize(MLPClassifier(), X, y)
    with pytest.raises(ValueError, match="X has no samples"):
        quantize(network, X[:0], y[:0])
    with pytest.raises(ValueError, match="to='int2' must be one of"):
        quantize(network, X, y, to="int2")
    with pytest.raises(ValueError, match="grade='qat' must be one of"):
        quantize(network, X, y, grade="qat")
    with pytest.raises(ValueError, match="max_loss=-1 must be 0 or more"):
        quantize(network, X, y, max_loss=-1)
    with pytest.raises(ValueError, match="keep_float='conv' matches none of the layers"):
        quantize(network, X, y, keep_float="conv")
    with pytest.raises(ValueError, match="held_out=2 must be a share"):
        quantize(network, X, y, held_out=2)
    for labels in (y, y + 5):
        with pytest.raises(ValueError, match=r"of the model: \[10, 11, .*\]; its classes are \[0, 1,"):
            quantize(network, X, y + 5, grade="training", held_out=(X, labels))


@pytest.mark.parametrize("value, problem", [(np.nan, "contains NaN"), (np.inf, "contains infinity")])
@pytest.mark.parametrize("call", [quantize, partial(prune, sparsity=0.5), partial(distill, student="mlp:2")])
def test_values_that_are_not_finite(network, call, value, problem):
    """In one sample or label of either part, for estimators and for files, before anything is trained."""
    file = as_file(network, X)[0]
    wrong_X, wrong_y = X[:200].copy(), y[:200].astype(float)
    wrong_X[7, 3] = wrong_y[7] = value
    for model in (network, file):
        for part in (wrong_X, y[:200]), (X[:200], wrong_y):
            with pytest.raises(ValueError, match=problem):
                call(model, X=part[0], y=part[1], held_out=HELD)
            with pytest.raises(ValueError, match=problem):
                call(model, X=X[:200], y=y[:200], held_out=part)


def test_missing_values_that_the_model_fills():
    model = make_pipeline(SimpleImputer(), MLPClassifier((8,), max_iter=2, random_state=0)).fit(X, y)
    some = X[:200].copy()
    some[7, 3] = np.nan
    assert set(quantize(model, some, y[:200]).layers.values()) == {"int8 weights, int8 activations"}


def test_constant_samples(network):
    """Samples that are all equal give a scale, and the file runs."""
    found = quantize(network, np.tile(X[:1], (20, 1)), y[:20], held_out=HELD)
    assert np.isfinite(File(found.onnx).matrix(X[:5])).all()
