"""The only place that makes onnxruntime sessions, and puts tensors on a device."""

from __future__ import annotations

import multiprocessing
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from onnx import ModelProto

from ..exceptions import DeviceError, MissingRuntimeError
from ..graphs import count_nodes, with_loop_limits
from .forks import outlive_forks

__all__ = [
    "Device",
    "make_session",
    "n_threads",
    "not_implemented",
    "ort_device",
    "ort_value",
    "ort_vector",
    "parse_device",
    "run_vectors",
    "runtime",
    "session_options",
]

#: Optimizations that onnxruntime goes without: this one stops at a Gemm of the third output of a Split, or
#: a later one, whose result is summed, as the gradients of slices are.
FAULTY = frozenset({"GemmSumFusion"})
#: Nodes from which on tensors do not share memory: the arena uses again what is released, all the same.
MANY_NODES = 4096
#: Condition of the Loops over batches, which may be of any length.
GO_ON = "ortlearn_go_on"
_DEVICE = re.compile(r"^(cpu|cuda)(?::(\d+))?$")


def runtime() -> ModuleType:
    """Return the module onnxruntime, imported when it is first needed.

    Raises
    ------
    MissingRuntimeError
        If no onnxruntime is installed; the message names the extras.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingRuntimeError(
            "No onnxruntime is installed. Install one of the extras: pip install 'ortlearn[training]' to "
            "train and predict on the CPU (Python 3.10 to 3.12), 'ortlearn[training-gpu]' on a GPU."
        ) from error
    return onnxruntime


@dataclass(frozen=True)
class Device:
    """Where tensors live and nodes run.

    Attributes
    ----------
    kind : {"cpu", "cuda"}
        Kind of device.
    index : int
        Its number.
    """

    kind: str
    index: int = 0

    @property
    def is_cpu(self) -> bool:
        """Whether tensors live in the memory of numpy arrays."""
        return self.kind == "cpu"

    def providers(self) -> list[Any]:
        """Return the execution providers of a session on this device.

        Returns
        -------
        list
            Names, with options where there are any; the CPU comes last.
        """
        if self.is_cpu:
            return ["CPUExecutionProvider"]
        return [("CUDAExecutionProvider", {"device_id": self.index}), "CPUExecutionProvider"]


def parse_device(name: Any) -> Device:
    """Return the device of a name, if the installed onnxruntime can use it.

    Parameters
    ----------
    name : str
        ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.

    Returns
    -------
    Device
        Kind and number.

    Raises
    ------
    DeviceError
        If the name is unknown or onnxruntime lacks the provider.

    Examples
    --------
    >>> from ortlearn.training.sessions import parse_device
    >>> parse_device("cpu")
    Device(kind='cpu', index=0)
    """
    found = _DEVICE.match(name) if isinstance(name, str) else None
    if found is None or (found[1] == "cpu" and found[2] not in (None, "0")):
        raise DeviceError(f"device={name!r} is unknown, use 'cpu', 'cuda' or 'cuda:1'.")
    device = Device(found[1], int(found[2] or 0))
    available = runtime().get_available_providers()
    if not device.is_cpu and "CUDAExecutionProvider" not in available:
        raise DeviceError(
            f"device={name!r} needs the CUDAExecutionProvider, this build of onnxruntime has {available}. "
            "Install 'ortlearn[gpu]', or 'ortlearn[training-gpu]' (Linux, Python 3.10 or 3.11), or use "
            "device='cpu'."
        )
    return device


def session_options(n_jobs: int | None = None) -> Any:
    """Return session options for some threads: None is one, -1 all cores."""
    ort = runtime()
    options = ort.SessionOptions()
    options.intra_op_num_threads = n_threads(n_jobs)
    if _is_worker():
        # Threads that spin while they wait take the cores of the other workers.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Extended fusions give wrong results for a transposed matrix times a vector in 1.19.2.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return options


def make_session(
    model: ModelProto,
    device: Device,
    n_jobs: int | None = None,
    *,
    options: Any = None,
    provider_options: Any = None,
    providers: Any = None,
) -> Any:
    """Return an inference session.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph.
    device : Device
        Where it runs.
    n_jobs : int, default=None
        Threads of an operator: None is one, -1 all cores.
    options : onnxruntime.SessionOptions, default=None
        Replaces the options made from ``n_jobs``.
    provider_options, providers : default=None
        Replace those of the device.

    Returns
    -------
    onnxruntime.InferenceSession
        Session.
    """
    if options is None:
        options = session_options(n_jobs)
        # Planning which tensors share memory takes time that grows with the square of the nodes.
        options.enable_mem_reuse = options.enable_mem_pattern = count_nodes(model.graph) < MANY_NODES
    content = with_loop_limits(model, GO_ON).SerializeToString()
    session = runtime().InferenceSession(
        content,
        options,
        providers=device.providers() if providers is None else providers,
        provider_options=provider_options,
        disabled_optimizers=FAULTY,
    )
    return outlive_forks(session)


def not_implemented() -> type[Exception]:
    """Return the error of onnxruntime for an operator without a kernel for its types."""
    return runtime().capi.onnxruntime_pybind11_state.NotImplemented


def _is_worker() -> bool:
    """Tell whether this is a process that another one started to share work with, as joblib does."""
    return multiprocessing.parent_process() is not None


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads of an operator.

    Parameters
    ----------
    n_jobs : int or None
        None is one, -1 all cores, -2 all but one. In a worker process never more than the share of
        the cores that its parent gave it in ``OMP_NUM_THREADS``, as joblib does.

    Returns
    -------
    int
        At least one.

    Examples
    --------
    >>> from ortlearn.training.sessions import n_threads
    >>> n_threads(None), n_threads(2)
    (1, 2)
    """
    # Workers of a pool may have no children: joblib says one, and warns of loops that nobody asked for.
    wanted = 1 if multiprocessing.current_process().daemon else effective_n_jobs(n_jobs)
    share = os.environ.get("OMP_NUM_THREADS", "")
    if _is_worker() and share.isdigit():
        wanted = min(wanted, int(share))
    return max(wanted, 1)


