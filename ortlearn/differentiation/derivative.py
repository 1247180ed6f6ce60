"""Derivatives of any ONNX graph."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Flag, auto

from onnx import ModelProto

from ..graphs import make_inputs_of, value_types
from .backends import check_straight_through, gradient_of_loss, gradient_of_outputs
from .portable_products import portable_products

__all__ = ["DerivativeOptions", "check_options", "derivative_of_graph"]


class DerivativeOptions(Flag):
    """Options of the result of :func:`onnx_derivative`; flags can be combined with ``|``.

    Attributes
    ----------
    Zero
        Gradients only, from gradients of the outputs.
    KeepYieldOp
        The training graph of onnxruntime-training, with a YieldOp between forward and backward.
    KeepOutputs
        The original outputs too.
    FillGrad
        The gradient of each output is ones of its shape; only together with KeepOutputs.
    Loss
        Gradients of a loss that is an output of the graph.

    Examples
    --------
    >>> from ortlearn.differentiation import DerivativeOptions
    >>> options = DerivativeOptions.KeepOutputs | DerivativeOptions.FillGrad
    >>> DerivativeOptions.FillGrad in options
    True
    """

    Zero = 0
    KeepYieldOp = auto()
    KeepOutputs = auto()
    FillGrad = auto()
    Loss = auto()


def derivative_of_graph(
    model: ModelProto,
    weights: Sequence[str],
    inputs: Sequence[str],
    options: DerivativeOptions = DerivativeOptions.Zero,
    loss: str | None = None,
    label: str | None = None,
    backend: str = "auto",
    straight_through: bool = False,
) -> ModelProto:
    """Return the gradient of an opened graph; parameters are those of ``onnx_derivative``."""
    backend = check_straight_through(backend, straight_through)
    wrt = [*inputs, *weights]
    open_model = make_inputs_of(model, weights)
    if DerivativeOptions.Loss in options:
        result = _of_loss(open_model, wrt, options, loss, label, backend)
    elif DerivativeOptions.KeepYieldOp in options:
        from .cpp_builder import yield_graph

        result = yield_graph(open_model, gradient_of_outputs(open_model, wrt, backend, keep_outputs=True))
    else:
        kept, ones = DerivativeOptions.KeepOutputs in options, DerivativeOptions.FillGrad in options
        result = gradient_of_outputs(open_model, wrt, backend, kept, ones)
    return portable_products(result)


def check_options(options: DerivativeOptions, loss: str | None, label: str | None) -> None:
    """Raise a ValueError for options that cannot be combined."""
    if not isinstance(options, DerivativeOptions):
        raise ValueError(f"options must be DerivativeOptions, got {options!r}.")
    if DerivativeOptions.KeepYieldOp in options and options != DerivativeOptions.KeepYieldOp:
        raise ValueError("KeepYieldOp cannot be combined with another option.")
    if DerivativeOptions.FillGrad in options and DerivativeOptions.KeepOutputs not in options:
        raise ValueError(
            "FillGrad requires KeepOutputs: pass DerivativeOptions.FillGrad | DerivativeOptions.KeepOutputs."
        )
    if DerivativeOptions.Loss in options and DerivativeOptions.FillGrad in options:
        raise ValueError("FillGrad cannot be combined with Loss, whose gradient is one: remove FillGrad.")
    if DerivativeOptions.Loss not in options and (loss is not None or label is not None):
        raise ValueError("loss and label require options=DerivativeOptions.Loss.")


def _of_loss(
    model: ModelProto,
    wrt: list[str],
    options: DerivativeOptions,
    loss: str | None,
    label: str | None,
    backend: str,
) -> ModelProto:
    outputs = [value.name for value in model.graph.output]
    loss = outputs[0] if loss is None else loss
    if loss not in outputs:
        raise ValueError(f"loss={loss!r} is not an output of the graph; its outputs are {outputs}.")
    if label is not None and label not in {value.name for value in model.graph.input}:
        raise ValueError(f"label={label!r} is not an input of the graph.")
    shape = value_types(model)[loss].shape
    if shape is not None and any(isinstance(dim, int) and dim != 1 for dim in shape):
        raise ValueError(f"loss={loss!r} has the shape {shape}: a loss must be a scalar.")
    keep = DerivativeOptions.KeepOutputs in options
    return gradient_of_loss(model, loss, wrt, backend, keep_outputs=keep)
