"""The C++ gradient builder in the installed onnxruntime, if it has one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import ModuleType

from onnx import ModelProto, load_from_string

from ...exceptions import GradientError, MissingRuntimeError, limit_address

__all__ = ["build", "is_available", "pybind"]

#: Error codes and positions in C++ sources, before the message.
_PLACE = re.compile(r"^.*(?:\] : \d+ : [A-Z_]+ : |/onnxruntime_src/.*?\) (?:const )?)")


def pybind() -> ModuleType:
    """Return the bindings of onnxruntime-training."""
    try:
        from onnxruntime.capi import _pybind_state
    except ImportError as error:
        raise MissingRuntimeError(
            "No onnxruntime is installed. Install one of the extras: pip install 'ortlearn[training]' for "
            "onnxruntime-training (CPU), 'ortlearn[training-gpu]' for its CUDA build."
        ) from error
    if not hasattr(_pybind_state, "GradientGraphBuilder"):
        raise MissingRuntimeError(
            "The installed onnxruntime has no gradient builder. Install onnxruntime-training: "
            "pip install 'ortlearn[training]' (Python 3.10 to 3.12) in place of onnxruntime; or use "
            f"gradient='rules', which runs on any onnxruntime.{limit_address('training-runtime')}"
        )
    return _pybind_state


def is_available() -> bool:
    """Return whether the installed onnxruntime can build gradients."""
    try:
        pybind()
    except MissingRuntimeError:
        return False
    return True


def build(model: ModelProto, outputs: Iterable[str], wrt: Iterable[str]) -> ModelProto:
    """Return a graph with ``<name>_grad`` of each name, from an input ``<output>_grad`` of each output."""
    module = pybind()
    options = module.SessionOptions()
    options.log_severity_level = 3  # no warnings about tensors without a gradient
    try:
        builder = module.GradientGraphBuilder(model.SerializeToString(), set(outputs), set(wrt), "", options)
        builder.build()
        return load_from_string(builder.get_model())
    except (RuntimeError, IndexError, ValueError) as error:  # thrown by C++
        text = _PLACE.sub("", str(error).splitlines()[0])
        raise GradientError(
            f"onnxruntime-training could not differentiate the graph: {text} Use gradient='rules'."
        ) from error
