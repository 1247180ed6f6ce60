"""ONNX models of one SVMClassifier or SVMRegressor."""

import numpy as np
from onnx import TensorProto, helper

N_FEATURES = 4
KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]
PARAMS = [0.3, 0.5, 3.0]
X = np.random.default_rng(0).normal(size=(60, N_FEATURES)).astype(np.float32)


def one_node(op_type, outputs, elem_type=TensorProto.FLOAT, **attributes):
    """Return a model of one operator of ai.onnx.ml."""
    attributes = {name: value for name, value in attributes.items() if value != []}
    node = helper.make_node(op_type, ["x"], list(outputs), domain="ai.onnx.ml", **attributes)
    inputs = [helper.make_tensor_value_info("x", elem_type, ["N", N_FEATURES])]
    infos = [helper.make_tensor_value_info(name, *known) for name, known in outputs.items() if name]
    opsets = [helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("", 18)]
    return helper.make_model(
        helper.make_graph([node], "g", inputs, infos), opset_imports=opsets, ir_version=8
    )


def classifier(counts, kernel="RBF", calibrated=False, link="NONE", labels=None, seed=0, **changes):
    """Return an SVMClassifier with random attributes; ``counts`` are the support vectors of each class."""
    rng = np.random.default_rng(seed)
    k, total = len(counts), sum(counts)
    pairs = k * (k - 1) // 2
    labels = labels or list(range(10, 10 + k))
    text = isinstance(labels[0], str)
    attributes = {
        "support_vectors": rng.normal(size=total * N_FEATURES).tolist(),
        "coefficients": rng.normal(size=(k - 1) * total).tolist(),
        "rho": rng.normal(size=pairs).tolist(),
        "vectors_per_class": list(counts),
        "kernel_type": kernel,
        "kernel_params": PARAMS,
        "post_transform": link,
        "classlabels_strings" if text else "classlabels_ints": labels,
    }
    if calibrated:
        attributes["prob_a"] = (-0.2 - rng.random(pairs)).tolist()
        attributes["prob_b"] = rng.normal(size=pairs).tolist()
    columns = k if calibrated or k == 2 else pairs
    label_type = TensorProto.STRING if text else TensorProto.INT64
    outputs = {"label": (label_type, ["N"]), "scores": (TensorProto.FLOAT, ["N", columns])}
    return one_node("SVMClassifier", outputs, **{**attributes, **changes})


def regressor(kernel="RBF", total=7, elem_type=TensorProto.FLOAT, seed=0, **changes):
    """Return an SVMRegressor with random attributes."""
    rng = np.random.default_rng(seed)
    attributes = {
        "support_vectors": rng.normal(size=total * N_FEATURES).tolist(),
        "coefficients": rng.normal(size=total or N_FEATURES).tolist(),
        "rho": [0.4],
        "n_supports": total,
        "kernel_type": kernel,
        "kernel_params": PARAMS,
    }
    outputs = {"y": (TensorProto.FLOAT, ["N", 1])}
    return one_node("SVMRegressor", outputs, elem_type, **{**attributes, **changes})
