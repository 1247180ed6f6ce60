"""Training packages: folders with graphs, tensors and a manifest for training with any ONNX Runtime."""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, numpy_helper

from ..exceptions import SavedFileError, warn_user
from ..graphs.files import write_together
from .package_files import (
    EPOCH,
    ESTIMATOR,
    FORMAT,
    MANIFEST,
    OLD_TENSORS,
    PREDICT,
    VALUES,
    PackageFiles,
    check_folder,
    check_values,
    packed_manifest,
    read_graph,
    read_package,
    read_regular_tensors,
    sealed,
)
from .package_schema import PACKAGE_SCHEMA
from .public import load, packed_estimator
from .summaries import read_summary
from .tensors import replace_tensors

__all__ = [
    "EPOCH",
    "FORMAT",
    "PACKAGE_SCHEMA",
    "PREDICT",
    "VALUES",
    "export_training",
    "load_training",
    "merge_weights",
]

CONTENT = "ortlearn.packages.files"


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
    weights of ``values.safetensors``), the weights and the states of the learning rate
    (``values.safetensors``), reference results for programs (``record.safetensors``), the manifest
    ``training.json``, and the estimator for :func:`load_training`.

    Parameters
    ----------
    estimator : OrtGradientOptimizer or OrtGradientForwardBackwardOptimizer
        Fitted estimator, from whose weights the training continues; also an OrtIntervalRegressor or
        OrtSetClassifier of one model, whose intervals or sets are then outputs of the prediction graphs.
    folder : str or os.PathLike
        Folder to write, created if missing. An earlier package in it is replaced; a folder with other files
        and no package is an error.
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
    TypeError
        If the estimator is not one of ortlearn.
    ValueError
        If ``example`` is not a pair of as many samples as labels, or ``batch_size`` is invalid.
    SavedFileError
        If the folder has files, and is not a package.
    PackageError
        If the training requires Python: a Python loss, steps that run in scikit-learn, a solver, a schedule
        that depends on the losses, class weights of several outputs, or text.
    OSError
        If the folder cannot be written.

    Warns
    -----
    UserWarning
        If the package that is replaced was trained for more epochs than the estimator.

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
    root = Path(folder)
    check_folder(root)
    manifest, files = pkgutil.resolve_name(CONTENT).package_of(
        estimator, batch_size, example, learning_rate, weighted
    )
    files[ESTIMATOR] = packed_estimator(estimator)
    content = packed_manifest(manifest, files)
    _warn_of_lost_epochs(root, estimator.n_iter_)
    root.mkdir(parents=True, exist_ok=True)
    old = {root / name: None for name in OLD_TENSORS}  # of a package of format 1
    write_together(
        {**old, **{root / n: _writing(c) for n, c in files.items()}, root / MANIFEST: _writing(content)}
    )


def _warn_of_lost_epochs(root: Path, n_iter: int) -> None:
    """Warn if a program has trained the package that is replaced further than the new one."""
    try:
        n_epochs = int(read_package(root, ESTIMATOR).values[EPOCH])
        total = read_summary(root / ESTIMATOR)["epochs"] + n_epochs
    except (SavedFileError, OSError):  # no package, or one that cannot be continued
        return
    if n_epochs and total > n_iter:
        warn_user(
            f"The package in {root} was trained for {total} epochs, {n_epochs} of them by a program, and is "
            f"replaced by one of {n_iter}: to keep its weights, export into another folder.",
            UserWarning,
        )


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
        ``n_iter_`` and ``history_`` include the epochs of the program, whose losses are None.

    Raises
    ------
    SavedFileError
        If the folder is missing or not a package, lacks a file, has another format, or is damaged:
        missing, misshaped or renamed tensors, values that are not finite or out of range, pipes and devices
        in the place of files.
    OSError
        If the folder cannot be read.
    """
    package = read_package(folder, ESTIMATOR)
    estimator = load(package.root / ESTIMATOR, trusted)
    return pkgutil.resolve_name(CONTENT).continued(estimator, package)


def merge_weights(
    folder: str | os.PathLike, weights: Mapping[str, np.ndarray] | str | os.PathLike | None = None
) -> ModelProto:
    """Write weights into a package, and return its prediction graph as a model that contains them.

    Parameters
    ----------
    folder : str or os.PathLike
        Folder of the package.
    weights : mapping of str to ndarray, or path, default=None
        Weights by name, either that of the package or that of ``get_weights``, or a file such as
        ``values.safetensors`` of another copy of the package, whose states are ignored; by
        default the weights of the package.

    Returns
    -------
    onnx.ModelProto
        Model without external data.

    Raises
    ------
    SavedFileError
        If names, shapes or types do not match the package, values are not finite, or the package is damaged.
    TypeError
        If the weights are neither a mapping nor a path.
    OSError
        If a file cannot be read or written; the weights in the package are then unchanged.
    """
    package = read_package(folder, PREDICT)
    values, model = package.values, read_graph(package, PREDICT)
    if weights is not None:
        values = {**values, **_new_weights(package, weights)}
        check_values(values, package.manifest["carried"])
    for tensor in model.graph.initializer:
        if tensor.name in values:
            tensor.CopyFrom(numpy_helper.from_array(values[tensor.name], tensor.name))
    if weights is not None:
        name, content = next(iter(package.contents.items()))  # the file with the weights
        content = replace_tensors(content, values)
        content = sealed(content) if package.manifest["format"] > 1 else content
        write_together({package.root / name: _writing(content)})
    return model


def _new_weights(package: PackageFiles, weights: Any) -> dict[str, np.ndarray]:
    """Return the weights of a mapping or a file, without the states of the file."""
    names = package.names(weights=True)
    if isinstance(weights, str | os.PathLike):
        found = read_regular_tensors(Path(weights))[1]
        found = {name: found[name] for name in found.keys() - {*package.names(weights=False), EPOCH}}
    elif isinstance(weights, Mapping):
        names_of = _names_by_original(package, weights)
        found = {names_of.get(name) or name: np.asarray(array) for name, array in weights.items()}
    else:
        raise TypeError(f"weights must be a mapping of arrays or a path, not {type(weights).__name__}.")
    if missing := sorted({*names} - found.keys()):
        raise SavedFileError(f"Weights are missing: {missing}. The package has {names}.")
    if unknown := sorted(map(str, found.keys() - {*names})):
        raise SavedFileError(f"Weights are unknown: {unknown}. The package has {names}.")
    return found


def _names_by_original(package: PackageFiles, given: Mapping[str, Any]) -> dict[str, str]:
    """Return the name of each weight by that of the estimator, if none is given by its own name."""
    carried = [item for item in package.manifest["carried"] if item["state"] is None]
    if any(item["name"] in given for item in carried):
        return {}
    return {item["original"]: item["name"] for item in carried if "original" in item}


def _writing(content: bytes) -> Any:
    return lambda file: file.write(content)
