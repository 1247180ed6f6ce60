"""Devices, and tensors on them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..exceptions import DeviceError
from .runtime import runtime

__all__ = ["Device", "ort_device", "ort_value", "ort_vector", "parse_device"]

_DEVICE = re.compile(r"^(cpu|cuda)(?::(\d+))?$")


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
    >>> from ortlearn.training import parse_device
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


def ort_device(device: Device) -> Any:
    """Return onnxruntime's own object for a device."""
    pybind = runtime().capi._pybind_state
    kind = pybind.OrtDevice.cpu() if device.is_cpu else pybind.OrtDevice.cuda()
    return pybind.OrtDevice(kind, pybind.OrtDevice.default_memory(), device.index)


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
