"""Base class of losses: a forward expression and the capabilities of the loss."""

from __future__ import annotations

from typing import ClassVar

from ..graphs import GraphBuilder
from ..parameters import CheckedParameters
from .interval import Interval

__all__ = ["BaseLoss"]


class BaseLoss(CheckedParameters):
    """Base class of losses.

    A subclass stores its parameters in its constructor and writes :meth:`forward`. The gradient
    comes from differentiation: use operators that have one.

    Attributes
    ----------
    tasks : frozenset of str
        Tasks that the loss supports: ``"regression"``, ``"classification"`` (one column of classes),
        ``"multilabel"`` (several), ``"unsupervised"`` (no labels).
    integer_labels : bool
        Whether labels of several exclusive classes reach :meth:`forward` as int64 class numbers of
        shape (n,). Other labels are floats with the shape of the prediction.
    in_python : bool
        Whether the loss has a Python method ``evaluate`` instead of an expression.
    link : {"identity", "log"}
        Whether the raw output of a regression is the prediction or its logarithm.
    by_position : bool
        Whether :meth:`forward` writes a loss for each pixel or time step of a sample, of shape
        (n, positions), as :class:`~ortlearn.losses.PerPositionLoss` does.
    kinks : bool
        Whether the derivative is discontinuous, as that of the absolute value at zero. Solvers such as L-BFGS
        smooth these kinks, which must be written with ``op.Abs`` or ``op.Relu``.
    of_quantiles : bool
        Whether the minimum is a quantile of the labels, and thus that of labels that an increasing function
        transforms is the transformed minimum.
    by_output : bool
        Whether the loss of several outputs is the sum of the losses of each, whose models are then trained
        alone where they are independent.
    by_errors : bool
        Whether the loss is a bound of errors, by which classifiers are compared then, instead of the loss.
    degenerate : str
        Why the minimum is no useful model; empty for most losses.
    definition_params : dict
        Parameters for the textbook definition of the loss, if it differs from the default;
        :func:`ortlearn.losses.add_loss_output` applies them.
    """

    tasks: ClassVar[frozenset[str]] = frozenset({"regression"})
    integer_labels: ClassVar[bool] = False
    in_python: ClassVar[bool] = False
    link: ClassVar[str] = "identity"
    by_position: ClassVar[bool] = False
    kinks: ClassVar[bool] = False
    of_quantiles: ClassVar[bool] = False
    by_output: ClassVar[bool] = False
    by_errors: ClassVar[bool] = False
    degenerate: ClassVar[str] = ""
    definition_params: ClassVar[dict[str, float]] = {}

    @property
    def domain(self) -> Interval:
        """Interval of valid labels of a regression; labels outside raise an error before training."""
        return Interval()

    def forward(self, op: GraphBuilder, expected: str, predicted: str) -> str:
        """Write the loss of each sample.

        Parameters
        ----------
        op : GraphBuilder
            Builder of the graph, which knows the type and shape of both tensors.
        expected : str
            Name of the labels: floats of shape (n, k), or int64 of shape (n,).
        predicted : str
            Name of the model's raw output, floats of shape (n, k).

        Returns
        -------
        str
            Name of the losses, of shape (n,): one per sample, summed over outputs.
        """
        raise NotImplementedError(f"{type(self).__name__} has no forward expression: implement forward.")

    @staticmethod
    def sum_outputs(op: GraphBuilder, values: str) -> str:
        """Sum values of shape (n, k) over outputs: shape (n,).

        Parameters
        ----------
        op : GraphBuilder
            Builder of the graph.
        values : str
            Name of the values.

        Returns
        -------
        str
            Name of the sums.
        """
        return op.ReduceSum(values, [1], keepdims=0)
