"""Load, differentiate and train an ONNX file."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from ortlearn import OrtGradientOptimizer, onnx_files
from ortlearn.differentiation import random_feed
from ortlearn.graphs import initializer_arrays
from ortlearn.graphs.nodes import all_nodes
from ortlearn.learning_rates import LearningRateAdam
from ortlearn.onnx_files.loading import read_onnx
from ortlearn.onnx_files.weights import find_weights
from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session
from ortlearn.training.optimisations.activations import activation_bytes

from .derivatives import check_derivative, inputs_that_run

__all__ = ["Attempt", "attempt"]

#: Numbers of training samples and epochs, and the learning rate of Adam.
ROWS, EPOCHS, RATE = 32, 5, 1e-4
#: Sizes of dynamic dimensions, to try one after the other.
LENGTHS = (8, 64, 256)
#: Limits for training: bytes of the activations of all samples, and number of weights.
ACTIVATIONS, LARGEST = 2**28, 30_000_000


@dataclass
class Attempt:
    """Results of a file.

    Attributes
    ----------
    opset : int
        Version of the operators of ONNX.
    operators : dict of str to int
        Number of nodes by operator.
    derivative : str
        ``"right"``, ``"wrong"``, or the reason of a failure.
    error : float
        Largest relative error of the derivative.
    ratio : float
        Time of forward and backward divided by the time of a forward pass.
    trained : str
        ``"yes"``, or the reason of a failure.
    """

    opset: int = 0
    operators: dict[str, int] = field(default_factory=dict)
    derivative: str = ""
    error: float = float("nan")
    ratio: float = float("nan")
    trained: str = ""


def attempt(path: Path) -> Attempt:
    """Read, differentiate and train a file."""
    file, _ = read_onnx(path)
    found = Attempt(
        max((item.version for item in file.opset_import if item.domain in ("", "ai.onnx")), default=0),
        dict(Counter(node.op_type for node in all_nodes(file.graph))),
    )
    try:
        model = onnx_files.open(file, feeds="random", trainable=True)
        derivative = check_derivative(model, file)
        found.derivative, found.error, found.ratio = derivative.verdict, derivative.error, derivative.ratio
    except Exception as error:
        found.derivative = _message(error)
    try:
        found.trained = _train(file) if _has_weights(file) else "has no weights"
    except Exception as error:
        found.trained = _message(error)
    return found


def _has_weights(file: onnx.ModelProto) -> bool:
    """Return whether a file has learned weights."""
    return any(weight.learned for weight in find_weights(onnx_files.open(file, trainable=True)).values())


def _with_shared_inputs(file: onnx.ModelProto) -> onnx.ModelProto:
    """Return a file with zeros as default of inputs without samples, such as initial states."""
    weights = {tensor.name for tensor in file.graph.initializer}
    own = [v for v in file.graph.input if v.name not in weights and v.type.tensor_type.shape.dim]
    fixed = [v for v in own if v.type.tensor_type.shape.dim[0].HasField("dim_value")]
    if len(fixed) == len(own):
        return file
    result = onnx.ModelProto()
    result.CopyFrom(file)
    zeros = random_feed(fixed)
    result.graph.initializer.extend(numpy_helper.from_array(0 * zeros[v.name], v.name) for v in fixed)
    return result


def _train(file: onnx.ModelProto) -> str:
    """Train a file on random samples; return "yes" if its predictions change, otherwise the reason."""
    file = _with_shared_inputs(file)
    model = onnx_files.open(file, trainable=True)
    if sum(array.size for array in initializer_arrays(model).values() if array.dtype.kind == "f") > LARGEST:
        return "left out for its size"
    rng, run = np.random.default_rng(0), _Forward(model)
    size = activation_bytes(model, random_feed(model, 1, LENGTHS[0]))
    rows = min(ROWS, max(2, ACTIVATIONS // max(1, size)))
    sizes = [(rows, length) for length in LENGTHS]
    feeds = inputs_that_run(model, model, run, sizes, rng)
    X = feeds if len(feeds) > 1 else next(iter(feeds.values()))
    before, n_samples = run(feeds), len(next(iter(feeds.values())))
    if before.shape[:1] != (n_samples,):
        return f"its output has the shape {before.shape} for {n_samples} samples"
    if before.dtype.kind == "f":
        y = before + 0.1 * rng.normal(size=before.shape).astype(before.dtype)
    else:
        y = rng.permutation(np.resize(np.unique(before), len(before)))
    options = {"max_iter": EPOCHS, "random_state": 0, "warm_start": True, "keep_better": False}
    trained = OrtGradientOptimizer(file, learning_rate=LearningRateAdam(RATE), **options).fit(X, y)
    given = trained.get_trained_onnx()
    for part in ("input", "output", "doc_string"):
        assert getattr(given.graph, part) == getattr(file.graph, part), f"{part} differs"
    after = _Forward(onnx_files.open(given, trainable=True))(feeds)
    np.testing.assert_allclose(after, before, atol=1e6)  # equal shapes, finite values
    if before.dtype.kind == "f" and np.array_equal(after, before):
        return "no weight moved"
    return "yes"


class _Forward:
    """The first output of a graph as a function of its inputs."""

    def __init__(self, model: onnx.ModelProto):
        self._session = make_session(model, Device("cpu"))
        self._names = {value.name for value in self._session.get_inputs()}

    def __call__(self, feeds: dict[str, np.ndarray]) -> np.ndarray:
        return self._session.run(None, {n: a for n, a in feeds.items() if n in self._names})[0]


def _message(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0][:160]}"


if __name__ == "__main__":
    print("RESULT " + json.dumps(asdict(attempt(Path(sys.argv[1])))))
