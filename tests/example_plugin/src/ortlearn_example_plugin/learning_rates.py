"""A learning rate: steps of one size, in the direction the last gradients agree on."""

import numpy as np

from ortlearn.exceptions import PluginError
from ortlearn.learning_rates import BaseLearningRate

__all__ = ["LearningRateSignSGD"]


class LearningRateSignSGD(BaseLearningRate):
    """Sign of the running mean of gradients: ``m = beta m + (1 - beta) g``, ``w -= rate sign(m)``.

    Parameters
    ----------
    eta0 : float, default=0.001
        Rate of the first epoch, and so the size of its steps.
    beta : float, default=0.9
        Share of the past in the running mean, in [0, 1).
    decay : float, default=0.0
        The rate of epoch t is ``eta0 / (1 + decay t)``.
    """

    def __init__(self, eta0=0.001, beta=0.9, decay=0.0):
        self.eta0 = eta0
        self.beta = beta
        self.decay = decay

    def rate(self, epoch):
        """Return the rate of an epoch.

        Parameters
        ----------
        epoch : int
            Number of the epoch, from 0.

        Returns
        -------
        float
            Rate.
        """
        return self.eta0 / (1.0 + self.decay * epoch)

    def init(self, weight):
        """Return what is kept from one update of a weight to the next.

        Parameters
        ----------
        weight : ndarray
            Weight before training.

        Returns
        -------
        dict of str to ndarray
            The running mean of gradients, zeros with the weight's shape and type.
        """
        return {"mean": np.zeros_like(weight)}

    def update(self, op, weight, gradient, state, rate):
        """Write one update of a weight.

        Parameters
        ----------
        op : GraphBuilder
            Where the nodes go.
        weight, gradient : str
            Names of the weight and of its gradient.
        state : dict of str to str
            Names of what :meth:`init` returned.
        rate : str
            Name of the rate, a scalar.

        Returns
        -------
        str, dict of str to str
            Names of the new weight and of the new state.
        """
        beta = float(self.beta)
        mean = op.Add(op.Mul(state["mean"], beta), op.Mul(gradient, 1.0 - beta))
        return op.Sub(weight, op.Mul(op.Sign(mean), rate)), {"mean": mean}

    def check(self):
        """Check the parameters before training.

        Raises
        ------
        PluginError
            If one has a value that makes no sense.
        """
        if not (self.eta0 > 0 and 0 <= self.beta < 1 and self.decay >= 0):
            raise PluginError(f"{self!r}: eta0 must be above 0, beta in [0, 1) and decay at least 0.")
