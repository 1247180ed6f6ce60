"""check_gradient_rule passes for correct rules and fails for wrong ones."""

from __future__ import annotations

import numpy as np
import pytest

from ortlearn.differentiation.registry import gradient_rule, temporary_rules
from ortlearn.testing import check_gradient_rule, make_node_model

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(4, 3)), RNG.normal(size=3)


def test_correct_rules():
    check_gradient_rule("Mul", A, B)
    check_gradient_rule("Mul", A, B, symbolic=True)
    check_gradient_rule("Softmax", A, attributes={"axis": 0})
    check_gradient_rule("Split", A, attributes={"axis": 1, "num_outputs": 3}, n_outputs=3)


@pytest.mark.parametrize("error", [5e-4, -5e-4])
def test_small_error_of_a_rule_is_detected(error):
    with temporary_rules():

        @gradient_rule("Tanh", overwrite=True)
        def tanh(op, node, grad):
            slope = op.Sub(1.0, op.square(node.O(0)))
            return op.Mul(op.Mul(grad, slope), 1.0 + error)

        with pytest.raises(AssertionError, match="input 0 of Tanh"):
            check_gradient_rule("Tanh", A)
    check_gradient_rule("Tanh", A)


@pytest.mark.parametrize("error", [0.01, -0.01])
def test_wrong_factor_is_detected_in_float32(error):
    """For many terms of both signs, one per cent of the sum is less than the tolerance."""
    x = RNG.normal(size=(20, 30)).astype(np.float32)
    options = {"step": 1e-2, "rtol": 5e-3, "atol": 1e-4, "projections": 20}
    with temporary_rules():

        @gradient_rule("Neg", overwrite=True)
        def neg(op, node, grad):
            return op.Mul(op.Neg(grad), 1.0 + error)

        with pytest.raises(AssertionError, match="input 0 of Neg"):
            check_gradient_rule("Neg", x, **options)
    check_gradient_rule("Neg", x, **options)


def test_wrong_gradient_of_one_input_is_detected():
    with temporary_rules():

        @gradient_rule("Mul", broadcast=True, overwrite=True)
        def mul(op, node, grad):
            return op.Mul(grad, node.I(1)), op.Mul(op.Mul(grad, node.I(0)), 1.0005)

        check_gradient_rule("Mul", A, B, wrt=[0])
        with pytest.raises(AssertionError, match="input 1 of Mul"):
            check_gradient_rule("Mul", A, B)


def test_missing_gradient_is_detected():
    with temporary_rules():
        gradient_rule("Sub", broadcast=True, overwrite=True)(lambda op, node, grad: (grad, None))
        with pytest.raises(AssertionError, match="input 1 of Sub"):
            check_gradient_rule("Sub", A, B)


def test_gradient_of_another_shape_is_detected():
    with temporary_rules():
        gradient_rule("Add", overwrite=True)(lambda op, node, grad: (grad, grad))
        with pytest.raises(Exception, match="shape|Shape|dim|Dim"):
            check_gradient_rule("Add", A, B)


def test_non_standard_operators_are_detected():
    with temporary_rules():

        @gradient_rule("Neg", overwrite=True)
        def neg(op, node, grad):
            return op.node("Minus", grad, domain="mine")

        with pytest.raises(AssertionError, match="'mine'.*not standard"):
            check_gradient_rule("Neg", A)


def test_constants_and_omitted_inputs():
    model, feeds, names = make_node_model("Clip", A, None, np.array(0.5), constants=(2,))
    assert names == ["x0", "", "x2"] and list(feeds) == ["x0"]
    assert [tensor.name for tensor in model.graph.initializer] == ["x2"]
