"""Training packages: folders with graphs, tensors and a manifest for training with any ONNX Runtime."""

from __future__ import annotations

import json
import os
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper

from ..exceptions import SavedFileError
from ..graphs.files import write_together
from .public import load, packed_estimator
from .schema import check_manifest
from .tensors import pack_tensors, unpack_tensors

__all__ = [
    "EPOCH",
    "FORMAT",
    "PACKAGE_SCHEMA",
    "PREDICT",
    "STATE",
    "WEIGHTS",
    "export_training",
    "load_training",
    "merge_weights",
]

#: Number of the format; packages of other formats are rejected.
FORMAT = 1
MANIFEST, ESTIMATOR = "training.json", "estimator.zip"
#: Name of the state that counts the epochs that a program has trained.
EPOCH = "ortlearn_epoch"
PREDICT, WEIGHTS, STATE = "predict.onnx", "weights.safetensors", "state.safetensors"
CONTENT = "ortlearn.estimators.packaged"

_TEXT: dict[str, Any] = {"type": "string"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_TENSOR: dict[str, Any] = {
    "type": "object",
    "required": ["name", "type", "shape"],
    "properties": {"name": _TEXT, "type": _TEXT, "shape": {"type": "array", "items": {}}},
}
_ENDS: dict[str, Any] = {
    "type": "object",
    "required": ["input", "output"],
    "properties": {"input": _TEXT, "output": _TEXT},
}
#: JSON schema of ``training.json``.
PACKAGE_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Training package of ortlearn",
    "type": "object",
    "required": [
        "kind",
        "format",
        "tensors",
        "batch_size",
        "dtype",
        "features",
        "label",
        "step",
        "epoch",
        "evaluate",
        "predict",
        "carried",
        "schedule",
        "record",
    ],
    "properties": {
        "kind": {"type": "string", "pattern": "ortlearn training package"},
        "format": {"type": "integer", "minimum": 1},
        "versions": {"type": "object", "additionalProperties": _TEXT},
        "runtime": {"type": "object"},
        "tensors": {"type": "array", "items": _TEXT},
        "batch_size": {"type": "integer", "minimum": 1},
        "dtype": {"type": "string", "pattern": "float(32|64)"},
        "features": {"type": "array", "items": _TENSOR},
        "label": {},
        "sample_weight": {},
        "penalty_in_objective": {"type": "boolean"},
        "step": {
            "type": "object",
            "required": ["rows", "rate", "objective"],
            "properties": {"rows": _TEXT, "rate": _TEXT, "objective": _TEXT},
        },
        "epoch": {
            "type": "object",
            "required": ["rows", "rate", "objective"],
            "properties": {"rows": _TEXT, "rate": _TEXT, "objective": _TEXT},
        },
        "evaluate": {
            "type": "object",
            "required": ["loss", "score", "inputs"],
            "properties": {"loss": _TEXT, "score": {}, "inputs": {"type": "array", "items": _TEXT}},
        },
        "predict": {"type": "array", "items": _TEXT},
        "carried": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "type", "shape", "weight", "state", "step", "epoch"],
                "properties": {
                    **_TENSOR["properties"],
                    "weight": _TEXT,
                    "original": _TEXT,
                    "state": {},
                    "step": _ENDS,
                    "epoch": _ENDS,
                },
            },
        },
        "schedule": {
            "type": "object",
            "required": ["learning_rate", "rates"],
            "properties": {
                "learning_rate": _TEXT,
                "parameters": {"type": "object"},
                "rates": {"type": "array", "items": {"type": "number"}},
            },
        },
        "record": {},
    },
}


