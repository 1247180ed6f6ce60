"""check_loss passes for built-in losses and fails for wrong ones."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from ortlearn import OrtGradientOptimizer, plugins
from ortlearn.exceptions import GradientError
from ortlearn.losses import AbsoluteErrorLoss, BaseLoss, PerOutputLoss, SquaredErrorLoss, resolve_loss
from ortlearn.testing import check_loss


def built_in():
    return sorted(i.name for i in plugins.list_plugins(plugins.LOSSES) if i.distribution == "ortlearn")


@pytest.mark.sweep(23)
@pytest.mark.parametrize("name", built_in())
def test_built_in_losses(name):
    loss = resolve_loss(name)
    levels = getattr(loss, "levels", None)  # QuantilesLoss has a score per level
    check_loss(loss, n_outputs=(1, 3) if levels is None else (len(levels),))


class Summed(SquaredErrorLoss):
    def forward(self, op, expected, predicted):
        return op.ReduceSum(super().forward(op, expected, predicted), keepdims=0)


class OfTheBatch(SquaredErrorLoss):
    def forward(self, op, expected, predicted):
        losses = super().forward(op, expected, predicted)
        return op.Sub(losses, op.ReduceMean(losses, keepdims=0))


class Infinite(BaseLoss):
    def forward(self, op, expected, predicted):
        return self.sum_outputs(op, op.Log(op.Sub(predicted, predicted)))


class Forgetful(AbsoluteErrorLoss):
    def __init__(self, power=1.0):
        self.power = float(power) + 1.0


class Other(SquaredErrorLoss):
    tasks = frozenset({"ranking"})


class Nothing(SquaredErrorLoss):
    def forward(self, op, expected, predicted):
        super().forward(op, expected, predicted)


class Foreign(BaseLoss):
    def forward(self, op, expected, predicted):
        return self.sum_outputs(op, op.node("Gelu", op.Sub(predicted, expected), domain="com.microsoft"))


class Rounded(SquaredErrorLoss):
    def forward(self, op, expected, predicted):
        return super().forward(op, expected, op.Round(predicted))


class Blind(SquaredErrorLoss):
    def forward(self, op, expected, predicted):
        return super().forward(op, expected, op.Mul(expected, 2.0))


class Staircase(SquaredErrorLoss):
    def forward(self, op, expected, predicted):
        steps = op.Ceil(op.Abs(op.Sub(predicted, expected)))
        return self.sum_outputs(op, op.Mul(steps, op.Abs(op.Sub(predicted, expected))))


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize(
    "loss, message",
    [
        (Summed(), "one loss per sample|shape"),
        (OfTheBatch(), "depends on other samples"),
        (Infinite(), "not finite"),
        (Other(), "tasks="),
        (Nothing(), "Nothing: forward must return a tensor, not None"),
        (Foreign(), "not standard"),
        (Rounded(), "no gradient reaches the predictions.*Round"),
        (Blind(), "no gradient reaches the predictions.*: none"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_wrong_losses(loss, message):
    with pytest.raises(AssertionError, match=message):
        check_loss(loss)


def test_piecewise_constant_loss():
    check_loss(Staircase())


@pytest.mark.parametrize("penalty", [None, "l2"])
def test_error_of_fit_names_a_loss_without_gradient(penalty):
    X = np.arange(12.0).reshape(6, 2)
    trainer = OrtGradientOptimizer(LinearRegression(), learning_loss=Rounded(), learning_penalty=penalty)
    with pytest.raises(GradientError, match="The loss has no gradient.*Round") as caught:
        trainer.fit(X, X[:, 0])
    assert "weights_to_train" not in str(caught.value)


def test_loss_that_changes_its_parameters():
    with pytest.raises((AssertionError, RuntimeError), match="power|parameter"):
        check_loss(Forgetful())


def test_loss_of_several_outputs():
    loss = PerOutputLoss(resolve_loss("hinge"), groups=(1, 2))
    check_loss(loss, n_outputs=[3])
    assert np.sum(loss.groups) == 3
