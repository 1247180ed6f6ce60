"""Execution providers of the installed onnxruntime and of plugin packages."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Sequence
from threading import Lock
from typing import Any

from ..exceptions import DeviceError
from .forks import acquire_before_fork
from .onnxruntime_module import runtime

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
#: Prefix of the modules of plugin packages, ``onnxruntime-ep-*``.
_PLUGINS = "onnxruntime_ep_"
#: Short names that differ from the name in onnxruntime.
_ALIASES = {"directml": "DmlExecutionProvider", "tensorrt_rtx": "NvTensorRTRTXExecutionProvider"}
#: Providers of the nodes that another provider does not support, before the CPU.
_FALLBACKS = {"TensorrtExecutionProvider": CUDA}

_REGISTERED: set[str] = set()
_LOCK = Lock()
acquire_before_fork(_LOCK)


def short_name(provider: str) -> str:
    """Return the short name of a provider for the parameter ``device``."""
    names = {known: alias for alias, known in _ALIASES.items()}
    return names.get(provider, provider.removesuffix(_SUFFIX).lower())


def provider_names() -> list[str]:
    """Return the short names of the available providers, including registered plugins."""
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
    """Return the error for an unknown device, with the available providers."""
    known = ", ".join(repr(short) for short in provider_names())
    return DeviceError(
        f"device={name!r} is unknown. Use 'cpu', 'cuda' or 'cuda:1', or an installed provider, with "
        f"options as in ('openvino', {{'device_type': 'CPU'}}). onnxruntime {runtime().__version__} has "
        f"{known} here. Other providers need a build of onnxruntime that includes them, or a plugin "
        f"(onnxruntime-ep-*) with onnxruntime 1.24 or later.{''.join(failures)}"
    )


def _find(name: str) -> tuple[str | None, bool]:
    """Return the provider with a name, and whether it is built in; plugins are preferred."""
    plugin = None if name in (CPU, short_name(CPU)) else _named(name, _registered_names())
    return (plugin, False) if plugin else (_named(name, runtime().get_available_providers()), True)


def _named(name: str, providers: list[str]) -> str | None:
    return next((known for known in providers if name in (known, short_name(known))), None)


def plugin_devices(provider: str) -> list[Any]:
    """Return the devices of a plugin provider, from ``onnxruntime.get_ep_devices``."""
    return [device for device in _registered_devices() if device.ep_name == provider]


def _registered_devices() -> list[Any]:
    ort = runtime()
    return list(ort.get_ep_devices()) if hasattr(ort, "get_ep_devices") else []


def _registered_names() -> list[str]:
    return list(dict.fromkeys(device.ep_name for device in _registered_devices()))


def _plugin_modules() -> list[str]:
    """Return the modules of plugin packages, without importing them."""
    return sorted(module.name for module in pkgutil.iter_modules() if module.name.startswith(_PLUGINS))


def _register(module: str) -> str:
    """Register the library of a plugin package once per process; return the error, or an empty string."""
    ort = runtime()
    if not hasattr(ort, "get_ep_devices"):
        return f" The plugin {module} needs onnxruntime 1.24 or later, but {ort.__version__} is installed."
    with _LOCK:
        if module not in _REGISTERED:
            try:
                path = importlib.import_module(module).get_library_path()
                ort.register_execution_provider_library(module, path)
            except Exception as error:  # other plugins still work
                return f" The plugin {module} cannot be loaded: {error}"
            _REGISTERED.add(module)
    return ""


def default_options(provider: str, threads: int) -> dict[str, str]:
    """Return the default options of a provider.

    By default, OpenVINO computes in bfloat16 or float16 if the processor supports it, on all cores.
    """
    if provider != "OpenVINOExecutionProvider":
        return {}
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    config = {"CPU": {**exact, "INFERENCE_NUM_THREADS": str(threads)}, "GPU": exact}
    return {"load_config": json.dumps(config)}


def fallbacks(provider: str) -> list[str]:
    """Return the providers of the nodes that a provider does not support, the CPU last."""
    others = [name for name in runtime().get_available_providers() if name == _FALLBACKS.get(provider)]
    return [*others, CPU]