def export_training(
    estimator: Any,
    folder: str | os.PathLike,
    *,
    batch_size: int | None = None,
    example: tuple[Any, Any] | None = None,
    learning_rate: Any = None,
    weighted: bool = False,
) -> None:
    """Write a training package, with which programs in any language train by ONNX Runtime alone.

    The folder has the graphs ``step.onnx`` (a batch), ``epoch.onnx`` (full batches), ``evaluate.onnx`` (mean
    loss and score), ``infer.onnx`` (predictions, with the weights as inputs) and ``predict.onnx`` (with the
    weights of ``weights.safetensors``), the weights, the states of the learning rate (``state.safetensors``),
    reference results for programs (``record.safetensors``), the manifest ``training.json``, and the estimator
    for :func:`load_training`.

    Parameters
    ----------
    estimator : OrtGradientOptimizer or OrtGradientForwardBackwardOptimizer
        Fitted estimator, from whose weights the training continues.
    folder : str or os.PathLike
        Folder to write, created if missing. Files of an earlier package are replaced.
    batch_size : int, default=None
        Number of samples in a batch; by default that of the estimator.
    example : (array-like, array-like), default=None
        X and y for the reference results. By default X has a normal distribution, and y has all classes or
        predictions; a model whose input is not a matrix of numbers then has no reference results.
    learning_rate : str or BaseLearningRate, default=None
        Learning rate; by default that of the estimator.
    weighted : bool, default=False
        Whether programs may pass sample weights. Class weights are always part of the graphs.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    PackageError
        If the training requires Python: a Python loss, steps that run in scikit-learn, a solver, a schedule
        that depends on the losses, class weights of several outputs, or text.
    OSError
        If the folder cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.linear_model import SGDClassifier
    >>> from ortlearn import OrtGradientOptimizer
    >>> from ortlearn.saving import export_training, load_training
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"]
    >>> trained = OrtGradientOptimizer(SGDClassifier(), learning_rate="Adam", random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_training(trained, folder, batch_size=2)
    ...     names = sorted(path.name for path in Path(folder).glob("*.onnx"))
    ...     later = load_training(folder)
    >>> names
    ['epoch.onnx', 'evaluate.onnx', 'infer.onnx', 'predict.onnx', 'step.onnx']
    >>> bool((later.predict(X) == trained.predict(X)).all())
    True
    """
    manifest, files = pkgutil.resolve_name(CONTENT).package_of(
        estimator, batch_size, example, learning_rate, weighted
    )
    check_manifest(manifest, PACKAGE_SCHEMA)
    files[ESTIMATOR] = packed_estimator(estimator)
    files[MANIFEST] = json.dumps(manifest, indent=1, allow_nan=False).encode()
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    write_together({root / name: _writing(content) for name, content in files.items()})


def load_training(folder: str | os.PathLike, trusted: Any = ()) -> Any:
    """Return the estimator of a package, with the weights and states that a program has written.

    Parameters
    ----------
    folder : str or os.PathLike
        Folder of the package.
    trusted : sequence of str, default=()
        Types to trust, as in :func:`ortlearn.saving.load`.

    Returns
    -------
    OrtGradientOptimizer or OrtGradientForwardBackwardOptimizer
        Estimator; ``partial_fit`` continues the training if the package has the estimator's learning rate.

    Raises
    ------
    SavedFileError
        If the folder is not a package, has another format, or is damaged.
    OSError
        If the folder cannot be read.
    """
    root, manifest = Path(folder), read_package_manifest(folder)
    weights, _ = unpack_tensors((root / WEIGHTS).read_bytes())
    state, _ = unpack_tensors((root / STATE).read_bytes())
    estimator = load(root / ESTIMATOR, trusted)
    return pkgutil.resolve_name(CONTENT).continued(estimator, manifest, weights, state)


def merge_weights(
    folder: str | os.PathLike, weights: Mapping[str, np.ndarray] | str | os.PathLike | None = None
) -> ModelProto:
    """Write weights into a package, and return its prediction graph as a model that contains them.

    Parameters
    ----------
    folder : str or os.PathLike
        Folder of the package.
    weights : mapping of str to ndarray, or path, default=None
        Weights by the names in ``weights.safetensors``, or a file in this format; by default the weights of
        the package.

    Returns
    -------
    onnx.ModelProto
        Model without external data.

    Raises
    ------
    SavedFileError
        If names, shapes or types do not match the package.
    """
    root = Path(folder)
    read_package_manifest(folder)
    known, _ = unpack_tensors((root / WEIGHTS).read_bytes())
    if isinstance(weights, str | os.PathLike):
        weights, _ = unpack_tensors(Path(weights).read_bytes())
    new = known if weights is None else {name: np.asarray(array) for name, array in weights.items()}
    for name in known.keys() | new.keys():
        forms = [(d[name].shape, d[name].dtype) if name in d else "missing" for d in (known, new)]
        if forms[0] != forms[1]:
            raise SavedFileError(f"Weight {name!r} must be {forms[0]}, and is {forms[1]}.")
    if weights is not None:
        content = pack_tensors({name: new[name] for name in known})
        write_together({root / WEIGHTS: _writing(content)})
    model = onnx.load(root / PREDICT, load_external_data=False)
    new |= unpack_tensors((root / STATE).read_bytes())[0]  # averaged weights are computed from states
    for tensor in model.graph.initializer:
        if tensor.name in new:
            tensor.CopyFrom(numpy_helper.from_array(new[tensor.name], tensor.name))
    return model


def read_package_manifest(folder: str | os.PathLike) -> dict[str, Any]:
    """Check the manifest of a package, and return it."""
    try:
        manifest = json.loads((Path(folder) / MANIFEST).read_bytes())
    except ValueError as error:
        raise SavedFileError(f"{MANIFEST} in {folder} is not JSON: {error}.") from error
    number = manifest.get("format") if isinstance(manifest, dict) else None
    if isinstance(number, int) and number != FORMAT:
        raise SavedFileError(
            f"The package in {folder} has format {number}, and this version of ortlearn reads {FORMAT}: "
            "export it again, or use the version that wrote it."
        )
    check_manifest(manifest, PACKAGE_SCHEMA, MANIFEST)
    return manifest


def _writing(content: bytes) -> Any:
    return lambda file: file.write(content)
