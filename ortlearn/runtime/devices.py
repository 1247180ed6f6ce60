"""Devices, and tensors on them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..exceptions import DeviceError, limit_address
from .onnxruntime_module import runtime
from .providers import CPU, CUDA, default_options, fallbacks, find_provider, plugin_devices, unknown_device

__all__ = ["Device", "ort_device", "ort_scalar", "ort_value", "ort_vector", "parse_device"]

_DEVICE = re.compile(r"^(\w+)(?::(\d+))?$", re.ASCII)
_OWN = {"cpu": CPU, "cuda": CUDA}


@dataclass(frozen=True)
class Device:
    """Memory of tensors and execution provider of nodes.

    Attributes
    ----------
    kind : {"cpu", "cuda"}
        Memory of the tensors.
    index : int
        Index of the GPU, or of the device among those of a plugin.
    provider : str
        Preferred execution provider.
    options : tuple of (str, str)
        Options of the provider, sorted.
    plugin : bool
        Whether the provider is a plugin, registered with onnxruntime, and not built into it.
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
        """Whether tensors can share memory with numpy arrays."""
        return self.kind == "cpu"

    @property
    def reads_entries(self) -> bool:
        """Whether graphs may read the entries of sparse samples: only on the CPU."""
        return self.provider == CPU

    @property
    def is_native(self) -> bool:
        """Whether nodes run in onnxruntime's own kernels for the CPU or CUDA."""
        return self.provider in _OWN.values()

    def all_options(self, threads: int = 1) -> dict[str, str]:
        """Return the options of the provider, including defaults."""
        return {**default_options(self.provider, threads), **dict(self.options)}

    def providers(self, threads: int = 1) -> list[Any]:
        """Return the execution providers of a session on this device; see ``add_plugin`` for plugins."""
        options: dict[str, Any] = self.all_options(threads)
        if self.kind == "cuda":
            options = {"device_id": self.index, **options}
        first = (self.provider, options) if options else self.provider
        return [first] if self.provider == CPU else [first, *fallbacks(self.provider)]

    def add_plugin(self, options: Any, threads: int) -> None:
        """Add the provider of a plugin to session options, unless they have providers."""
        if not options.has_providers():
            chosen = plugin_devices(self.provider)[self.index]
            options.add_provider_for_devices([chosen], self.all_options(threads))


def parse_device(name: Any) -> Device:
    """Return the device with a name, if the installed onnxruntime supports it.

    Parameters
    ----------
    name : str or (str, dict)
        ``"cpu"``, ``"cuda"`` or ``"cuda:1"``, or an execution provider: its name in onnxruntime, or a short
        name in lower case, such as ``"openvino"`` or ``"directml"``. A tuple adds options of the provider.

    Returns
    -------
    Device
        Memory, provider and options.

    Raises
    ------
    DeviceError
        If the name is unknown, or onnxruntime does not have the provider; the message lists those it has.

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
            raise DeviceError(
                f"device={name!r} does not exist: {provider} has {n_devices} device(s), counted from 0."
            )
    elif found[2] is not None and provider != CPU:
        options = {"device_id": str(index), **options}
    return Device("cpu", index if plugin else 0, provider, tuple(sorted(options.items())), plugin)


def _with_options(name: Any) -> tuple[str, dict[str, str]]:
    """Return the name and the options in the parameter ``device``."""
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
            f"device={name!r} needs the CUDAExecutionProvider, but this build of onnxruntime has only "
            f"{available}. Install 'ortlearn[gpu]', or 'ortlearn[training-gpu]' (Linux, Python 3.10 or "
            f"3.11), or use device='cpu'.{limit_address('devices')}"
        )
    index = int(options.pop("device_id", index))
    return Device("cuda", index, CUDA, tuple(sorted(options.items())))


def ort_device(device: Device) -> Any:
    """Return the OrtDevice of a device."""
    pybind = runtime().capi._pybind_state
    kind = pybind.OrtDevice.cpu() if device.is_cpu else pybind.OrtDevice.cuda()
    return pybind.OrtDevice(kind, pybind.OrtDevice.default_memory(), device.index)


def ort_value(array: np.ndarray, device: Device) -> Any:
    """Return a tensor on a device; on the CPU it shares the memory of the array."""
    return runtime().OrtValue.ortvalue_from_numpy(array, device.kind, device.index)


def ort_scalar(dtype: Any, device: Device) -> Any:
    """Return a new scalar tensor on a device."""
    return ort_value(np.zeros((), dtype=dtype), device)


def ort_vector(tensors: Any, devices: list[Any]) -> Any:
    """Return tensors (arrays or OrtValues of either interface) as an OrtValueVector.

    It shares the memory of contiguous arrays, which it does not keep alive; others are copied.
    """
    pybind = runtime().capi._pybind_state
    if isinstance(tensors, pybind.OrtValueVector):
        return tensors
    vector = pybind.OrtValueVector()
    vector.reserve(len(tensors))
    for tensor, device in zip(tensors, devices, strict=True):
        if isinstance(tensor, np.ndarray):
            array, of = np.asarray(tensor, order="C"), pybind.OrtValue
            if array is tensor:
                tensor = of.ortvalue_from_numpy(array, device)
            else:
                tensor = of.ortvalue_from_shape_and_type(array.shape, array.dtype.type, device)
                tensor.update_inplace(array)
        vector.push_back(getattr(tensor, "_ortvalue", tensor))
    return vector
