"""A penalty: zero up to a limit, then the square of the excess."""

from ortlearn.penalties import BasePenalty

__all__ = ["SquaredHingePenalty"]


class SquaredHingePenalty(BasePenalty):
    """Squared hinge: ``alpha * max(|w| - limit, 0) ** 2``, summed; coefficients within the limit are free.

    Parameters
    ----------
    alpha : float, default=0.01
        Strength.
    limit : float, default=1.0
        Largest absolute value without penalty.
    intercept : bool, default=False
        Whether intercepts are penalised too.
    weights : str, sequence of str or None, default=None
        Names or glob patterns of the penalised weights; all by default.
    """

    def __init__(self, alpha=0.01, limit=1.0, intercept=False, weights=None):
        super().__init__(intercept=intercept, weights=weights)
        self.alpha = alpha
        self.limit = limit

    def check(self):
        """Check the parameters before training."""
        super().check()
        self.check_number("alpha", closed=True)
        self.check_number("limit", closed=True)

    def forward(self, op, weight):
        """Write the penalty of one weight."""
        excess = op.Sub(op.Abs(weight), float(self.limit))
        # 2 max(e, 0) = e + |e|: unlike Relu, Abs has a gradient kernel for float64 in every runtime.
        twice = op.Add(excess, op.Abs(excess))
        total = op.ReduceSum(op.Mul(twice, twice), keepdims=0)
        return op.Mul(total, 0.25 * float(self.alpha))
