"""The configuration of a training: the checked parameters of an estimator, with plugins as objects."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import Tags

from ..differentiation import check_straight_through
from ..exceptions import ConversionError, PluginError, limit_address
from ..learning_rates import BaseLearningRate, resolve_learning_rate
from ..losses import BaseLoss, resolve_loss
from ..onnx_files import LoRA
from ..onnx_files.loading import is_onnx_source
from ..penalties import BasePenalty, resolve_penalty
from ..preprocessing.estimator_checks import check_is_a_model
from ..runtime.devices import Device, parse_device
from ..targets.class_weights import check_no_balanced_weights
from ..training.chosen_step import STEPS, ChosenStep
from ..training.graphs.averaging import Averaged
from ..training.graphs.rescaling import Rescaled
from ..training.graphs.task import TrainingTask
from ..training.settings import LoopSettings
from ..training.solvers.gradient_step import GradientStep
from ..training.steps.base_step import BaseStep

__all__ = ["Configuration", "Runtime", "Updates", "check_scoring", "check_source", "requested_loss"]

#: Value of ``tol`` if it is None, as in MLPClassifier.
TOL = 1e-4

Record = TypeVar("Record")
Resolved = TypeVar("Resolved")


@dataclass(frozen=True)
class ConversionOptions:
    """Parameters of the conversion to a graph, and of the choice of weights."""

    weights_to_train: Any
    dtype: str  # "auto" is float32, unless it changes predictions
    loss_output_name: str
    label_name: str
    weight_name: str
    lora: LoRA | None
    straight_through: bool
    output_name: str | None

    @property
    def float_dtype(self) -> np.dtype:
        """Type to convert the model in first."""
        return np.dtype(np.float32 if self.dtype == "auto" else self.dtype)


@dataclass(frozen=True)
class Updates:
    """Parameters of the update of weights by a batch.

    ``learning_rate`` and ``batch_size`` are None until ``"auto"`` is resolved. With ``in_units``, which
    ``"auto"`` may set, the update applies to weights of standardised features.
    """

    learning_rate: BaseLearningRate | None
    average: int
    batch_size: int | None
    clip_norm: float | None
    clip_value: float | None
    in_units: bool = False

    @property
    def is_solver(self) -> bool:
        """Whether the learning rate is a solver, which uses all samples at once."""
        return self.learning_rate is not None and self.learning_rate.full_batch

    def rule(self, n_samples: int, n_seen: int) -> BaseLearningRate:
        """Return the learning rate for epochs of ``n_samples``, with averaged weights if required."""
        assert self.learning_rate is not None
        rate = Rescaled(self.learning_rate) if self.in_units else self.learning_rate
        return Averaged(rate, self.first_averaged(n_samples, n_seen)) if self.average else rate

    def first_averaged(self, n_samples: int, n_seen: int) -> int:
        """Return the number of the first update, from 1, whose weights are averaged.

        It contains the sample number ``average``, where earlier calls have seen ``n_seen`` samples.
        """
        assert self.batch_size is not None
        remaining = max(int(self.average) - n_seen, 1)
        epochs, sample = divmod(remaining - 1, n_samples)
        return epochs * math.ceil(n_samples / self.batch_size) + sample // self.batch_size + 1


@dataclass(frozen=True)
class Stopping:
    """Parameters of validation and stopping."""

    max_iter: int
    validation_every: float | int
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    tol: float | None
    scoring: Any
    max_seconds: float | None = None

    @property
    def watched(self) -> str | None:
        """Value of the history that must improve for the training to continue."""
        if self.early_stopping:
            return "validation_loss" if self.scoring == "loss" else "validation_score"
        return None if self.tol is None else "loss"

    def validation_period(self, max_iter: int, stream: bool = False) -> int:
        """Return the number of epochs between validations; a stream is validated at every call."""
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

    def new_step(self, task: TrainingTask) -> BaseStep:
        """Return the training step of a task."""
        step_class = GradientStep if task.update.learning_rate.full_batch else self.step_class
        if self.device.is_native:
            return step_class(task, self.device, self.n_jobs)
        kinds = STEPS if step_class is STEPS[0] else [step_class]
        return ChosenStep(task, self.device, self.n_jobs, kinds)


#: Fields of a configuration that are records of several parameters.
PARTS = {ConversionOptions: "conversion", Updates: "updates", Stopping: "stopping", Runtime: "runtime"}


@dataclass(frozen=True)
class Configuration:
    """Parameters of an estimator, resolved and grouped; loss and penalty are None for ``"auto"``."""

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
    precompute: bool
    exc: bool
    verbose: int
    random_state: Any
    class_weight: Any
    is_trained: bool = False  # whether the parts of the source were trained, each for itself

    @classmethod
    def of(
        cls, parameters: Mapping[str, Any], tags: Tags, name: str, step_class: type[BaseStep]
    ) -> Configuration:
        """Return the configuration for the parameters and tags of an estimator."""
        rate = _unless_auto(resolve_learning_rate, parameters["learning_rate"])
        resolved = {
            "name": name,
            "estimator_type": tags.estimator_type,
            "multi_output": tags.target_tags.multi_output,
            "source": parameters["estimator"],
            "device": parse_device(parameters["device"]),
            "step_class": step_class,
            "learning_rate": rate and rate.for_epochs(parameters["max_iter"]),
            "batch_size": _unless_auto(int, parameters["batch_size"]),  # shapes reject integers of numpy
            "penalty": _unless_auto(resolve_penalty, parameters["learning_penalty"]),
            "loss": requested_loss(parameters["learning_loss"]),
            "lora": requested_adapters(parameters["lora"]),
            "scoring": check_scoring(parameters["scoring"]),
            "gradient": check_straight_through(parameters["gradient"], parameters["straight_through"]),
        }
        values = {**parameters, **resolved}
        for part in PARTS:
            values[PARTS[part]] = _from_fields(part, values)
        return _from_fields(cls, values)

    @property
    def is_default(self) -> bool:
        """Whether the model alone determines the trained weights, and the result is compared with it."""
        updates, chosen = self.updates, self.conversion.weights_to_train is not None
        given = chosen or self.loss is not None or self.penalty is not None
        return self.keep_better and updates.learning_rate is None and not given

    @property
    def names_training(self) -> bool:
        """Whether a learning rate, a penalty or early stopping is given, which a fit alone does not have."""
        given = self.updates.learning_rate is not None or self.penalty is not None
        return given or self.stopping.early_stopping

    def in_type(self, dtype: Any) -> Configuration:
        """Return the configuration with a type instead of ``"auto"``."""
        return replace(self, conversion=replace(self.conversion, dtype=str(np.dtype(dtype))))

    def in_batches(self, size: int | None) -> Configuration:
        """Return the configuration with a batch size instead of ``"auto"``."""
        return replace(self, updates=replace(self.updates, batch_size=self.updates.batch_size or size))

    def check_fit(self) -> None:
        """Reject ``average`` and clipping for a solver."""
        updates = self.updates
        given = {"average": updates.average, "clip_norm": updates.clip_norm, "clip_value": updates.clip_value}
        wrong = [name for name, value in given.items() if value]
        if updates.is_solver and wrong:
            raise ValueError(
                f"{type(updates.learning_rate).__name__} is a solver, which does not support "
                f"{' and '.join(wrong)}: use another learning rate, or the default of these parameters."
                f"{limit_address('averages-of-solvers')}"
            )

    def check_partial_fit(self, validates: bool) -> None:
        """Reject parameters that ``partial_fit`` does not support, and early stopping without X_val."""
        if self.stopping.early_stopping and not validates:
            raise ValueError(
                "partial_fit with early_stopping=True validates at every call: pass the same X_val and y_val "
                f"each time.{limit_address('stopping-of-partial-fit')}"
            )
        check_no_balanced_weights(self.class_weight)
        if self.updates.is_solver:
            raise PluginError(
                f"{type(self.updates.learning_rate).__name__} trains on all samples at once and keeps no "
                "state: use fit, or another learning rate for partial_fit."
                f"{limit_address('solvers-of-partial-fit')}"
            )

    def loop_settings(self, max_iter: int, stream: Any = None) -> LoopSettings:
        """Return the settings of a training up to an epoch; ``stream`` is an estimator in ``partial_fit``."""
        stopping, is_fit = self.stopping, stream is None
        assert self.updates.batch_size is not None
        return LoopSettings(
            max_iter=max_iter,
            batch_size=self.updates.batch_size,
            shuffle=self.shuffle,
            validation_every=stopping.validation_period(max_iter, not is_fit),
            watch=stopping.watched if is_fit or stopping.early_stopping else None,
            tol=TOL if stopping.tol is None else stopping.tol,
            n_iter_no_change=stopping.n_iter_no_change,
            exc=self.exc,
            verbose=self.verbose,
            description=self.name,
            stream=stream,
            chosen_rate=self.updates.learning_rate is None,
        )


def _from_fields(record: type[Record], values: Mapping[str, Any]) -> Record:
    """Return a dataclass made of those values that are its fields."""
    return record(**{field.name: values[field.name] for field in fields(record) if field.name in values})  # type: ignore[arg-type]


def requested_loss(spec: Any) -> BaseLoss | None:
    """Return the loss for ``learning_loss``, None for ``"auto"``."""
    return _unless_auto(resolve_loss, spec)


def requested_adapters(spec: Any) -> LoRA | None:
    """Return the low-rank adapters for ``lora``, which may be their rank."""
    if spec is None or isinstance(spec, LoRA):
        return spec
    if isinstance(spec, int | np.integer) and not isinstance(spec, bool) and spec > 0:
        return LoRA(int(spec))
    raise ValueError(f"lora={spec!r} must be a LoRA, a rank of 1 or more, or None.")


def check_scoring(scoring: Any) -> Any:
    """Return ``scoring``; raise a ValueError for a name that scikit-learn does not know."""
    if not isinstance(scoring, str) or scoring == "loss":
        return scoring
    from sklearn.metrics import get_scorer_names  # slow import

    names = get_scorer_names()
    if scoring not in names:
        close = difflib.get_close_matches(scoring, ["loss", *names], n=3)
        hint = f"Did you mean {' or '.join(map(repr, close))}?" if close else "Such as 'accuracy' or 'r2'."
        raise ValueError(
            f"scoring={scoring!r} must be 'loss', None, a function, or a name of "
            f"sklearn.metrics.get_scorer_names(). {hint}"
        )
    return scoring


def _unless_auto(resolve: Callable[[Any], Resolved], spec: Any) -> Resolved | None:
    """Return the resolved parameter, or None for ``"auto"``."""
    return None if isinstance(spec, str) and spec.lower() == "auto" else resolve(spec)


def check_source(source: Any) -> None:
    """Raise an error if the parameter ``estimator`` is neither an estimator to train nor an ONNX model."""
    if is_onnx_source(source):
        return
    if isinstance(source, type) or not hasattr(source, "fit"):
        raise ConversionError(
            f"estimator must be a scikit-learn estimator object or an ONNX model, not {source!r}."
        )
    check_is_a_model(source)
