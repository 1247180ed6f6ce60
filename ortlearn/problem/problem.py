"""Learning problem of an estimator: converted model, loss, penalty, updates and targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import ModelProto
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from ..exceptions import PluginError
from ..graphs import TensorType, value_types
from ..learning_rates import LearningRateAdam
from ..losses import BaseLoss
from ..models import Positions, has_own_score
from ..onnx_files.loading import is_onnx_source
from ..penalties import BasePenalty, NoPenalty
from ..targets.class_weights import (
    ClassWeights,
    check_no_balanced_weights,
    class_weight_tables,
    sum_with_classes,
)
from ..targets.encoding import TargetEncoder
from ..targets.known_classes import known_classes
from ..targets.weight_sums import sum_of
from ..training.graphs.names import SAMPLE_WEIGHT
from ..training.graphs.task import Objective, ScoreGraph, TrainingTask, Update
from . import automatic
from .configuration import Configuration, Updates
from .cross_fitting import last_part
from .model_sources import converted, fitted_source, missing_columns_of
from .objectives import loss_for_model, penalty_for_weights, sum_over_outputs

if TYPE_CHECKING:
    from ..trainable.conversion import TrainableModel

__all__ = ["Problem", "Targets"]

#: Name of the label input of a graph without one.
FREE_LABEL = "ortlearn_label"


@dataclass(frozen=True)
class Targets:
    """Classes of y, and the shape that predictions have, too."""

    classes: Any
    ndim: int
    sparse: bool
    class_weights: ClassWeights | None = None


@dataclass(frozen=True)
class Problem:
    """A converted model, and how it is trained.

    The loss is None for a graph with its own, and the source is None for an ONNX model.
    """

    trainable: TrainableModel
    loss: BaseLoss | None
    penalty: BasePenalty
    updates: Updates
    targets: Targets
    gradient: str
    estimator_type: str | None
    source: BaseEstimator | None = None
    missing: frozenset[int] = frozenset()  # columns of X that may have missing values
    flexible: bool = True
    doubt: str = ""  # why the default objective alone does not judge the model; empty if it does

    @classmethod
    def of(
        cls,
        configuration: Configuration,
        X: Any = None,
        y: Any = None,
        sample_weight: np.ndarray | None = None,
        random_state: np.random.RandomState | None = None,
        classes: Any = None,
        occurring: Any = None,
    ) -> Problem:
        """Convert the model of a configuration, after fitting it on checked samples if it is not fitted.

        ``random_state`` is used for that fit; ``classes`` are all classes, ``occurring`` the labels of all
        samples if y is a part of them. :meth:`with_objective_of` adds class weights, penalty and learning
        rate.
        """
        source = fitted_source(configuration, X, y, sample_weight, random_state, classes)
        loss = configuration.loss or automatic.own_loss(source)
        trainable = _with_positions(converted(configuration, source, X, y, loss), sample_weight)
        loss = loss_for_model(loss, trainable)
        known = known_classes(trainable, y if occurring is None else occurring, classes)
        fitted = None if is_onnx_source(source) else source
        return cls(
            trainable,
            loss,
            NoPenalty(),
            configuration.updates,
            Targets(known, np.ndim(y), issparse(y) and trainable.scores is not None),
            configuration.gradient,
            configuration.estimator_type,
            fitted,
            missing_columns_of(source, trainable, X),
            automatic.may_overfit(last_part(fitted) if trainable.replaced else fitted, trainable),
            automatic.doubt_of(source, configuration.loss),
        )

    @property
    def encoder(self) -> TargetEncoder:
        """Encoder of y."""
        return TargetEncoder(self.trainable, self.loss, self.targets.classes)

    @property
    def dtype(self) -> np.dtype:
        """Floating-point type of the training."""
        scores = self.trainable.scores
        return self.trainable.input_dtype if scores is None else scores.dtype

    @property
    def needs_labels(self) -> bool:
        """Whether the objective depends on labels."""
        scores = self.trainable.scores
        return scores is None or scores.task != "unsupervised"

    @property
    def has_own_score(self) -> bool:
        """Whether the score is that of ``to_sklearn()``, and not computed from the outputs of the graph."""
        return self.source is not None and has_own_score(self.source)

    @property
    def is_multilabel(self) -> bool:
        """Whether the model predicts several columns of classes."""
        scores = self.trainable.scores
        return scores is not None and scores.task == "multilabel"

    def with_objective_of(
        self,
        configuration: Configuration,
        y: Any,
        sample_weight: np.ndarray | None,
        n_samples: int | None = None,
        total_weight: float | None = None,
        whole: float | None = None,
    ) -> Problem:
        """Return the problem with class weights, learning rate and penalty of a configuration.

        The penalty of a model is relative to ``total_weight``, by default the sum of the weights of the given
        samples; ``n_samples`` is None for a stream. For a source, y has the labels that occur, sample_weight
        the sums of their weights, and ``whole`` is the sum of all sample weights without class weights.
        """
        is_stream = n_samples is None and whole is None
        problem = self.with_class_weights(configuration, y, sample_weight, is_stream)
        updates, rate = configuration.updates, configuration.updates.learning_rate
        if rate is None:
            known = configuration, self.loss, self.trainable, self.flexible, n_samples
            rate, given = automatic.automatic_rate(*known), (configuration.penalty or NoPenalty()).parts()
            in_units = isinstance(rate, LearningRateAdam) and not any(part.projects for part in given)
            updates = replace(updates, learning_rate=rate, in_units=in_units)
        if configuration.penalty is not None:
            penalty = penalty_for_weights(configuration.penalty, rate, self.trainable)
        else:
            total = problem.total_weight(y, sample_weight, whole) if total_weight is None else total_weight
            penalty = automatic.own_penalty(self.source, self.trainable, rate, total)
        automatic.warn_of_minimum(configuration.loss, rate)
        return replace(problem, updates=updates, penalty=penalty)

    @property
    def has_default_loss(self) -> bool:
        """Whether the loss is that of ``"auto"``, also if it is named."""
        own = automatic.own_loss(self.source)
        return automatic.is_same_loss(self.loss, loss_for_model(own, self.trainable))

    @property
    def link_of_labels(self) -> str | None:
        """Link from predicted labels to scores; None if scores do not predict labels."""
        scores = self.trainable.scores
        return _link(self.loss) if scores is not None and scores.task == "regression" else None

    def total_weight(self, y: Any, sample_weight: np.ndarray | None, whole: float | None = None) -> float:
        """Return the sum of sample weights times class weights; 1 without samples.

        ``whole`` is the sum without class weights, if known.
        """
        if y is None and sample_weight is None:
            return 1.0
        tables = self.targets.class_weights
        if tables is not None and y is not None:
            return sum_with_classes(tables, y, sample_weight)
        if whole is not None:
            return whole
        return float(np.shape(y)[0]) if sample_weight is None else sum_of(sample_weight)

    def with_class_weights(
        self, configuration: Configuration, y: Any, sample_weight: np.ndarray | None, stream: bool = False
    ) -> Problem:
        """Return the problem with the class weights of a configuration."""
        known, scores, class_weight = self.targets.classes, self.trainable.scores, configuration.class_weight
        if class_weight == "auto":
            applies = self.source is not None and self.estimator_type == "classifier"
            class_weight = automatic.own_class_weight(self.source) if applies else None
            if stream and y is not None:
                check_no_balanced_weights(class_weight)
        if scores is not None and scores.task == "multilabel" and not isinstance(known, list):
            known = [np.array([0, 1])] * len(scores.groups)
        tables = class_weight_tables(class_weight, self.estimator_type, y, known, sample_weight)
        return replace(self, targets=replace(self.targets, class_weights=tables))

    def reconfigured(
        self, configuration: Configuration, y: Any, sample_weight: np.ndarray | None, total_weight: float
    ) -> Problem:
        """Return the problem with loss, penalty, updates and class weights of a new configuration.

        ``total_weight`` is the sum of the weights of all samples of the stream.
        """
        loss = configuration.loss or automatic.own_loss(self.source)
        if _link(loss) != self.trainable.link:
            old, new = type(self.loss).__name__, "auto" if loss is None else type(loss).__name__
            raise PluginError(
                f"partial_fit cannot change the loss from {old} to {new}, since only one of them has a log "
                "link. Call fit, or use the first loss."
            )
        problem = replace(self, loss=loss_for_model(loss, self.trainable))
        return problem.with_objective_of(configuration, y, sample_weight, None, total_weight)

    def task(
        self, weighted: bool, n_samples: int = 1, n_seen: int = 0, evaluates: bool = False
    ) -> TrainingTask:
        """Return the task of a training step for ``n_samples``, after ``n_seen`` samples of earlier calls.

        With ``evaluates``, batch normalizations in training mode use their running statistics.
        """
        trainable, scores = self.trainable, self.trainable.scores
        label_type, own = self.encoder.label_type(), trainable.own_loss
        weighted = weighted or (own is not None and own.row_weight is not None)
        label = FREE_LABEL if own is None else own.label
        loss = sum_over_outputs(self.loss, scores)
        not_negative = frozenset(n for n, c in trainable.constraints.items() if c.projected)
        updates = self.updates
        rule = updates.rule(n_samples, n_seen)
        return TrainingTask(
            self._score_graph(evaluates, by_rows=not rule.full_batch),
            Objective(loss, self.penalty, label_type, label, weighted),
            Update(rule, updates.clip_norm, updates.clip_value, not_negative),
            self.gradient,
        )

    def _score_graph(self, evaluates: bool, by_rows: bool) -> ScoreGraph:
        trainable, scores = self.trainable, self.trainable.scores
        graph, output = trainable.score_graph(SAMPLE_WEIGHT, evaluates, by_rows), trainable.objective_tensor
        output_type = value_types(graph)[output] if scores is None else scores.type
        intercepts, features = _intercepts(trainable), _features(trainable, graph)
        return ScoreGraph(
            graph,
            features,
            output,
            output_type,
            intercepts,
            trainable.origin,
            self.dtype,
            statistics={} if evaluates else trainable.statistics,
            transformers=trainable.transformers_of(self.source),
            tables={} if by_rows else trainable.reparametrisation.tables,
        )


def _link(loss: BaseLoss | None) -> str:
    return "identity" if loss is None else loss.link


def _intercepts(trainable: TrainableModel) -> dict[str, bool]:
    """Return whether each trained weight is an intercept, or otherwise excluded from penalties."""
    constraints: Mapping[str, Any] = trainable.constraints
    return {
        name: not constraints[name].penalised
        if name in constraints
        else trainable.parameters[name].role == "intercept"
        for name in trainable.trained
    }


def _features(trainable: TrainableModel, graph: ModelProto) -> dict[str, TensorType]:
    """Return the inputs of a graph for X or its columns."""
    schema = trainable.entry.schema
    known = {} if schema.is_number_matrix else schema.types()
    several = {value.name: known[value.name] for value in graph.graph.input if value.name in known}
    return several or {trainable.input_name: schema.inputs[0].known}


def _with_positions(trainable: TrainableModel, sample_weight: np.ndarray | None) -> TrainableModel:
    """Return the model with a loss for each element, if the labels of an ONNX regressor have weights."""
    scores = trainable.scores
    if scores is None or scores.task != "regression" or not trainable.from_file:
        return trainable
    if sample_weight is None or np.ndim(sample_weight) < 2:
        return trainable
    positions = Positions((scores.n_outputs,)) if scores.positions is None else scores.positions
    return replace(trainable, scores=replace(scores, positions=replace(positions, per_position=True)))
