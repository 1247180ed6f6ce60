"""The gradient of the C++ builder includes all inputs of an operator, even if other nodes read them too.

If no other node reads an input, the builder raises an error for unsupported paths.
"""

from __future__ import annotations

import numpy as np
import pytest

from ortlearn.differentiation import gradient_of_loss
from ortlearn.exceptions import GradientError
from ortlearn.graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    graph_names,
    make_value_info,
    opset_versions,
    value_types,
)
from ortlearn.training.devices import Device
from ortlearn.training.sessions import make_session
from tests.differentiation.records import RECORDS
from tests.differentiation.test_ort_backend import NOT_RUN
from tests.differentiation.test_rules import node_model


def floats_of(record):
    return [array for array in record.arrays() if array is not None and array.dtype.kind == "f"]


#: Operators of several floating-point inputs; Dropout in training is random.
SEVERAL = [r for r in RECORDS if len(floats_of(r)) > 1 and not str(r).startswith((*NOT_RUN, "Dropout"))]


def with_loss(model, feeds):
    """Return a graph with a loss that depends on every output, and on every input by itself."""
    op = GraphBuilder(opset_versions(model)[""], existing_names=graph_names(model.graph))
    types = value_types(model)
    outputs = [value.name for value in model.graph.output if types[value.name].elem_type == 1]
    inputs = [name for name, value in feeds.items() if value.dtype == np.float32]
    terms = [op.ReduceSum(op.Cos(name), keepdims=0) for name in outputs]
    terms += [op.ReduceSum(op.Sin(name), keepdims=0) for name in inputs]
    loss = terms[0]
    for term in terms[1:]:
        loss = op.Add(loss, term)
    op.Identity(loss, outputs=["loss"])
    return append_nodes(model, op, outputs=[make_value_info("loss", TensorType(1, ()))]), inputs


@pytest.mark.needs_training
@pytest.mark.parametrize("record", SEVERAL, ids=str)
def test_all_inputs_have_gradients(record):
    model, feeds, _ = node_model(record, record.opsets[-1], np.float32)
    model, inputs = with_loss(model, feeds)
    try:
        ort = gradient_of_loss(model, "loss", inputs, "ort")
    except GradientError:
        return  # unsupported, with an error
    rules = gradient_of_loss(model, "loss", inputs, "rules")
    found, expected = (make_session(onx, Device("cpu")).run(None, feeds) for onx in (ort, rules))
    for got, right in zip(found, expected, strict=True):
        assert got.shape == right.shape
        np.testing.assert_allclose(got, right, rtol=2e-3, atol=2e-4)
