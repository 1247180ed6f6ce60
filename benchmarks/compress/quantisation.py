"""Networks with int8 and int4 weights, calibrated and trained, and the static result of onnxruntime."""

from __future__ import annotations

import json
import logging
import sysconfig
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper, parser
from sklearn.datasets import load_digits, make_classification
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.real_files.sources import of_wheel
from ortlearn import OrtGradientOptimizer
from ortlearn.compress import quantize
from ortlearn.compress.files import PART, File, as_file, latencies
from ortlearn.compress.layers import ACTIVATIONS, PASSING, PRODUCTS
from ortlearn.compress.quantisation import INTEGER_KERNELS
from ortlearn.runtime.deployment import optimized_operators

TITLES = (
    *("network", "weights", "float", "calibrated", "scales trained", "all trained", "bytes of weights"),
    *("bytes of the file", "times faster, 1", "1,000", "integer kernels"),
)
CONVOLUTION = """<ir_version: 8, opset_import: ["": 17]> g (float[N,1,8,8] image) => (float[N,10] score)
    { a = Conv <pads = [1,1,1,1]> (image, w1, b1) b = Relu (a)
      c = MaxPool <kernel_shape = [2,2], strides = [2,2]> (b)
      d = Conv <pads = [1,1,1,1]> (c, w2, b2) e = Relu (d) f = Flatten (e) score = Gemm (f, w3, b3) }"""


def convolution(first: int = 4, second: int = 8) -> tuple:
    """Return a trained network of digits with two convolutions, with training and test samples."""
    shapes = {"w1": (first, 1, 3, 3), "b1": (first,), "w2": (second, first, 3, 3), "b2": (second,)}
    shapes |= {"w3": (16 * second, 10), "b3": (10,)}
    X, y = load_digits(return_X_y=True)
    X = (X.reshape(-1, 1, 8, 8) / 16).astype(np.float32)
    model, rng = parser.parse_model(CONVOLUTION), np.random.default_rng(0)
    for name, shape in shapes.items():
        scale = np.sqrt(2 / max(np.prod(shape[1:]), 1)) if name != "w3" else 0.05
        values = rng.normal(0, scale, shape) if len(shape) > 1 else np.zeros(shape)
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))
    options: dict[str, Any] = {"learning_loss": "log_loss", "learning_rate": "Adam", "batch_size": 32}
    trainer = OrtGradientOptimizer(model, warm_start=True, max_iter=15, random_state=0, **options)
    return trainer.fit(X[:1200], y[:1200]).get_trained_onnx(), X[:1200], y[:1200], X[1200:], y[1200:]


def network(*sizes: int) -> tuple:
    """Return a network of three hidden layers, with training and test samples of classes that overlap."""
    X, y = make_classification(6000, 20, n_informative=12, n_classes=6, class_sep=0.8, random_state=0)
    model = make_pipeline(StandardScaler(), MLPClassifier(sizes, early_stopping=True, random_state=0))
    return model.fit(X[:4000], y[:4000]), X[:4000], y[:4000], X[4000:], y[4000:]


