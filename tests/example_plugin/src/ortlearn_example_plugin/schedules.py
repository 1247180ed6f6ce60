"""A schedule that increases and decreases linearly."""

from ortlearn.learning_rates import BaseSchedule

__all__ = ["TriangleSchedule"]


class TriangleSchedule(BaseSchedule):
    """Triangles: from ``low * eta0`` up to ``eta0`` in half a period, and down again.

    Parameters
    ----------
    period : int, default=10
        Epochs from one lowest rate to the next.
    low : float, default=0.1
        Lowest rate, as a share of the highest, in (0, 1).

    References
    ----------
    Smith, L. N., "Cyclical learning rates for training neural networks", WACV 2017, with a base of
    ``low * eta0``.
    """

    def __init__(self, period=10, low=0.1):
        self.period = period
        self.low = low

    def check(self):
        """Check the parameters before training."""
        self.check_count("period", low=2)
        self.check_number("low", high=1.0)

    def rate(self, epoch, eta0, memory=None):
        """Return the rate of an epoch."""
        height = 1 - abs(2 * (epoch % self.period) / self.period - 1)
        return eta0 * (self.low + (1 - self.low) * height)
