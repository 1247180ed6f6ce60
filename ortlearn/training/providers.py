"""Execution providers: those of the installed onnxruntime, and those that plugin packages bring."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Sequence
from threading import Lock
from typing import Any

from ..exceptions import DeviceError
from .forks import guard
from .runtime import runtime

__all__ = [
    "CPU",
    "CUDA",
    "default_options",
    "fallbacks",
    "find_provider",
    "plugin_devices",
    "provider_names",
    "short_name",
    "unknown_device",
]

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
_SUFFIX = "ExecutionProvider"
#: Names of packages of providers, ``onnxruntime-ep-*``, as modules.
_PLUGINS = "onnxruntime_ep_"
#: Names that users know a provider by, where it has another.
_ALIASES = {"directml": "DmlExecutionProvider", "tensorrt_rtx": "NvTensorRTRTXExecutionProvider"}
#: Who runs the nodes that a provider leaves, before the CPU.
_FALLBACKS = {"TensorrtExecutionProvider": CUDA}

_REGISTERED: set[str] = set()
_LOCK = Lock()
guard(_LOCK)


def short_name(provider: str) -> str:
    """Return the name that ``device`` takes for a provider.

    Examples
    --------
    >>> from ortlearn.training.providers import short_name
    >>> short_name("OpenVINOExecutionProvider"), short_name("DmlExecutionProvider")
    ('openvino', 'directml')
    """
    names = {known: alias for alias, known in _ALIASES.items()}
    return names.get(provider, provider.removesuffix(_SUFFIX).lower())


def provider_names() -> list[str]:
    """Return what ``device`` takes here: providers of this onnxruntime, and those registered with it."""
    known = [*runtime().get_available_providers(), *_registered_names()]
    return sorted({short_name(name) for name in known})


def find_provider(name: str) -> tuple[str, bool]:
    """Return a provider, and whether it is a plugin."""
    failures: list[str] = []
    found, built_in = _find(name)
    if found is None:
        failures = [failure for module in _plugin_modules() if (failure := _register(module))]
        found, built_in = _find(name)
    if found is None:
        raise unknown_device(name, failures)
    return found, not built_in


def unknown_device(name: Any, failures: Sequence[str] = ()) -> DeviceError:
    """Return the error for a device that is not there, with the providers that are."""
    known = ", ".join(repr(short) for short in provider_names())
    return DeviceError(
        f"device={name!r} is unknown, use 'cpu', 'cuda' or 'cuda:1', or a provider that is installed, with "
        f"options as in ('openvino', {{'device_type': 'CPU'}}). onnxruntime {runtime().__version__} has "
        f"{known} here. Another provider needs a build of onnxruntime that has it, in place of this one, or "
        f"its plugin (onnxruntime-ep-*) beside onnxruntime 1.24 or later.{''.join(failures)}"
    )


def _find(name: str) -> tuple[str | None, bool]:
    """Return the provider of a name, and whether it is built in; both are listed as available."""
    plugin = None if name in (CPU, short_name(CPU)) else _named(name, _registered_names())
    return (plugin, False) if plugin else (_named(name, runtime().get_available_providers()), True)


def _named(name: str, providers: list[str]) -> str | None:
    return next((known for known in providers if name in (known, short_name(known))), None)


def plugin_devices(provider: str) -> list[Any]:
    """Return the devices of a plugin provider, as ``onnxruntime.get_ep_devices`` has them."""
    return [device for device in _registered_devices() if device.ep_name == provider]


def _registered_devices() -> list[Any]:
    ort = runtime()
    return list(ort.get_ep_devices()) if hasattr(ort, "get_ep_devices") else []


def _registered_names() -> list[str]:
    return list(dict.fromkeys(device.ep_name for device in _registered_devices()))


def _plugin_modules() -> list[str]:
    """Return the modules of plugin packages; none of them is imported."""
    return sorted(module.name for module in pkgutil.iter_modules() if module.name.startswith(_PLUGINS))


def _register(module: str) -> str:
    """Register the library of a plugin package, once in a process; return why that failed, or nothing."""
    ort = runtime()
    if not hasattr(ort, "get_ep_devices"):
        return f" The plugin {module} needs onnxruntime 1.24 or later, this is {ort.__version__}."
    with _LOCK:
        if module not in _REGISTERED:
            try:
                path = importlib.import_module(module).get_library_path()
                ort.register_execution_provider_library(module, path)
            except Exception as error:  # a plugin that is broken breaks no other
                return f" The plugin {module} cannot be loaded: {error}"
            _REGISTERED.add(module)
    return ""


def default_options(provider: str, threads: int) -> dict[str, str]:
    """Return options that a provider gets where the user gives no others of the same names.

    OpenVINO computes in bfloat16 or float16 where a processor has them, and takes all its cores.
    """
    if provider != "OpenVINOExecutionProvider":
        return {}
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    config = {"CPU": {**exact, "INFERENCE_NUM_THREADS": str(threads)}, "GPU": exact}
    return {"load_config": json.dumps(config)}


def fallbacks(provider: str) -> list[str]:
    """Return the providers of the nodes that one leaves, the CPU last."""
    others = [name for name in runtime().get_available_providers() if name == _FALLBACKS.get(provider)]
    return [*others, CPU]
