"""Inputs, outputs and classes of a model, which its versions share."""

from __future__ import annotations

from pathlib import Path

from onnx import TensorProto

from ..evaluation.onnx_model import OnnxModel
from ..graphs import TensorType

__all__ = ["check_interface"]


def check_interface(path: Path, content: bytes) -> None:
    """Raise an error if an ONNX file has other inputs, outputs or classes than the one in use."""
    old, new = (OnnxModel(source, "the model") for source in (str(path), content))
    for kind in ("inputs", "outputs", "classes"):
        known, found = (_described(model, kind) for model in (old, new))
        if known and found and known != found:  # classes are known of some models only
            raise ValueError(
                f"The {kind} of the model ({found}) differ from those of {path.name}, which is in use "
                f"({known}). Servers of {path.parent} expect these: use another folder for the model."
            )


def _described(model: OnnxModel, kind: str) -> str:
    """Return the classes, or names, types and sizes of the inputs or outputs; ? for an unknown size."""
    if kind == "classes":
        return "" if model.classes is None else ", ".join(map(repr, model.classes.tolist()))
    texts, constants = [], {tensor.name for tensor in model.model.graph.initializer}
    for name in (value.name for value in getattr(model.model.graph, kind.removesuffix("s"))):
        known = model.types.get(name, TensorType(TensorProto.UNDEFINED))
        sizes = [str(size) if isinstance(size, int) else "?" for size in (known.shape or ())[1:]]
        if name not in constants:
            element = TensorProto.DataType.Name(known.elem_type).lower()
            texts.append(f"{name}: {element}[{', '.join(['n', *sizes])}]")
    return ", ".join(texts)