def magika() -> tuple:
    """Return the file of magika, which tells types of files, with files of this Python.

    The label of a test file is the type to which magika's own list assigns its suffix; suffixes of several
    types are left out. There are no labels to train on, so that accuracy is not gained by learning suffixes.
    """
    folder = Path(tempfile.gettempdir()) / "ortlearn-wheels"
    folder.mkdir(exist_ok=True)
    (source,) = of_wheel("magika", folder)
    (wheel,) = folder.glob("magika-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        settings = str(Path(source.name).with_name("config.min.json"))
        names = json.loads(archive.read(settings))["target_labels_space"]
        known = json.loads(archive.read("magika/config/content_types_kb.min.json"))
    types: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        for suffix in known[name]["extensions"]:
            types.setdefault(f".{suffix}", []).append(number)
    found: dict[int, set[Path]] = {}
    places = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")]
    for path in (path for place in places for path in place.rglob("*.*")):
        own = types.get(path.suffix, [])
        if len(own) == 1 and path.is_file() and not path.is_symlink() and path.stat().st_size >= 64:
            found.setdefault(own[0], set()).add(path)
    rng = np.random.default_rng(0)
    some = [
        (path, label) for label in sorted(found) for path in rng.permutation(sorted(found[label]))[:PER_TYPE]
    ]
    known: dict[bytes, int] = {}  # no content is in both parts
    for i in rng.permutation(len(some)):
        known.setdefault(ends_of(some[i][0].read_bytes()).tobytes(), some[i][1])
    X = np.stack([np.frombuffer(content, np.int32) for content in known])
    return onnx.load(source.path), X[:TRAINED], None, X[-TESTED:], np.array([*known.values()])[-TESTED:]


def ends_of(content: bytes) -> np.ndarray:
    """Return the first and the last 1,024 bytes of a file, without blanks, as magika reads them."""
    first, last = content[:4096].lstrip()[:1024], content[-4096:].rstrip()[-1024:]
    blank = [256]
    return np.array(
        [*first, *blank * (1024 - len(first)), *blank * (1024 - len(last)), *last], dtype=np.int32
    )


#: Files that magika is trained and tested on, and most of one type.
TRAINED, TESTED, PER_TYPE = 700, 640, 100
ALL, CALIBRATED = ("calibration", "scales", "training"), ("calibration",)
EMBEDDING = "jax2tf_get_logits_/Const:0"
#: By name the function that returns network and samples, and for each row its options and grades.
NETWORKS: dict[str, tuple[Callable[[], tuple], dict[str, tuple[dict[str, Any], tuple[str, ...]]]]] = {
    "convolution of digits": (convolution, {"int8": ({}, ALL), "int4": ({"to": "int4"}, ALL)}),
    "MLP of 3 layers": (
        lambda: network(64, 32, 16),
        {"int8": ({}, ALL), "int4": ({"to": "int4"}, ALL)},
    ),
    "MLP of 1 MB": (lambda: network(512, 384, 128), {"int8": ({}, ALL)}),
    "magika": (
        magika,
        {
            "int8": ({}, CALIBRATED),
            "int4": ({"to": "int4"}, CALIBRATED),
            "int3": ({"to": "int3", "max_iter": 4, "batch_size": 8, "eta0": 1e-4}, ALL),
            "int3, embedding in float": ({"to": "int3", "keep_float": EMBEDDING}, CALIBRATED),
            "int3, max_loss=0.003": ({"to": "int3", "max_loss": 0.003}, CALIBRATED),
        },
    ),
}


def weight_bytes(model: ModelProto) -> int:
    """Return the bytes of all initializers."""
    return sum(len(tensor.raw_data) or tensor.ByteSize() for tensor in model.graph.initializer)


def of_onnxruntime(model: ModelProto, X: np.ndarray) -> ModelProto:
    """Return the static quantisation of onnxruntime at the settings of ours, of the same operators.

    By default it rounds all operators, in magika also the cubes of GELU, to multiples of 3,483: the accuracy
    is then 0.10.
    """
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            parts = [X[start : start + PART] for start in range(0, len(X), PART)]
            self.rows = iter([File(model).feeds(part) for part in parts])

        def get_next(self) -> Any:
            return next(self.rows, None)

    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, Path(folder) / "float.onnx")
        quantize_static(
            Path(folder) / "float.onnx",
            Path(folder) / "int8.onnx",
            Reader(),
            quant_format=QuantFormat.QDQ,
            weight_type=QuantType.QInt8,
            activation_type=QuantType.QInt8,
            per_channel=True,
            reduce_range=True,
            op_types_to_quantize=[*PRODUCTS, *ACTIVATIONS, *PASSING],
        )
        logging.disable(logging.NOTSET)
        return onnx.load(Path(folder) / "int8.onnx")


def rows() -> list[tuple[str, ...]]:
    """Return the rows of the table."""
    table = []
    for name, (make, kinds) in NETWORKS.items():
        model, X, y, X_test, y_test = make()
        float_file, counts = as_file(model, X)[0], list[int]()
        for kind, (own, grades) in kinds.items():
            options = {"activations": True, "held_out": (X_test, y_test), **own}
            found = [quantize(model, X, y, grade=grade, **options) for grade in grades]
            last, counts = found[-1], counts or list(found[-1].seconds)
            scores = [one.scores["accuracy"]["new"]["value"] for one in found]
            table.append(
                (
                    *(name, kind, f"{last.scores['accuracy']['old']['value']:.4f}"),
                    *(f"{score:.4f}" for score in scores),
                    *[""] * (len(ALL) - len(scores)),
                    *_costs(float_file, last.onnx, X_test, counts),
                )
            )
            print(table[-1], {k: v for k, v in last.layers.items() if "float" in v}, flush=True)
        theirs = of_onnxruntime(float_file, X[:1000])
        accuracy = File(theirs).metrics(X_test, y_test)["accuracy"](np.ones(len(y_test)))
        table.append(
            (
                *(name, "int8, onnxruntime", "", f"{accuracy:.4f}", "", ""),
                *_costs(float_file, theirs, X_test, counts),
            )
        )
        print(table[-1], flush=True)
    return table


def _costs(old: ModelProto, new: ModelProto, X: np.ndarray, counts: list[int]) -> tuple[str, ...]:
    """Return bytes of weights and file relative to those of another file, times faster, and kernels."""
    times = [latencies([(File(model), X) for model in (old, new)], count) for count in counts]
    kernels = optimized_operators(new)
    return (
        f"{weight_bytes(new) / weight_bytes(old):.3f}",
        f"{new.ByteSize() / old.ByteSize():.2f}",
        *(f"{before / after:.2f}" for before, after in times),
        str(sum(kernels[kernel] for kernel in INTEGER_KERNELS)),
    )
