"""A learning rate: steps of constant size, by the sign of the mean gradient."""

import numpy as np

from ortlearn.learning_rates import ScheduledLearningRate

__all__ = ["LearningRateSignSGD"]


class LearningRateSignSGD(ScheduledLearningRate):
    """Sign of the running mean of gradients: ``m = beta * m + (1 - beta) * g``, ``w -= rate * sign(m)``.

    Parameters
    ----------
    eta0 : float, default=0.001
        Initial rate of the schedule, which is the size of the first steps.
    beta : float, default=0.9
        Weight of the previous running mean, in [0, 1).
    learning_rate : str or BaseSchedule, default="constant"
        Schedule.
    alpha : float, default=0.0001
        Strength of the penalty in the schedule ``"optimal"``.
    power_t : float, default=0.25
        Exponent of the schedule ``"invscaling"``.

    References
    ----------
    Bernstein, J., Wang, Y.-X., Azizzadenesheli, K. and Anandkumar, A., "signSGD: compressed optimisation
    for non-convex problems", ICML 2018, algorithm 2 (Signum).
    """

    elementwise = True

    def __init__(self, eta0=0.001, beta=0.9, learning_rate="constant", alpha=0.0001, power_t=0.25):
        super().__init__(eta0=eta0, alpha=alpha, power_t=power_t, learning_rate=learning_rate)
        self.beta = beta

    def check(self):
        """Check the parameters before training."""
        super().check()
        self.check_number("beta", high=1.0, closed=True)

    def init(self, weight):
        """Return the initial state of a weight: a running mean of zero."""
        return {"mean": np.zeros_like(weight)}

    def update(self, op, weight, gradient, state, rate):
        """Write one update of a weight."""
        beta = float(self.beta)
        mean = op.Add(op.Mul(state["mean"], beta), op.Mul(gradient, 1.0 - beta))
        return op.Sub(weight, op.Mul(op.Sign(mean), rate)), {"mean": mean}
