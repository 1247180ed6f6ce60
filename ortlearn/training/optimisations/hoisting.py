"""The part of a graph that depends only on inputs and frozen weights, computed once before training."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from onnx import ModelProto, TensorProto, helper
from scipy.sparse import csr_matrix, issparse, vstack

from ...data.samples import Data
from ...exceptions import ConversionError
from ...graphs import TensorType, extract_model, make_value_info, node_inputs
from ...runtime.buffers import dense_samples, sample_bytes, take_samples
from ...runtime.checked_sessions import open_session
from ...runtime.devices import Device
from ..graphs.names import SAMPLE_WEIGHT
from ..graphs.task import TrainingTask

__all__ = ["Limits", "Prefix", "hoist", "needs_hoisting", "split_prefix"]

#: Approximate bytes of a chunk of samples, which bounds the memory.
CHUNK_BYTES = 2**24
#: Samples for the check that the frozen part computes each sample independently.
PROBE_SAMPLES = 8


class Limits(NamedTuple):
    """Bounds of the memory of the frozen part of a graph."""

    chunk: int = 2**23  # approximate bytes of a chunk, whose intermediate results then stay in the cache
    results: int = 2**31  # maximum bytes of the results of all samples, if they are larger than the samples
    sparse: int = 2**28  # minimum bytes of results with few nonzeros (text, categories) to store them as CSR
    density: float = 0.05  # maximum proportion of nonzeros of these


LIMITS = Limits()


def needs_hoisting(task: TrainingTask) -> bool:
    """Return whether a task has text inputs, which training loops do not support."""
    return any(known.elem_type == TensorProto.STRING for known in task.graph.features.values())


def hoist(
    task: TrainingTask, data: Data, device: Device, n_jobs: int | None, limits: Limits = LIMITS
) -> tuple[TrainingTask, Data]:
    """Compute the frozen prefix of a task on all samples, and return the remaining task.

    A prefix stays in the task if its results for a sample depend on other samples, such as a mean over the
    batch, or if they take more than 2 GiB and more than the samples themselves.
    """
    left, prefix = split_prefix(task, data, device, n_jobs, limits)
    return left, data if prefix is None else prefix.apply(data)


class Transformer:
    """A transformer of scikit-learn instead of a session: it keeps the features of documents sparse."""

    def __init__(self, name: str, transformer: Any, dtype: np.dtype):
        self.name, self.transformer, self.dtype = name, transformer, dtype

    def get_outputs(self) -> list[Transformer]:
        return [self]

    def run(self, outputs: list[str] | None, feeds: dict[str, np.ndarray]) -> list[Any]:
        """Return the features of documents of shape (n, 1) as a CSR matrix."""
        (documents,) = feeds.values()
        found = csr_matrix(self.transformer.transform(documents.ravel()), dtype=self.dtype)
        found.sum_duplicates()
        found.eliminate_zeros()
        return [found]


class Prefix:
    """The frozen part of a graph.

    It has the inputs ``read``; the remaining graph also reads the inputs ``passed`` of the task. Inputs or
    results take up to ``bytes_per_sample`` per sample.
    """

    def __init__(
        self,
        task: TrainingTask,
        model: ModelProto,
        device: Device,
        n_jobs: int | None,
        read: list[str],
        passed: list[str],
        bytes_per_sample: int,
        limits: Limits,
        transformer: Transformer | None = None,
    ):
        self._task, self._model, self._read, self._passed = task, model, read, passed
        self._device, self._n_jobs = device, n_jobs
        self.bytes_per_sample, self._limits = bytes_per_sample, limits
        self._transformer = transformer

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "session"}

    @cached_property
    def session(self) -> Any:
        """Session, created once per process."""
        return self._transformer or open_session(self._model, self._device, self._n_jobs)

    def apply(self, data: Data) -> Data:
        """Return samples with the features of the remaining graph."""
        inputs = self._task.inputs(data)
        feeds = {name: inputs[name] for name in self._read}
        features = _run_in_chunks(self.session, feeds, self.bytes_per_sample, self._limits)
        features.update({name: inputs[name] for name in self._passed})
        return Data(data.X, data.y, data.sample_weight, features, data.members)


def split_prefix(
    task: TrainingTask, data: Data, device: Device, n_jobs: int | None, limits: Limits = LIMITS
) -> tuple[TrainingTask, Prefix | None]:
    """Return the task without its frozen prefix, and the prefix or None."""
    inputs = task.inputs(data)
    frontier = _frontier(task)
    own = [name for name in frontier if name not in inputs]
    if not own:
        return _checked(task), None
    prefix = _with_dynamic_batch(extract_model(task.graph.model, own, inputs=list(inputs)))
    feeds = {value.name: inputs[value.name] for value in prefix.graph.input}
    passed = [name for name in frontier if name in inputs]
    n_bytes, steps = sample_bytes(feeds.values()), task.graph.transformers.get(own[0])
    transformer = Transformer(own[0], steps, task.graph.dtype) if steps and len(own) == 1 else None
    found = Prefix(task, prefix, device, n_jobs, list(feeds), passed, n_bytes, limits, transformer)
    some: list[Any] | None
    if transformer is None:
        some = _samplewise_results(found.session, feeds)
    else:
        some = transformer.run(None, {name: array[:1] for name, array in feeds.items()})
    if some is None or not (needs_hoisting(task) or _fits(some, feeds, limits)):
        return _checked(task), None
    outputs = (value.name for value in found.session.get_outputs())
    known = {
        name: TensorType(helper.np_dtype_to_tensor_dtype(array.dtype), (None, *array.shape[1:]))
        for name, array in (*zip(outputs, some, strict=True), *((name, inputs[name]) for name in passed))
    }
    others = [value.name for value in task.graph.model.graph.input if value.name not in inputs]
    results = [task.graph.output, *task.graph.statistics.values()]
    rest = extract_model(task.graph.model, results, inputs=[*frontier, *others])
    for value in rest.graph.input:
        if value.name in known:
            value.CopyFrom(make_value_info(value.name, known[value.name]))
    if transformer is None:  # otherwise the results of a chunk are sparse
        found.bytes_per_sample = max(n_bytes, sample_bytes(some))
    return _checked(task.changed(model=rest, features=known)), found


def _checked(task: TrainingTask) -> TrainingTask:
    """Return the task, or raise an error if it has text inputs."""
    if needs_hoisting(task):
        types = task.graph.features.items()
        texts = [name for name, known in types if known.elem_type == TensorProto.STRING]
        raise ConversionError(
            f"Inputs {texts} are text, and the operators that read them cannot be computed before the "
            "training, since they depend on trained weights or on other samples. Encode these columns as "
            "numbers first."
        )
    return task


def _frontier(task: TrainingTask) -> list[str]:
    """Return the inputs and results of the frozen part that the remaining graph reads."""
    changing = {*task.graph.weights, task.objective.label, SAMPLE_WEIGHT}
    frozen = set(task.graph.features)
    constants: set[str] = {tensor.name for tensor in task.graph.model.graph.initializer}
    read: list[str] = []
    for node in task.graph.model.graph.node:
        reads = node_inputs(node)
        if reads & changing or task.graph.output in node.output:
            changing.update(node.output)
            read += [name for name in node.input if name in frozen]
            read += sorted(reads & frozen - set(node.input))
        elif reads <= constants:
            constants.update(node.output)
        else:
            frozen.update(node.output)
    return list(dict.fromkeys(read))


def _with_dynamic_batch(prefix: ModelProto) -> ModelProto:
    """Return a prefix with a dynamic number of samples."""
    for source in prefix.graph.input:
        for dim in source.type.tensor_type.shape.dim[:1]:
            dim.dim_param = "rows"
    for value in prefix.graph.output:
        if value.type.HasField("tensor_type"):  # types after fused operators are unknown
            value.type.tensor_type.ClearField("shape")
    return prefix


def _samplewise_results(session: Any, feeds: dict[str, Any]) -> list[np.ndarray] | None:
    """Return the results for some samples, or None if they depend on the other samples of a batch."""
    # Spread over the data, since neighbours are often equal.
    last = _n_samples(feeds) - 1
    chosen = np.linspace(0, last, min(PROBE_SAMPLES, last + 1)).astype(np.int64)
    probe = {name: take_samples(array, chosen) for name, array in feeds.items()}
    together = session.run(None, probe)
    parts_of = [{name: array[i : i + 1] for name, array in probe.items()} for i in range(len(chosen))]
    single = [session.run(None, part) for part in parts_of]
    for position, whole in enumerate(together):
        parts = [result[position] for result in single]
        shapes = {part.shape for part in parts}
        if whole.ndim == 0 or len(whole) != len(chosen) or shapes != {(1, *whole.shape[1:])}:
            return None
        if not _is_close(whole, np.concatenate(parts)):
            return None
    return together


def _is_close(left: np.ndarray, right: np.ndarray) -> bool:
    if left.dtype.kind == "f":
        return np.allclose(left, right, rtol=1e-5, atol=1e-6, equal_nan=True)
    return np.array_equal(left, right)


def _fits(values: list[np.ndarray], feeds: dict[str, Any], limits: Limits) -> bool:
    """Return whether results can be stored for all samples, given those for some of them."""
    n_samples, total = _n_samples(feeds), 0.0
    for value in values:
        is_sparse = _stays_sparse(value, n_samples, limits)
        of_sample = (
            3 * np.count_nonzero(value) * value.itemsize / len(value) if is_sparse else sample_bytes([value])
        )
        total += n_samples * of_sample
    return total <= max(limits.results, n_samples * sample_bytes(feeds.values()))


def _n_samples(feeds: dict[str, Any]) -> int:
    return next(iter(feeds.values())).shape[0]


def _run_in_chunks(session: Any, feeds: dict[str, Any], n_bytes: int, limits: Limits) -> dict[str, Any]:
    """Return the results of a session for all samples; large ones with few nonzeros as CSR matrices."""
    outputs = [value.name for value in session.get_outputs()]
    n_samples = _n_samples(feeds)
    size = max(1, limits.chunk // max(1, n_bytes))
    results: dict[str, Any] = {}
    for start in range(0, n_samples, size):
        chunk = {name: dense_samples(array[start : start + size]) for name, array in feeds.items()}
        for output, value in zip(outputs, session.run(outputs, chunk), strict=True):
            if start == 0:
                sparse = _stays_sparse(value, n_samples, limits)
                results[output] = [] if sparse else np.empty((n_samples, *value.shape[1:]), dtype=value.dtype)
            if isinstance(results[output], list):
                results[output].append(value if issparse(value) else _as_sparse(value))
            else:
                results[output][start : start + size] = dense_samples(value)
    return {k: vstack(v, format="csr") if isinstance(v, list) else v for k, v in results.items()}


def _stays_sparse(value: Any, n_samples: int, limits: Limits) -> bool:
    n_bytes = n_samples * value.dtype.itemsize * (value.shape[1] if value.ndim == 2 else 0)
    if value.dtype.kind != "f" or n_bytes < max(1, limits.sparse):
        return False
    count = value.nnz if issparse(value) else np.count_nonzero(value)
    return bool(count <= limits.density * math.prod(value.shape))


def _as_sparse(dense: np.ndarray) -> csr_matrix:
    """Return a dense matrix as CSR, faster than scipy, which searches nonzeros in two dimensions."""
    found = np.flatnonzero(dense.ravel() != 0)
    starts = np.searchsorted(found, np.arange(len(dense) + 1) * dense.shape[1])
    return csr_matrix((dense.ravel()[found], found % dense.shape[1], starts), shape=dense.shape)
