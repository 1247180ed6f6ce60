"""Resolve ``"auto"``: loss, penalty and class weights of the model, and a safe learning rate."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from onnx import ModelProto

from ..exceptions import ObjectiveWarning, PluginError, warn_user
from ..learning_rates import (
    BaseLearningRate,
    BaseSolver,
    LearningRateAdam,
    LearningRateLBFGS,
    LearningRateSGD,
)
from ..models import find_definition, fitted_part, is_flexible, objective_of
from ..models.capabilities import GrowingEnsemble, capability_of, cross_fitting_of
from ..onnx_files.loading import is_onnx_source
from ..penalties import BasePenalty, NoPenalty
from ..training.steps.epoch_graph import RANDOM
from .configuration import Configuration
from .objectives import penalty_for_weights

if TYPE_CHECKING:
    from ..losses import BaseLoss
    from ..trainable.conversion import TrainableModel

__all__ = [
    "automatic_batch_size",
    "automatic_rate",
    "doubt_of",
    "is_same_loss",
    "may_overfit",
    "own_class_weight",
    "own_loss",
    "own_penalty",
    "warn_of_ignored_parameters",
    "warn_of_minimum",
    "warn_of_seen_parts",
]

#: Largest number of samples for which flexible models are trained by a solver, and if they are tables, as the
#: leaves of trees or the labels of neighbours: after a change of concept, boosting trained by Adam reached an
#: R2 of 0.90, by the solver, which adds trees, 0.94; neighbours 0.28 and 0.51.
FEW_SAMPLES, FEW_SAMPLES_OF_TABLES = 10_000, 100_000
#: Largest number of weights for a solver, which stores several vectors of them.
FEW_WEIGHTS = 5_000_000
#: Rates of Adam for standardised features: flexible and linear models.
RATE, RATE_OF_LINEAR = 0.001, 0.01
#: Factor of these rates for a warm start; in a stream, all models have the rate of flexible ones.
WARM = 0.1
#: Smallest and largest batch, and the number of updates of an epoch between them.
SMALLEST, LARGEST, UPDATES = 10, 200, 100
#: Class weights that a forest computes for each tree.
BY_TREE = "balanced_subsample"


def own_loss(source: Any) -> BaseLoss | None:
    """Return the loss that a fitted scikit-learn estimator minimises; None if unknown, and for ONNX."""
    own = None if is_onnx_source(source) else objective_of(source, 1.0)
    return None if own is None else own.loss


def is_same_loss(first: BaseLoss | None, second: BaseLoss | None) -> bool:
    """Return whether two losses are of one class and have equal parameters."""
    return type(first) is type(second) and repr(first) == repr(second)


def doubt_of(source: Any, loss: BaseLoss | None) -> str:
    """Return why an objective alone does not judge a model; empty if it does, and for ONNX."""
    if source is None or is_onnx_source(source):
        return ""
    if loss is not None:
        if is_same_loss(loss, own_loss(source)):
            return ""
        rule, name = capability_of(fitted_part(source), GrowingEnsemble), type(loss).__name__
        if rule is not None and rule.by_votes:
            return f"its labels are votes, which {name} does not determine"
        return f"{name} is a bound of errors, which it does not determine" if loss.by_errors else ""
    own = objective_of(source, 1.0)
    if own is None:
        return f"the objective of {type(fitted_part(source)).__name__} is unknown"
    return own.differs or cross_fitting_of(source)


def warn_of_seen_parts(configuration: Configuration, source: Any) -> None:
    """Warn if parts of a fresh model have seen the samples, and training takes their outputs."""
    if configuration.warm_start or configuration.is_default or source is None:
        return
    text = cross_fitting_of(source)
    if text:
        text = f"{type(source).__name__} may overfit: {text}, training those for samples that it has seen"
        warn_user(f"{text}. Fit it first, and train with warm_start=True on others.", ObjectiveWarning)


def own_penalty(
    source: Any, trainable: TrainableModel, learning_rate: BaseLearningRate, total_weight: float
) -> BasePenalty:
    """Return the penalty that an estimator minimises, for the weights that are trained by default.

    Warn and return ``NoPenalty`` if the learning rate does not support it.
    """
    own = None if source is None else objective_of(source, total_weight)
    if own is None:
        return NoPenalty()
    penalty = own.penalty
    try:
        penalty.check()
    except PluginError as error:
        name = type(fitted_part(source)).__name__
        raise ValueError(f"The parameters of {name} result in an invalid penalty: {error}") from error
    learned = {name for name in trainable.trained if not trainable.parameters[name].reason}
    if penalty.weights is None and learned < set(trainable.trained):
        names = [n for n in learned if penalty.applies_to(trainable.parameters[n].role == "intercept", n)]
        penalty = copy.deepcopy(penalty).set_params(weights=sorted(names)) if names else NoPenalty()
    try:
        return penalty_for_weights(penalty, learning_rate, trainable, learned)
    except PluginError as error:
        warn_user(f"The penalty of the model, {penalty!r}, is omitted. {error}", ObjectiveWarning)
        return NoPenalty()


def warn_of_minimum(loss: BaseLoss | None, learning_rate: BaseLearningRate) -> None:
    """Warn if a solver would find a minimum of a named loss that is no useful model."""
    if loss is not None and loss.degenerate and isinstance(learning_rate, BaseSolver):
        text = f"The minimum of {type(loss).__name__} is no useful model, as {loss.degenerate}"
        warn_user(f'{text}. Name another loss, such as "hinge".', ObjectiveWarning)


def own_class_weight(source: Any) -> Any:
    """Return the class weights of a fitted estimator; None if they differ from tree to tree."""
    found = getattr(fitted_part(source), "class_weight", None)
    return None if isinstance(found, str) and found == BY_TREE else found


def may_overfit(source: Any, trainable: TrainableModel) -> bool:
    """Return whether training may overfit few samples.

    This applies to flexible models, to ONNX models, whose penalty is unknown, and to models with trained
    weights that are frozen by default. ``source`` is None for ONNX.
    """
    extra = any(trainable.parameters[name].reason for name in trainable.trained)
    return source is None or extra or is_flexible(source)


def automatic_batch_size(configuration: Configuration, n_samples: int) -> int:
    """Return the number of samples in a batch: with an automatic rate, for 100 updates in an epoch.

    The largest is that of scikit-learn's MLPs. A rate that was chosen may need more updates, so that batches
    are small.
    """
    if configuration.updates.learning_rate is not None:
        return SMALLEST
    return min(max(n_samples // UPDATES, SMALLEST), LARGEST)


def automatic_rate(
    configuration: Configuration,
    loss: BaseLoss | None,
    trainable: TrainableModel,
    flexible: bool,
    n_samples: int | None,
) -> BaseLearningRate:
    """Return a learning rate that is safe for features and labels of any scale.

    It is L-BFGS for linear models and for few samples, SGD for penalties that require a proximal step, and
    Adam otherwise. Images and sequences are trained in batches, since the activations of all samples may not
    fit in memory, and so are batch normalizations in training mode, whose running statistics follow batches.
    ``n_samples`` is None for a stream.
    """
    updates = configuration.updates
    needs_batches = updates.average or updates.clip_norm or updates.clip_value
    in_python = loss is not None and loss.in_python
    factor = WARM if configuration.warm_start and n_samples is not None else 1.0
    is_fast = not (flexible or (configuration.warm_start and n_samples is None))
    adam = LearningRateAdam(eta0=(RATE_OF_LINEAR if is_fast else RATE) * factor)
    parts = (configuration.penalty or NoPenalty()).without_absolute_values().parts()
    if not all(part.smooth or part.roundable for part in parts):
        return LearningRateSGD() if any(part.needs_step for part in parts) else adam
    has_arrays = any(len(item.known.shape or ()) > 2 for item in trainable.entry.schema.inputs)
    if n_samples is None or needs_batches or in_python or has_arrays or _is_random(trainable):
        return adam
    if trainable.statistics:  # batches update them
        return adam
    if sum(array.size for array in trainable.initial_weights().values()) > FEW_WEIGHTS:
        return adam
    roles = {trainable.parameters[name].role for name in trainable.trained}
    has_tables = "table" in roles and "weight" not in roles
    few = n_samples <= (FEW_SAMPLES_OF_TABLES if has_tables else FEW_SAMPLES)
    return LearningRateLBFGS() if few or not flexible else adam


def _is_random(trainable: TrainableModel) -> bool:
    """Return whether the graph contains random operators such as Dropout."""

    def has_some(model: ModelProto) -> bool:
        return any(node.op_type in RANDOM for node in model.graph.node)

    return has_some(trainable.model) and has_some(trainable.objective_graph())


def warn_of_ignored_parameters(configuration: Configuration, source: Any) -> None:
    """Warn of parameters of a model that ``"auto"`` ignores or approximates."""
    if source is None or (configuration.loss is not None and configuration.penalty is not None):
        return
    part = fitted_part(source)
    definition = find_definition(part)
    own = part.get_params(deep=False)
    found = objective_of(source, 1.0) if configuration.penalty is None else None
    ignored = () if definition is None else definition.not_in_objective
    if found is None and configuration.penalty is None and not is_flexible(source):
        ignored = ("alpha", "C", "power")  # of linear models without an objective
    names = [name for name in ignored if name in own]
    if configuration.class_weight == "auto" and own_class_weight(part) != getattr(part, "class_weight", None):
        names.append("class_weight")
    if found is not None and found.approximate:
        text = f"The penalty of {type(part).__name__} is an approximation in training: {found.approximate}."
        warn_user(text, ObjectiveWarning)
    if names:
        values = ", ".join(f"{name}={getattr(part, name)!r}" for name in names)
        warn_user(
            f"{type(part).__name__}: training ignores {values}, since its objective has no such term. It "
            "minimises loss_ and penalty_.",
            ObjectiveWarning,
        )
