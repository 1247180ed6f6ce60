"""Five harnesses: each returns what became of an input, and raises for a finding."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import warnings
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from onnx import helper, numpy_helper
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge

from ortlearn import OrtGradientOptimizer, OrtIntervalRegressor, OrtSetClassifier, onnx_files
from ortlearn.data.opening import open_source
from ortlearn.data.sample_blocks import SampleBlock
from ortlearn.exceptions import OrtlearnError
from ortlearn.saving import export_training, load_training, save
from ortlearn.saving import load as load_estimator
from ortlearn.saving.files import Content, packed, read
from ortlearn.saving.package_files import sealed
from tests.differentiation.fuzzing import GOOD, check_seed, make
from tests.differentiation.random_models import load
from tests.fuzzing.edits import edited
from tests.hostile.files import models

__all__ = ["HARNESSES"]

X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
Y = X @ np.array([1, 2, 3], dtype=np.float32)


def _files() -> list[bytes]:
    """Return the ONNX files to edit: converted models, and one of operators of newer opsets."""
    node = [helper.make_node("TensorScatter", ["x", "u"], ["y"], axis=1)]
    values = [numpy_helper.from_array(np.ones((1, 1, 2), np.float32), "u")]
    shapes = [helper.make_tensor_value_info(name, 1, ["N", 4, 2]) for name in "xy"]
    graph = helper.make_graph(node, "newer", shapes[:1], shapes[1:], values)
    newer = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)
    return [model.SerializeToString() for model in (*(model for model, _ in models().values()), newer)]


@cache
def _trained() -> OrtGradientOptimizer:
    return OrtGradientOptimizer(Ridge(), learning_rate="Adam", max_iter=2, batch_size=16, random_state=0).fit(
        X, Y
    )


_onnx_files = cache(_files)


def opening(data: bytes) -> str:
    """Open an ONNX file, for training or for a derivative."""
    if len(data) < 2:
        return "short"
    files = _onnx_files()
    content = data[2:] if data[1] == 255 else edited(files[data[1] % len(files)], data[2:])
    try:
        onnx_files.open(content, trainable=data[0] % 2 == 1)
    except OrtlearnError:
        return "refused"
    return "opened"


@cache
def _saved(number: int) -> Content:
    """Return the content of the file of an optimizer, of intervals by trees, or of sets."""
    if number == 0:
        estimator = _trained()
    elif number == 1:
        trees = GradientBoostingRegressor(n_estimators=2, max_depth=2)
        estimator = OrtIntervalRegressor(trees, coverage=0.5, random_state=0).fit(X, Y)
    else:
        settings = {"coverage": 0.5, "probabilities": "isotonic", "calibration": 20, "random_state": 0}
        estimator = OrtSetClassifier(LogisticRegression(), **settings).fit(X, Y > 0)
    with tempfile.TemporaryDirectory() as folder:
        save(estimator, Path(folder) / "saved.zip")
        return read(Path(folder) / "saved.zip")


def saved_estimators(data: bytes) -> str:
    """Load a saved estimator whose manifest or files were edited, with right checksums or wrong ones."""
    if len(data) < 2:
        return "short"
    content = _saved(data[0] // 3 % 3)
    names = sorted(content.files)
    manifest, files = json.dumps(content.manifest).encode(), dict(content.files)
    if data[0] % 3 == 0:
        whole = edited(packed(content), data[2:])
    else:
        if data[0] % 3 == 1:
            manifest = edited(manifest, data[2:])
        else:
            name = names[data[1] % len(names)]
            files[name] = edited(files[name], data[2:])
        try:
            whole = packed(Content(json.loads(manifest), files))
        except (
            ValueError,
            RecursionError,
            TypeError,
            KeyError,
            AttributeError,
        ):  # not a manifest that can be written
            return "not written"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edited.zip"
        path.write_bytes(whole)
        try:
            estimator = load_estimator(path)
            estimator.predict(X)
            if hasattr(estimator, "predict_interval"):
                estimator.predict_interval(X)
        except OrtlearnError:
            return "refused"
    return "loaded"


@cache
def _package() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        export_training(_trained(), folder)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def training_packages(data: bytes) -> str:
    """Load a training package of which one file was edited, with right checksums or wrong ones."""
    if len(data) < 2:
        return "short"
    files = dict(_package())
    name = sorted(files)[data[1] % len(files)]
    files[name] = edited(files[name], data[2:])
    if data[0] % 2 and b"ortlearn_crc32" in files[name]:
        files[name] = sealed(files[name])
    elif data[0] % 2:
        old, new = (f"{zlib.crc32(content):08x}".encode() for content in (_package()[name], files[name]))
        files["training.json"] = sealed(files["training.json"].replace(old, new))
    with tempfile.TemporaryDirectory() as folder:
        for other, content in files.items():
            (Path(folder) / other).write_bytes(content)
        try:
            load_training(folder).predict(X)
        except OrtlearnError:
            return "refused"
    return "loaded"


@cache
def _parquet() -> tuple[bytes, int]:
    """Return a file of plain, compressed and nullable pages, and the length of its pages."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, n_samples = np.random.default_rng(0), 5000
    columns = {f"x{i}": rng.normal(size=n_samples).astype(np.float32) for i in range(3)}
    table = pa.table({**columns, "label": rng.normal(size=n_samples)})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pages.parquet"
        codecs = {"x0": "NONE", "x1": "SNAPPY", "x2": "ZSTD", "label": "NONE"}
        pq.write_table(table, path, use_dictionary=False, compression=codecs, row_group_size=3000)
        content = path.read_bytes()
    return content, len(content) - int.from_bytes(content[-8:-4], "little") - 8


