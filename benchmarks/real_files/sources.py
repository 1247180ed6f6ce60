"""ONNX files to test: from wheels, from the tests of onnx, exported by converters, and generated."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
import onnx
from onnx import parser

__all__ = ["WHEELS", "Source", "of_wheel", "sources"]

#: Packages whose wheels hold models.
WHEELS = ("magika", "speechmos")
#: Opsets of exported and of generated models.
EXPORTED, OWN = (9, 11, 13, 15, 17, 19, 21), tuple(range(7, 26))


@dataclass(frozen=True)
class Source:
    """A file to test.

    Attributes
    ----------
    path : pathlib.Path
        Path of the file.
    name : str
        Name on the page.
    origin : str
        Package that contains or writes it.
    licence : str
        Licence of the package.
    """

    path: Path
    name: str
    origin: str
    licence: str

    @property
    def is_from_a_wheel(self) -> bool:
        """Whether it is part of a wheel, rather than exported or generated."""
        return self.origin in (*WHEELS, "onnx")


def sources(folder: Path) -> list[Source]:
    """Return the files, downloaded, unpacked, exported and written into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    found = [source for wheel in WHEELS for source in of_wheel(wheel, folder)]
    return [*found, *_onnx(), *_exported(folder), *_own(folder)]


def of_wheel(package: str, folder: Path) -> Iterator[Source]:
    """Yield the models of a wheel, which pip downloads once."""
    if not list(folder.glob(f"{package}-*.whl")):
        options = ["--quiet", "--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
        subprocess.run([sys.executable, "-m", "pip", "download", *options, package], check=True)
    (wheel,) = folder.glob(f"{package}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (described,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        licence = _licence(archive.read(described).decode())
        for name in sorted(archive.namelist()):
            if name.endswith(".onnx"):
                yield Source(Path(archive.extract(name, folder / package)), name, package, licence)


def _licence(text: str) -> str:
    """Return the licence that the metadata of a package declares."""
    found = re.findall(
        r"^License-Expression: (.*)$|^Classifier: License :: OSI Approved :: (.*)$", text, re.M
    )
    return (
        " ".join("".join(pair) for pair in found[:1]) or re.findall(r"^License: (.*)$", text, re.M)[0]
    ).replace(" License", "")


def _onnx() -> Iterator[Source]:
    """Yield the models in the wheel of onnx with numeric inputs."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data"
    licence = _licence(metadata.distribution("onnx").read_text("METADATA") or "")
    for path in [*sorted(folder.glob("light/*.onnx")), *sorted(folder.glob("pytorch-*/*/model.onnx"))]:
        name = path.stem if path.stem != "model" else path.parent.name
        yield Source(path, f"{path.relative_to(folder).parts[0]}/{name}", "onnx", licence)


def _exported(folder: Path) -> Iterator[Source]:
    """Yield models of scikit-learn, exported by converters at several opsets."""
    from onnxmltools.convert import convert_sklearn
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPRegressor

    X = np.random.RandomState(0).normal(size=(100, 4)).astype(np.float32)
    network = MLPRegressor(hidden_layer_sizes=(8,), max_iter=500, tol=0.01, random_state=0).fit(X, X[:, 0])
    classifier = LogisticRegression().fit(X, X[:, 0] > 0)
    for opset in EXPORTED:
        versions = {"": opset, "ai.onnx.ml": 1 if opset < 13 else 3}
        model = to_onnx(network, X[:1], target_opset=versions)
        yield _saved(folder, model, f"MLPRegressor, opset {opset}", "skl2onnx", "Apache-2.0")
        versions = {"": min(opset, 15), "ai.onnx.ml": 1 if opset < 13 else 3}
        types = [("X", FloatTensorType([None, 4]))]
        model = convert_sklearn(classifier, initial_types=types, target_opset=versions[""])
        yield _saved(folder, model, f"LogisticRegression, opset {opset}", "onnxmltools", "Apache-2.0")


def _own(folder: Path) -> Iterator[Source]:
    """Yield generated graphs."""
    for opset in OWN:
        model = parser.parse_model(
            f"""<ir_version: {8 if opset < 20 else 10}, opset_import: ["": {opset}]>
            g (float[N,3] x) => (float[N,1] y) <float[3,4] w = {{{", ".join(["0.3", "-0.2"] * 6)}}}>
            {{ b = Constant <value = float[4] {{0.1, 0.2, 0.3, 0.4}}> ()
              z = MatMul (x, w) a = Add (z, b) t = Tanh (a)
              v = Constant <value = float[4,1] {{1, -1, 0.5, 2}}> () y = MatMul (t, v) }}"""
        )
        yield _saved(folder, model, f"network with constants, opset {opset}", "written here", "MIT")
    for opset, operator in ((23, "RMSNormalization (x, s)"), (24, "Swish (x)")):
        model = parser.parse_model(
            f"""<ir_version: 10, opset_import: ["": {opset}]> g (float[N,3] x) => (float[N,1] y)
            <float[3] s = {{1, 2, 3}}, float[3,1] w = {{1, 2, 3}}> {{ n = {operator} y = MatMul (n, w) }}"""
        )
        name = f"{operator.split()[0]}, opset {opset}"
        yield _saved(folder, model, name, "written here", "MIT")


def _saved(folder: Path, model: onnx.ModelProto, name: str, origin: str, licence: str) -> Source:
    if not model.graph.name:
        model.graph.name = "g"
    path = folder / f"{origin}-{name}.onnx".replace(" ", "_").replace(",", "")
    path.write_bytes(model.SerializeToString())
    return Source(path, name, origin, licence)
