"""Training packages on which every runner is tested."""

import json

import numpy as np
import onnx
from onnx import numpy_helper, parser
from onnx.external_data_helper import set_external_data
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.compress import quantize
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD
from ortlearn.saving import export_training
from ortlearn.saving.tensors import pack_tensors, tensor_offsets, unpack_tensors

rng = np.random.default_rng(0)
X = (rng.normal(size=(230, 5)) * [1, 10, 0.1, 5, 1] + 3).astype(np.float32)
WIDE = rng.normal(size=(200, 100)).astype(np.float32)
y = np.sin(X[:, 0]) + X[:, 3] / 5
TEXTS = np.array(["low", "middle", "high"])[np.digitize(y, [0.3, 1.0])]
COSINE = LearningRateAdam(learning_rate="cosine")


def quantised():
    """Return the int8 file of a small network."""
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[N,5] x) => (float[N,1] y)
        { a = Gemm (x, w1, b1) h = Relu (a) y = Gemm (h, w2, b2) }"""
    )
    own = np.random.default_rng(1)
    for name, shape in {"w1": (5, 16), "b1": (16,), "w2": (16, 1), "b2": (1,)}.items():
        array = own.normal(0, 0.4, size=shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return quantize(model, X / 10).onnx


#: Model, learning rate, samples, labels and batch size.
PACKAGES = {
    "logistic": (
        make_pipeline(StandardScaler(), LogisticRegression()),
        LearningRateSGD(eta0=0.1),
        X,
        TEXTS,
        32,
    ),
    "network": (MLPRegressor(hidden_layer_sizes=(50, 10), max_iter=2), COSINE, WIDE, WIDE[:, 0], 64),
    "boosting": (GradientBoostingRegressor(n_estimators=5, max_depth=3), "Adam", X, y, 50),
    "weights": (
        make_pipeline(StandardScaler(), LogisticRegression(class_weight={"high": 2, "low": 1, "middle": 3})),
        "Adam",
        X,
        TEXTS,
        32,
    ),
    "classes": (LogisticRegression(), "Adam", X / 10, np.digitize(y, [0.3, 1.0]), 32),
    "averages": (
        MLPRegressor(hidden_layer_sizes=(8,), max_iter=2),
        LearningRateSGD(eta0=0.05),
        X / 10,
        y,
        64,
    ),
    "later_averages": (
        MLPRegressor(hidden_layer_sizes=(8,), max_iter=2),
        LearningRateSGD(eta0=0.05),
        X / 10,
        y,
        64,
    ),
    "quantised": (quantised(), "Adam", X / 10, y.astype(np.float32), 50),
}
#: Further parameters of the estimator, and of the export.
OPTIONS = {
    "averages": {"average": True},
    "later_averages": {"average": 1000},
    "quantised": {"straight_through": True, "warm_start": True},
}
EXPORTED = {"weights": {"weighted": True}}


def trained_model(name):
    model, rate, features, labels, size = PACKAGES[name]
    trainer = OrtGradientOptimizer(model, learning_rate=rate, batch_size=size, max_iter=4, random_state=0)
    trainer.set_params(**OPTIONS.get(name, {}))
    return trainer.fit(features, labels)


def write_package(name, folder):
    _, _, features, labels, _ = PACKAGES[name]
    trained = trained_model(name)
    export_training(trained, folder, example=(features, labels), **EXPORTED.get(name, {}))
    return trained


def write_format_1(folder):
    """Rewrite a package as ortlearn 0.2.0 did: no checksums, and weights and states in two files."""
    manifest = json.loads((folder / "training.json").read_text())
    values, _ = unpack_tensors((folder / "values.safetensors").read_bytes())
    names = [item["name"] for item in manifest["carried"] if item["state"] is None]
    weights = pack_tensors({name: values.pop(name) for name in names})
    contents = {"weights.safetensors": weights, "state.safetensors": pack_tensors(values)}
    model = onnx.load(folder / "predict.onnx", load_external_data=False)
    places = {n: (file, *p) for file, content in contents.items() for n, p in tensor_offsets(content).items()}
    for tensor in model.graph.initializer:
        if tensor.name in places:
            tensor.raw_data = b"-"  # which onnx asks for
            set_external_data(tensor, *places[tensor.name])
            tensor.ClearField("raw_data")
    for key in ("ortlearn_crc32", "files"):
        del manifest[key]
    for item in [*manifest["carried"], *manifest["features"]]:
        item.pop("minimum", None)
        item.pop("missing", None)
    manifest |= {"format": 1, "tensors": list(contents)}
    contents |= {"training.json": json.dumps(manifest).encode(), "predict.onnx": model.SerializeToString()}
    (folder / "values.safetensors").unlink()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return folder
