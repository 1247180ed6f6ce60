"""Models that compute gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import ModelProto

from .differentiated_model import differentiate

__all__ = ["gradient_model"]


def gradient_model(
    model: ModelProto,
    y: str | None,
    wrt: Sequence[str],
    *,
    grad_inputs: bool = False,
    keep_outputs: bool | None = None,
    fill_ones: bool = False,
    origin: Mapping[str, str] | None = None,
    straight_through: bool = False,
) -> ModelProto:
    """Return a model that computes the gradient of an output with respect to inputs and weights.

    Initializers that are not in ``wrt`` count as constants; turn those whose values will change
    into inputs first (:func:`ortlearn.graphs.make_inputs_of`).

    Parameters
    ----------
    model : onnx.ModelProto
        Model, for opset 13 or later.
    y : str or None
        Output to differentiate; None for every floating-point output together.
    wrt : sequence of str
        Inputs and initializers to differentiate with respect to, float32 or float64.
    grad_inputs : bool, default=False
        Whether the gradient of each output ``o`` is an input named ``o_grad``, of the shape of
        ``o``; it always is when ``y`` is None, unless ``fill_ones``. Otherwise ``y`` is a scalar
        (shape (), (1,) or (1, 1)) with gradient one.
    keep_outputs : bool, default=None
        Whether the outputs of the model are the first outputs. None keeps only ``y``, and no output if
        gradients are inputs.
    fill_ones : bool, default=False
        Whether the gradient of each output is ones of its shape.
    origin : mapping of str to str, default=None
        Origin of nodes by node name, such as a scikit-learn step, for error messages.
    straight_through : bool, default=False
        Whether quantisation, and casts to integers and back, are differentiated as the identity, instead
        of an error.

    Returns
    -------
    onnx.ModelProto
        Model with one output ``w_grad`` per name of ``wrt``, of its shape, in that order, zero if ``y``
        does not depend on ``w``. If the graph has a tensor of that name, the suffix is repeated.

    Raises
    ------
    GradientError
        If an operator on the path has no gradient rule or rounds, if ``y`` is not a scalar, if a name is
        unknown or not of a floating-point type, or if the opset is older than 13.

    Examples
    --------
    >>> from onnx import parser
    >>> from onnx.reference import ReferenceEvaluator
    >>> import numpy as np
    >>> from ortlearn.differentiation.gradient_model import gradient_model
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N] x) => (float y) { s = Mul (x, x) y = ReduceSum <keepdims=0> (s) }''')
    >>> onx = gradient_model(model, "y", ["x"])
    >>> [output.name for output in onx.graph.output]
    ['y', 'x_grad']
    >>> x = np.array([1.0, -2.0], dtype=np.float32)
    >>> ReferenceEvaluator(onx).run(None, {"x": x})[1].tolist()
    [2.0, -4.0]
    """
    found = differentiate(
        model,
        y,
        wrt,
        grad_inputs=grad_inputs,
        fill_ones=fill_ones,
        origin=origin,
        straight_through=straight_through,
    )
    if keep_outputs is None:
        kept = [y] if y is not None and not grad_inputs else []
    else:
        kept = [value.name for value in model.graph.output] if keep_outputs else []
    return found.assemble([name for name in kept if name is not None])
