"""Find the learned weights of a graph by the operators that read them."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from ..graphs import node_inputs
from ..graphs.external_tensors import tensor_array
from ..graphs.nodes import all_nodes, attribute
from ..models.parameters import CONSTANT, STATISTIC, Parameter

_FACTORS, _LAYER = {0: "weight", 1: "weight"}, {1: "weight", 2: "intercept"}
_NORMALIZATION, _RECURRENT = {1: "scale", 2: "intercept"}, {1: "weight", 2: "weight", 3: "intercept"}
_ACTIVATION, _MICROSOFT = {1: "intercept"}, "com.microsoft"
#: Roles of learned inputs of operators by position, after the documentation of onnx and onnxruntime.
LEARNED: dict[tuple[str, str], dict[int, str]] = {
    ("", "MatMul"): _FACTORS,
    ("", "Einsum"): {**_FACTORS, 2: "weight"},
    ("", "Gemm"): {**_FACTORS, 2: "intercept"},
    ("", "Conv"): _LAYER,
    ("", "ConvTranspose"): _LAYER,
    ("", "DeformConv"): {1: "weight", 3: "intercept"},
    **{("", name): _RECURRENT for name in ("GRU", "RNN")},
    ("", "LSTM"): {**_RECURRENT, 7: "weight"},
    **{("", f"{of}Normalization"): _NORMALIZATION for of in ("Batch", "Group", "Instance", "Layer")},
    **{("", name): {1: "scale"} for name in ("RMSNormalization", "SimplifiedLayerNormalization")},
    **{(_MICROSOFT, name): _FACTORS for name in ("FusedMatMul", "TransposeMatMul")},
    **{(_MICROSOFT, name): {**_FACTORS, 2: "intercept"} for name in ("FusedGemm", "GemmFastGelu")},
    **{(_MICROSOFT, name): _LAYER for name in ("Attention", "FusedConv")},
    (_MICROSOFT, "MultiHeadAttention"): {3: "intercept"},
    **{(_MICROSOFT, name): _ACTIVATION for name in ("BiasAdd", "BiasGelu", "BiasSplitGelu", "FastGelu")},
    (_MICROSOFT, "GroupNorm"): _NORMALIZATION,
    (_MICROSOFT, "SkipLayerNormalization"): {2: "scale", 3: "intercept", 4: "intercept"},
    (_MICROSOFT, "SkipSimplifiedLayerNormalization"): {2: "scale", 3: "intercept"},
    (_MICROSOFT, "EmbedLayerNormalization"): {2: "table", 3: "table", 4: "table", 5: "scale", 6: "intercept"},
}
CONVOLUTIONS = {"Conv", "ConvTranspose", "DeformConv"}
#: Products; a term added to one is an intercept.
PRODUCTS = {*CONVOLUTIONS, "MatMul", "Gemm", "Einsum", "FusedMatMul", "TransposeMatMul"}
#: Numbers of blocks of rows or columns in the weight of an operator.
BLOCKS = {"LSTM": 4, "GRU": 3, "Attention": 3}
#: Operators that look up rows of their first input.
TABLES = {("", "Gather"), ("", "GatherElements"), ("", "GatherND"), ("ai.onnx.ml", "ArrayFeatureExtractor")}
#: Operators allowed between a product and the addition of its intercept.
PASSING = {"Cast", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze"}
#: Operators between a weight and the layer of a quantised network.
ROUNDING = {"QuantizeLinear", "DequantizeLinear"}


def find_weights(model: ModelProto) -> dict[str, Parameter]:
    """Return the floating-point initializers of a graph with their roles.

    Learned weights are the operands of products, convolutions, recurrent layers and attention, the terms
    added to products with a weight, the scales and shifts of normalizations, and tables whose rows are
    selected by computed indices. Parameters of preprocessing (a subtracted mean, a divisor), running means
    and variances of batch normalizations, and constants of formulas are not learned. If a graph has no
    learned weights by these rules, its terms and factors other than scalars are learned.

    Parameters
    ----------
    model : onnx.ModelProto
        Model without fused operators.

    Returns
    -------
    dict of str to Parameter
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
    nodes, constants = list(all_nodes(model.graph)), constant_tensors(model.graph)
    producers = {name: node for node in nodes for name in node.output}
    readers: dict[str, list[tuple[NodeProto, int]]] = {}
    for node in nodes:
        for position, name in enumerate(node.input):
            readers.setdefault(name, []).append((node, position))
    normalizations = [node for node in nodes if node.op_type == "BatchNormalization"]
    statistics = {name for node in normalizations for name in node.input[3:5]}  # also with other readers

    arrays = {name: array for name, (array, _) in get_train_initializer(model).items() if name in readers}
    final = {
        name: [_final_reader(*reader, readers, constants) for reader in readers[name]] for name in arrays
    }
    found = {name: _weight(name, arrays[name], *final[name][0], producers, constants) for name in arrays}
    for name in statistics & found.keys():
        found[name] = Parameter(name, "other", False, drawn=False, reason=STATISTIC)
    has_learned = any(weight.learned for weight in found.values())
    for name, weight in found.items():
        array, last = arrays[name], [node for node, _ in final[name]]
        is_term = weight.role in ("intercept", "scale") and array.ndim > 0
        learned = weight.learned if has_learned else is_term
        found[name] = replace(
            weight,
            learned=learned,
            operators=tuple(dict.fromkeys(node.op_type for node in last)),
            nodes=tuple(dict.fromkeys(node.name for node in last if node.name)),
            reason=weight.reason or ("" if learned or array.size > 1 else CONSTANT),
        )
    return found


