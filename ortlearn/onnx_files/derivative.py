"""Derivatives of ONNX files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from ..differentiation.backends import check_straight_through
from ..differentiation.derivative import DerivativeOptions, check_options, derivative_of_graph
from ..graphs.files import save_model
from ..runtime.errors import runtime_errors
from .loading import is_onnx_source
from .opening import OpenedFile, open_file
from .weights import find_weights

__all__ = ["onnx_derivative"]

FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)


@runtime_errors()
def onnx_derivative(
    onx: Any,
    weights: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    options: DerivativeOptions = DerivativeOptions.Zero,
    loss: str | None = None,
    label: str | None = None,
    path_name: str | Path | None = None,
    verbose: int = 0,
    backend: str = "auto",
    straight_through: bool = False,
    feeds: Mapping[str, np.ndarray] | Sequence[Mapping[str, np.ndarray]] | str | None = None,
) -> ModelProto:
    """Return the graph of the gradient of a graph.

    The graph is opened by :func:`ortlearn.onnx_files.open`, as in the estimators.

    Parameters
    ----------
    onx : onnx.ModelProto, bytes, str or os.PathLike
        Graph or file of any opset; it is not changed.
    weights : sequence of str, default=None
        Weights to differentiate with respect to: initializers, constants, and those that the opened
        graph has in place of attributes of ``ai.onnx.ml`` operators. By default these are all floating-point
        initializers, and the learned weights among the others. They become inputs.
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
        Gradient backend: the built-in rules, onnxruntime-training, or the first of them that supports the
        graph.
    straight_through : bool, default=False
        Whether quantisation, and casts to integers and back, are differentiated as the identity (zero
        outside of the range that QuantizeLinear clips to); an error by default. Casts to integers that
        are used as indices or labels have no gradient in either case.
    feeds : mapping of str to ndarray, sequence of mappings, or "random", default=None
        Values of the inputs, with which the model is run to find shapes that are otherwise unknown; see
        :func:`ortlearn.onnx_files.open`.

    Returns
    -------
    onnx.ModelProto
        Graph of the gradient.

    Raises
    ------
    ValueError
        If options cannot be combined, or a name is unknown.
    ConversionError
        If the file cannot be opened.
    GradientError
        If an operator on the path has no gradient, or rounds.
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
    if not is_onnx_source(onx):
        raise ValueError(
            f"onx must be an onnx.ModelProto, bytes or a path, not {type(onx).__name__}: load it with "
            "onnx.load."
        )
    check_options(options, loss, label)
    check_straight_through(backend, straight_through)
    opened = open_file(onx, feeds)
    model = opened.model
    weights = _names(_default_weights(opened), weights, _kinds(model.graph.initializer), "weights")
    given = {tensor.name for tensor in model.graph.initializer}
    kinds = _kinds(value for value in model.graph.input if value.name not in given)
    columns = _names([name for name in kinds if name != label], inputs, kinds, "inputs")
    if not weights and not columns:
        raise ValueError("The graph has no floating-point input or weight to differentiate with respect to.")
    result = derivative_of_graph(model, weights, columns, options, loss, label, backend, straight_through)
    if verbose:
        print(f"[onnx_derivative] {len(model.graph.node)} nodes -> {len(result.graph.node)} nodes")
    if path_name is not None:
        save_model(result, path_name)
    return result


def _default_weights(opened: OpenedFile) -> list[str]:
    """Return the initializers of a file, and the learned weights that its opened graph has in addition."""
    of_file = {tensor.name for tensor in opened.file.graph.initializer}
    made = [tensor.name for tensor in opened.model.graph.initializer if tensor.name not in of_file]
    roles = find_weights(opened.model) if made else {}
    return [
        tensor.name
        for tensor in opened.model.graph.initializer
        if tensor.name in of_file or (tensor.name in roles and roles[tensor.name].learned)
    ]


def _kinds(values: Iterable[Any]) -> dict[str, int]:
    """Return the element types of tensors or inputs by name."""
    return {
        value.name: value.data_type if isinstance(value, TensorProto) else value.type.tensor_type.elem_type
        for value in values
    }


def _names(
    default: Iterable[str], asked: Sequence[str] | None, kinds: dict[str, int], argument: str
) -> list[str]:
    floats = [name for name, kind in kinds.items() if kind in FLOATS]
    if asked is None:
        return [name for name in default if name in floats]
    wrong = [name for name in asked if name not in floats]
    if wrong:
        raise ValueError(
            f"{argument}: {wrong} are not floating-point {argument} of the graph; its {argument} are "
            f"{list(kinds)}."
        )
    return list(asked)
