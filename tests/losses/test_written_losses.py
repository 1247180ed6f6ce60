"""Losses that do not return one value per sample are rejected before training."""

import pytest
from sklearn.linear_model import LinearRegression

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import PluginError
from ortlearn.losses import BaseLoss

X, Y = [[0.0], [1.0], [2.0]], [1.0, 3.0, 4.0]


class Written(BaseLoss):
    """Loss written by a function of the builder and the squared errors of shape (n, 1)."""

    def __init__(self, write):
        self.write = write

    def forward(self, op, expected, predicted):
        error = op.Sub(predicted, expected)
        return self.write(op, op.Mul(error, error))


@pytest.mark.parametrize("optimizer", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
@pytest.mark.parametrize(
    ("write", "shape"),
    [
        (lambda op, squares: op.ReduceMean(squares), r"\(1, 1\)"),
        (lambda op, squares: op.ReduceMean(squares, keepdims=0), r"\(\)"),
        (lambda op, squares: op.ReduceMean(squares, [0], keepdims=0), r"\(1,\)"),
        (lambda op, squares: squares, r"\(.*, 1\)"),
    ],
)
@pytest.mark.parametrize("rate", ["LBFGS", "Adam"])
def test_other_shapes_are_rejected(optimizer, write, shape, rate):
    trainer = optimizer(LinearRegression(), learning_loss=Written(write), learning_rate=rate)
    with pytest.raises(PluginError, match=rf"forward of Written returned a tensor of shape {shape}.*\(n,\)"):
        trainer.fit(X, Y)


def test_one_loss_per_sample_is_trained():
    loss = Written(lambda op, squares: op.ReduceSum(squares, [1], keepdims=0))
    assert OrtGradientOptimizer(LinearRegression(), learning_loss=loss).fit(X, Y).score(X, Y) > 0.9


def test_results_other_than_names_are_rejected():
    trainer = OrtGradientOptimizer(LinearRegression(), learning_loss=Written(lambda op, squares: 3.0))
    with pytest.raises(PluginError, match="returned 3.0: return the name of a tensor"):
        trainer.fit(X, Y)