def _weight(
    name: str,
    array: np.ndarray,
    node: NodeProto,
    position: int,
    producers: Mapping[str, NodeProto],
    constants: set[str],
) -> Parameter:
    """Return the role of an initializer at an input of a node."""
    operator = "" if node.domain == "ai.onnx" else node.domain, node.op_type
    known = LEARNED.get(operator, {}).get(position)
    if known == "table" or (operator in TABLES and position == 0):
        looked_up = array.ndim > 0 and array.size > 1 and node.input[known is None] not in constants
        return Parameter(name, "table", looked_up, drawn=False)
    if known is not None:
        return Parameter(name, known, True, _fans(node, array) if known == "weight" else (1, 1))
    if node.op_type in ("Add", "Sub") and len(node.input) == 2:
        other = producers.get(node.input[1 - position])
        while other is not None and other.op_type in PASSING:
            other = producers.get(other.input[0])
        is_product = other is not None and other.op_type in PRODUCTS and constants & {*other.input}
        return Parameter(name, "intercept", bool(is_product))
    return Parameter(name, "scale" if node.op_type in ("Mul", "Div") else "other", False)


def constant_tensors(graph: GraphProto) -> set[str]:
    """Return the tensors that do not depend on the inputs of a graph."""
    constants = {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        if node_inputs(node) <= constants:
            constants.update(node.output)
    return constants


def _final_reader(
    node: NodeProto, position: int, readers: Mapping[str, list[tuple[NodeProto, int]]], constants: set[str]
) -> tuple[NodeProto, int]:
    """Return the first node that computes with an initializer, and the position of its input."""
    while position == 0 and node.output[0] in readers:
        if node.op_type not in PASSING | ROUNDING | {"Transpose"} and node.output[0] not in constants:
            break
        node, position = readers[node.output[0]][0]
    return node, position


def _fans(node: NodeProto, array: np.ndarray) -> tuple[int, int]:
    if array.ndim < 2:
        return max(array.size, 1), 1
    if node.op_type in {*CONVOLUTIONS, "FusedConv"}:
        field = int(np.prod(array.shape[2:]))
        return array.shape[1] * field, array.shape[0] * field
    rows, columns = array.shape[-2], array.shape[-1]
    if node.op_type in ("GRU", "LSTM", "RNN"):
        return columns, max(rows // BLOCKS.get(node.op_type, 1), 1)
    if attribute(node, "transB", 0):
        return columns, rows
    return rows, max(columns // BLOCKS.get(node.op_type, 1), 1)


def get_train_initializer(onx: ModelProto) -> dict[str, tuple[np.ndarray, TensorProto]]:
    """Return the floating-point initializers of the main graph.

    Parameters
    ----------
    onx : onnx.ModelProto
        Model.

    Returns
    -------
    dict of str to (ndarray, onnx.TensorProto)
        Value and tensor of every float32 and float64 initializer, in the graph's order. Some are not
        weights: see :func:`ortlearn.conversion.find_weights`.

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
        tensor.name: (tensor_array(tensor), tensor)
        for tensor in onx.graph.initializer
        if tensor.data_type in (TensorProto.FLOAT, TensorProto.DOUBLE)
    }
