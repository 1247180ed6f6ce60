"""The training task: graph, objective and update, the interface between estimators and training steps."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from onnx import ModelProto

from ...data.columns import Columns
from ...data.samples import Data
from ...graphs import TensorType
from ...learning_rates import BaseLearningRate
from ...losses import BaseLoss
from ...penalties import BasePenalty
from .names import MEMBERS, SAMPLE_WEIGHT

__all__ = ["Objective", "ScoreGraph", "TrainingTask", "Update"]


@dataclass(frozen=True)
class ScoreGraph:
    """A graph from X to scores, or from X and labels to a loss.

    Attributes
    ----------
    model : onnx.ModelProto
        Graph, with the weights as inputs.
    features : dict of str to TensorType
        Inputs for X, or for features that were computed from it before the training.
    output : str
        Raw scores of shape (n, k), or the loss.
    output_type : TensorType
        Type of the output.
    intercepts : dict of str to bool
        Weights to train, sorted, and whether each is an intercept.
    origin : str or None
        Origin of the graph, for error messages about operators without gradient.
    dtype : numpy.dtype
        Floating-point type of scores, weights and states.
    sparse : frozenset of str
        Features that are read as entries of sparse rows.
    statistics : dict of str to str
        Running statistics among the weights, with the name of the output that updates each. They have no
        gradient, no penalty and no learning rate.
    n_members : int
        Number of members of an ensemble that the feature ``MEMBERS`` weights; 0 without this feature.
    transformers : dict of str to transformer
        Fitted transformers of scikit-learn that compute a tensor of the graph from its input of documents.
    tables : dict of str to str
        Weights by tensors whose rows are computed from theirs, such as those of a simplex.
    """

    model: ModelProto
    features: dict[str, TensorType]
    output: str
    output_type: TensorType
    intercepts: dict[str, bool]
    origin: str | None = None
    dtype: np.dtype = field(default_factory=lambda: np.dtype(np.float32))
    sparse: frozenset[str] = frozenset()
    statistics: dict[str, str] = field(default_factory=dict)
    n_members: int = 0
    transformers: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)

    @cached_property
    def weights(self) -> list[str]:
        """Weights to train, sorted."""
        return list(self.intercepts)

    @cached_property
    def learned(self) -> list[str]:
        """Inputs to train by gradient, sorted."""
        return [name for name in self.intercepts if name not in self.statistics]


@dataclass(frozen=True)
class Objective:
    """Loss and penalty to minimise.

    Attributes
    ----------
    loss : BaseLoss or None
        Loss of labels and scores; None if the output of the graph is the loss.
    penalty : BasePenalty
        Penalty on the weights.
    label_type : TensorType
        Type of the labels.
    label : str
        Name of the label input; if ``loss`` is None, it is an input of the graph.
    weighted : bool
        Whether there are sample weights; if ``loss`` is None, they are an input of the graph.
    strengths : tuple of str
        Names of scalar inputs with strengths of the penalty.
    """

    loss: BaseLoss | None
    penalty: BasePenalty
    label_type: TensorType
    label: str = "ortlearn_label"
    weighted: bool = False
    strengths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Update:
    """Update of the weights for a batch.

    Attributes
    ----------
    learning_rate : BaseLearningRate
        Schedule and update.
    clip_norm : float or None
        Bound of the joint norm of all gradients, above 0.
    clip_value : float or None
        Bound of each entry of the gradients, above 0; applied first.
    not_negative : frozenset of str
        Weights that are projected to non-negative values.
    """

    learning_rate: BaseLearningRate
    clip_norm: float | None = None
    clip_value: float | None = None
    not_negative: frozenset[str] = frozenset()


@dataclass(frozen=True)
class TrainingTask:
    """A graph, its objective and its update.

    Attributes
    ----------
    graph : ScoreGraph
        Graph and weights.
    objective : Objective
        Loss and penalty.
    update : Update
        Learning rate and bounds.
    gradient : str
        Backend that builds gradients.
    """

    graph: ScoreGraph
    objective: Objective
    update: Update
    gradient: str = "auto"

    def changed(self, **fields_of_parts: Any) -> TrainingTask:
        """Return the task with some fields of its graph, objective and update replaced."""
        parts: dict[str, Any] = {}
        for name in ("graph", "objective", "update"):
            part = getattr(self, name)
            own = {item.name for item in fields(part)} & fields_of_parts.keys()
            parts[name] = replace(part, **{field: fields_of_parts.pop(field) for field in own})
        return replace(self, **parts, **fields_of_parts)

    def with_strengths_as_inputs(self) -> tuple[TrainingTask, dict[str, np.ndarray]]:
        """Return the task with strengths of the penalty as inputs of its graphs, and their values.

        Returns
        -------
        task : TrainingTask
            Copy of the task.
        values : dict of str to ndarray
            Scalars by the names of the inputs.
        """
        penalty, values = self.objective.penalty.with_inputs("ortlearn_strength")
        own = {name: np.asarray(value, dtype=self.graph.dtype) for name, value in values.items()}
        return self.changed(penalty=penalty, strengths=tuple(own)), own

    def inputs(self, data: Data) -> dict[str, Any]:
        """Return the features of all samples, dense or sparse, by the name of the input."""
        names = [name for name in self.graph.features if name != MEMBERS]
        if data.features is not None:
            found = dict(data.features)
        elif isinstance(data.X, Columns):
            found = data.X.feeds(names)
        else:
            found = {names[0]: data.X}
        if self.graph.n_members and MEMBERS not in found:
            equal = np.ones((len(data), self.graph.n_members), dtype=self.graph.dtype)
            found[MEMBERS] = equal if data.members is None else data.members
        return found

    def columns(self, data: Data) -> dict[str, Any]:
        """Return the features, labels and, if given, weights of all samples by the name of the input."""
        columns = self.inputs(data)
        columns[self.objective.label] = data.y
        if data.sample_weight is not None:
            columns[SAMPLE_WEIGHT] = data.sample_weight
        return columns

    def penalties_of(self, name: str) -> list[BasePenalty]:
        """Return the parts of the penalty that a weight has; a running statistic has none."""
        if name in self.graph.statistics:
            return []
        return self.objective.penalty.parts_for(self.graph.intercepts[name], name)

    @property
    def is_proximal(self) -> bool:
        """Whether updates are followed by a proximal step of the penalty, instead of using its gradient."""
        return any(self.acts_by_step(part) for part in self.objective.penalty.parts())

    def acts_by_step(self, penalty: BasePenalty) -> bool:
        """Return whether a part of the penalty uses its proximal step instead of its gradient."""
        return penalty.acts_by_step(self.update.learning_rate.proximal_scale is not None)

    @property
    def folds_rate(self) -> bool:
        """Whether the objective may be multiplied by the rate before it is differentiated."""
        # Bounds of gradients apply without the rate.
        clips = self.update.clip_norm is not None or self.update.clip_value is not None
        return self.update.learning_rate.scales_gradient and not clips

    def graph_key(self) -> Hashable:
        """Return a key of the graphs of a training; tasks with equal keys share compiled graphs."""
        graph, objective, update, loss = self.graph, self.objective, self.update, self.objective.loss
        return (
            graph.model.SerializeToString(deterministic=True),
            graph.output,
            graph.sparse,
            tuple(graph.intercepts.items()),
            tuple(graph.statistics.items()),
            None if loss is None else (type(loss), repr(sorted(loss.get_params().items()))),
            objective.label,
            objective.label_type,
            objective.penalty.graph_key(),
            update.learning_rate.graph_key(),
            objective.weighted,
            self.gradient,
            graph.dtype.str,
            update.clip_norm,
            update.clip_value,
            update.not_negative,
        )
