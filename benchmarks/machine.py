"""Description of the machine and the versions of a run, without identifying details."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata
from pathlib import Path

__all__ = ["cores", "describe", "versions"]

FAMILIES = ("AMD EPYC", "AMD Ryzen", "Intel Xeon", "Intel Core", "Apple M")
PACKAGES = (
    "numpy",
    "scikit-learn",
    "onnx",
    "onnxruntime-training-cpu",
    "onnxruntime-training",
    "onnxruntime",
    "torch",
    "skorch",
    "jax",
)


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def family() -> str:
    """Return the processor's family."""
    info = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*:\s*(.*)", info.read_text()) if info.exists() else []
    name = re.sub(r"\((R|TM)\)", "", names[0] if names else platform.processor())
    return next((known for known in FAMILIES if known in name), platform.machine())


def versions() -> dict[str, str]:
    """Return the versions of the libraries that are installed."""
    found = {"Python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package).partition("+")[0]
        except metadata.PackageNotFoundError:
            continue
    return found


def describe() -> str:
    """Return one line about the machine."""
    return f"{family()}, {cores()} cores, {platform.system()}"