def _matrix(block: SampleBlock) -> np.ndarray:
    """Return the features of a block."""
    values = np.empty((len(block), 3), np.float32)
    block.X.write(values)
    return values


def parquet_pages(data: bytes) -> str:
    """Read a parquet file whose pages were edited, with pyarrow and with our reader; compare the results."""
    import pyarrow.parquet as pq

    content, length = _parquet()
    pages = edited(content[:length], data)[:length].ljust(length, b"\0")  # the footer has positions
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edited.parquet"
        path.write_bytes(pages + content[length:])
        try:
            expected = pq.read_table(path)
        except (OSError, ValueError):
            expected = None
        try:
            with np.errstate(all="ignore"):
                found = np.concatenate([_matrix(block) for block in open_source(path, y="label").blocks()])
        except OrtlearnError:
            return "refused"
    if expected is not None:
        right = np.stack([expected[f"x{i}"].to_numpy() for i in range(3)], axis=1)
        np.testing.assert_array_equal(found, right)
    return "read"


def gradients(data: bytes) -> str:
    """Compare the gradient of a random graph with finite differences."""
    seed = int.from_bytes(data[:6], "little")
    if not _model_runs(seed):
        return "model stops"
    outcome, details = check_seed(seed)
    if outcome not in GOOD:
        raise AssertionError(f"{outcome}: {details}")
    return outcome


def _model_runs(seed: int) -> bool:
    """Return whether onnxruntime survives the model of a seed, before it is differentiated."""
    child = os.fork()
    if child == 0:
        for number in (signal.SIGSEGV, signal.SIGFPE, signal.SIGABRT, signal.SIGILL, signal.SIGBUS):
            signal.signal(number, signal.SIG_DFL)  # atheris would report them
        signal.alarm(30)
        try:
            made = make(seed)
            if made is not None:
                load(made[0])(made[1])
        except BaseException:  # check_seed reports it
            pass
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def _quiet(harness: Callable[[bytes], str]) -> Callable[[bytes], str]:
    """Return a harness that ignores warnings."""

    def run(data: bytes) -> str:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return harness(data)

    return run


HARNESSES = {
    function.__name__: _quiet(function)
    for function in (opening, saved_estimators, training_packages, parquet_pages, gradients)
}
