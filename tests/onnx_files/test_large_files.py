"""Files above the limit of one protobuf message: large frozen weights stay in external files."""

import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, parser
from onnx.external_data_helper import set_external_data

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.callbacks import ModelCheckpoint
from ortlearn.exceptions import ConversionError, SavedFileError
from ortlearn.graphs.external_tensors import keep_external, tensor_array
from ortlearn.graphs.files import MAX_MESSAGE
from ortlearn.losses import FunctionLoss
from ortlearn.onnx_files import LoRA
from ortlearn.onnx_files.model_checks import check_total
from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session, session_options
from ortlearn.saving import save

WIDTH = 64
#: Number of rows of a table that exceeds a protobuf message.
N_ROWS = MAX_MESSAGE // (4 * WIDTH) + 1


def embedding(opset=18):
    """Return a model without weights: sums of rows of a table go through two layers."""
    sums = (
        "s = ReduceSum <axes = [1], keepdims = 0> (t)"
        if opset < 13
        else ("axes = Constant <value = int64[1] {1}> () s = ReduceSum <keepdims = 0> (t, axes)")
    )
    return parser.parse_model(f"""<ir_version: 8, opset_import: ["": {opset}]>
        g (int64[N,3] i) => (float[N,1] y) {{ t = Gather (table, i) {sums}
        a = MatMul (s, projection) b = Tanh (a) z = MatMul (b, coef) y = Add (z, intercept) }}""")


def write_model(folder, table, n_rows=N_ROWS, **options):
    """Write the model and its weights; zeros extend the table to ``n_rows`` rows."""
    rng = np.random.default_rng(0)
    shapes = {"projection": (WIDTH, 8), "coef": (8, 1), "intercept": (1,)}
    others = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return write(folder, embedding(**options), {"table": table, **others}, n_rows)


def write(folder, model, arrays, n_rows):
    """Write a model and its weights; zeros extend a table to ``n_rows`` rows, which take no space."""
    with open(folder / "weights.bin", "wb") as file:
        file.write(b"pad.")
        for name, array in arrays.items():
            dims = (n_rows, *array.shape[1:]) if n_rows and name == "table" else array.shape
            offset, length = file.tell(), 4 * math.prod(dims)
            tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims, raw_data=b"-")
            set_external_data(tensor, "weights.bin", offset, length)
            tensor.ClearField("raw_data")
            model.graph.initializer.append(tensor)
            file.write(memoryview(np.ascontiguousarray(array)).cast("B"))
            file.seek(offset + length)  # sparse file
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return folder / "model.onnx"


def samples(n_rows, n=60):
    rng = np.random.default_rng(1)
    return rng.integers(0, n_rows, size=(n, 3)), rng.normal(size=(n, 1)).astype(np.float32)


def trainer(cls, source, **options):
    options = {
        "weights_to_train": ["coef", "intercept"],
        "learning_rate": "SGD",
        "learning_loss": "squared_error",
        "warm_start": True,
        "max_iter": 3,
        "random_state": 0,
        "keep_better": False,
        **options,
    }
    return cls(source, **options)


@pytest.fixture
def table():
    return np.random.default_rng(2).normal(size=(1000, WIDTH)).astype(np.float32)


