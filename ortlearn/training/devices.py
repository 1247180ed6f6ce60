"""Devices, and tensors on them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..exceptions import DeviceError
from .providers import CPU, CUDA, default_options, fallbacks, find_provider, plugin_devices, unknown_device
from .runtime import runtime

__all__ = ["Device", "ort_device", "ort_value", "ort_vector", "parse_device"]

_DEVICE = re.compile(r"^(\w+)(?::(\d+))?$", re.ASCII)
_OWN = {"cpu": CPU, "cuda": CUDA}


@dataclass(frozen=True)
class Device:
    """Where tensors live and nodes run.

    Attributes
    ----------
    kind : {"cpu", "cuda"}
        Memory that tensors live in.
    index : int
        Number of the GPU, or of the device among those of a plugin.
    provider : str
        Execution provider that nodes are offered to first.
    options : tuple of (str, str)
        Options of the provider, sorted.
    plugin : bool
        Whether the provider was registered with onnxruntime, rather than built into it.
    """

    kind: str
    index: int = 0
    provider: str = ""
    options: tuple[tuple[str, str], ...] = ()
    plugin: bool = False

    def __post_init__(self) -> None:
        if not self.provider:
            object.__setattr__(self, "provider", _OWN[self.kind])

    @property
    def is_cpu(self) -> bool:
        """Whether tensors live in the memory of numpy arrays."""
        return self.kind == "cpu"

    @property
    def reads_entries(self) -> bool:
        """Whether nodes run where sparse samples are, so that graphs may read their entries."""
        return self.provider == CPU

    @property
    def is_native(self) -> bool:
        """Whether onnxruntime's own kernels run the nodes, those of the CPU or of CUDA."""
        return self.provider in _OWN.values()

    def all_options(self, threads: int = 1) -> dict[str, str]:
        """Return the options of the provider, and defaults of those that are not given.

        Parameters
        ----------
        threads : int, default=1
            Threads of an operator.

        Returns
        -------
        dict of str to str
            Options.
        """
        return {**default_options(self.provider, threads), **dict(self.options)}

    def providers(self, threads: int = 1) -> list[Any]:
        """Return the execution providers of a session on this device; a plugin is added by its devices.

        Parameters
        ----------
        threads : int, default=1
            Threads of an operator.

        Returns
        -------
        list
            Names, with options where there are any; the CPU comes last.
        """
        options: dict[str, Any] = self.all_options(threads)
        if self.kind == "cuda":
            options = {"device_id": self.index, **options}
        first = (self.provider, options) if options else self.provider
        return [first] if self.provider == CPU else [first, *fallbacks(self.provider)]

    def add_plugin(self, options: Any, threads: int) -> None:
        """Add the provider of a plugin to session options that have none yet.

        Parameters
        ----------
        options : onnxruntime.SessionOptions
            Options.
        threads : int
            Threads of an operator.
        """
        if not options.has_providers():
            chosen = plugin_devices(self.provider)[self.index]
            options.add_provider_for_devices([chosen], self.all_options(threads))


def parse_device(name: Any) -> Device:
    """Return the device of a name, if the installed onnxruntime can use it.

    Parameters
    ----------
    name : str or (str, dict)
        ``"cpu"``, ``"cuda"`` or ``"cuda:1"``, or an execution provider: its name in onnxruntime, or that in
        lower case without its end, such as ``"openvino"``, with ``"directml"`` for DirectML. A pair has
        options of the provider, too.

    Returns
    -------
    Device
        Memory, provider and options.

    Raises
    ------
    DeviceError
        If the name is unknown, or onnxruntime lacks the provider; the message lists those it has.

    Examples
    --------
    >>> from ortlearn.training import parse_device
    >>> parse_device("cpu") == parse_device("CPUExecutionProvider")
    True
    >>> parse_device(("CPUExecutionProvider", {"use_arena": 0})).providers()
    [('CPUExecutionProvider', {'use_arena': '0'})]
    """
    spec, options = _with_options(name)
    found = _DEVICE.match(spec)
    if found is None or (found[1] in ("cpu", CPU) and found[2] not in (None, "0")):
        raise unknown_device(name)
    short, index = found[1], int(found[2] or 0)
    if short in ("cuda", CUDA):
        return _cuda(name, index, options)
    provider, plugin = find_provider(_OWN.get(short, short))
    if plugin:
        n_devices = len(plugin_devices(provider))
        if index >= n_devices:
            raise DeviceError(f"device={name!r}: {provider} has {n_devices} device here, counted from 0.")
    elif found[2] is not None and provider != CPU:
        options = {"device_id": str(index), **options}
    return Device("cpu", index if plugin else 0, provider, tuple(sorted(options.items())), plugin)


def _with_options(name: Any) -> tuple[str, dict[str, str]]:
    """Return name and options of the parameter ``device``."""
    match name:
        case str():
            return name, {}
        case (str() as provider, dict() as options) if isinstance(name, tuple):
            return provider, {str(key): str(value) for key, value in options.items()}
    raise unknown_device(name)


def _cuda(name: Any, index: int, options: dict[str, str]) -> Device:
    available = runtime().get_available_providers()
    if CUDA not in available:
        raise DeviceError(
            f"device={name!r} needs the CUDAExecutionProvider, this build of onnxruntime has {available}. "
            "Install 'ortlearn[gpu]', or 'ortlearn[training-gpu]' (Linux, Python 3.10 or 3.11), or use "
            "device='cpu'."
        )
    index = int(options.pop("device_id", index))
    return Device("cuda", index, CUDA, tuple(sorted(options.items())))


def ort_device(device: Device) -> Any:
    """Return onnxruntime's own object for a device."""
    pybind = runtime().capi._pybind_state
    kind = pybind.OrtDevice.cpu() if device.is_cpu else pybind.OrtDevice.cuda()
    return pybind.OrtDevice(kind, pybind.OrtDevice.default_memory(), device.index)


def ort_value(array: np.ndarray, device: Device) -> Any:
    """Return a tensor on a device; on the CPU it shares the memory of the array."""
    return runtime().OrtValue.ortvalue_from_numpy(array, device.kind, device.index)


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
