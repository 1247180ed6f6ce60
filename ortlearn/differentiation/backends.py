"""The choice between our own rules and onnxruntime-training's C++ builder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from onnx import ModelProto

from ..exceptions import GradientError
from ..graphs import inline_functions
from . import ort_backend
from .gradient_model import gradient_model
from .rounding import RoundingError

__all__ = ["BACKENDS", "STRAIGHT_THROUGH", "build_gradient", "check_straight_through", "gradient_of_loss"]

#: Values of the parameters ``gradient`` and ``backend``.
BACKENDS = ("auto", "rules", "ort")
#: Backend of our own rules that differentiates operators that round as if they did not.
STRAIGHT_THROUGH = "straight_through"

Result = TypeVar("Result")


def check_straight_through(backend: str, straight_through: bool) -> str:
    """Return the backend to use where operators that round may have to be overlooked.

    Parameters
    ----------
    backend : {"auto", "rules", "ort"}
        Backend that was asked for.
    straight_through : bool
        Whether operators that round are differentiated as if they did not.

    Returns
    -------
    str
        ``backend``, or ``STRAIGHT_THROUGH``.

    Raises
    ------
    ValueError
        If the backend cannot do it.

    Examples
    --------
    >>> from ortlearn.differentiation import check_straight_through
    >>> check_straight_through("rules", False), check_straight_through("auto", True)
    ('rules', 'straight_through')
    """
    if not straight_through:
        return backend
    if backend == "ort":
        raise ValueError(
            "straight_through=True needs our own rules: onnxruntime-training has no such gradient. Use "
            "'rules' or 'auto' instead of 'ort'."
        )
    return STRAIGHT_THROUGH


def build_gradient(backend: str, rules: Callable[[], Result], ort: Callable[[], Result]) -> Result:
    """Return a gradient built by a backend; every choice of a backend is made here.

    Parameters
    ----------
    backend : {"auto", "rules", "ort", "straight_through"}
        ``"auto"`` is our own rules where they have one for every operator on the path, else
        onnxruntime-training's C++ builder where it is installed and does not refuse the graph.
    rules, ort : callable
        Build the same gradient with our own rules and with the C++ builder.

    Returns
    -------
    object
        What the callable of the backend returns.

    Raises
    ------
    GradientError
        If the backend is unknown, if a node rounds, or if no backend has the gradient; the message
        has the reason of each.
    MissingRuntimeError
        If the backend is ``"ort"`` and onnxruntime-training is not installed.
    """
    if backend == STRAIGHT_THROUGH:
        return rules()
    if backend not in BACKENDS:
        raise GradientError(f"gradient={backend!r} is unknown, use one of {list(BACKENDS)}.")
    if backend == "ort":
        return ort()
    try:
        return rules()
    except RoundingError:
        raise
    except GradientError as error:
        if backend == "rules" or not ort_backend.is_available():
            raise
        try:
            return ort()
        except GradientError as other:
            raise GradientError(
                f"{error} onnxruntime-training, the other backend, has no gradient either: {other}"
            ) from error


def gradient_of_loss(
    model: ModelProto,
    loss: str,
    wrt: Sequence[str],
    backend: str = "auto",
    keep_outputs: bool = False,
    origin: str | None = None,
) -> ModelProto:
    """Return the graph of a loss and of its gradient with respect to some inputs.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph with a scalar output ``loss``.
    loss : str
        Name of that output.
    wrt : sequence of str
        Inputs of the graph to differentiate with respect to.
    backend : {"auto", "rules", "ort"}, default="auto"
        What builds the gradient: our own rules, onnxruntime-training's C++ builder, or rules where
        every operator on the path has one, else the builder where it is installed. The estimators'
        parameter ``straight_through`` comes as ``"straight_through"``.
    keep_outputs : bool, default=False
        Whether the other outputs of the model are kept, after the loss.
    origin : str, default=None
        Where the graph comes from, such as a scikit-learn estimator; shown in errors.

    Returns
    -------
    onnx.ModelProto
        Graph with the inputs of ``model`` and the outputs ``loss`` and ``<name>_grad``.

    Raises
    ------
    GradientError
        If an operator on the path has no gradient or rounds, or if the backend is unknown.
    MissingRuntimeError
        If the backend is not installed.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.differentiation import gradient_of_loss
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N] x) => (float loss) { s = Mul (x, x) loss = ReduceSum <keepdims = 0> (s) }''')
    >>> [value.name for value in gradient_of_loss(model, "loss", ["x"]).graph.output]
    ['loss', 'x_grad']
    """
    model = inline_functions(model)
    origins = None if origin is None else dict.fromkeys((node.name for node in model.graph.node), origin)
    return build_gradient(
        backend,
        lambda: gradient_model(
            model,
            loss,
            wrt,
            keep_outputs=keep_outputs or None,
            origin=origins,
            straight_through=backend == STRAIGHT_THROUGH,
        ),
        lambda: ort_backend.loss_gradient(model, loss, wrt, keep_outputs),
    )
