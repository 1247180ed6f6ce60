"""Graphs of skl2onnx that are not what scikit-learn computes, put right before anything else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ..graphs import GraphBuilder, copy_model, graph_names, initializer_arrays, opset_versions, prune

__all__ = ["correct_graph"]


def correct_graph(model: ModelProto) -> ModelProto:
    """Return the model with what skl2onnx gets wrong computed as scikit-learn does.

    - Two classes with opposite rows of scores under a softmax (linear discriminant analysis): the
      softmax of ``-z`` and ``z`` is the sigmoid of ``2 z``; scikit-learn takes that of z.
    - Isotonic calibration: the value of the nearest threshold; scikit-learn interpolates.
    - Neighbours weighted by distance: distances are negated, and every weight is the same then.
    - A vote for the best of a single column of scores: the first class whatever the score.
    - Targets of neighbours kept in another type than what is computed with them: in that type at once,
      so that they can be trained with the other weights.

    Parameters
    ----------
    model : onnx.ModelProto
        Model as skl2onnx converted it; it is not changed.

    Returns
    -------
    onnx.ModelProto
        Model.
    """
    kinds = {node.op_type for node in model.graph.node}
    for needed, correction in CORRECTIONS:
        if needed <= kinds:
            model = correction(model)
    return model


def _sigmoid_of_two(model: ModelProto) -> ModelProto:
    model = copy_model(model)
    for node in model.graph.node:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type != "LinearClassifier" or attributes.get("post_transform") != b"SOFTMAX":
            continue
        intercepts = np.asarray(attributes.get("intercepts", []))
        rows = np.asarray(attributes["coefficients"]).reshape(max(len(intercepts), 1), -1)
        if len(rows) == 2 and np.array_equal(rows[0], -rows[1]) and intercepts[0] == -intercepts[1]:
            next(a for a in node.attribute if a.name == "post_transform").s = b"LOGISTIC"
    return model


def _sigmoid_of_two_columns(model: ModelProto) -> ModelProto:
    """The same where skl2onnx writes products, in float64."""
    arrays = initializer_arrays(model)
    producers = {name: node for node in model.graph.node for name in node.output}
    opposite = []
    for node in model.graph.node:
        add = producers.get(node.input[0]) if node.op_type == "Softmax" else None
        product = producers.get(add.input[0]) if add is not None and add.op_type == "Add" else None
        if add is None or product is None or product.op_type != "MatMul":
            continue
        parts = [arrays.get(product.input[1]), arrays.get(add.input[1])]
        if all(part is not None and part.shape[-1:] == (2,) for part in parts):
            if all(np.array_equal(part[..., 0], -part[..., 1]) for part in parts if part is not None):
                opposite.append(node.output[0])
    model = copy_model(model)
    for node in model.graph.node:
        if node.output[0] in opposite:
            node.op_type = "Sigmoid"
            del node.attribute[:]
    return model


def _interpolation(model: ModelProto) -> ModelProto:
    arrays = initializer_arrays(model)
    producers = {name: node for node in model.graph.node for name in node.output}
    op = GraphBuilder(
        opset_versions(model).get("", 18), existing_names=graph_names(model.graph), prefix="isotonic_"
    )
    for node in model.graph.node:
        found = _nearest_threshold(node, producers)
        if found is None or not {found[1], node.input[0]} <= arrays.keys():
            op.nodes.append(node)
        else:
            _write_interpolation(op, arrays, *found, table=node.input[0], output=node.output[0])
    result = copy_model(model)
    del result.graph.node[:]
    result.graph.node.extend(op.nodes)
    result.graph.initializer.extend(op.initializers)
    return prune(result)


def _nearest_threshold(node: NodeProto, producers: dict[str, NodeProto]) -> tuple[str, str] | None:
    """Return x and the thresholds where a node takes the value of the nearest one."""
    if node.op_type != "ArrayFeatureExtractor":
        return None
    expected, name = ["ArgMin", "Abs", "Sub"], node.input[1]
    inner: NodeProto | None = None
    for op_type in expected:
        inner = producers.get(name)
        if inner is None or inner.op_type != op_type:
            return None
        name = inner.input[0]
    assert inner is not None
    return inner.input[0], inner.input[1]


def _write_interpolation(
    op: GraphBuilder,
    arrays: dict[str, np.ndarray],
    x: str,
    thresholds: str,
    table: str,
    output: str,
) -> None:
    """Write ``y_i + (y_{i+1} - y_i) (x - x_i) / (x_{i+1} - x_i)`` with i the segment of x."""
    points = arrays[thresholds]
    if points.size == 1:
        op.node("Expand", table, op.Shape(x), outputs=[output])
        return
    above = op.Cast(op.GreaterOrEqual(x, op.constant(points[1:-1])), to=TensorProto.INT64)
    segment = op.ReduceSum(above, [1], keepdims=1)
    widths = np.maximum(np.diff(points), np.finfo(points.dtype).tiny)
    share = op.Div(
        op.Sub(x, op.Gather(op.constant(points), segment)), op.Gather(op.constant(widths), segment)
    )
    left = op.Gather(table, segment)
    right = op.Gather(table, op.Add(segment, op.constant(np.array([1], dtype=np.int64))))
    op.node("Add", left, op.Mul(op.Sub(right, left), share), outputs=[output])


def _positive_distances(model: ModelProto) -> ModelProto:
    """1 / max(-d, tiny): 1 / max(d, tiny)."""
    model = copy_model(model)
    producers = {name: node for node in model.graph.node for name in node.output}
    arrays = initializer_arrays(model)
    inverted = {node.input[0] for node in model.graph.node if node.op_type == "Reciprocal"}
    for node in model.graph.node:
        negated = producers.get(node.input[0]) if node.op_type == "Max" else None
        if negated is None or negated.op_type != "Mul" or node.output[0] not in inverted:
            continue
        distances, factor = producers.get(negated.input[0]), arrays.get(negated.input[1])
        if distances is None or distances.op_type != "TopK" or factor is None:
            continue
        if factor.size == 1 and float(factor.ravel()[0]) == -1.0:
            node.input[0] = negated.input[0]
    return model


def _votes_of_one_column(model: ModelProto) -> ModelProto:
    """argmax of the second of two columns: argmax of both."""
    model = copy_model(model)
    producers = {name: node for node in model.graph.node for name in node.output}
    arrays = initializer_arrays(model)
    for node in model.graph.node:
        column = producers.get(node.input[0]) if node.op_type == "ArgMax" else None
        if column is None or column.op_type != "ArrayFeatureExtractor":
            continue
        index, source = arrays.get(column.input[1]), producers.get(column.input[0])
        is_pair = source is not None and source.op_type == "LinearClassifier"
        if is_pair and index is not None and index.size == 1:
            node.input[0] = column.input[0]
    return model


def _tables_of_one_type(model: ModelProto) -> ModelProto:
    """cast(table[i]): cast(table)[i]."""
    readers: dict[str, list[NodeProto]] = defaultdict(list)
    for node in model.graph.node:
        for name in node.input:
            readers[name].append(node)
    wanted = {}
    labels = {v.type.tensor_type.elem_type for v in model.graph.output} - {
        TensorProto.FLOAT,
        TensorProto.DOUBLE,
    }
    others = (TensorProto.DOUBLE,) if labels else (TensorProto.DOUBLE, TensorProto.INT64)  # tables of classes
    for tensor in model.graph.initializer:
        if tensor.data_type in others and len(tensor.dims):
            target = _cast_after_lookup(tensor.name, readers)
            if target in (TensorProto.FLOAT, TensorProto.DOUBLE) and target != tensor.data_type:
                wanted[tensor.name] = helper.tensor_dtype_to_np_dtype(target)
    if not wanted:
        return model
    model = copy_model(model)
    for tensor in model.graph.initializer:
        if tensor.name in wanted:
            values = numpy_helper.to_array(tensor).astype(wanted[tensor.name])
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    return model


def _cast_after_lookup(name: str, readers: Mapping[str, list[NodeProto]]) -> int | None:
    """Return the type that what is looked up in a table is cast to, if nothing else is done with it."""
    looked_up = False
    while len(readers[name]) == 1:
        node = readers[name][0]
        if node.op_type == "Cast":
            return helper.get_node_attr_value(node, "to") if looked_up else None
        if node.op_type not in ("ArrayFeatureExtractor", "Reshape", "Transpose") or node.input[0] != name:
            return None
        looked_up |= node.op_type == "ArrayFeatureExtractor"
        name = node.output[0]
    return None


#: Operators that must be there, and what is put right.
CORRECTIONS: list[tuple[set[str], Callable[[ModelProto], ModelProto]]] = [
    ({"LinearClassifier"}, _sigmoid_of_two),
    ({"MatMul", "Add", "Softmax"}, _sigmoid_of_two_columns),
    ({"ArgMin", "Abs", "ArrayFeatureExtractor"}, _interpolation),
    ({"TopK", "Max", "Reciprocal"}, _positive_distances),
    ({"ArrayFeatureExtractor", "Cast"}, _tables_of_one_type),
    ({"ArgMax", "ArrayFeatureExtractor", "LinearClassifier"}, _votes_of_one_column),
]
