"""The training task: the contract between the estimators and the training steps."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
from onnx import ModelProto

from ..graphs import TensorType
from ..learning_rates import BaseLearningRate
from ..losses import BaseLoss
from ..penalties import BasePenalty

__all__ = ["TrainingTask"]


@dataclass(frozen=True)
class TrainingTask:
    """A graph, its objective and its update.

    Attributes
    ----------
    graph : onnx.ModelProto
        From X (and the labels, where ``loss`` is None) to ``output``; the weights are inputs.
    data : str
        Input that takes X.
    data_type : TensorType
        Type of X.
    output : str
        Raw scores of shape (n, k), or the loss of a graph with its own.
    output_type : TensorType
        Type of the output.
    weights : list of str
        Inputs to train, sorted.
    intercepts : dict of str to bool
        Whether each weight is an intercept.
    loss : BaseLoss or None
        Loss between labels and scores; None if the graph has its own.
    label_type : TensorType
        Type of the labels.
    penalty : BasePenalty
        Penalty on the weights.
    learning_rate : BaseLearningRate
        Schedule and update.
    label : str
        Name of the label input of a graph with its own loss, a free name otherwise.
    weighted : bool
        Whether rows have weights; those of a graph with its own loss are an input of it.
    features : dict of str to TensorType
        Inputs that take the features where there are several, or where a part of the graph was
        computed before; empty for ``data`` alone.
    gradient : str
        Backend that builds gradients.
    origin : str or None
        Where the graph comes from; shown where an operator has no gradient.
    dtype : numpy.dtype
        Floating-point type of scores, weights and states.
    clip_norm : float or None
        Bound of the norm of all gradients together, above 0.
    clip_value : float or None
        Bound of each entry of the gradients, above 0; applied first.
    not_negative : frozenset of str
        Weights that updates cut off at zero.
    """

    graph: ModelProto
    data: str
    data_type: TensorType
    output: str
    output_type: TensorType
    weights: list[str]
    intercepts: dict[str, bool]
    loss: BaseLoss | None
    label_type: TensorType
    penalty: BasePenalty
    learning_rate: BaseLearningRate
    label: str = "ortlearn_label"
    weighted: bool = False
    features: dict[str, TensorType] = field(default_factory=dict)
    gradient: str = "auto"
    origin: str | None = None
    dtype: np.dtype = field(default_factory=lambda: np.dtype(np.float32))
    clip_norm: float | None = None
    clip_value: float | None = None
    not_negative: frozenset[str] = frozenset()

    @property
    def is_proximal(self) -> bool:
        """Whether updates are followed by the proximal step of the penalty, in place of a gradient."""
        return any(self.acts_by_step(part) for part in self.penalty.parts())

    def acts_by_step(self, penalty: BasePenalty) -> bool:
        """Return whether a part of the penalty acts by its proximal step, in place of a gradient.

        Parameters
        ----------
        penalty : BasePenalty
            One of its parts.

        Returns
        -------
        bool
            Whether it does.
        """
        return penalty.acts_by_step(self.learning_rate.proximal_scale is not None)

    @property
    def folds_rate(self) -> bool:
        """Whether the rate may be a factor of the objective, before it is differentiated.

        Clipping is of the gradient without the rate.
        """
        clips = self.clip_norm is not None or self.clip_value is not None
        return self.learning_rate.scales_gradient and not clips

    def feature_types(self) -> dict[str, TensorType]:
        """Return the inputs that take the features of a batch, and their types.

        Returns
        -------
        dict of str to TensorType
            Types by name.
        """
        return self.features or {self.data: self.data_type}

    def graph_key(self) -> Hashable:
        """Return what the graphs of a training depend on; tasks of equal keys share compiled graphs.

        Returns
        -------
        hashable
            Graph, plugins with their parameters, and settings.
        """
        loss = None if self.loss is None else (type(self.loss), repr(sorted(self.loss.get_params().items())))
        return (
            self.graph.SerializeToString(deterministic=True),
            self.output,
            tuple(self.intercepts.items()),
            loss,
            self.label,
            self.label_type,
            self.penalty.graph_key(),
            self.learning_rate.graph_key(),
            self.weighted,
            self.gradient,
            self.dtype.str,
            self.clip_norm,
            self.clip_value,
            self.not_negative,
        )
