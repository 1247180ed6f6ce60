"""One signature for the gradient of a loss, whatever builds it."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import ModelProto

from ..exceptions import GradientError
from . import ort_backend

__all__ = ["BACKENDS", "gradient_of_loss"]

#: Ways to a gradient.
BACKENDS = ("auto", "ort")


def gradient_of_loss(
    model: ModelProto, loss: str, weights: Sequence[str], backend: str = "auto"
) -> ModelProto:
    """Return the graph of a loss and of its gradient with respect to some inputs.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph with a scalar output ``loss``.
    loss : str
        Name of that output.
    weights : sequence of str
        Inputs of the graph to differentiate with respect to.
    backend : {"auto", "ort"}, default="auto"
        What builds the gradient: onnxruntime-training's C++ builder.

    Returns
    -------
    onnx.ModelProto
        Graph with the inputs of ``model`` and the outputs ``loss`` and ``<weight>_grad``.

    Raises
    ------
    GradientError
        If an operator on the way has no gradient, or if the backend is unknown.
    MissingRuntimeError
        If the backend is not installed.
    """
    if backend not in BACKENDS:
        raise GradientError(f"gradient={backend!r} is unknown, use one of {list(BACKENDS)}.")
    return ort_backend.loss_gradient(model, loss, weights)