@pytest.mark.parametrize("cls", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
@pytest.mark.parametrize("options", [{}, {"precompute": False}, {"weights_to_train": ["projection"]}])
@pytest.mark.parametrize("opset", [11, 18])
def test_same_weights_as_in_memory(tmp_path, table, cls, opset, options):
    path, (X, y) = write_model(tmp_path, table, opset=opset), samples(1000)
    found = trainer(cls, path, **options).fit(X, y)
    (large,) = [t for t in found.onnx_.graph.initializer if t.data_location == TensorProto.EXTERNAL]
    assert large.name == "table"
    assert_trained_like(found, trainer(cls, small_model(tmp_path, table, opset=opset), **options).fit(X, y))
    original = onnx.load(path, load_external_data=False).graph
    assert [node.op_type for node in found.onnx_.graph.node] == [node.op_type for node in original.node]


def small_model(folder, table, **options):
    """Write a model with the same weights for all samples, which fits into memory."""
    (folder / "small").mkdir()
    return write_model(folder / "small", table, None, **options)


def assert_trained_like(found, expected):
    X, y = samples(1000)
    for name, array in expected.trained_coef_.items():
        np.testing.assert_array_equal(found.trained_coef_[name], array)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    assert found.score(X, y) == expected.score(X, y)


def test_python_loss(tmp_path, table):
    def squares(labels, scores):
        return ((scores - labels) ** 2 / 2).sum(axis=1), scores - labels

    path, (X, y) = write_model(tmp_path, table), samples(1000)
    cls, options = OrtGradientForwardBackwardOptimizer, {"precompute": False, "random_state": 0}
    found = trainer(cls, path, learning_loss=FunctionLoss(squares), **options).fit(X, y)
    expected = trainer(cls, path, **options).fit(X, y)
    for name, array in expected.trained_coef_.items():
        np.testing.assert_allclose(found.trained_coef_[name], array, rtol=1e-5)


def test_replaced_file(tmp_path, table):
    path, (X, y) = write_model(tmp_path, table), samples(1000)
    trainer(OrtGradientOptimizer, path).fit(X, y)
    (tmp_path / "weights.bin").unlink()
    found = trainer(OrtGradientOptimizer, write_model(tmp_path, 2 * table)).fit(X, y)
    assert_trained_like(found, trainer(OrtGradientOptimizer, small_model(tmp_path, 2 * table)).fit(X, y))


def test_saving_beside_the_source(tmp_path, table):
    """Large weights are not written again."""
    path, (X, y) = write_model(tmp_path, table), samples(1000)
    found = trainer(OrtGradientOptimizer, path).fit(X, y)
    before, original = os.stat(tmp_path / "weights.bin"), onnx.load(path, load_external_data=False)
    found.save_onnx_graph(tmp_path)
    assert os.stat(tmp_path / "weights.bin").st_mtime_ns == before.st_mtime_ns
    assert {file.name for file in tmp_path.iterdir()} >= {"trained.onnx", "weights.bin", "model.onnx"}
    assert not (tmp_path / "trained.onnx.data").exists()
    trained = onnx.load(tmp_path / "trained.onnx", load_external_data=False)
    assert trained == found.get_trained_onnx()
    assert trained.graph.initializer[0] == original.graph.initializer[0]
    again = trainer(OrtGradientOptimizer, tmp_path / "trained.onnx", max_iter=1).fit(X, y)
    assert again.train_losses_[0] == pytest.approx(found.losses(X, y).mean(), rel=0.2)


@pytest.mark.slow
def test_saving_in_another_folder(tmp_path, table):
    """Large weights are copied, which takes two gibibytes."""
    found = trainer(OrtGradientOptimizer, write_model(tmp_path, table)).fit(*samples(1000))
    (tmp_path / "other").mkdir()
    path = Path(found.save_onnx_graph(tmp_path / "other")["trained"])
    data = path.with_name(f"{path.name}.data")
    assert data.stat().st_size >= 4 * WIDTH * N_ROWS
    copied = np.fromfile(data, np.float32, table.size).reshape(table.shape)
    np.testing.assert_array_equal(copied, table)
    again = trainer(OrtGradientOptimizer, path, max_iter=1).fit(*samples(1000))
    assert np.isfinite(again.train_losses_).all()


@pytest.mark.slow
def test_pickled_trainings_predict_in_other_processes(tmp_path, table):
    path, (X, y) = write_model(tmp_path, table), samples(1000)
    found = trainer(OrtGradientOptimizer, path).fit(X, y)
    np.save(tmp_path / "X.npy", X)
    (tmp_path / "found.pkl").write_bytes(pickle.dumps(found))
    code = "import pickle, numpy as np; m = pickle.load(open('found.pkl', 'rb')); X = np.load('X.npy')"
    code += "; np.save('predicted.npy', m.predict(X))"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "predicted.npy"), found.predict(X))


@pytest.mark.needs_callbacks
def test_large_weights_cannot_be_saved(tmp_path, table):
    path, (X, y) = write_model(tmp_path, table), samples(1000)
    checkpoint = ModelCheckpoint(tmp_path / "epochs", every=1)
    with pytest.raises(SavedFileError, match=r"'table'.*save_onnx_graph"):
        trainer(OrtGradientOptimizer, path).set_callbacks(checkpoint).fit(X, y)
    with pytest.raises(SavedFileError, match=r"table'.*save_onnx_graph"):
        save(trainer(OrtGradientOptimizer, path).fit(X, y), tmp_path / "found.zip")


