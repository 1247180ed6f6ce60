"""What ``"auto"`` stands for: the model's own loss, penalty and class weights, and a safe learning rate."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from .. import conversion
from ..exceptions import ObjectiveWarning, PluginError, warn_user
from ..learning_rates import BaseLearningRate, LearningRateAdam, LearningRateLBFGS, LearningRateSGD
from ..models import find_definition, fitted_part, is_flexible, objective_of
from ..penalties import BasePenalty, NoPenalty
from ..training.epoch_graph import RANDOM
from .configuration import Configuration
from .objectives import penalty_for_weights

if TYPE_CHECKING:
    from ..conversion import TrainableModel
    from ..losses import BaseLoss

__all__ = [
    "automatic_rate",
    "follows_noise",
    "own_class_weight",
    "own_loss",
    "own_penalty",
    "warn_of_terms_left_out",
]

#: Samples up to which a model is trained on all of them at once, however flexible it is.
FEW_SAMPLES = 10_000
#: Weights up to which a solver remembers its steps.
FEW_WEIGHTS = 5_000_000
#: Rates of Adam for standardised features, in units of the labels.
RATE, RATE_OF_LINEAR = 0.001, 0.01
#: Share of these rates for a model's own weights, which batches are to change little by little.
WARM = 0.1
#: Weights of classes that are drawn anew for every tree.
BY_TREE = "balanced_subsample"


def own_loss(source: Any) -> BaseLoss | None:
    """Return the loss that a fitted scikit-learn estimator minimises, where it has one; None for ONNX."""
    own = None if conversion.is_onnx_source(source) else objective_of(source, 1.0)
    return None if own is None else own.loss


def own_penalty(
    source: Any, trainable: TrainableModel, learning_rate: BaseLearningRate, total_weight: float
) -> BasePenalty:
    """Return the penalty of the fit of an estimator, for the weights that are trained by default.

    Warn, and return no penalty, where the update cannot take it.
    """
    own = None if source is None else objective_of(source, total_weight)
    if own is None:
        return NoPenalty()
    penalty = own.penalty
    learned = {name for name in trainable.trained if not trainable.weights[name].reason}
    if penalty.weights is None and learned < set(trainable.trained):
        names = [n for n in learned if penalty.applies_to(trainable.weights[n].role == "intercept", n)]
        penalty = copy.deepcopy(penalty).set_params(weights=sorted(names)) if names else NoPenalty()
    try:
        return penalty_for_weights(penalty, learning_rate, trainable, learned)
    except PluginError as error:
        warn_user(f"The penalty of the model itself, {penalty!r}, is left out. {error}", ObjectiveWarning)
        return NoPenalty()


def own_class_weight(source: Any) -> Any:
    """Return the weights of classes that a fitted estimator goes by; none that change from tree to tree."""
    found = getattr(fitted_part(source), "class_weight", None)
    return None if isinstance(found, str) and found == BY_TREE else found


def follows_noise(source: Any, trainable: TrainableModel) -> bool:
    """Return whether training may follow the noise of few samples.

    Besides flexible models, these are ONNX models, whose penalty is unknown, and those with weights that
    are not trained by default. ``source`` is None for ONNX.
    """
    extra = any(trainable.weights[name].reason for name in trainable.trained)
    return source is None or extra or is_flexible(source)


def automatic_rate(
    configuration: Configuration,
    loss: BaseLoss | None,
    trainable: TrainableModel,
    flexible: bool,
    n_samples: int | None,
) -> BaseLearningRate:
    """Return a learning rate that is safe for features and labels of any scale.

    It is L-BFGS on all samples where there are few, or where the model is linear, and Adam on batches
    otherwise, or SGD for a penalty that acts by a step of its length; ``n_samples`` is None for a stream.
    Images and sequences come in batches: what a graph computes of all of them may not fit in memory. So do
    samples of batch normalizations in training mode, whose running statistics batches update.
    """
    updates = configuration.updates
    needs_batches = updates.average or updates.clip_norm or updates.clip_value
    in_python = loss is not None and loss.in_python
    slower = WARM if configuration.warm_start else 1.0
    adam = LearningRateAdam(eta0=(RATE if flexible else RATE_OF_LINEAR) * slower)
    left = (configuration.penalty or NoPenalty()).without_absolute_values().parts()
    if not all(part.smooth or part.roundable for part in left):
        return LearningRateSGD() if any(part.needs_step for part in left) else adam
    of_arrays = any(len(item.known.shape or ()) > 2 for item in trainable.entry.schema.inputs)
    if n_samples is None or needs_batches or in_python or of_arrays or _draws_numbers(trainable):
        return adam
    if trainable.statistics:  # batches update them
        return adam
    if sum(array.size for array in trainable.initial_weights().values()) > FEW_WEIGHTS:
        return adam
    return adam if flexible and n_samples > FEW_SAMPLES else LearningRateLBFGS()


def _draws_numbers(trainable: TrainableModel) -> bool:
    """Return whether the graph has other values at every call, as with Dropout."""
    return any(node.op_type in RANDOM for node in trainable.objective_graph().graph.node)


def warn_of_terms_left_out(configuration: Configuration, source: Any) -> None:
    """Warn of parameters of a model that are no part of its training, or nearly so, under ``"auto"``."""
    if source is None or (configuration.loss is not None and configuration.penalty is not None):
        return
    part = fitted_part(source)
    definition = find_definition(part)
    own = part.get_params(deep=False)
    names = [] if definition is None else [name for name in definition.not_in_objective if name in own]
    if configuration.class_weight == "auto" and own_class_weight(part) != getattr(part, "class_weight", None):
        names.append("class_weight")
    found = objective_of(source, 1.0) if configuration.penalty is None else None
    if found is not None and found.approximate:
        text = f"The penalty of {type(part).__name__} is an approximation in training: {found.approximate}."
        warn_user(text, ObjectiveWarning)
    if names:
        values = ", ".join(f"{name}={getattr(part, name)!r}" for name in names)
        warn_user(
            f"{type(part).__name__}: training does not take {values} over, as its objective has no such "
            "term; loss_ and penalty_ are what it minimises.",
            ObjectiveWarning,
        )
