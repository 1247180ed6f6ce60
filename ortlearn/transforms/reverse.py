"""Derivatives of a graph as graphs: reverse mode, and the derivative along a direction."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import ModelProto, TensorProto, helper

from ..differentiation.differentiated_model import differentiate
from ..differentiation.gradient_model import gradient_model
from ..differentiation.portable_products import portable_products
from ..differentiation.stable_softplus import with_softplus, without_float64_softplus
from ..exceptions import GradientError
from ..graphs import graph_names, inline_functions, map_names, prune
from ..graphs.editing import with_fields

__all__ = ["directional", "gradient", "value_and_gradient"]

FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)


def gradient(
    model: ModelProto,
    wrt: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    *,
    keep_outputs: bool = False,
    straight_through: bool = False,
) -> ModelProto:
    """Return the graph of the vector-Jacobian product of a graph.

    The result is a graph that can be transformed again: the gradient of a gradient is the product of the
    Hessian and a vector.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph of opset 13 or later; :func:`ortlearn.onnx_files.open` opens files. It is not changed.
    wrt : sequence of str, default=None
        Inputs and initializers to differentiate with respect to; all floating-point inputs by default.
    outputs : sequence of str, default=None
        Outputs to differentiate; all floating-point ones by default. The result has no others.
    keep_outputs : bool, default=False
        Whether the result also has the outputs, before the gradients.
    straight_through : bool, default=False
        Whether rounding is differentiated as the identity, instead of an error.

    Returns
    -------
    onnx.ModelProto
        Graph with an additional input ``<output>_grad`` for each output, and an output ``<name>_grad`` for
        each name of ``wrt``: the gradient of the sum of all products of outputs and these inputs. If a
        name is taken, the suffix is repeated.

    Raises
    ------
    GradientError
        If an operator on the path has no gradient or rounds, or a name is unknown.

    Examples
    --------
    The Hessian of x1^2 x2, times a vector:

    >>> import numpy as np
    >>> from onnx import parser
    >>> from onnx.reference import ReferenceEvaluator
    >>> from ortlearn.transforms import gradient
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]> g (float x1, float x2) => (float y)
    ...     { s = Mul (x1, x1) y = Mul (s, x2) }''')
    >>> product = gradient(gradient(model), wrt=["x1", "x2"])
    >>> [value.name for value in product.graph.input]
    ['x1', 'x2', 'y_grad', 'x1_grad_grad', 'x2_grad_grad']
    >>> names = [value.name for value in product.graph.input]
    >>> feeds = {name: np.float32(value) for name, value in zip(names, [2, 3, 1, 1, 0])}
    >>> [float(part) for part in ReferenceEvaluator(product).run(None, feeds)]  # (2 x2, 2 x1)
    [6.0, 4.0]
    """
    part, wrt = _prepared(model, wrt, outputs)
    result = gradient_model(part, None, wrt, keep_outputs=keep_outputs, straight_through=straight_through)
    return _finished(result)


def directional(
    model: ModelProto,
    wrt: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    *,
    keep_outputs: bool = False,
    straight_through: bool = False,
) -> ModelProto:
    """Return the graph of the Jacobian-vector product of a graph: its derivative along a direction.

    It is reverse mode applied twice: the vector-Jacobian product is linear in its vector, and the gradient
    with respect to this vector is the Jacobian times a direction. The result contains no part of the first
    gradient that does not depend on the direction.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph of opset 13 or later; it is not changed.
    wrt : sequence of str, default=None
        Inputs and initializers that have a direction; all floating-point inputs by default.
    outputs : sequence of str, default=None
        Outputs to differentiate; all floating-point ones by default. The result has no others.
    keep_outputs : bool, default=False
        Whether the result also has the outputs, before the derivatives.
    straight_through : bool, default=False
        Whether rounding is differentiated as the identity, instead of an error.

    Returns
    -------
    onnx.ModelProto
        Graph with an additional input ``<name>_direction`` for each name of ``wrt``, and an output
        ``<output>_directional`` for each output.

    Raises
    ------
    GradientError
        If an operator on the path, or in its gradient, has no gradient; or if a name is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from onnx import parser
    >>> from onnx.reference import ReferenceEvaluator
    >>> from ortlearn.transforms import directional
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[N] y) { y = Mul (x, x) }''')
    >>> derivative = directional(model)
    >>> [value.name for value in derivative.graph.input], [value.name for value in derivative.graph.output]
    (['x', 'x_direction'], ['y_directional'])
    >>> x, v = np.array([[1, 2], [1, 10]], dtype=np.float32)
    >>> ReferenceEvaluator(derivative).run(None, {"x": x, "x_direction": v})[0].tolist()
    [2.0, 40.0]
    """
    part, wrt = _prepared(model, wrt, outputs)
    names = [value.name for value in part.graph.output]
    first = gradient_model(part, None, wrt, keep_outputs=True, straight_through=straight_through)
    seeds = [value.name for value in first.graph.input][len(part.graph.input) :]
    grads = list(first.graph.output)[len(names) :]
    of_seeds = differentiate(with_fields(first, output=grads), None, seeds, straight_through=straight_through)
    second = of_seeds.assemble(names)
    directions = [value.name for value in second.graph.input][len(first.graph.input) :]
    derivatives = [value.name for value in second.graph.output][len(names) :]
    second = _without_seeds(second, dict(zip(seeds, names, strict=True)))
    if not keep_outputs:
        second = with_fields(second, output=list(second.graph.output)[len(names) :])
    new = dict(zip(directions, (f"{name}_direction" for name in wrt), strict=True))
    new |= dict(zip(derivatives, (f"{name}_directional" for name in names), strict=True))
    return _finished(_renamed(prune(second), new))


def value_and_gradient(model: ModelProto, scalar: str, wrt: Sequence[str]) -> ModelProto:
    """Return the other outputs of a graph, and the gradient of a scalar output."""
    part = with_softplus(inline_functions(model))
    result = gradient_model(part, scalar, wrt, keep_outputs=True)
    outputs = [value for value in result.graph.output if value.name != scalar]
    return _finished(prune(with_fields(result, output=outputs)))


def _prepared(
    model: ModelProto, wrt: Sequence[str] | None, outputs: Sequence[str] | None
) -> tuple[ModelProto, list[str]]:
    """Return a model with the outputs to differentiate, and the names to differentiate with respect to."""
    if not isinstance(model, ModelProto):
        raise GradientError(
            f"model must be an onnx.ModelProto, not {type(model).__name__}: open a file with "
            "ortlearn.onnx_files.open."
        )
    given = {tensor.name for tensor in model.graph.initializer}
    floats = {value.name: value for value in model.graph.output if value.type.tensor_type.elem_type in FLOATS}
    if wrt is None:
        inputs = [value for value in model.graph.input if value.name not in given]
        wrt = [value.name for value in inputs if value.type.tensor_type.elem_type in FLOATS]
    unknown = [name for name in outputs or () if name not in floats]
    if unknown or not floats or not wrt:
        what = f"{unknown} are not among" if unknown else "To differentiate, a graph needs both"
        raise GradientError(
            f"{what} its floating-point outputs, {list(floats)}, and floating-point inputs, {list(wrt)}."
        )
    chosen = [floats[name] for name in (floats if outputs is None else outputs)]
    return with_softplus(inline_functions(with_fields(model, output=chosen))), list(wrt)


def _finished(model: ModelProto) -> ModelProto:
    """Return a differentiated graph with nodes that every onnxruntime computes correctly."""
    return portable_products(without_float64_softplus(model))


def _without_seeds(model: ModelProto, seeds: dict[str, str]) -> ModelProto:
    """Return a model whose inputs ``seeds``, in which results are linear, are zeros like tensors."""
    graph, nodes = model.graph, list(model.graph.node)
    read = {name for node in nodes for name in node.input}
    types = {value.name: value.type.tensor_type.elem_type for value in graph.input}
    for seed, like in seeds.items():
        if seed not in read:
            continue
        position = next((i + 1 for i, node in enumerate(nodes) if like in node.output), 0)
        shape, zero = f"{seed}_shape", helper.make_tensor("value", types[seed], [1], [0.0])
        nodes[position:position] = [
            helper.make_node("Shape", [like], [shape], name=f"Shape_{seed}"),
            helper.make_node("ConstantOfShape", [shape], [seed], name=f"Zeros_{seed}", value=zero),
        ]
    return with_fields(model, node=nodes, input=[value for value in graph.input if value.name not in seeds])


def _renamed(model: ModelProto, new: dict[str, str]) -> ModelProto:
    """Return a model with new names, followed by underscores if they are taken."""
    taken, mapping = graph_names(model.graph) - new.keys(), {}
    for old, name in new.items():
        while name in taken:
            name += "_"
        taken.add(name)
        mapping[old] = name
    return map_names(model, mapping)
