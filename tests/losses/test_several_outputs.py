"""Losses of models with several outputs, and of models that bring their own."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from scipy.special import log_softmax

from ortlearn.graphs import GraphBuilder, TensorType, make_value_info
from ortlearn.losses import LogLoss, PerOutputLoss, RowObjective, SquaredErrorLoss

RANDOM = np.random.RandomState(0)
SCORES = RANDOM.normal(size=(6, 4)).astype(np.float32)


@pytest.fixture
def rows(run_onnx):
    """Compute the loss of each row."""

    def compute(loss, expected, predicted):
        op = GraphBuilder(existing_names=["expected", "predicted"])
        arrays = {"expected": expected, "predicted": predicted}
        types = {
            name: TensorType(helper.np_dtype_to_tensor_dtype(array.dtype), ("N", *array.shape[1:]))
            for name, array in arrays.items()
        }
        for name, known in types.items():
            op.set_type(name, *known)
        result = loss.forward(op, "expected", "predicted")
        infos = [make_value_info(name, known) for name, known in types.items()]
        output = helper.make_tensor_value_info(result, TensorProto.FLOAT, ["N"])
        graph = helper.make_graph(op.nodes, "g", infos, [output], op.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
        return run_onnx(model, **arrays)[0]

    return compute


def test_the_log_loss_of_each_output_is_summed(rows):
    classes = np.stack([RANDOM.randint(3, size=6), RANDOM.randint(2, size=6)], axis=1)
    first = -log_softmax(SCORES[:, :3], axis=1)[np.arange(6), classes[:, 0]]
    second = np.log1p(np.exp(SCORES[:, 3])) - classes[:, 1] * SCORES[:, 3]
    result = rows(PerOutputLoss(LogLoss(), groups=(3, 1)), classes, SCORES)
    np.testing.assert_allclose(result, first + second, rtol=1e-5)


def test_a_loss_of_floats_takes_its_columns(rows):
    expected = RANDOM.normal(size=(6, 4)).astype(np.float32)
    result = rows(PerOutputLoss(SquaredErrorLoss(), groups=(1, 2, 1)), expected, SCORES)
    np.testing.assert_allclose(result, ((SCORES - expected) ** 2).sum(axis=1) / 2, rtol=1e-5)


def test_an_objective_of_the_model_itself(rows):
    scores = SCORES[:, :1]
    np.testing.assert_array_equal(rows(RowObjective(), np.zeros_like(scores), scores), scores[:, 0])
    assert RowObjective.tasks == {"unsupervised"} and PerOutputLoss.tasks == {"multilabel"}
