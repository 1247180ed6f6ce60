"""The configuration of a training: an estimator's parameters, checked, with objects in place of names."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import Tags

from .. import conversion
from ..differentiation import check_straight_through
from ..exceptions import ConversionError, PluginError
from ..learning_rates import BaseLearningRate, resolve_learning_rate
from ..losses import BaseLoss, resolve_loss
from ..onnx_files import LoRA
from ..penalties import BasePenalty, resolve_penalty
from ..training import Device, FullBatchStep, LoopSettings, TrainingTask, parse_device
from ..training.averaging import Averaged
from ..training.base_step import BaseStep
from ..training.chosen_step import CheckedFullBatchStep, ChosenStep
from ..training.rescaling import Rescaled
from .class_weights import check_no_balanced_weights

__all__ = ["Configuration", "Runtime", "Updates", "check_source", "requested_loss"]

#: Least change that counts as better where ``tol`` is None, as in MLPClassifier.
TOL = 1e-4

Record = TypeVar("Record")
Resolved = TypeVar("Resolved")


@dataclass(frozen=True)
class ConversionOptions:
    """Parameters that say which graph is trained, and which of its weights."""

    weights_to_train: Any
    dtype: str
    loss_output_name: str
    label_name: str
    weight_name: str
    lora: LoRA | None
    straight_through: bool
    output_name: str | None


@dataclass(frozen=True)
class Updates:
    """Parameters that say how a batch updates the weights.

    A learning rate of None is to be chosen; one that was chosen updates weights in units of their own.
    """

    learning_rate: BaseLearningRate | None
    average: int
    batch_size: int
    clip_norm: float | None
    clip_value: float | None
    in_units: bool = False

    @property
    def is_solver(self) -> bool:
        """Whether all samples are trained on at once."""
        return self.learning_rate is not None and self.learning_rate.full_batch

    def rule(self, n_samples: int, n_seen: int) -> BaseLearningRate:
        """Return the learning rate for epochs of so many samples, with averages where they are asked for."""
        assert self.learning_rate is not None
        rate = Rescaled(self.learning_rate) if self.in_units else self.learning_rate
        return Averaged(rate, self.first_averaged(n_samples, n_seen)) if self.average else rate

    def first_averaged(self, n_samples: int, n_seen: int) -> int:
        """Return the number of the first update, from 1, whose weights are averaged.

        It is the one that sees sample number ``average``, after ``n_seen`` samples of earlier calls.
        """
        left = max(int(self.average) - n_seen, 1)
        epochs, sample = divmod(left - 1, n_samples)
        return epochs * math.ceil(n_samples / self.batch_size) + sample // self.batch_size + 1


@dataclass(frozen=True)
class Stopping:
    """Parameters that say when a training validates and ends."""

    max_iter: int
    validation_every: float | int
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    tol: float | None
    scoring: Any

    @property
    def watched(self) -> str | None:
        """Value of the history that must get better for the training to go on."""
        if self.early_stopping:
            return "validation_loss" if self.scoring == "loss" else "validation_score"
        return None if self.tol is None else "loss"

    def validation_period(self, max_iter: int, stream: bool = False) -> int:
        """Return the number of epochs between two validations; a stream validates at every call."""
        every = 1 if stream else self.validation_every
        if isinstance(every, float):
            return 1 if self.early_stopping else max(1, round(every * max_iter))
        if self.early_stopping and every > max_iter:
            raise ValueError(
                f"early_stopping needs a validation, and validation_every={every} epochs is more than "
                f"max_iter={max_iter}: lower validation_every."
            )
        return every


@dataclass(frozen=True)
class Runtime:
    """Device, number of threads and kind of training step."""

    device: Device
    n_jobs: int | None
    step_class: type[BaseStep]

    def new_step(self, task: TrainingTask) -> BaseStep | FullBatchStep:
        """Return the training step of a task."""
        step_class: Any = FullBatchStep if task.update.learning_rate.full_batch else self.step_class
        if self.device.is_native:
            return step_class(task, self.device, self.n_jobs)
        if step_class is FullBatchStep:
            return CheckedFullBatchStep(task, self.device, self.n_jobs)
        return ChosenStep(task, self.device, self.n_jobs, step_class)


#: Fields of a configuration that are records of several parameters.
PARTS = {ConversionOptions: "conversion", Updates: "updates", Stopping: "stopping", Runtime: "runtime"}


@dataclass(frozen=True)
class Configuration:
    """What the parameters of an estimator ask for.

    Attributes
    ----------
    name : str
        Class of the estimator, for messages.
    estimator_type : str or None
        Type of the estimator in its tags.
    multi_output : bool
        Whether its tags allow several outputs.
    source : estimator, onnx.ModelProto, bytes or path
        What to train.
    conversion, updates, stopping, runtime : ConversionOptions, Updates, Stopping, Runtime
        Parameters that belong together.
    loss : BaseLoss or None
        Loss; None for that of the model.
    penalty : BasePenalty or None
        Penalty; None for that of the model.
    gradient : str
        Backend that builds gradients, straight through or not.
    shuffle, warm_start, keep_better, hoist, exc, verbose, random_state, class_weight
        As the estimators document them.
    """

    name: str
    estimator_type: str | None
    multi_output: bool
    source: Any
    conversion: ConversionOptions
    updates: Updates
    stopping: Stopping
    runtime: Runtime
    loss: BaseLoss | None
    penalty: BasePenalty | None
    gradient: str
    shuffle: bool
    warm_start: bool
    keep_better: bool
    hoist: bool
    exc: bool
    verbose: int
    random_state: Any
    class_weight: Any

    @classmethod
    def of(
        cls, parameters: Mapping[str, Any], tags: Tags, name: str, step_class: type[BaseStep]
    ) -> Configuration:
        """Return the configuration that parameters of an estimator of these tags ask for."""
        rate = _unless_auto(resolve_learning_rate, parameters["learning_rate"])
        resolved = {
            "name": name,
            "estimator_type": tags.estimator_type,
            "multi_output": tags.target_tags.multi_output,
            "source": parameters["estimator"],
            "device": parse_device(parameters["device"]),
            "step_class": step_class,
            "learning_rate": rate and rate.for_epochs(parameters["max_iter"]),
            "penalty": _unless_auto(resolve_penalty, parameters["learning_penalty"]),
            "loss": requested_loss(parameters["learning_loss"]),
            "lora": requested_adapters(parameters["lora"]),
            "gradient": check_straight_through(parameters["gradient"], parameters["straight_through"]),
        }
        values = {**parameters, **resolved}
        for part in PARTS:
            values[PARTS[part]] = _picked(part, values)
        return _picked(cls, values)

    def check_fit(self) -> None:
        """Reject parameters of single updates for a solver, which makes the updates."""
        updates = self.updates
        given = {"average": updates.average, "clip_norm": updates.clip_norm, "clip_value": updates.clip_value}
        wrong = [name for name, value in given.items() if value]
        if updates.is_solver and wrong:
            raise ValueError(
                f"{type(updates.learning_rate).__name__} is a solver with steps of its own: "
                f"{' and '.join(wrong)} cannot be used with it."
            )

    def check_partial_fit(self, validates: bool) -> None:
        """Reject parameters that need all samples at once, or samples to validate on that are not there."""
        if self.stopping.early_stopping and not validates:
            raise ValueError(
                "partial_fit with early_stopping=True validates at every call: pass X_val and y_val, the "
                "same each time."
            )
        check_no_balanced_weights(self.class_weight)
        if self.updates.is_solver:
            raise PluginError(
                f"{type(self.updates.learning_rate).__name__} trains on all rows at once and keeps no state: "
                "use fit, or another learning rate for partial_fit."
            )

    def loop_settings(self, max_iter: int, past_losses: Sequence[float], stream: bool) -> LoopSettings:
        """Return the settings of the loop for some epochs after others; a stream never stops by itself."""
        stopping = self.stopping
        return LoopSettings(
            max_iter=max_iter,
            batch_size=self.updates.batch_size,
            shuffle=self.shuffle,
            first_epoch=len(past_losses),
            past_losses=past_losses,
            validation_every=stopping.validation_period(max_iter, stream),
            watch=None if stream else stopping.watched,
            tol=TOL if stopping.tol is None else stopping.tol,
            n_iter_no_change=stopping.n_iter_no_change,
            exc=self.exc,
            verbose=self.verbose,
            description=self.name,
        )


def _picked(record: type[Record], values: Mapping[str, Any]) -> Record:
    return record(**{field.name: values[field.name] for field in fields(record) if field.name in values})  # type: ignore[arg-type]


def requested_loss(spec: Any) -> BaseLoss | None:
    """Return the loss that ``learning_loss`` names, None for ``"auto"``."""
    return _unless_auto(resolve_loss, spec)


def requested_adapters(spec: Any) -> LoRA | None:
    """Return the low-rank adapters that ``lora`` asks for: a number is their rank."""
    if spec is None or isinstance(spec, LoRA):
        return spec
    if isinstance(spec, int | np.integer) and not isinstance(spec, bool) and spec > 0:
        return LoRA(int(spec))
    raise ValueError(f"lora={spec!r} must be a LoRA, a rank of 1 or more, or None.")


def _unless_auto(resolve: Callable[[Any], Resolved], spec: Any) -> Resolved | None:
    """Return what a parameter names, None for ``"auto"``, which depends on the model and the samples."""
    return None if isinstance(spec, str) and spec.lower() == "auto" else resolve(spec)


def check_source(source: Any) -> None:
    """Raise an error if the parameter ``estimator`` is neither an estimator to train nor an ONNX model."""
    if conversion.is_onnx_source(source):
        return
    if isinstance(source, type) or not hasattr(source, "fit"):
        raise ConversionError(
            f"estimator must be a scikit-learn estimator object or an ONNX model, not {source!r}."
        )
    conversion.check_is_a_model(source)