def test_low_rank_adapters(tmp_path, table):
    rng = np.random.default_rng(0)
    weight, X = rng.normal(size=(600, 500)).astype(np.float32), rng.normal(size=(40, 600)).astype(np.float32)
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]> g (float[N,600] x) => (float[N,1] y)
        <int64[1] first = {0}> { a = MatMul (x, large) t = Gather (table, first) m = ReduceMax (t)
        b = Tanh (a) z = MatMul (b, coef) y = Add (z, m) }""")
    arrays = {"table": table, "large": weight, "coef": weight[:500, :1]}
    path = write(tmp_path, model, arrays, N_ROWS)
    options = {"weights_to_train": None, "lora": LoRA(rank=2, target="large")}
    found = trainer(OrtGradientOptimizer, path, **options).fit(X, X[:, :1])
    assert sorted(array.shape for array in found.trained_coef_.values()) == [(2, 500), (600, 2)]
    external = {t.name for t in found.onnx_.graph.initializer if t.data_location == TensorProto.EXTERNAL}
    assert external == {"table"}  # the merged weight is another one
    merged = np.tanh(X @ tensor_array(next(t for t in found.onnx_.graph.initializer if t.name == "large")))
    expected = merged @ weight[:500, :1] + table[0].max()
    np.testing.assert_allclose(found.predict(X), expected, rtol=1e-4, atol=1e-3)


def test_size_limit_of_trained_weights(tmp_path, table):
    path, (X, y) = write_model(tmp_path, table), samples(1000)
    with pytest.raises(ConversionError, match=r"to train take .* 'table'.*weights_to_train.*LoRA"):
        trainer(OrtGradientOptimizer, path, weights_to_train=None).fit(X, y)


def test_models_in_memory_must_be_saved_first(tmp_path, table):
    model = onnx.load(write_model(tmp_path, table, None))
    check_total(model, "The contents")
    weight = model.graph.initializer[0]
    weight.external_data.add(key="length", value=str(4 * WIDTH * N_ROWS))  # as if it had been read
    with pytest.raises(ConversionError, match="save_as_external_data=True"):
        check_total(model, "The contents")


@pytest.mark.parametrize("kind", ["missing", "short", "link", "outside", "length"])
def test_invalid_external_files(tmp_path, table, kind):
    path, (X, y) = write_model(tmp_path, table), samples(1000)
    data, model = tmp_path / "weights.bin", onnx.load(path, load_external_data=False)
    match kind:
        case "missing":
            data.unlink()
        case "short":
            os.truncate(data, 100_000)
        case "link":
            data.rename(tmp_path / "other.bin")
            data.symlink_to(tmp_path / "other.bin")
        case "outside":
            set_location(model.graph.initializer[0], "../weights.bin")
        case "length":
            model.graph.initializer[0].dims[:] = [N_ROWS + 1000, WIDTH]
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ConversionError, match="'table' cannot be read from"):
        trainer(OrtGradientOptimizer, path).fit(X, y)


def set_location(tensor, location):
    next(entry for entry in tensor.external_data if entry.key == "location").value = location


def test_external_data_without_a_path_is_rejected(tmp_path, table):
    path, (X, y) = write_model(tmp_path, table), samples(1000)
    model = onnx.load(path, load_external_data=False)
    secret = tmp_path / "secret.bin"
    secret.write_bytes(table.tobytes())
    set_location(model.graph.initializer[0], str(secret))
    for source in (model, model.SerializeToString()):
        with pytest.raises(ConversionError, match="pass (the|its) path"):
            trainer(OrtGradientOptimizer, source).fit(X, y)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="resource is for POSIX")
def test_table_of_600_million_weights(tmp_path):
    """In a separate process, as the peak memory of a process never shrinks."""
    rows = 9_400_000
    path = write_model(tmp_path, np.ones((1000, WIDTH), np.float32), rows)
    command = [sys.executable, "-c", LARGE_TRAINING, str(path), str(rows)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    n_bytes, gibibytes = result.stdout.split()
    assert int(n_bytes) < 100_000 and float(gibibytes) < 1  # the table has 2.2


#: Train the last layers, and print the size of the trained model and the peak memory in GiB.
LARGE_TRAINING = """
import resource, sys
from pathlib import Path
import numpy as np
from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateAdam

rng, rows = np.random.default_rng(0), int(sys.argv[2])
X = np.vstack([rng.integers(0, 1000, size=(30, 3)), rng.integers(rows - 10, rows, size=(30, 3))])
y = np.repeat([[1.0], [-1.0]], 30, axis=0).astype(np.float32)
for cls, hoist in ((OrtGradientOptimizer, True), (OrtGradientForwardBackwardOptimizer, False)):
    found = cls(sys.argv[1], ["projection", "coef", "intercept"], learning_loss="squared_error",
                learning_rate=LearningRateAdam(0.02), precompute=hoist, max_iter=100, warm_start=True,
                keep_better=False, random_state=0).fit(X, y)
    assert found.score(X, y) > 0.9, found.score(X, y)
status = Path("/proc/self/status")  # ru_maxrss begins with that of the process of the tests
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
if status.exists():
    peak = next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
print(found.get_trained_onnx().ByteSize(), peak / 2**20)
"""


def test_sessions_with_shared_options(tmp_path):
    arrays = {"a": np.arange(6, dtype=np.float32), "b": np.arange(6, dtype=np.float32) ** 2}
    body = {"a": "y = Add (x, a)", "a b": "s = Add (x, a) y = Mul (s, b)"}
    options = session_options()
    for names, nodes in body.items():
        model = parser.parse_model(
            f'<ir_version: 8, opset_import: ["": 18]> g (float[6] x) => (float[6] y) {{ {nodes} }}'
        )
        for name in names.split():
            (tmp_path / name).write_bytes(arrays[name].tobytes())
            tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=(6,), raw_data=b"-")
            set_external_data(tensor, name)
            tensor.ClearField("raw_data")
            keep_external(tensor, tmp_path)
            model.graph.initializer.append(tensor)
        session = make_session(model, Device("cpu"), options=options)
        found = session.run(None, {"x": np.ones(6, np.float32)})[0]
    np.testing.assert_array_equal(found, (1 + arrays["a"]) * arrays["b"])
