"""A fitted model: trained weights, predictions, scores and exports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from onnx import ModelProto
from sklearn.utils import check_consistent_length

from ..exceptions import WriteBackError, limit_address
from ..graphs.external_tensors import with_own_locations
from ..inference.fast_validation import validated_matrix
from ..inference.method_outputs import check_predictor, flat_decisions
from ..inference.result_types import as_floats_of, probabilities_as_floats_of
from ..inference.running import Inference
from ..onnx_files.interface import with_zipmap
from ..preprocessing.columns import as_array_like, count_samples, refuse_masked
from ..preprocessing.initial_fit import untouched
from ..problem.configuration import Runtime
from ..problem.input_validation import InputFeatures, read_samples
from ..problem.problem import Problem
from ..problem.samples import check_weights, flat_weights
from ..targets.label_arrays import per_position, with_masked_labels
from ..trainable.from_estimator import write_weights
from ..trainable.low_rank import adapter_arrays, with_separate_adapters
from ..training.state import TrainingState
from .scoring import score_of

if TYPE_CHECKING:
    from ..trainable.conversion import TrainableModel

__all__ = ["FittedModel"]


@dataclass(eq=False)
class FittedModel:
    """A trained model, which is immutable except for its sessions."""

    #: Distinguishes a fitted model from the ``Progress`` of a training.
    is_final: ClassVar[bool] = True

    problem: Problem
    features: InputFeatures
    state: TrainingState
    step: Any = None
    inference: Inference | None = None
    window: Any = None  # last samples of a stream of trees

    def __getstate__(self) -> dict[str, Any]:
        kept = (item.name for item in fields(self) if item.name not in ("step", "inference"))
        return {name: getattr(self, name) for name in kept}  # without cached properties

    def open(self, runtime: Runtime) -> None:
        """Open the sessions for predictions, unless they are open."""
        if self.inference is None:
            self.inference = Inference(self.problem, self.trained, runtime)

    @property
    def runner(self) -> Inference:
        """Sessions."""
        assert self.inference is not None
        return self.inference

    # Weights and attributes

    @cached_property
    def trained(self) -> ModelProto:
        """Model with the trained weights and stable names."""
        return self.problem.trainable.with_stable_weights(self.state.weights)

    @cached_property
    def onnx(self) -> ModelProto:
        """Trained model, for inference."""
        return with_own_locations(self.exported)

    @cached_property
    def exported(self) -> ModelProto:
        """Trained model, for inference, that knows the folder of initializers in other files."""
        return self.problem.trainable.with_weights(self.stable_weights())

    def other_onnx(self, fused: bool | str) -> ModelProto:
        """Return the trained model without fused operators, or with those for many samples."""
        return self.problem.trainable.with_weights(self.stable_weights(), fused=fused)

    def upgraded_onnx(self) -> ModelProto:
        """Return a trained ONNX file at the opset of the training; raise a ValueError for other models."""
        if not self.problem.trainable.from_file:
            raise ValueError(
                "keep_upgrade=True is for ONNX files: set keep_upgrade=False for a scikit-learn model."
            )
        model = self.problem.trainable.with_weights(self.stable_weights(), keep_upgrade=True)
        return with_own_locations(model)

    def separate_onnx(self, keep_upgrade: bool) -> ModelProto:
        """Return the model with its adapters as inputs; raise a ValueError if it has none."""
        return with_separate_adapters(self._with_adapters(), self.stable_weights(), keep_upgrade)

    def adapter_arrays(self, keep_upgrade: bool) -> dict[str, np.ndarray]:
        """Return the arrays of the adapters; raise a ValueError if there are none."""
        return adapter_arrays(self._with_adapters(), self.stable_weights(), keep_upgrade)

    def _with_adapters(self) -> TrainableModel:
        trainable = self.problem.trainable
        if not trainable.adapters:
            raise ValueError("This model was trained without adapters: set lora=LoRA(...) and fit it again.")
        return trainable

    @cached_property
    def trained_coef(self) -> dict[str, np.ndarray]:
        """Trained weights by name."""
        return self.problem.trainable.coefficients(self.stable_weights())

    def stable_weights(self) -> dict[str, np.ndarray]:
        """Return copies of the trained weights by stable name."""
        return {name: self.state.weights[name].copy() for name in self.problem.trainable.trained}

    @cached_property
    def origins(self) -> dict[str, str]:
        """Origin of each trained weight."""
        return self.problem.trainable.origins()

    @cached_property
    def penalty(self) -> Any:
        """Penalty with its weights under the names of ``trained_coef``."""
        names = self.problem.trainable.original_names

        def rename(
            weights: Sequence[str] | str,
        ) -> list[str]:  # a str is a key of PerWeightPenalty, whose penalties name their weights
            return list(names.values()) if isinstance(weights, str) else [names[name] for name in weights]

        return self.problem.penalty.for_weights(rename)

    @property
    def classes(self) -> Any:
        """Classes of a classifier, None for others."""
        return None if self.problem.estimator_type == "outlier_detector" else self.problem.targets.classes

    def with_weights(self, weights: Any) -> FittedModel:
        """Return the model with new values of some weights and a new state of the learning rate."""
        trainable = self.problem.trainable
        stable = {trainable.original_names[name]: name for name in trainable.trained}
        if not isinstance(weights, Mapping) or not weights.keys() <= stable.keys():
            unknown = (
                sorted(map(str, weights.keys() - stable.keys())) if isinstance(weights, Mapping) else weights
            )
            raise ValueError(f"weights must have names among {sorted(stable)}, not {unknown!r}.")
        arrays = self.stable_weights()
        for name, value in weights.items():
            stable_name = stable[name]
            new = _checked_weight(name, value, self.trained_coef[name])
            constraint = trainable.constraints.get(stable_name)
            if constraint is not None:
                if not constraint.holds(new):
                    raise ValueError(f"Weight {name!r} must be {constraint.text}.")
                new = np.asarray(constraint.free(new), dtype=arrays[stable_name].dtype)
            arrays[stable_name] = new
        state = replace(self.state, weights=arrays, updated=None, states={})
        return FittedModel(self.problem, self.features, state, self.step)

    # Predictions

    def read(self, X: Any) -> Any:
        """Validate X, and convert it to the input of the graph."""
        inputs = validated_matrix(self.problem.trainable, X, self.features)
        return read_samples(self.problem, X, self.features) if inputs is None else inputs

    def predict(self, X: Any) -> Any:
        """Return classes, cluster indices, or values in the shape of y."""
        predicted = self.runner.predict(self.read(X))
        return as_floats_of(X, predicted) if self.problem.targets.classes is None else predicted

    def predict_proba(self, X: Any) -> Any:
        """Return probabilities, as a list if there is one matrix per output."""
        shares = self.runner.predict_proba(self.read(X))
        if isinstance(shares, list):
            return [probabilities_as_floats_of(X, part, True) for part in shares]
        return probabilities_as_floats_of(X, shares, not self.problem.is_multilabel, self._class_axis)

    @property
    def _class_axis(self) -> int:
        """Axis of the classes in probabilities."""
        scores = self.problem.trainable.scores
        if scores is None or scores.positions is None:
            return 1
        return -1 if scores.positions.class_axis is None else scores.positions.class_axis

    def decision_function(self, X: Any) -> np.ndarray:
        """Return decision values, one per sample for two classes."""
        scores = as_floats_of(X, self.runner.decision_function(self.read(X)))
        return flat_decisions(self.problem, scores)

    def predictor(self, method: str) -> Callable[[np.ndarray], Any]:
        """Return a method as a function of arrays without validation."""
        check_predictor(self.problem, method)
        compute = self.runner.predictor(method)
        if method != "decision_function":
            return compute
        return lambda X: flat_decisions(self.problem, compute(X))

    def transform(self, X: Any) -> Any:
        """Transform X, with ONNX if the graph has the transformation."""
        inputs, scores = self.read(X), self.problem.trainable.scores
        if scores is not None and scores.transformed is not None:
            return as_floats_of(X, self.runner.transform(inputs))
        return self.written.transform(*untouched(self.written, X))

    def score_samples(self, X: Any) -> np.ndarray:
        """Return log-likelihoods, or decision values of an outlier detector before its offset."""
        inputs, scores = self.read(X), self.problem.trainable.scores
        if scores is not None and scores.likelihood is not None:
            return as_floats_of(X, self.runner.score_samples(inputs))
        return self.written.score_samples(*untouched(self.written, X))

    def losses(self, X: Any, y: Any, sample_weight: Any) -> np.ndarray:
        """Return the training loss of each sample, times its weight."""
        y = as_array_like(y, "y")
        check_consistent_length(np.empty(count_samples(X)), y)
        inputs, sample_weight = self.read(X), flat_weights(sample_weight)
        y = with_masked_labels(y, sample_weight)
        losses = self.runner.losses(inputs, self.problem.encoder.encode(y, inputs.shape[0]))
        weights = None if sample_weight is None else check_weights(sample_weight, inputs.shape[0])
        if losses.ndim > 1:
            weights = np.ones(1) if weights is None else per_position(weights, np.shape(y))
            return as_floats_of(X, (losses * weights.astype(losses.dtype)).mean(axis=1))
        return as_floats_of(X, losses if weights is None else losses * weights.astype(losses.dtype))

    def score(self, X: Any, y: Any, sample_weight: Any, predict: Callable[[Any], Any]) -> float:
        """Return accuracy, R2, log-likelihood or negative inertia of what ``predict`` returns."""
        return score_of(self, X, y, sample_weight, predict)

    # Export

    @cached_property
    def written(self) -> Any:
        """scikit-learn model with the trained weights."""
        return self.to_sklearn()

    def to_sklearn(self) -> Any:
        """Return a copy of the scikit-learn model with the trained weights."""
        problem = self.problem
        if problem.source is None:
            raise WriteBackError(
                "to_sklearn is for scikit-learn models, and this is an ONNX model: use get_trained_onnx or "
                f"save_onnx_graph.{limit_address('files-to-sklearn')}"
            )
        weights = problem.trainable.coefficients(self.stable_weights())
        return write_weights(problem.source, problem.trainable, weights, problem.targets.ndim)

    def with_zipmap(self, fused: bool | str = True) -> ModelProto:
        """Return the trained classifier with maps from class to probability."""
        scores, classes = self.problem.trainable.scores, self.classes
        if self.problem.source is None:
            raise ValueError(
                "zipmap=True is for scikit-learn models, and an ONNX file keeps its own outputs: set "
                "zipmap=False."
            )
        if scores is None or scores.task != "classification" or not (scores.probabilities and scores.label):
            raise ValueError(
                "zipmap=True requires a classifier with one output that predicts probabilities, which "
                f"{type(self.problem.source).__name__} is not: set zipmap=False."
            )
        return with_zipmap(self.onnx if fused is True else self.other_onnx(fused), np.asarray(classes))

    def graphs(self) -> dict[str, ModelProto]:
        """Return the trained model and the graphs of its training step."""
        step = self.step
        if step is None:
            step = self.runner.runtime.new_step(self.problem.task(False))
        return {"trained": self.exported, **step.graphs()}


def _checked_weight(name: str, value: Any, known: np.ndarray) -> np.ndarray:
    """Check a new value of a weight, and return it as a new array of the weight's type."""
    refuse_masked(value, f"Weight {name!r}")
    with np.errstate(over="ignore"):
        array = np.array(value, dtype=known.dtype)
    if array.shape != known.shape:
        raise ValueError(f"Weight {name!r} has shape {known.shape}, not {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"Weight {name!r} must be finite as {array.dtype}.")
    return array
