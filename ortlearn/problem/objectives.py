"""Adapt the loss and the penalty of a configuration to the model."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from ..exceptions import NoTrainableWeightError, PluginError, limit_address
from ..learning_rates import BaseLearningRate
from ..losses import BaseLoss, PerOutputLoss, PerPositionLoss, default_loss
from ..penalties import BasePenalty
from ..penalties.proximal_composition import check_proximal_steps
from ..trainable.selection import select_weights

if TYPE_CHECKING:
    from ..models import Scores
    from ..trainable.conversion import TrainableModel

__all__ = ["check_task", "is_for_classes_only", "loss_for_model", "penalty_for_weights", "sum_over_outputs"]


def is_for_classes_only(loss: BaseLoss | None) -> bool:
    """Return whether a loss is for classification alone, which makes an ONNX model a classifier."""
    return loss is not None and "classification" in loss.tasks and "regression" not in loss.tasks


def sum_over_outputs(loss: BaseLoss | None, scores: Scores | None) -> BaseLoss | None:
    """Return a loss for models with several scores per output, or with labels of several dimensions."""
    if loss is None or scores is None:
        return loss
    if scores.positions is not None and scores.positions.per_position:
        is_sum = scores.task == "regression"
        return PerPositionLoss(loss, 1 if is_sum else scores.n_outputs, summed=is_sum)
    if max(scores.groups, default=1) == 1:
        return loss
    return PerOutputLoss(loss, scores.groups)


def loss_for_model(loss: BaseLoss | None, trainable: TrainableModel) -> BaseLoss | None:
    """Return the loss for a model, by default that of its task; None for a graph with its own loss."""
    if trainable.scores is None:
        if loss is not None:
            raise PluginError(
                f"The graph computes its own loss ({trainable.objective_tensor!r}): set "
                "learning_loss='auto', or remove that output."
            )
        return None
    task = trainable.scores.task
    if loss is None:
        return default_loss(task)
    check_task(loss, task)
    return loss


def check_task(loss: BaseLoss, task: str) -> None:
    """Raise a PluginError if a loss is not for the task of a model."""
    if task not in loss.tasks:
        raise PluginError(
            f"{type(loss).__name__} is for {' or '.join(sorted(loss.tasks))}, and the model is for {task}: "
            f"choose another loss.{limit_address('loss-of-another-task')}"
        )


def penalty_for_weights(
    penalty: BasePenalty,
    learning_rate: BaseLearningRate,
    trainable: TrainableModel,
    only: Collection[str] | None = None,
) -> BasePenalty:
    """Return a penalty with the names that its weights have in the graph.

    With ``only``, the penalty applies only to these weights, possibly to none.
    """
    has_length = learning_rate.proximal_scale is not None
    for part in penalty.parts():
        if part.needs_step and not has_length and not learning_rate.full_batch:
            raise PluginError(
                f"{type(part).__name__} requires a proximal step, which {type(learning_rate).__name__} does "
                f"not support: use SGD or SGDNesterov.{limit_address('proximal-steps')}"
            )
    weights = {name: trainable.parameters[name] for name in trainable.trained}

    def choose(patterns: Any) -> Any:
        try:
            found = select_weights(weights, patterns, trainable.original_names)
            return found if only is None else [name for name in found if name in only]
        except NoTrainableWeightError as error:
            if only is not None:
                return []
            raise PluginError(
                f"{type(penalty).__name__}: weights={patterns!r} must name trained weights. {error}"
            ) from error

    penalty = penalty.for_weights(choose)
    for name in weights:
        parts = penalty.parts_for(weights[name].role == "intercept", name)
        check_proximal_steps(name, parts, has_length)
    return penalty
