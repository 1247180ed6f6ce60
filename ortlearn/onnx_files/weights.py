"""Find the learned weights of a graph by the operators that read its initializers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from ..graphs import node_inputs
from ..graphs.nodes import all_nodes, attribute
from ..models.weight import STATISTIC, Weight

__all__ = ["find_weights", "get_train_initializer"]

#: Operators that multiply by a weight, and the positions of their weights and of their intercept.
LINEAR = {
    "MatMul": ((0, 1), None),
    "Gemm": ((0, 1), 2),
    "Conv": ((1,), 2),
    "ConvTranspose": ((1,), 2),
}
#: Operators that scale and shift what they normalize by their second and third input.
NORMALIZATIONS = ("BatchNormalization", "GroupNormalization", "InstanceNormalization", "LayerNormalization")
#: Operators that read rows of their first input under the numbers in the second.
TABLES = {("", "Gather"), ("", "GatherElements"), ("", "GatherND"), ("ai.onnx.ml", "ArrayFeatureExtractor")}
#: Operators that only pass values on between a product and the sum with its intercept.
PASSING = {"Cast", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze"}


def find_weights(model: ModelProto) -> dict[str, Weight]:
    """Return the floating-point initializers of a graph with their roles.

    Learned weights are the operands of MatMul, Gemm and convolutions, what is added to their
    results, the scale and the shift of normalizations, and tables whose rows are looked up under
    computed numbers. Parameters of preprocessing (a mean subtracted, a scale divided by), the running
    mean and variance of a batch normalization, and constants of formulas are not. A graph without any
    of these learns what is added to or multiplied with its values, scalars excepted.

    Parameters
    ----------
    model : onnx.ModelProto
        Model without fused operators.

    Returns
    -------
    dict of str to Weight
        Weights by name, in the graph's order.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.conversion import find_weights
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,1] y)
    ...     <float[2] mean = {0, 1}, float[2,1] coef = {2, 3}, float[1] intercept = {1}>
    ...     { c = Sub (x, mean) z = MatMul (c, coef) y = Add (z, intercept) }''')
    >>> [weight.name for weight in find_weights(model).values() if weight.learned]
    ['coef', 'intercept']
    """
    arrays = {name: array for name, (array, _) in get_train_initializer(model).items()}
    nodes, constants = list(all_nodes(model.graph)), _constants(model)
    producers = {name: node for node in nodes for name in node.output}
    readers: dict[str, tuple[NodeProto, int]] = {}
    for node in nodes:
        for position, name in enumerate(node.input):
            readers.setdefault(name, (node, position))

    normalizations = [node for node in nodes if node.op_type == "BatchNormalization"]
    statistics = {name for node in normalizations for name in node.input[3:5]}  # whatever else reads them

    def role(name: str, array: np.ndarray) -> Weight:
        if name in statistics:
            return Weight(name, "other", False, drawn=False, reason=STATISTIC)
        node, position = _final_reader(name, readers, constants)
        if (node.domain, node.op_type) in TABLES and position == 0:
            looked_up = array.ndim > 0 and array.size > 1 and node.input[1] not in constants
            return Weight(name, "table", looked_up, drawn=False)
        if node.op_type in LINEAR and node.domain == "":
            factors, intercept = LINEAR[node.op_type]
            if position == intercept:
                return Weight(name, "intercept", True)
            return Weight(name, "weight", position in factors, _fans(node, array))
        if node.op_type in NORMALIZATIONS and node.domain == "" and position in (1, 2):
            return Weight(name, "scale" if position == 1 else "intercept", True)
        if node.op_type in ("Add", "Sub") and len(node.input) == 2:
            other = producers.get(node.input[1 - position])
            while other is not None and other.op_type in PASSING:
                other = producers.get(other.input[0])
            return Weight(name, "intercept", other is not None and other.op_type in LINEAR)
        return Weight(name, "scale" if node.op_type in ("Mul", "Div") else "other", False)

    found = {name: role(name, array) for name, array in arrays.items() if name in readers}
    if not any(weight.learned for weight in found.values()):
        found = {
            name: replace(w, learned=w.role in ("intercept", "scale") and arrays[name].ndim > 0)
            for name, w in found.items()
        }
    return found


def _constants(model: ModelProto) -> set[str]:
    """Return the tensors that depend on no input."""
    inputs = {value.name for value in model.graph.input}
    constants = {tensor.name for tensor in model.graph.initializer} - inputs
    for node in model.graph.node:
        if node_inputs(node) <= constants:
            constants.update(node.output)
    return constants


def _final_reader(
    name: str, readers: dict[str, tuple[NodeProto, int]], constants: set[str]
) -> tuple[NodeProto, int]:
    """Return the first node that computes with an initializer: what only passes it on does not count.

    Neither does what shifts, scales or cuts it before an input comes in.
    """
    node, position = readers[name]
    while position == 0 and node.output[0] in readers:
        if node.op_type not in PASSING | {"Transpose"} and node.output[0] not in constants:
            break
        node, position = readers[node.output[0]]
    return node, position


def _fans(node: NodeProto, array: np.ndarray) -> tuple[int, int]:
    if array.ndim < 2:
        return max(array.size, 1), 1
    if node.op_type in ("Conv", "ConvTranspose"):
        field = int(np.prod(array.shape[2:]))
        return array.shape[1] * field, array.shape[0] * field
    if node.op_type == "Gemm" and attribute(node, "transB", 0):
        return array.shape[1], array.shape[0]
    return array.shape[-2], array.shape[-1]


def get_train_initializer(onx: ModelProto) -> dict[str, tuple[np.ndarray, TensorProto]]:
    """Return the floating-point initializers of the main graph.

    Parameters
    ----------
    onx : onnx.ModelProto
        Model.

    Returns
    -------
    dict of str to (ndarray, onnx.TensorProto)
        Value and tensor of every float32 and float64 initializer, in the graph's order. Not every
        one is a weight: see :func:`ortlearn.conversion.find_weights`.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.conversion import get_train_initializer
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,1] x) => (float[1,M] y) <float[1,1] w = {2}, int64[2] shape = {1, -1}>
    ...     { z = MatMul (x, w) y = Reshape (z, shape) }''')
    >>> {name: array.tolist() for name, (array, tensor) in get_train_initializer(model).items()}
    {'w': [[2.0]]}
    """
    return {
        tensor.name: (numpy_helper.to_array(tensor), tensor)
        for tensor in onx.graph.initializer
        if tensor.data_type in (TensorProto.FLOAT, TensorProto.DOUBLE)
    }
