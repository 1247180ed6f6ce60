"""Creation of onnxruntime sessions."""

from __future__ import annotations

import multiprocessing
import os
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from onnx import ModelProto

from ..exceptions import DeviceError
from ..graphs import count_nodes, with_loop_limits
from ..graphs.external_tensors import FILES_FOLDER, for_session
from .devices import Device, ort_value
from .forks import keep_alive_in_forks
from .onnxruntime_module import runtime, runtime_failures

__all__ = [
    "CONDITION",
    "make_session",
    "n_threads",
    "session_options",
]

#: Disabled optimizations of onnxruntime: this one fails for a sum with a Gemm of the third or a later output
#: of a Split, as in gradients of slices.
DISABLED_OPTIMIZERS = frozenset({"GemmSumFusion"})
#: Optimization that reads initializers when a session is created.
FOLDING = frozenset({"ConstantFolding"})
#: Maps of files as tensors, by address: sessions do not own them, and they take no memory.
_SHARED: dict[int, tuple[np.ndarray, Any]] = {}
#: Number of nodes above which memory reuse is not planned; the arena still reuses released memory.
MANY_NODES = 4096
#: Name of the condition of Loops over batches, which identifies them.
CONDITION = "ortlearn_condition"


def session_options(n_jobs: int | None = None, spins: bool = True) -> Any:
    """Return session options for a number of threads: None means one, -1 all cores.

    Use ``spins=False`` if several sessions run alternately: the waiting threads of one would occupy the cores
    of the other.
    """
    ort = runtime()
    options = ort.SessionOptions()
    options.intra_op_num_threads = n_threads(n_jobs)
    if _is_worker() or not spins:  # other workers need the cores
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Nodes run as written, batch after batch. By default, all batches of an iteration gather their samples
    # first, which then leave the cache.
    options.execution_order = ort.ExecutionOrder.PRIORITY_BASED
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
    spins: bool = True,
) -> Any:
    """Return an inference session on a device.

    ``options`` and ``providers`` replace those of ``n_jobs`` and the device. Waiting threads should not spin
    in sessions that run alternately.
    """
    own = providers is None
    if options is None:
        options = session_options(n_jobs, spins)
        # The time to plan memory reuse is quadratic in the number of nodes.
        options.enable_mem_reuse = options.enable_mem_pattern = count_nodes(model.graph) < MANY_NODES
    if own and device.plugin:
        device.add_plugin(options, options.intra_op_num_threads)
    elif own:
        providers = device.providers(options.intra_op_num_threads)
    model, values, folder = for_session(with_loop_limits(model, CONDITION))
    _share(values, folder, options, device)
    session = runtime().InferenceSession(
        model.SerializeToString(),
        options,
        providers=providers,
        provider_options=provider_options,
        disabled_optimizers=DISABLED_OPTIMIZERS | FOLDING if values else DISABLED_OPTIMIZERS,
    )
    if own and device.provider not in session.get_providers():
        raise DeviceError(
            f"onnxruntime has the {device.provider}, but cannot start it here and would only use "
            f"{session.get_providers()}. Install the driver and the libraries that it needs."
        )
    session.copies_inputs = not device.is_native
    return keep_alive_in_forks(session)


def _share(values: dict[str, np.ndarray], folder: str, options: Any, device: Device) -> None:
    """Pass the values of external initializers to the options of a session, as tensors that map files."""
    shared = {name: _shared_value(array) for name, array in values.items()}
    if device.is_cpu:
        for name, value in shared.items():
            try:
                options.add_initializer(name, value)
            except runtime_failures() as error:
                if "already" not in str(error):  # the sessions of one graph may have the same options
                    raise
    elif shared:  # other devices copy them
        options.add_external_initializers(list(shared), list(shared.values()))
    if folder:
        options.add_session_config_entry(FILES_FOLDER, folder)


def _shared_value(array: np.ndarray) -> Any:
    """Return the tensor of a map of a file; the map is kept, as its id is the key."""
    if id(array) not in _SHARED:
        _SHARED[id(array)] = array, ort_value(array, Device("cpu"))
    return _SHARED[id(array)][1]


def _is_worker() -> bool:
    """Return whether this is a worker process, as of joblib."""
    return multiprocessing.parent_process() is not None


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads of an operator: one for None, all cores for -1."""
    # In daemonic workers, effective_n_jobs returns one with a warning.
    wanted = 1 if multiprocessing.current_process().daemon else effective_n_jobs(n_jobs)
    share = os.environ.get("OMP_NUM_THREADS", "")
    if _is_worker() and share.isdigit():
        wanted = min(wanted, int(share))
    return max(wanted, 1)
