"""Train with separate calls of forward and backward."""

from __future__ import annotations

from inspect import cleandoc, getdoc

from .base import BaseOrtGradientEstimator
from .gradient_optimizer import OrtGradientOptimizer

__all__ = ["OrtGradientForwardBackwardOptimizer"]

_DOC = """Train a scikit-learn model or an ONNX graph by gradient; forward and backward are two calls.

    A batch takes two calls: forward, then loss, backward and update. A Python loss is computed between the
    two calls of :class:`~ortlearn.training.OrtGradientForwardBackward`, and another graph updates the
    weights.

    Parameters
    {parameters}
    See Also
    --------
    OrtGradientOptimizer : Training in a single graph, which is faster.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.estimators import OrtGradientForwardBackwardOptimizer
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Ridge().fit(X[:300], y[:300])
    >>> X_new, y_new = X[300:330], y[300:330] + 50  # labels have drifted
    >>> trained = OrtGradientForwardBackwardOptimizer(model, warm_start=True, random_state=0)
    >>> trained = trained.fit(X_new, y_new)
    >>> model.score(X[330:], y[330:] + 50) < 0.1 < 0.3 < trained.score(X[330:], y[330:] + 50)
    True
    """


def _documented() -> str:
    """Return the docstring, with the parameters that both estimators have; Python 3.13 indents none."""
    parameters = getdoc(OrtGradientOptimizer) or ""
    parameters = parameters.partition("Parameters\n")[2].partition("See Also\n")[0]
    return cleandoc(_DOC).replace("{parameters}\n", parameters) + "\n"


class OrtGradientForwardBackwardOptimizer(BaseOrtGradientEstimator):
    __doc__ = _documented()

    _step_path = "ortlearn.training.steps.forward_backward_step:ForwardBackwardStep"
