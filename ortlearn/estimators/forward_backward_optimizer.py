"""Train with forward and backward apart."""

from __future__ import annotations

from ..training import ForwardBackwardStep
from .base import BaseOrtGradientEstimator
from .gradient_optimizer import OrtGradientOptimizer

__all__ = ["OrtGradientForwardBackwardOptimizer"]

_parameters = (
    (OrtGradientOptimizer.__doc__ or "").partition("    Parameters\n")[2].partition("    See Also\n")[0]
)


class OrtGradientForwardBackwardOptimizer(BaseOrtGradientEstimator):
    __doc__ = f"""Train a scikit-learn model or an ONNX graph by gradient; forward and backward are two calls.

    The loss and its gradient are computed between the two calls of
    :class:`~ortlearn.training.OrtGradientForwardBackward`, and one graph updates all weights.

    Parameters
{_parameters}    See Also
    --------
    OrtGradientOptimizer : The same as a single graph; faster.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.estimators import OrtGradientForwardBackwardOptimizer
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Ridge().fit(X, y)
    >>> trained = OrtGradientForwardBackwardOptimizer(model, warm_start=True, max_iter=20, random_state=0)
    >>> trained.fit(X, y).train_losses_[-1] < trained.train_losses_[0]
    True
    """

    _step_class = ForwardBackwardStep
