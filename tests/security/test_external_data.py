"""Weights that an ONNX file keeps in other files are read from the folder of the file only."""

import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError

X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
SECRET = np.array([[1.0], [2.0], [3.0]], np.float32)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "secret.bin").write_bytes(SECRET.tobytes())
    return tmp_path / "model"


def written(folder, location, **entries):
    """Write a linear model whose weight is in another file."""
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


def test_a_file_in_the_folder_is_read(folder):
    (folder / "weights.bin").write_bytes(SECRET.tobytes())
    assert np.isfinite(trained(written(folder, "weights.bin")).trained_coef_["w"]).all()


@pytest.mark.parametrize("kind", ["parent", "absolute", "link", "link to a folder", "hard link"])
def test_a_file_elsewhere_is_refused(kind, folder):
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
    path = written(folder, location)
    with pytest.raises(ConversionError, match="lack the file of some weights"):
        trained(path)


@pytest.mark.parametrize("entries", [{"offset": "-1"}, {"length": "1000000"}, {"offset": "9" * 30}])
def test_places_outside_the_file_are_refused(entries, folder):
    (folder / "weights.bin").write_bytes(SECRET.tobytes())
    with pytest.raises(ConversionError):
        trained(written(folder, "weights.bin", **entries))


def test_bytes_have_no_folder(folder):
    (folder / "weights.bin").write_bytes(SECRET.tobytes())
    path = written(folder, "weights.bin")
    for source in (path.read_bytes(), onnx.load(path, load_external_data=False)):
        with pytest.raises(ConversionError):
            trained(source)
