"""Half deviances of Poisson, gamma and Tweedie distributions, on the logarithm of the mean."""

from __future__ import annotations

from typing import Any

from ..exceptions import PluginError
from ..graphs import GraphBuilder
from .base import BaseLoss
from .interval import Interval

__all__ = ["GammaLoss", "PoissonLoss", "TweedieLoss"]

NOT_NEGATIVE = Interval(low=0.0, low_inclusive=True)
POSITIVE = Interval(low=0.0)


class PoissonLoss(BaseLoss):
    """Half Poisson deviance without its constant: ``exp(z) - y * z``, summed over outputs.

    z is the logarithm of the prediction (log link); y >= 0.

    References
    ----------
    McCullagh, P. and Nelder, J. A., "Generalized linear models", 2nd edition, Chapman and Hall,
    1989, section 2.3.

    Examples
    --------
    >>> from ortlearn.losses import PoissonLoss
    >>> print(PoissonLoss().link, PoissonLoss().domain)
    log [0, inf)
    """

    by_output = True

    link = "log"

    @property
    def domain(self) -> Interval:
        """Interval of valid labels."""
        return NOT_NEGATIVE

    def forward(self, op: GraphBuilder, expected: str, predicted: str) -> str:
        """Write the loss of each sample."""
        return self.sum_outputs(op, op.Sub(op.Exp(predicted), op.Mul(expected, predicted)))


class GammaLoss(BaseLoss):
    """Half gamma deviance without its constant: ``z + y * exp(-z)``, summed over outputs.

    z is the logarithm of the prediction (log link); y > 0.

    References
    ----------
    McCullagh, P. and Nelder, J. A., "Generalized linear models", 2nd edition, Chapman and Hall,
    1989, section 8.3.

    Examples
    --------
    >>> from ortlearn.losses import GammaLoss
    >>> print(GammaLoss().domain)
    (0, inf)
    """

    by_output = True

    link = "log"

    @property
    def domain(self) -> Interval:
        """Interval of valid labels."""
        return POSITIVE

    def forward(self, op: GraphBuilder, expected: str, predicted: str) -> str:
        """Write the loss of each sample."""
        return self.sum_outputs(op, op.Add(predicted, op.Mul(expected, op.Exp(op.Neg(predicted)))))


class TweedieLoss(BaseLoss):
    """Half Tweedie deviance without its constant, on the logarithm z of the prediction.

    ``exp((2 - p) z) / (2 - p) - y * exp((1 - p) z) / (1 - p)``, summed over outputs, with the
    limits ``exp(z) - y z`` for p = 1 (Poisson) and ``z + y exp(-z)`` for p = 2 (gamma). For p = 0 it
    is ``(exp(z) - y) ** 2 / 2`` but for a constant.

    Parameters
    ----------
    power : float, default=1.5
        The exponent p, not between 0 and 1: the variance of y grows as the p-th power of its mean.

    References
    ----------
    Jorgensen, B., "Exponential dispersion models", Journal of the Royal Statistical Society B 49
    (1987), 127-162.

    Examples
    --------
    >>> from ortlearn.losses import TweedieLoss
    >>> print(TweedieLoss(power=1.9).domain)
    [0, inf)
    """

    by_output = True

    link = "log"

    def __init__(self, power: float = 1.5) -> None:
        self.power = power

    def check(self) -> None:
        """Check the parameters before training."""
        self.check_number("power", low=-float("inf"))
        if 0 < self.power < 1:
            raise PluginError(
                f"TweedieLoss: no Tweedie distribution has power={self.power!r}, between 0 and 1. "
                "Choose 0, or 1 and more."
            )

    @property
    def domain(self) -> Interval:
        """Interval of valid labels."""
        if self.power < 1:
            return Interval()
        return NOT_NEGATIVE if self.power < 2 else POSITIVE

    def forward(self, op: GraphBuilder, expected: str, predicted: str) -> str:
        """Write the loss of each sample."""
        power = float(self.power)
        first = predicted if power == 2 else self._scaled_exp(op, predicted, 2.0 - power)
        if power == 1:
            second = op.Mul(expected, predicted)
        else:
            second = op.Mul(expected, self._scaled_exp(op, predicted, 1.0 - power))
        return self.sum_outputs(op, op.Sub(first, second))

    @staticmethod
    def _scaled_exp(op: GraphBuilder, scores: Any, factor: Any) -> Any:
        """Write ``exp(factor * z) / factor``."""
        return op.Mul(op.Exp(op.Mul(scores, factor)), 1.0 / factor)
