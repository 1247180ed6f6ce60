"""Check a gradient rule against finite differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, helper, numpy_helper

from ..differentiation.gradient_model import gradient_model
from ..differentiation.types.inference import infer_types
from ..graphs import TensorType, make_value_info, value_types
from .running import Run, check_graph, run_reference

__all__ = ["check_gradient_rule", "make_node_model"]


#: Operator domains of all onnxruntime builds; gradients may use only these.
_STANDARD = {"", "ai.onnx", "ai.onnx.ml"}


def check_gradient_rule(
    operator: str | ModelProto,
    *inputs: Any,
    wrt: Sequence[int] | None = None,
    constants: Sequence[int] = (),
    attributes: Mapping[str, Any] | None = None,
    domain: str = "",
    opset: int = 18,
    n_outputs: int = 1,
    symbolic: bool = False,
    run: Run | None = None,
    step: float = 1e-6,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    projections: int = 3,
    random_state: int = 0,
) -> None:
    """Check the gradient rule of an operator against finite differences in float64.

    Outputs are summed with random weights. The slope of this sum along random directions, one input at a
    time, is compared with the gradient. Choose inputs at which the operator is differentiable.

    Parameters
    ----------
    operator : str or onnx.ModelProto
        Operator, or a whole model to differentiate.
    *inputs : array-like or None
        Values of its inputs; floating-point ones are float64. None omits an input.
    wrt : sequence of int, default=None
        Positions of the inputs to check; by default all floating-point inputs that are not constants.
    constants : sequence of int, default=()
        Positions of the inputs that are constants of the graph.
    attributes : mapping of str to object, default=None
        Attributes of the operator.
    domain : str, default=""
        Domain of the operator.
    opset : int, default=18
        Version of the default operator set.
    n_outputs : int, default=1
        Number of outputs of the operator.
    symbolic : bool, default=False
        Whether the first dimension is symbolic, for the first input and all other inputs of the same length
        (except constants).
    run : callable, default=None
        ``run(model, feeds)`` returns the outputs of a model; onnx's reference evaluator by default.
    step : float, default=1e-6
        Step of the finite differences.
    rtol, atol : float, default=1e-6, 1e-9
        Tolerances; an error of 0.05 % must be detected.
    projections : int, default=3
        Number of random directions; the first one has the signs of the gradient, so that no terms cancel.
    random_state : int, default=0
        Seed of the weights and the directions.

    Raises
    ------
    AssertionError
        If a gradient is wrong, or has another shape or type than its input, or if the
        gradient graph uses an operator that is not standard.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.testing import check_gradient_rule
    >>> check_gradient_rule("Mul", np.ones((2, 3)), np.arange(3.0))
    >>> check_gradient_rule("Softmax", np.arange(6.0).reshape(2, 3), attributes={"axis": 0})
    """
    if isinstance(operator, ModelProto):
        model = operator
        feeds = {v.name: np.asarray(x) for v, x in zip(model.graph.input, inputs, strict=True)}
        names: list[str] = list(feeds)
    else:
        model, feeds, names = make_node_model(
            operator,
            *inputs,
            constants=constants,
            attributes=attributes,
            domain=domain,
            opset=opset,
            n_outputs=n_outputs,
            symbolic=symbolic,
            run=run,
        )
    if wrt is None:
        wrt = [i for i, name in enumerate(names) if name in feeds and feeds[name].dtype.kind == "f"]
    run = run or run_reference
    rng = np.random.default_rng(random_state)
    weights, grads = _gradients(model, feeds, [names[i] for i in wrt], run, rng)
    for index, grad in zip(wrt, grads, strict=True):
        name = names[index]
        where = f"gradient of input {index} of {operator if isinstance(operator, str) else 'the model'}"
        assert grad.shape == feeds[name].shape, f"{where} has shape {grad.shape}, not {feeds[name].shape}"
        assert grad.dtype == feeds[name].dtype, f"{where} has type {grad.dtype}, not {feeds[name].dtype}"
        for number in range(projections if grad.size else 0):
            direction = np.asarray(rng.normal(size=grad.shape), dtype=grad.dtype)
            if number == 0:
                direction = np.abs(direction) * np.sign(grad)
            slope, noise = _slope(model, feeds, name, direction, weights, run, step)
            products = grad * direction
            bound = atol + noise + rtol * np.abs(products).sum()
            assert abs(slope - products.sum()) <= bound, (
                f"{where} is {products.sum():.9g} along a direction, but finite differences give {slope:.9g}"
            )


def _gradients(model: Any, feeds: Any, names: Any, run: Any, rng: Any) -> Any:
    """Return random weights of the outputs, and the gradients of the weighted sum."""
    onx = gradient_model(model, None, names)
    check_graph(f"gradient of {model.graph.name}", onx)
    own = {node.domain for node in model.graph.node}
    used = {node.domain for node in onx.graph.node} - _STANDARD - own
    assert not used, f"the gradient uses operators of {sorted(used)}, which are not standard"
    outputs = [value.name for value in model.graph.output]
    values = dict(zip(outputs, run(model, feeds), strict=True))
    given = [value.name for value in onx.graph.input if value.name not in feeds]
    weights = {
        name.removesuffix("_grad"): np.asarray(rng.normal(size=np.shape(values[name.removesuffix("_grad")])))
        for name in given
    }
    types = value_types(onx, infer=False)
    seeds = {
        f"{name}_grad": value.astype(helper.tensor_dtype_to_np_dtype(types[f"{name}_grad"].elem_type))
        for name, value in weights.items()
    }
    return weights, run(onx, {**feeds, **seeds})


def _slope(model: Any, feeds: Any, name: Any, direction: Any, weights: Any, run: Any, step: Any) -> Any:
    """Return the slope of the weighted sum of the outputs along a direction, and its rounding error."""
    outputs = [value.name for value in model.graph.output]
    total = size = 0.0
    for sign in (1, -1):
        moved = np.asarray(feeds[name] + sign * step * direction, dtype=direction.dtype)
        results = run(model, {**feeds, name: moved})
        for output, result in zip(outputs, results, strict=True):
            if output in weights:
                products = weights[output] * result
                total += sign * float(products.sum())
                size += float(np.abs(products).sum())
    return total / (2 * step), 2 * np.finfo(direction.dtype).eps * size / step


def make_node_model(
    operator: str,
    *inputs: Any,
    constants: Sequence[int] = (),
    attributes: Mapping[str, Any] | None = None,
    domain: str = "",
    opset: int = 18,
    n_outputs: int = 1,
    symbolic: bool = False,
    run: Run | None = None,
) -> tuple[ModelProto, dict[str, np.ndarray], list[str]]:
    """Return a model of one node, the values to feed it with, and the names of the node's inputs.

    Parameters
    ----------
    operator : str
        Operator.
    *inputs : array-like or None
        Values of its inputs; floating-point types other than float32 become float64. None omits an input.
    constants : sequence of int, default=()
        Positions of the inputs that are constants of the graph.
    attributes : mapping of str to object, default=None
        Attributes of the operator.
    domain : str, default=""
        Domain of the operator.
    opset : int, default=18
        Version of the default operator set.
    n_outputs : int, default=1
        Number of outputs of the operator.
    symbolic : bool, default=False
        Whether the first dimension is symbolic, for the first input and all other inputs of the same length.
    run : callable, default=None
        ``run(model, feeds)`` returns the outputs of a model; onnx's reference evaluator by default.

    Returns
    -------
    model : onnx.ModelProto
        Model of the node.
    feeds : dict of str to ndarray
        Values of the inputs that are not constants.
    names : list of str
        Names of the inputs of the node, "" for one that is omitted.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.testing import make_node_model
    >>> model, feeds, names = make_node_model("Exp", np.zeros((2, 3)), symbolic=True)
    >>> names, [dim.dim_param or dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    (['x0'], ['N', 3])
    """
    values = {i: _as_array(value) for i, value in enumerate(inputs) if value is not None}
    names = [f"x{i}" if i in values else "" for i in range(len(inputs))]
    batch = values[0].shape[:1] if 0 in values else ()
    infos, initializers, feeds = [], [], {}
    for i, value in values.items():
        if i in constants:
            initializers.append(numpy_helper.from_array(value, names[i]))
            continue
        shape: tuple = value.shape
        if symbolic and batch and shape[:1] == batch:
            shape = ("N", *shape[1:])
        known = TensorType(helper.np_dtype_to_tensor_dtype(value.dtype), shape)
        infos.append(make_value_info(names[i], known))
        feeds[names[i]] = value
    outputs = [f"y{i}" for i in range(n_outputs)]
    node = helper.make_node(operator, names, outputs, name="node", domain=domain, **(attributes or {}))
    opsets = [helper.make_opsetid("", opset)]
    if domain:
        opsets.append(helper.make_opsetid(domain, {"ai.onnx.ml": 3}.get(domain, 1)))
    graph = helper.make_graph([node], "operator", infos, [], initializers)
    version = helper.find_min_ir_version_for([o for o in opsets if o.domain in _STANDARD])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=max(version, 7))
    _declare_outputs(model, outputs, feeds, run or run_reference)
    return model, feeds, names


def _declare_outputs(model: ModelProto, outputs: list[str], feeds: dict, run: Run) -> None:
    """Add the outputs; if shape inference does not find their rank, run the model to get it."""
    types = value_types(infer_types(model), infer=False)
    if not all(name in types and types[name].shape is not None for name in outputs):
        default = max((value.dtype for value in feeds.values()), key=lambda dtype: dtype.kind == "f")
        guess = helper.np_dtype_to_tensor_dtype(default)
        untyped = ModelProto()
        untyped.CopyFrom(model)
        untyped.graph.output.extend(make_value_info(n, types.get(n) or TensorType(guess)) for n in outputs)
        for name, value in zip(outputs, run(untyped, feeds), strict=True):
            if name not in types or types[name].shape is None:
                elem_type = helper.np_dtype_to_tensor_dtype(value.dtype)
                types[name] = TensorType(elem_type, (None,) * value.ndim)
    model.graph.output.extend(make_value_info(name, types[name]) for name in outputs)


def _as_array(value: Any) -> np.ndarray:
    array = np.asarray(value)
    return array.astype(np.float64) if array.dtype.kind == "f" and array.dtype != np.float32 else array
