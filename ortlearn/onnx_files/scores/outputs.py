"""What the outputs of a graph are."""

from __future__ import annotations

from ...exceptions import ConversionError
from .graph_end import FLOATS, GraphEnd

__all__ = ["split_outputs"]


def split_outputs(end: GraphEnd) -> tuple[list[str], list[str]]:
    """Return the floating-point outputs and the others.

    Raises
    ------
    ConversionError
        If none is floating-point.
    """
    types = {name: end.op.type(name) for name in end.outputs}
    floats = [name for name, known in types.items() if known is not None and known.elem_type in FLOATS]
    if not floats:
        raise ConversionError(f"None of the outputs {end.outputs} is a floating-point tensor to train on.")
    return floats, [name for name in end.outputs if name not in floats]
