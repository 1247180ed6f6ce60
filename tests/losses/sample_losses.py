"""Losses of samples by the forward expression of a loss."""

from onnx import helper

from ortlearn.graphs import GraphBuilder, TensorType


def losses_of(loss, predicted, expected, run_onnx):
    """Return the loss of each sample by the forward expression."""
    types = {
        name: TensorType(helper.np_dtype_to_tensor_dtype(array.dtype), ("N", *array.shape[1:]))
        for name, array in {"expected": expected, "predicted": predicted}.items()
    }
    op = GraphBuilder(dtype=predicted.dtype, types=types)
    output = loss.forward(op, "expected", "predicted")
    infos = [helper.make_tensor_value_info(name, *known) for name, known in types.items()]
    out = helper.make_tensor_value_info(output, types["predicted"].elem_type, ["N"])
    graph = helper.make_graph(op.nodes, "g", infos, [out], op.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return run_onnx(model, expected=expected, predicted=predicted)[0]
