"""A loss: close to the squared error for small residuals and to the absolute error for large ones."""

import math

from ortlearn.losses import BaseLoss

__all__ = ["LogCoshLoss"]


class LogCoshLoss(BaseLoss):
    """Log-cosh loss: ``scale ** 2 * log(cosh((f - y) / scale))``, summed over outputs.

    Parameters
    ----------
    scale : float, default=1.0
        Scale of the residuals.
    """

    def __init__(self, scale=1.0):
        self.scale = scale

    def check(self):
        """Check the parameters before training."""
        self.check_number("scale")

    def forward(self, op, expected, predicted):
        """Write the loss of each sample."""
        scale = float(self.scale)
        size = op.Abs(op.Div(op.Sub(predicted, expected), scale))
        # log(cosh(d)) = |d| + log(1 + exp(-2 |d|)) - log(2); cosh itself overflows in float32 from |d| = 90.
        tail = op.Log(op.Add(op.Exp(op.Mul(size, -2.0)), 1.0))
        losses = op.Sub(op.Add(size, tail), math.log(2.0))
        return self.sum_outputs(op, op.Mul(losses, scale**2))
