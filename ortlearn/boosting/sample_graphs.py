"""Graphs of losses, read sample by sample and written again with few nodes on vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from ..graphs import GraphBuilder, TensorType, make_value_info, prune
from ..graphs.editing import renamed_node
from ..graphs.external_tensors import tensor_array
from ..graphs.nodes import attributes_of
from .algebra import Algebra, Form

__all__ = ["RUNTIME_RULES", "SampleGraph", "UnreadGraphError"]

OPSET = 18
#: Operators that treat all elements alike, and broadcast scalars.
ELEMENTWISE = set(
    "Abs And Asinh Atan Ceil Clip Cos Cosh Equal Erf Exp Floor Greater GreaterOrEqual Less LessOrEqual Log "
    "Max Min Not Or Pow Relu Sigmoid Sign Sin Sinh Softplus Sqrt Tan Tanh".split()
)
#: Operators that do not change the elements of a sample, but their shape.
RESHAPING = {"Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"}

#: The value of a tensor for each sample: a form, or one per column; arrays are constants.
Values = tuple[Form, ...]


class UnreadGraphError(Exception):
    """A graph has operators that are not read sample by sample."""


class SampleGraph:
    """Reads graphs as expressions of the elements of a sample, and writes their results as one graph."""

    def __init__(
        self,
        dtype: Any,
        inputs: tuple[str, ...],
        largest: str = "",
        rules: Mapping[str, Callable[..., Form]] | None = None,
    ):
        self.dtype, self.inputs, self.largest = np.dtype(dtype), inputs, largest
        self.elem_type = helper.np_dtype_to_tensor_dtype(self.dtype)
        self._columnwise = {**COLUMNWISE, **(rules or {})}
        self.op = GraphBuilder(OPSET, dtype=dtype, existing_names={*inputs, largest})
        self.algebra = Algebra(self.op)

    def read(self, model: ModelProto, values: Mapping[str, Values]) -> dict[str, Values]:
        """Return the values of the outputs of a graph, for those of its inputs."""
        found: dict[str, Any] = dict(values)
        for tensor in model.graph.initializer:
            array = tensor_array(tensor)
            found[tensor.name] = _constants(array) if array.dtype == self.dtype else array
        for node in model.graph.node:
            inputs = [found[name] if name else None for name in node.input]
            found.update(zip(node.output, self._results(node, inputs), strict=False))
        return {value.name: found[value.name] for value in model.graph.output}

    def model(self, outputs: Mapping[str, Form]) -> ModelProto:
        """Return the graph of forms that are not constants."""
        vector = TensorType(self.elem_type, ("N",))
        renamed: dict[str, str] = {}
        copies = []
        for name, form in outputs.items():
            source = self.algebra.tensor(form)
            if source in (*self.inputs, *renamed):
                copies.append(helper.make_node("Identity", [renamed.get(source, source)], [name]))
            else:
                renamed[source] = name
        nodes = [*(renamed_node(node, renamed) for node in self.op.nodes), *copies]
        graph = helper.make_graph(
            nodes,
            "samples",
            [make_value_info(name, vector) for name in (*self.inputs, self.largest) if name],
            [make_value_info(name, vector) for name in outputs],
            self.op.initializers,
        )
        opsets = [helper.make_opsetid(domain, version) for domain, version in self.op.opsets.items()]
        return prune(helper.make_model(graph, opset_imports=opsets, ir_version=8))

    def _results(self, node: NodeProto, inputs: list[Any]) -> list[Any]:
        """Return the values of the outputs of a node."""
        kind = node.op_type
        if kind in RULES and not node.domain:
            return RULES[kind](self, node, *inputs)
        if kind in RESHAPING and not (isinstance(inputs[0], tuple) and len(inputs[0]) > 1):
            return inputs[:1]
        widths = {len(own) if isinstance(own, tuple) else 0 for own in inputs} - {1}
        if node.domain or kind not in self._columnwise.keys() | ELEMENTWISE or len(widths) > 1 or 0 in widths:
            raise UnreadGraphError(kind)
        columns = [[own[column % len(own)] for own in inputs] for column in range(max(widths, default=1))]
        if kind in self._columnwise:
            return [tuple(self._columnwise[kind](self.algebra, node, *own) for own in columns)]
        return [tuple(self.algebra.result(kind, *own, **attributes_of(node)) for own in columns)]


def _constants(array: np.ndarray) -> Any:
    """Return the forms of a constant: one, or one per column; other arrays as they are."""
    is_row = array.size == 1 or array.shape in ((array.size,), (1, array.size))
    return tuple(Form((), float(value)) for value in array.ravel()) if is_row else array


def _of_shape(graph: SampleGraph, node: NodeProto, shape: Any) -> list[Any]:
    value = attributes_of(node).get("value")
    return [(Form((), 0.0 if value is None else float(tensor_array(value).item())),)]


def _reduce_sum(graph: SampleGraph, node: NodeProto, values: Any, axes: Any = None) -> list[Any]:
    if not isinstance(values, tuple) or np.ravel(axes).tolist() not in ([1], [-1]):
        raise UnreadGraphError("ReduceSum")
    return [(reduce(graph.algebra.add, values),)]


def _cross_entropy(graph: SampleGraph, node: NodeProto, scores: Values, label: Values) -> list[Any]:
    """Read ``logsumexp(z) - z[c]``, with the largest score as an input."""
    algebra = graph.algebra
    largest = Form(((graph.largest, -1.0),))
    parts = [algebra.result("Exp", algebra.add(own, largest)) for own in scores]
    total = algebra.add(algebra.result("Log", reduce(algebra.add, parts)), largest.scaled(-1))
    own = _gather(graph, node, scores, label)[0][0].scaled(-1)
    return [(algebra.add(total, own),), tuple(algebra.add(score, total.scaled(-1)) for score in scores)]


def _gather(graph: SampleGraph, node: NodeProto, scores: Values, label: Values) -> list[Any]:
    """Read the column of the class of a sample."""
    algebra, found = graph.algebra, Form()
    for number, score in enumerate(scores):
        own = algebra.mask(algebra.node("Equal", *map(algebra.tensor, (*label, Form((), float(number))))))
        found = algebra.add(found, algebra.multiply(own, score))
    return [(found,)]


def _cast(algebra: Algebra, node: NodeProto, form: Form) -> Form:
    if attributes_of(node)["to"] not in (TensorProto.FLOAT, TensorProto.DOUBLE):
        raise UnreadGraphError("Cast")
    return algebra.mask(form.terms[0][0]) if algebra.is_condition(form) else form


def _softplus(algebra: Algebra, node: NodeProto, form: Form) -> Form:
    """Read ``max(x, 0) - log(sigmoid(|x|))``."""
    rest = algebra.result("Log", algebra.result("Sigmoid", algebra.result("Abs", form)))
    return algebra.add(algebra.result("Relu", form), rest.scaled(-1))


def _where(algebra: Algebra, node: NodeProto, condition: Form, left: Form, right: Form) -> Form:
    if left == right:
        return left
    if left.terms or right.terms:
        return algebra.result("Where", condition, left, right)
    mask = algebra.mask(condition.terms[0][0])
    return algebra.add(right, mask.scaled(left.constant - right.constant))


def _power(algebra: Algebra, node: NodeProto, base: Form, exponent: Form) -> Form:
    if exponent.terms or exponent.constant not in (1, 2, 3, 4):
        return algebra.result("Pow", base, exponent)
    square = algebra.multiply(base, base)
    return {1: base, 2: square, 3: algebra.multiply(square, base), 4: algebra.multiply(square, square)}[
        int(exponent.constant)
    ]


#: Rules of operators, by column.
COLUMNWISE: dict[str, Callable[..., Form]] = {
    "Add": lambda algebra, node, left, right: algebra.add(left, right),
    "Cast": _cast,
    "Div": lambda algebra, node, left, right: algebra.divide(left, right),
    "Mul": lambda algebra, node, left, right: algebra.multiply(left, right),
    "Neg": lambda algebra, node, form: form.scaled(-1),
    "Pow": _power,
    "Reciprocal": lambda algebra, node, form: algebra.divide(Form((), 1.0), form),
    "Sub": lambda algebra, node, left, right: algebra.add(left, right.scaled(-1)),
    "Sum": lambda algebra, node, *forms: reduce(algebra.add, forms),
    "Where": _where,
}
#: Rules of operators whose kernels are slow, or overflow in float64.
RUNTIME_RULES: dict[str, Callable[..., Form]] = {
    "ReduceMean": lambda algebra, node, form: algebra.result("ReduceMean", form, keepdims=0),
    "Softplus": _softplus,
}
#: Rules of operators of the columns together.
RULES: dict[str, Callable[..., list[Any]]] = {
    "ConstantOfShape": _of_shape,
    "GatherElements": _gather,
    "ReduceSum": _reduce_sum,
    "Shape": lambda graph, node, values: [None],
    "SoftmaxCrossEntropyLoss": _cross_entropy,
}
