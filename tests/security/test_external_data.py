"""External data of an ONNX file are read from the folder of the file only."""

import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import ConversionError
from ortlearn.graphs.files import save_model

X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
SECRET = np.array([[1.0], [2.0], [3.0]], np.float32)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "secret.bin").write_bytes(SECRET.tobytes())
    return tmp_path / "model"


def write_model(folder, location, **entries):
    """Write a linear model with an external weight."""
    weight = onnx.TensorProto(name="w", data_type=TensorProto.FLOAT, dims=(3, 1))
    weight.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, "length": str(SECRET.nbytes), **entries}.items():
        weight.external_data.add(key=key, value=value)
    inputs = [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["N", 3])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 1])]
    graph = helper.make_graph([helper.make_node("MatMul", ["X", "w"], ["y"])], "g", inputs, outputs, [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def trained(source):
    options = {"learning_rate": "SGD", "max_iter": 1, "random_state": 0}
    return OrtGradientOptimizer(source, **options).fit(X, X[:, :1])


def test_file_in_the_folder(folder):
    (folder / "weights.bin").write_bytes(SECRET.tobytes())
    assert np.isfinite(trained(write_model(folder, "weights.bin")).trained_coef_["w"]).all()


@pytest.mark.parametrize("kind", ["parent", "absolute", "link", "link to a folder", "hard link"])
def test_files_outside_the_folder_are_rejected(kind, folder):
    secret, location = folder.parent / "secret.bin", "weights.bin"
    match kind:
        case "parent":
            location = "../secret.bin"
        case "absolute":
            location = str(secret)
        case "link":
            (folder / location).symlink_to(secret)
        case "link to a folder":
            (folder / "linked").symlink_to(folder.parent)
            location = "linked/secret.bin"
        case "hard link":
            os.link(secret, folder / location)
    path = write_model(folder, location)
    with pytest.raises(ConversionError, match="lack the file of some weights"):
        trained(path)


@pytest.mark.parametrize(
    "entries, words",
    [
        ({"offset": "-1"}, "offset"),
        ({"length": "1000000"}, "exceeds available data"),
        ({"offset": "9" * 30}, "exceeds file size"),
        ({"offset": "4"}, "exceeds available data"),
        ({"length": "8"}, "tensor 'w' that has invalid values .* shape"),
        ({"length": "-1"}, "must be non-negative"),
        ({"offset": "one"}, "invalid literal"),
    ],
)
def test_invalid_offsets_and_lengths_are_rejected(entries, words, folder):
    (folder / "weights.bin").write_bytes(SECRET.tobytes())
    with pytest.raises(ConversionError, match=f"model.onnx.*{words}"):
        trained(write_model(folder, "weights.bin", **entries))


@pytest.mark.parametrize("location", ["missing.bin", "", "."])
def test_missing_files_are_rejected(folder, location):
    with pytest.raises(ConversionError, match="lack the file of some weights"):
        trained(write_model(folder, location))


@pytest.mark.parametrize("cls", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
def test_several_tensors_in_files_and_folders(folder, cls):
    """Tensors of an initializer, a Constant and a branch are embedded in the trained model."""
    embedded = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,3] X) => (float[N,1] y) <float[3,2] w = {1, 2, 3, 4, 5, 6}, float zero = {0}>
        { z = MatMul (X, w) v = Constant <value = float[2,1] {1, -1}> ()
          s = ReduceSum <keepdims = 0> (X) c = Greater (s, zero)
          y = If (c) <then_branch = a () => (float[N,1] p) <float[2,1] u = {2, 3}> { p = MatMul (z, u) },
                      else_branch = b () => (float[N,1] q) { q = MatMul (z, v) }> }""")
    external, contents = onnx.ModelProto(), {"one.bin": b"padding.", "sub/two.bin": b""}
    external.CopyFrom(embedded)
    branch = external.graph.node[-1].attribute[0].g
    tensors = [external.graph.initializer[0], external.graph.node[1].attribute[0].t, branch.initializer[0]]
    for tensor, name in zip(tensors, ("one.bin", "sub/two.bin", "one.bin"), strict=True):
        data = onnx.numpy_helper.to_array(tensor).tobytes()
        tensor.CopyFrom(onnx.TensorProto(name=tensor.name, dims=tensor.dims, data_type=1, raw_data=data))
        onnx.external_data_helper.set_external_data(tensor, name, len(contents[name]), len(data))
        tensor.ClearField("raw_data")
        contents[name] += data
    (folder / "sub").mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    (folder / "model.onnx").write_bytes(external.SerializeToString())
    options = {"learning_rate": "SGD", "max_iter": 2, "random_state": 0, "warm_start": True}
    found, expected = (cls(s, **options).fit(X, X[:, :1]) for s in (folder / "model.onnx", embedded))
    assert list(found.trained_coef_) == list(expected.trained_coef_) == ["w", "v", "u"]
    for name, array in expected.trained_coef_.items():
        np.testing.assert_array_equal(found.trained_coef_[name], array)
    given = found.get_trained_onnx()
    assert given.graph == expected.get_trained_onnx().graph
    save_model(given, folder / "model.onnx")  # replaces the model, and leaves the other files
    assert {name: (folder / name).read_bytes() for name in contents} == contents
    assert onnx.load(folder / "model.onnx", load_external_data=False) == given


def test_more_than_two_gibibytes(folder):
    """Only frozen weights may be as large; the file is sparse."""
    n_samples = 200_000_000
    with open(folder / "weights.bin", "wb") as file:
        file.truncate(12 * n_samples)
    path = write_model(folder, "weights.bin", length=str(12 * n_samples))
    model = onnx.load(path, load_external_data=False)
    model.graph.initializer[0].dims[:] = [3, n_samples]
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = n_samples
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ConversionError, match=r"2\.24 GiB .* limit of 2 GiB.*weights_to_train"):
        trained(path)


def test_models_without_a_path_are_rejected(folder):
    (folder / "weights.bin").write_bytes(SECRET.tobytes())
    path = write_model(folder, "weights.bin")
    for source in (path.read_bytes(), onnx.load(path, load_external_data=False)):
        with pytest.raises(ConversionError, match="pass (the|its) path"):
            trained(source)
