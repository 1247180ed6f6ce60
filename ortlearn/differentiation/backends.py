"""Choice between the built-in rules and onnxruntime-training's C++ builder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from onnx import ModelProto

from ..exceptions import GradientError
from ..graphs import inline_functions
from .gradient_model import gradient_model
from .rounding import reject_rounding
from .rule_context import FLOAT_TYPES
from .stable_softplus import with_softplus, without_float64_softplus

__all__ = ["BACKENDS", "STRAIGHT_THROUGH", "build_gradient", "check_straight_through", "gradient_of_loss"]

#: Values of the parameters ``gradient`` and ``backend``.
BACKENDS = ("auto", "rules", "ort")
#: Backend of the built-in rules that differentiates operators that round as the identity.
STRAIGHT_THROUGH = "straight_through"

Result = TypeVar("Result")


def check_straight_through(backend: str, straight_through: bool) -> str:
    """Return the backend, or ``STRAIGHT_THROUGH`` if rounding is differentiated as the identity."""
    if not straight_through:
        return backend
    if backend == "ort":
        raise ValueError(
            "straight_through=True requires the built-in rules: onnxruntime-training has no such gradient. "
            "Use 'rules' or 'auto' instead of 'ort'."
        )
    return STRAIGHT_THROUGH


def build_gradient(backend: str, rules: Callable[[], Result], ort: Callable[[], Result]) -> Result:
    """Return the result of the function of the selected backend; ``"auto"`` selects ``rules``."""
    if backend not in (*BACKENDS, STRAIGHT_THROUGH):
        raise GradientError(f"gradient={backend!r} is unknown, use one of {list(BACKENDS)}.")
    return ort() if backend == "ort" else rules()


def gradient_of_outputs(
    model: ModelProto,
    wrt: Sequence[str],
    backend: str = "auto",
    keep_outputs: bool = False,
    fill_ones: bool = False,
) -> ModelProto:
    """Return the graph of the gradient of all outputs together, by a backend.

    The gradients of the outputs are inputs or, with ``fill_ones``, ones.
    """
    options: dict[str, Any] = {"keep_outputs": keep_outputs, "fill_ones": fill_ones}
    through = backend == STRAIGHT_THROUGH
    return build_gradient(
        backend,
        lambda: gradient_model(model, None, wrt, straight_through=through, **options),
        lambda: _by_builder(model, None, wrt, **options),
    )


def _by_builder(model: ModelProto, y: str | None, wrt: Sequence[str], **options: Any) -> ModelProto:
    from .cpp_builder import gradient_graph  # few trainings need it

    floats = [value.name for value in model.graph.output if value.type.tensor_type.elem_type in FLOAT_TYPES]
    reject_rounding(model, floats if y is None else [y], wrt)
    return gradient_graph(model, y, wrt, **options)


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
        Gradient backend: ``"rules"`` and ``"auto"`` are the built-in rules, ``"ort"`` is the C++ builder of
        onnxruntime-training. ``"straight_through"`` stands for the estimators' parameter of that name.
    keep_outputs : bool, default=False
        Whether the other outputs of the model are kept, after the loss.
    origin : str, default=None
        Origin of the graph, such as a scikit-learn estimator, for error messages.

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
        lambda: without_float64_softplus(
            gradient_model(
                with_softplus(model),
                loss,
                wrt,
                keep_outputs=keep_outputs or None,
                origin=origins,
                straight_through=backend == STRAIGHT_THROUGH,
            )
        ),
        lambda: _by_builder(model, loss, wrt, keep_outputs=keep_outputs or None),
    )
