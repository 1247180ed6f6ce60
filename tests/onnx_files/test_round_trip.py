"""Trained files differ from their sources in values only, for all opsets, types and subgraphs."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.graphs import opset_versions
from ortlearn.graphs.files import save_apart
from ortlearn.onnx_files.loading import load_onnx
from ortlearn.onnx_files.weight_locations import weight_locations, with_values
from ortlearn.runtime.readable_versions import newest_opset

X = np.random.RandomState(0).normal(size=(20, 3)).astype(np.float32)
y = X.sum(axis=1, keepdims=True)
BODY = """g (float[N,3] x) => (float[N,1] y, float[N,4] hidden)
    <float[3,4] w = {WEIGHTS}, float[4] unused = {1, 2, 3, 4}>
    { b = Constant <value = float[4] {0.1, 0.2, 0.3, 0.4}> ()
      z = MatMul (x, w) a = Add (z, b) hidden = Tanh (a)
      v = Constant <value = float[4,1] {1, -1, 0.5, 2}> () y = MatMul (hidden, v) }""".replace(
    "WEIGHTS", ", ".join(["0.3", "-0.2"] * 6)
)


def described(opset, ir_version=8):
    """Return a model whose descriptive fields are all set."""
    model = parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["": {opset}]> {BODY}')
    model.producer_name, model.producer_version, model.domain = "elsewhere", "1.2", "org.example"
    model.model_version, model.doc_string, model.graph.doc_string = 7, "a model", "a graph"
    helper.set_model_props(model, {"author": "somebody"})
    model.graph.initializer[0].doc_string = "weights"
    if ir_version < 4:  # initializers are inputs too
        model.graph.input.extend(
            helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in model.graph.initializer
        )
    for index, node in enumerate(model.graph.node):
        node.name, node.doc_string = f"node {index}", "a node"
    model.graph.value_info.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, ["N", 4]))
    return model


def with_zero_weights(model):
    """Return a copy of a model with weights of zero."""
    return with_values(
        model, {name: np.zeros(p.shape, np.float32) for name, p in weight_locations(model).items()}
    )


def fields(message, path=""):
    """Yield the paths and values of all fields of a message, nested ones included."""
    for field, value in message.ListFields():
        values = value if field.is_repeated else [value]
        for index, item in enumerate(values):
            name = f"{path}.{field.name}[{index}]"
            if hasattr(item, "ListFields"):
                yield from fields(item, name)
            else:
                yield name, item


@pytest.mark.parametrize("cls", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
@pytest.mark.parametrize(
    "opset, ir_version", [(7, 3), (9, 4), (12, 7), (18, 8), (21, 10), (23, 11), (25, 13)]
)
def test_all_other_fields_are_preserved(cls, opset, ir_version):
    model = described(opset, ir_version)
    before = model.SerializeToString()
    trained = cls(model, max_iter=2, warm_start=True, keep_better=False, random_state=0).fit(X, y)
    result = trained.get_trained_onnx()
    assert model.SerializeToString() == before
    assert dict(fields(with_zero_weights(result))) == dict(fields(with_zero_weights(model)))
    moved = {
        n
        for n, p in weight_locations(result).items()
        if not np.array_equal(p.value(), weight_locations(model)[n].value())
    }
    assert moved == {"w", "b", "v"} == set(trained.trained_coef_)
    assert opset_versions(result) == {"": opset} and result.ir_version == ir_version
    upgraded = trained.get_trained_onnx(keep_upgrade=True)
    assert opset_versions(upgraded)[""] == (18 if opset < 13 else min(opset, newest_opset())) and dict(
        fields(upgraded.graph.input[0])
    ) == dict(fields(model.graph.input[0]))
    for name, array in trained.trained_coef_.items():
        np.testing.assert_array_equal(weight_locations(upgraded)[name].value(), array)


def test_upgraded_half_precision_is_float32(run_onnx):
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float16[N,3] x) => (float16[N,1] y) <float16[3,1] w = {1, 2, 3}> { y = MatMul (x, w) }""")
    trained = OrtGradientOptimizer(model, max_iter=2, warm_start=True).fit(X, y)
    upgraded = trained.get_trained_onnx(keep_upgrade=True)
    np.testing.assert_allclose(run_onnx(upgraded, X)[0], trained.predict(X), rtol=1e-5)
    assert trained.get_trained_onnx().graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT16


def test_keep_upgrade_requires_an_onnx_file():
    from sklearn.linear_model import Ridge

    with pytest.raises(ValueError, match="keep_upgrade=True is for ONNX files"):
        OrtGradientOptimizer(Ridge(), max_iter=1).fit(X, y).get_trained_onnx(keep_upgrade=True)


def test_large_models_are_written_in_two_files(tmp_path):
    model = described(18)
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
    save_apart(model, tmp_path / "model.onnx", is_large=True)
    assert {path.name for path in tmp_path.iterdir()} == {"model.onnx", "model.onnx.data"}
    assert onnx.load(tmp_path / "model.onnx").graph.node == model.graph.node
    before = {name: location.value() for name, location in weight_locations(model).items()}
    for name, location in weight_locations(load_onnx(tmp_path / "model.onnx")).items():
        np.testing.assert_array_equal(location.value(), before[name])
