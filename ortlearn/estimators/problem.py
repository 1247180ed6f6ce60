"""What an estimator trains: converted model, plugins and labels, brought together once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import ModelProto, helper
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from .. import conversion
from ..differentiation import check_straight_through
from ..exceptions import ConversionError, PluginError
from ..graphs import TensorType, value_types
from ..learning_rates import BaseLearningRate, resolve_learning_rate
from ..losses import BaseLoss, resolve_loss
from ..penalties import BasePenalty, resolve_penalty
from ..training import Device, TrainingTask, make_session
from ..training.sessions import session_options
from ..training.step_graphs import SAMPLE_WEIGHT
from .class_weights import ClassWeights, class_weight_tables
from .objectives import check_loss, check_penalty, for_groups, only_classifies
from .settings import Updates
from .sources import fitted_source
from .targets import TargetEncoder

if TYPE_CHECKING:
    from ..conversion import TrainableModel

__all__ = ["Problem"]

#: Name of the label input of a graph without one.
FREE_LABEL = "ortlearn_label"


@dataclass(frozen=True)
class Problem:
    """A converted model with its loss, penalty, learning rate and labels.

    Attributes
    ----------
    trainable : TrainableModel
        Graph and weights.
    loss : BaseLoss or None
        Loss; None for a graph with its own.
    penalty : BasePenalty
        Penalty.
    learning_rate : BaseLearningRate
        Schedule and update.
    encoder : TargetEncoder
        How y becomes labels.
    classes : ndarray, list of ndarray or None
        Classes of a classifier, one array per output where each has its own.
    y_ndim : int
        Dimensions of y, which predictions of a regressor have too.
    gradient : str
        Backend that builds gradients.
    source : estimator or None
        Fitted estimator that was converted; None for an ONNX model, and once the training is over.
    missing : frozenset of int
        Columns of X in which the model accepts missing values.
    class_weights : list of dict or None
        Weight of each class, for each column of y.
    updates : Updates
        What is clipped and averaged.
    sparse_labels : bool
        Whether y was a sparse matrix of labels, as predictions are then, too.
    """

    trainable: TrainableModel
    loss: BaseLoss | None
    penalty: BasePenalty
    learning_rate: BaseLearningRate
    encoder: TargetEncoder
    classes: Any
    y_ndim: int
    gradient: str
    source: BaseEstimator | None = None
    missing: frozenset[int] = frozenset()
    class_weights: ClassWeights | None = None
    updates: Updates = Updates()
    sparse_labels: bool = False

    @classmethod
    def pose(
        cls,
        owner: Any,
        X: Any,
        y: Any,
        sample_weight: np.ndarray | None,
        random_state: np.random.RandomState,
        classes: Any = None,
    ) -> Problem:
        """Resolve the plugins an estimator names, and convert its model.

        Parameters
        ----------
        owner : BaseOrtGradientEstimator
            Whose parameters count.
        X, y : array-like
            Rows and labels, to fit an estimator that is not fitted.
        sample_weight : ndarray of shape (n_samples,) or None
            Weights of the rows.
        random_state : numpy.random.RandomState
            Where seeds of that fit come from.
        classes : array-like, default=None
            Classes that may come, for a classifier that is not fitted.

        Returns
        -------
        Problem
            What to train.
        """
        learning_rate = resolve_learning_rate(owner.learning_rate)
        penalty = resolve_penalty(owner.learning_penalty)
        loss = None if owner.learning_loss == "auto" else resolve_loss(owner.learning_loss)
        source = owner.estimator
        if not conversion.is_onnx_source(source):
            source = fitted_source(owner, X, y, sample_weight, random_state, classes)
        trainable = conversion.to_trainable(
            source,
            owner.weights_to_train,
            X=X,
            run=_run_graph,
            dtype=np.dtype(owner.dtype),
            loss_output_name=owner.loss_output_name,
            label_name=owner.label_name,
            weight_name=owner.weight_name,
            forced_task="classification"
            if conversion.is_onnx_source(source) and only_classifies(loss)
            else None,
            link="identity" if loss is None else loss.link,
        )
        loss = check_loss(loss, trainable)
        penalty = check_penalty(penalty, learning_rate, trainable)
        found = _find_classes(trainable, y, classes)
        types = value_types(trainable.model) if trainable.label else {}
        own_type = types[trainable.label] if trainable.label else None
        encoder = TargetEncoder(
            trainable.head, loss, found, own_type, _transformers_of(trainable), trainable.origin
        )
        return cls(
            trainable,
            loss,
            penalty,
            learning_rate,
            encoder,
            found,
            np.ndim(y),
            check_straight_through(owner.gradient, owner.straight_through),
            None if conversion.is_onnx_source(source) else source,
            updates=Updates.of(owner),
            sparse_labels=issparse(y) and trainable.head is not None,
        )

    @property
    def dtype(self) -> np.dtype:
        """Floating-point type that training computes in."""
        head = self.trainable.head
        return self.trainable.input_dtype if head is None else head.dtype

    @property
    def needs_labels(self) -> bool:
        """Whether the objective compares with labels."""
        head = self.trainable.head
        return head is None or head.task != "unsupervised"

    def with_class_weights(self, owner: Any, y: Any, sample_weight: np.ndarray | None) -> Problem:
        """Return the problem with the ``class_weight`` of an estimator, for the classes of some rows."""
        known, head = self.classes, self.trainable.head
        if head is not None and head.task == "multilabel" and not isinstance(known, list):
            known = [np.array([0, 1])] * len(head.groups)
        return replace(self, class_weights=class_weight_tables(owner, y, known, sample_weight))

    def renewed(self, owner: Any, y: Any) -> Problem:
        """Return the problem with loss, penalty, rate and class weights as an estimator names them now.

        Parameters
        ----------
        owner : BaseOrtGradientEstimator
            Whose parameters count.
        y : array-like
            Labels of the rows that come next.

        Raises
        ------
        PluginError
            If the loss needs another graph than the one that is trained.
        """
        learning_rate = resolve_learning_rate(owner.learning_rate)
        loss = None if owner.learning_loss == "auto" else resolve_loss(owner.learning_loss)
        link = "identity" if loss is None else loss.link
        if link != self.trainable.link:
            was, now = type(self.loss).__name__, "auto" if loss is None else type(loss).__name__
            raise PluginError(
                f"partial_fit cannot go on from {was} with {now}: one of them is of the logarithms of the "
                "predictions, which takes another graph. Call fit, or go back to the first loss."
            )
        loss = check_loss(loss, self.trainable)
        problem = replace(
            self,
            loss=loss,
            penalty=check_penalty(resolve_penalty(owner.learning_penalty), learning_rate, self.trainable),
            learning_rate=learning_rate,
            encoder=replace(self.encoder, loss=loss),
            updates=Updates.of(owner),
        )
        return problem.with_class_weights(owner, y, None)

    def check_features(self, n_features: int) -> None:
        """Raise an error if X has another number of columns than the graph."""
        expected = self.trainable.n_features
        if expected is not None and n_features != expected:
            raise ValueError(
                f"X has {n_features} features, but the model to train is expecting {expected} features "
                "as input."
            )

    def task(self, weighted: bool, n_rows: int = 1, seen: int = 0) -> TrainingTask:
        """Return what a training step takes, for so many rows, after others that it has seen."""
        trainable, head = self.trainable, self.trainable.head
        graph = trainable.score_graph(SAMPLE_WEIGHT)
        types = value_types(graph)
        output = trainable.loss if head is None else head.score
        assert output is not None
        output_type = types[output]
        if head is not None:
            elem_type = helper.np_dtype_to_tensor_dtype(head.dtype)
            output_type = TensorType(elem_type, (None, head.n_outputs))
        return TrainingTask(
            graph=graph,
            data=trainable.input_name,
            data_type=trainable.schema.inputs[0].known,
            features=_several_inputs(trainable, graph),
            output=output,
            output_type=output_type,
            weights=trainable.trained,
            intercepts={
                n: not trainable.constraints[n].penalised
                if n in trainable.constraints
                else trainable.weights[n].role == "intercept"
                for n in trainable.trained
            },
            loss=for_groups(self.loss, head),
            label_type=self.encoder.label_type(),
            penalty=self.penalty,
            learning_rate=self.updates.rule(self.learning_rate, n_rows, seen),
            clip_norm=self.updates.clip_norm,
            clip_value=self.updates.clip_value,
            not_negative=frozenset(n for n, c in trainable.constraints.items() if c.projected),
            weighted=weighted or trainable.row_weight is not None,
            gradient=self.gradient,
            origin=trainable.origin,
            dtype=self.dtype,
            label=trainable.label or FREE_LABEL,
        )


def _run_graph(model: ModelProto, feeds: dict[str, np.ndarray]) -> np.ndarray:
    """Return the first output of a graph."""
    options = session_options()
    options.log_severity_level = 4  # what fails here is told in a warning
    session = make_session(model, Device("cpu"), options=options)
    names = {value.name for value in session.get_inputs()}
    return session.run(None, {name: array for name, array in feeds.items() if name in names})[0]


def _transformers_of(trainable: TrainableModel) -> tuple[Any, ...]:
    return () if trainable.head is None else trainable.head.target_transformers


def _several_inputs(trainable: TrainableModel, graph: ModelProto) -> dict[str, TensorType]:
    """Return the inputs of a graph that take columns of X; none where one takes all of it."""
    if trainable.schema.is_number_matrix:
        return {}
    known = trainable.schema.types()
    return {value.name: known[value.name] for value in graph.graph.input if value.name in known}


def _find_classes(trainable: TrainableModel, y: Any, classes: Any) -> Any:
    head = trainable.head
    if head is None or head.task not in ("classification", "multilabel"):
        return None
    known = head.classes
    if head.task == "multilabel":
        return known
    if known is None and y is None and classes is None:  # graphs before fit: the shapes tell how many
        known = np.arange(max(2, head.n_outputs))
    elif known is None:
        known = np.unique(y if classes is None else classes)
    known = np.asarray(known)
    if known.ndim == 1 and len(known) < 2:
        raise ValueError(
            f"A classifier needs samples of at least 2 classes, y has {len(known)} class: {known.tolist()}."
        )
    expected = 2 if head.n_outputs == 1 else head.n_outputs
    if known.ndim != 1 or len(known) != expected:
        raise ConversionError(
            f"The model has {head.n_outputs} scores for the classes {known.tolist()}: it must have one score "
            "for each class, or one for two classes."
        )
    return known
