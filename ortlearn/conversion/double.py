"""A graph in float32 -> the same in float64, for models that skl2onnx writes in float32 only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, defs, helper, numpy_helper

from ..exceptions import ConversionError
from ..graphs import (
    GraphBuilder,
    TensorType,
    copy_model,
    graph_names,
    initializer_arrays,
    opset_versions,
    subgraphs,
    value_types,
)

__all__ = ["compares_in_double", "is_double", "to_double"]

FLOAT, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE
#: Factors of a product up to which it is written factor by factor.
MAX_FACTORS = 16
#: Attributes that hold the type of what a node makes.
TYPES = {"Cast": "to", "EyeLike": "dtype", "RandomNormal": "dtype", "RandomUniform": "dtype"}


def is_double(model: ModelProto) -> bool:
    """Tell whether a graph is one in float64.

    No output is float32, nor is a vector or a matrix that it holds, and no operator mixes both types.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph.

    Returns
    -------
    bool
        Whether it is.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.conversion.double import is_double
    >>> is_double(parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (double[N] x) => (float[N] y) { y = Cast <to = 1> (x) }'''))
    False
    """
    if any(value.type.tensor_type.elem_type == FLOAT for value in model.graph.output):
        return False
    types = {name: known.elem_type for name, known in value_types(model).items()}
    # Support vector machines and tables of trees are written in float32 between casts.
    if any(tensor.data_type == FLOAT and tensor.dims for tensor in model.graph.initializer):
        return False
    versions = opset_versions(model)
    return not any(_mixes(node, types, versions.get(node.domain, 1)) for node in model.graph.node)


def _mixes(node: NodeProto, types: Mapping[str, int], version: int) -> bool:
    """Tell whether tensors that must be of one type are of two."""
    schema = _schema(node, version)
    if schema is None:
        return False
    seen: dict[str, set[int]] = {}
    for names, formal in ((node.input, schema.inputs), (node.output, schema.outputs)):
        for position, name in enumerate(names):
            if name in types:
                seen.setdefault(formal[min(position, len(formal) - 1)].type_str, set()).add(types[name])
    return any({FLOAT, DOUBLE} <= found for found in seen.values())


def compares_in_double(node: NodeProto) -> bool:
    """Tell whether an operator of trees compares float64 with float64 thresholds.

    Parameters
    ----------
    node : onnx.NodeProto
        Node.

    Returns
    -------
    bool
        Whether it does; what it returns is float32 all the same.
    """
    tensors = {a.name: a.t.data_type for a in node.attribute}
    return node.domain == "ai.onnx.ml" and tensors.get("nodes_values_as_tensor") == DOUBLE


def to_double(model: ModelProto, exact: Iterable[np.ndarray] = ()) -> ModelProto:
    """Return a graph that computes in float64, between casts where an operator has no such form.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph in float32.
    exact : iterable of ndarray, default=()
        Arrays in float64, such as those of a fitted estimator: an initializer that holds one of them,
        rounded, gets its exact values.

    Returns
    -------
    onnx.ModelProto
        Graph with float64 instead of float32 inputs, outputs and initializers.

    Raises
    ------
    ConversionError
        If a branch or the body of a loop has an operator without a form in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from onnx import parser
    >>> from ortlearn.conversion.double import to_double
    >>> from ortlearn.graphs import initializer_arrays
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,1] x) => (float[N,1] y) <float[1,1] w = {0.1}> { y = MatMul (x, w) }''')
    >>> initializer_arrays(to_double(model, [np.array([0.1])]))["w"]
    array([[0.1]])
    """
    types = value_types(model)
    axes = {
        name: array.tolist() for name, array in initializer_arrays(model).items() if array.dtype == np.int64
    }
    floats = _float_tensors(model, types)
    result = copy_model(model)
    _widen_initializers(result.graph, list(exact))
    op = GraphBuilder(
        opset_versions(model).get("", 18), existing_names=graph_names(model.graph), prefix="double_"
    )
    versions = opset_versions(model)
    for node in result.graph.node:
        for body in subgraphs(node):
            _widen_body(body, versions)
        if node.op_type != "ReduceProd" or not _append_product(op, node, types, axes):
            _append(op, node, floats, versions.get(node.domain, 1))
    del result.graph.node[:]
    result.graph.node.extend(op.nodes)
    result.graph.initializer.extend(op.initializers)
    _widen_declarations(result.graph)
    return result


def _widen_declarations(graph: GraphProto) -> None:
    """Declare inputs and outputs as float64."""
    del graph.value_info[:]
    for value in (*graph.input, *graph.output):
        if value.type.tensor_type.elem_type == FLOAT:
            value.type.tensor_type.elem_type = DOUBLE
        members = value.type.sequence_type.elem_type.tensor_type
        if value.type.HasField("sequence_type") and members.elem_type == FLOAT:
            members.elem_type = DOUBLE


def _widen_body(body: GraphProto, versions: Mapping[str, int]) -> None:
    """Change a branch, or the body of a loop, to float64: it has no room for casts."""
    for node in body.node:
        if not _has_double_form(node, versions.get(node.domain, 1)):
            raise ConversionError(f"{node.op_type} in a branch or a loop has no form in float64.")
        for inner in subgraphs(node):
            _widen_body(inner, versions)
        _widen_attributes(node)
    _widen_initializers(body, [])
    _widen_declarations(body)


def _has_double_form(node: NodeProto, version: int) -> bool:
    """Tell whether an operator takes float64 wherever it takes float32."""
    schema = _schema(node, version)
    if schema is None or node.domain == "ai.onnx.ml":
        return False
    kinds = {
        constraint.type_param_str: constraint.allowed_type_strs for constraint in schema.type_constraints
    }
    formal = [kinds.get(value.type_str, [value.type_str]) for value in (*schema.inputs, *schema.outputs)]
    return all("tensor(float)" not in allowed or "tensor(double)" in allowed for allowed in formal)


def _float_tensors(model: ModelProto, types: Mapping[str, TensorType]) -> set[str]:
    """Return the float32 tensors, also those after operators that onnx cannot tell the type of."""
    floats = {name for name, known in types.items() if known.elem_type == FLOAT}
    versions = opset_versions(model)
    for node in model.graph.node:
        if floats.isdisjoint(node.input) or all(name in types for name in node.output):
            continue
        schema = _schema(node, versions.get(node.domain, 1))
        for position, name in enumerate(node.output):
            if name in types:
                continue
            same = [
                i for i in range(len(node.input)) if schema is None or _is_of_one_type(schema, i, position)
            ]
            if any(node.input[i] in floats for i in same):
                floats.add(name)
    return floats


def _schema(node: NodeProto, version: int) -> Any:
    try:
        return defs.get_schema(node.op_type, version, node.domain)
    except defs.SchemaError:
        return None


def _is_of_one_type(schema: Any, position: int, output: int) -> bool:
    """Tell whether an input and an output are of one type."""
    last_input, last_output = len(schema.inputs) - 1, len(schema.outputs) - 1
    result = schema.outputs[min(output, last_output)].type_str
    return schema.inputs[min(position, last_input)].type_str == result


def _widen_initializers(graph: GraphProto, exact: list[np.ndarray]) -> None:
    by_size: dict[int, list[np.ndarray]] = {}
    for array in exact:
        by_size.setdefault(array.size, []).append(array)
    for tensor in graph.initializer:
        if tensor.data_type == FLOAT:
            array = numpy_helper.to_array(tensor)
            wide = _exact(array, by_size.get(array.size, []))
            tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(wide), tensor.name))


def _exact(array: np.ndarray, candidates: list[np.ndarray]) -> np.ndarray:
    """Return an array in float64, with the exact values of the candidate it is rounded from."""
    flat = array.ravel()
    for candidate in candidates:
        with np.errstate(all="ignore"):
            forms = [form.ravel() for form in (candidate, candidate.T, 1 / candidate)]
            for values in (sign * form for form in forms for sign in (1.0, -1.0)):
                if np.array_equal(values.astype(np.float32), flat, equal_nan=True):
                    return values.astype(np.float64).reshape(array.shape)
    return array.astype(np.float64)


def _append(op: GraphBuilder, node: NodeProto, floats: set[str], version: int) -> None:
    """Append a node in float64, or in float32 between casts."""
    inputs, outputs = _wide_positions(node, version)
    for position, name in enumerate(node.input):
        if name in floats and not inputs(position):
            node.input[position] = op.Cast(name, to=FLOAT)
    after = []
    for position, name in enumerate(node.output):
        if name in floats and not outputs(position):
            node.output[position] = op.unique(name)
            after.append((node.output[position], name))
    if all(outputs(position) for position in range(len(node.output))):
        _widen_attributes(node)
    op.nodes.append(node)
    for narrow, name in after:
        op.node("Cast", narrow, outputs=[name], to=DOUBLE)


def _append_product(
    op: GraphBuilder, node: NodeProto, types: Mapping[str, TensorType], axes: Mapping[str, list[int]]
) -> bool:
    """Append the product of a few columns, which onnxruntime has no float64 form of; False for others."""
    known = types.get(node.input[0])
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    axis = attributes.get("axes", axes.get(node.input[1]) if len(node.input) > 1 else None)
    if known is None or known.shape is None or len(known.shape) != 2 or axis not in ([1], [-1]):
        return False
    count = known.shape[1]
    if not isinstance(count, int) or not 0 < count <= MAX_FACTORS:
        return False
    product = op.Gather(node.input[0], [0], axis=1)
    for column in range(1, count):
        product = op.Mul(product, op.Gather(node.input[0], [column], axis=1))
    if attributes.get("keepdims", 1):
        op.node("Identity", product, outputs=list(node.output))
    else:
        op.node("Squeeze", product, [1], outputs=list(node.output))
    return True


def _wide_positions(node: NodeProto, version: int) -> tuple[Callable[[int], bool], Callable[[int], bool]]:
    """Return which inputs and outputs of a node may be float64, as two functions of their position."""
    if compares_in_double(node):
        return (lambda position: True), (lambda position: False)
    schema = _schema(node, version)
    if schema is None or (node.domain == "ai.onnx.ml" and node.op_type != "ArrayFeatureExtractor"):
        return (lambda position: False), (lambda position: False)  # onnxruntime has few of them in float64
    allowed = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}

    def check(formal: Sequence[Any]) -> Callable[[int], bool]:
        def is_wide(position: int) -> bool:
            known = formal[min(position, len(formal) - 1)].type_str
            return "tensor(double)" in allowed.get(known, {known})

        return is_wide

    return check(schema.inputs), check(schema.outputs)


def _widen_attributes(node: NodeProto) -> None:
    """Change the types and constants that a node holds."""
    for attribute in node.attribute:
        if attribute.name == TYPES.get(node.op_type) and attribute.i == FLOAT:
            attribute.i = DOUBLE
        elif attribute.name == "value" and attribute.t.data_type == FLOAT:
            array = numpy_helper.to_array(attribute.t).astype(np.float64)
            attribute.t.CopyFrom(numpy_helper.from_array(array))
        elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
            value = np.array(helper.get_attribute_value(attribute), dtype=np.float64)
            attribute.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(value)))
