"""Proximal steps of several penalties on one weight."""

import numpy as np
import pytest
import scipy.optimize
from onnx import TensorProto, helper

from ortlearn.exceptions import PluginError
from ortlearn.graphs import GraphBuilder, TensorType
from ortlearn.penalties import ElasticPenalty, GroupLassoPenalty, L1Penalty, MaxNormPenalty, PerWeightPenalty
from ortlearn.penalties.proximal_composition import check_proximal_steps, order_proximal_steps

WEIGHT = np.random.default_rng(3).normal(size=(4, 3))
STEP = 0.25


def step_of(penalty, weight, run_onnx):
    """Return the weight after the proximal steps of a penalty, as the estimators write them."""
    op = GraphBuilder(dtype=np.float64, types={"w": TensorType(TensorProto.DOUBLE, weight.shape)})
    output = penalty.proximal_step(op, "w", "rate")
    values = [
        helper.make_tensor_value_info("w", TensorProto.DOUBLE, weight.shape),
        helper.make_tensor_value_info("rate", TensorProto.DOUBLE, []),
    ]
    result = helper.make_tensor_value_info(output, TensorProto.DOUBLE, weight.shape)
    graph = helper.make_graph(op.nodes, "g", values, [result], op.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return run_onnx(model, weight, np.array(STEP))[0]


def absolute(weight):
    return np.abs(weight).sum()


def groups(weight):
    return np.sqrt(3) * np.linalg.norm(weight, axis=1).sum()


@pytest.mark.parametrize("reverse", [False, True], ids=["as given", "reversed"])
@pytest.mark.parametrize(
    "parts, value, bound",
    [
        ([L1Penalty(0.3), L1Penalty(0.2)], lambda w: 0.5 * absolute(w), np.inf),
        ([L1Penalty(0.3), ElasticPenalty(0.2, 0.0)], lambda w: 0.5 * absolute(w), np.inf),
        ([GroupLassoPenalty(0.3), GroupLassoPenalty(0.2)], lambda w: 0.5 * groups(w), np.inf),
        ([L1Penalty(0.5), GroupLassoPenalty(0.3)], lambda w: 0.5 * absolute(w) + 0.3 * groups(w), np.inf),
        ([L1Penalty(0.5), MaxNormPenalty(0.7)], lambda w: 0.5 * absolute(w), 0.7),
        ([MaxNormPenalty(0.9), MaxNormPenalty(0.7)], lambda w: 0.0, 0.7),
    ],
    ids=["l1 l1", "l1 elastic", "groups groups", "l1 groups", "l1 ball", "ball ball"],
)
def test_combined_steps_are_the_step_of_the_sum(parts, value, bound, reverse, run_onnx):
    parts = parts[::-1] if reverse else parts
    stepped = step_of(PerWeightPenalty({"w": parts[0], "*": parts[1]}), WEIGHT, run_onnx)

    def objective(flat):
        point = flat.reshape(WEIGHT.shape)
        return ((point - WEIGHT) ** 2).sum() / 2 + STEP * value(point)

    limits = {
        "type": "ineq",
        "fun": lambda flat: min(bound, 100.0) ** 2 - (flat.reshape(WEIGHT.shape) ** 2).sum(axis=0),
    }
    assert np.linalg.norm(stepped, axis=0).max() <= bound + 1e-12
    for start in (stepped.ravel(), 0.5 * WEIGHT.ravel()):
        best = scipy.optimize.minimize(objective, start, method="SLSQP", constraints=limits, tol=1e-12)
        assert objective(stepped.ravel()) <= best.fun + 1e-6
    assert np.abs(stepped - WEIGHT).max() > 0.05


class Renamed(L1Penalty):
    pass


class OtherStep(L1Penalty):
    def proximal_step(self, op, weight, rate):
        return op.Mul(weight, 0.5)


class SameStep(OtherStep):
    proximal_kind = "threshold"

    def proximal_step(self, op, weight, rate):
        return L1Penalty.proximal_step(self, op, weight, rate)


class Inherits(OtherStep):
    pass


@pytest.mark.parametrize(
    "penalty, composes", [(Renamed, True), (OtherStep, False), (SameStep, True), (Inherits, False)]
)
def test_penalties_of_other_packages_declare_their_step(penalty, composes):
    parts = [GroupLassoPenalty(0.1), penalty(0.1)]
    if composes:
        check_proximal_steps("w", parts, has_length=True)
        assert order_proximal_steps(parts) == parts[::-1]
    else:
        with pytest.raises(
            PluginError, match=f"GroupLassoPenalty and {penalty.__name__} on 'w' cannot be combined"
        ):
            check_proximal_steps("w", parts, has_length=True)
    check_proximal_steps("w", parts[1:], has_length=True)
