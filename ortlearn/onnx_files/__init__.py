"""ONNX files of other origin, analysed by their operators; public names are imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .heads import replace_head
    from .low_rank.adapters import LoRA
    from .opening import open

__all__ = ["LoRA", "open", "replace_head"]

_MODULES = {"LoRA": "low_rank.adapters", "open": "opening", "replace_head": "heads"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