def ort_value(array: np.ndarray, device: Device) -> Any:
    """Return a tensor on a device; on the CPU it shares the memory of the array.

    Parameters
    ----------
    array : ndarray
        Values, C-contiguous.
    device : Device
        Where to put them.

    Returns
    -------
    onnxruntime.OrtValue
        Tensor.
    """
    return runtime().OrtValue.ortvalue_from_numpy(array, device.kind, device.index)


def ort_device(device: Device) -> Any:
    """Return onnxruntime's own object for a device."""
    pybind = runtime().capi._pybind_state
    kind = pybind.OrtDevice.cpu() if device.is_cpu else pybind.OrtDevice.cuda()
    return pybind.OrtDevice(kind, pybind.OrtDevice.default_memory(), device.index)


def ort_vector(tensors: Any, devices: list[Any]) -> Any:
    """Return tensors (arrays or OrtValues of either interface) as an OrtValueVector."""
    pybind = runtime().capi._pybind_state
    if isinstance(tensors, pybind.OrtValueVector):
        return tensors
    vector = pybind.OrtValueVector()
    vector.reserve(len(tensors))
    for tensor, device in zip(tensors, devices, strict=True):
        if isinstance(tensor, np.ndarray):
            tensor = pybind.OrtValue.ortvalue_from_numpy(np.asarray(tensor, order="C"), device)
        vector.push_back(getattr(tensor, "_ortvalue", tensor))
    return vector


@lru_cache(maxsize=1)
def _default_run_options() -> Any:
    return runtime().RunOptions()


def run_vectors(
    session: Any,
    input_names: list[str],
    feeds: Any,
    output_names: list[str],
    fetches: Any,
    device: Any,
    run_options: Any = None,
) -> None:
    """Run a session on vectors of tensors; tensors already in ``fetches`` are written in place.

    Parameters
    ----------
    session : onnxruntime.InferenceSession
        Session.
    input_names, output_names : list of str
        Names of the tensors in both vectors.
    feeds, fetches : OrtValueVector
        Inputs and outputs; an empty vector of outputs is filled.
    device : OrtDevice
        Where new outputs go.
    run_options : onnxruntime.RunOptions, default=None
        Options of the run.
    """
    session._sess.run_with_ortvaluevector(
        run_options or _default_run_options(),
        input_names,
        feeds,
        output_names,
        fetches,
        [device] * len(output_names),
    )
