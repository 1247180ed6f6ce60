"""Write the nodes of a loss, and check the shape of its result."""

from __future__ import annotations

from .. import plugins
from ..exceptions import PluginError
from ..graphs import GraphBuilder
from ..graphs.types import written_types
from .base import BaseLoss

__all__ = ["write_losses"]


def write_losses(loss: BaseLoss, op: GraphBuilder, expected: str, predicted: str, n_axes: int = 1) -> str:
    """Write the loss of each sample, or of each position if ``n_axes`` is 2, and return its name."""
    name = type(loss).__name__
    with plugins.blamed(loss, "forward"):
        losses = loss.forward(op, expected, predicted)
    if not isinstance(losses, str):
        raise PluginError(
            f"forward of {name} returned {losses!r}: return the name of a tensor, such as op.Mul(a, b)."
        )
    shape = _shape_of(op, losses, expected, predicted)
    if shape is None:
        return losses
    is_mean = shape[:1] == (1,) != (op.shape(predicted) or (1,))[:1]
    if is_mean or len(shape) != n_axes:
        raise PluginError(
            f"forward of {name} returned a tensor of shape {shape}: return one loss per sample, of shape "
            "(n,). Sum over the outputs of a sample by self.sum_outputs(op, losses); do not compute the mean "
            "over samples, which the training does."
        )
    return losses


def _shape_of(op: GraphBuilder, name: str, expected: str, predicted: str) -> tuple | None:
    """Return the shape of a tensor by shape inference from labels and predictions, or None."""
    types = {value: op.type(value) for value in (expected, predicted)}
    found = written_types(op, {value: own for value, own in types.items() if own is not None}).get(name)
    return None if found is None else found.shape
