"""Derivatives of any ONNX graph."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Flag, auto
from pathlib import Path

from onnx import ModelProto, TensorProto

from ..graphs import inline_functions, make_inputs_of, runtime_errors, value_types
from ..graphs.files import save_model
from .backends import check_straight_through, gradient_of_loss, gradient_of_outputs
from .cpp_builder import yield_graph

__all__ = ["DerivativeOptions", "onnx_derivative"]

FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)


class DerivativeOptions(Flag):
    """What :func:`onnx_derivative` returns; flags can be combined with ``|``.

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


@runtime_errors()
def onnx_derivative(
    onx: ModelProto,
    weights: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    options: DerivativeOptions = DerivativeOptions.Zero,
    loss: str | None = None,
    label: str | None = None,
    path_name: str | Path | None = None,
    verbose: int = 0,
    backend: str = "auto",
    straight_through: bool = False,
) -> ModelProto:
    """Return the graph of the gradient of a graph.

    Parameters
    ----------
    onx : onnx.ModelProto
        Graph; it is not changed.
    weights : sequence of str, default=None
        Initializers to differentiate with respect to; all floating-point ones by default. They
        become inputs.
    inputs : sequence of str, default=None
        Inputs to differentiate with respect to; all floating-point ones by default, the label excepted.
    options : DerivativeOptions, default=DerivativeOptions.Zero
        With ``Zero``, inputs are those of the graph, the weights and one ``<output>_grad`` for
        every floating-point output; outputs are ``<input>_grad``, then ``<weight>_grad``. See
        :class:`DerivativeOptions` for the others.
    loss : str, default=None
        Loss output, a scalar, with the option ``Loss``; the first output by default.
    label : str, default=None
        Label input, with the option ``Loss``.
    path_name : str or pathlib.Path, default=None
        File the result is written to.
    verbose : int, default=0
        Whether to print the number of nodes.
    backend : {"auto", "rules", "ort"}, default="auto"
        Gradient backend: ``"rules"`` and ``"auto"`` are the built-in rules, ``"ort"`` is the C++
        builder of onnxruntime-training, for the operators that it is known to be right for.
    straight_through : bool, default=False
        Whether quantisation, and casts to integers and back, are differentiated as the identity (zero
        outside of the range that QuantizeLinear clips to); an error by default. Casts to integers that
        are used as indices or labels have no gradient in either case.

    Returns
    -------
    onnx.ModelProto
        Graph of the gradient.

    Raises
    ------
    ValueError
        If options cannot be combined, or a name is unknown.
    GradientError
        If an operator on the path rounds or has no gradient in the backend.
    MissingRuntimeError
        If the backend is not installed.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.differentiation import onnx_derivative
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}> { y = MatMul (x, w) }''')
    >>> gradient = onnx_derivative(model)
    >>> [value.name for value in gradient.graph.input], [value.name for value in gradient.graph.output]
    (['x', 'w', 'y_grad'], ['x_grad', 'w_grad'])
    """
    if not isinstance(onx, ModelProto):
        raise ValueError(f"onx must be an onnx.ModelProto, not {type(onx).__name__}: load it with onnx.load.")
    _check_options(options, loss, label)
    backend = check_straight_through(backend, straight_through)
    onx = inline_functions(onx)
    weights = _names(onx, weights, onx.graph.initializer, lambda tensor: tensor.data_type, "weights")
    kinds = [value for value in onx.graph.input if value.name not in {t.name for t in onx.graph.initializer}]
    names = _names(onx, inputs, kinds, lambda value: value.type.tensor_type.elem_type, "inputs")
    columns = [name for name in names if inputs is not None or name != label]
    wrt = [*columns, *weights]
    if not wrt:
        raise ValueError("The graph has no floating-point input or weight to differentiate with respect to.")
    open_model = make_inputs_of(onx, weights)
    if DerivativeOptions.Loss in options:
        result = _of_loss(open_model, wrt, options, loss, label, backend)
    elif DerivativeOptions.KeepYieldOp in options:
        result = yield_graph(open_model, gradient_of_outputs(open_model, wrt, backend, keep_outputs=True))
    else:
        kept, ones = DerivativeOptions.KeepOutputs in options, DerivativeOptions.FillGrad in options
        result = gradient_of_outputs(open_model, wrt, backend, kept, ones)
    if verbose:
        print(f"[onnx_derivative] {len(onx.graph.node)} nodes -> {len(result.graph.node)} nodes")
    if path_name is not None:
        save_model(result, path_name)
    return result


def _check_options(options: DerivativeOptions, loss: str | None, label: str | None) -> None:
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


def _names(onx: ModelProto, asked, values, kind, argument: str) -> list[str]:
    known = [value.name for value in values]
    floats = [value.name for value in values if kind(value) in FLOATS]
    if asked is None:
        return floats
    wrong = [name for name in asked if name not in floats]
    if wrong:
        raise ValueError(
            f"{argument}: {wrong} are not floating-point {argument} of the graph; its {argument} are {known}."
        )
    return list(asked)


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
