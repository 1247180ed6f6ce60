"""The start of a training: converted model, validated samples and starting weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d

from ..data.samples import Data
from ..exceptions import UnfittedStartWarning, warn_user
from ..inference.fidelity import faithful
from ..models.registry import unlabelled_label
from ..onnx_files.loading import is_onnx_source
from ..penalties.anchored import AnchoredPenalty
from ..preprocessing.columns import count_samples
from ..preprocessing.estimator_checks import check_feature_names
from ..preprocessing.initial_fit import is_fitted
from ..problem.automatic import automatic_batch_size, warn_of_ignored_parameters, warn_of_seen_parts
from ..problem.boosted_stages import is_grown
from ..problem.configuration import Configuration
from ..problem.cross_fitting import forget_outputs
from ..problem.input_validation import InputFeatures, as_column, matrix_of, read_before_fit, read_samples
from ..problem.label_scales import label_moments, warn_of_scales
from ..problem.objective_weights import data_of, read_data
from ..problem.problem import Problem
from ..problem.samples import Samples, check_lengths
from ..targets.encoding import check_numbers, single_class
from ..targets.given_classes import PartialFitClasses
from ..targets.label_errors import check_inputs_of_loss
from ..trainable.initial_weights import draw_weights
from ..training.graphs.first_layers import first_layers
from ..training.graphs.rescaling import last_weights
from ..training.graphs.task import TrainingTask
from ..training.state import TrainingState
from .file_checks import check_file, check_shape_of_scores
from .fitted_model import FittedModel
from .leaves.unseen_members import with_unseen_members
from .sources.counts import SourceTotals
from .sources.samples import OneChunk

__all__ = ["Start", "new_start", "labelled", "next_start", "with_anchor"]

UNFITTED = (
    "warm_start=True, but {} is not fitted: it is fitted on these samples first, and training starts from "
    "its weights. Searches and cross-validation clone estimators, which removes fitted weights: wrap a "
    "fitted model in sklearn.frozen.FrozenEstimator to keep them. If it was fitted on all samples, "
    "including the validation folds, cross-validation scores are too optimistic."
)


@dataclass(frozen=True)
class Start:
    """The start of a training."""

    problem: Problem
    features: InputFeatures
    data: Data
    state: TrainingState  # with the starting weights
    from_model: bool = False  # whether all starting weights are those of the model, none random
    # Random weights for standardised features, if the rate is automatic.
    fresh: dict[str, np.ndarray] | None = None
    source: Any = None  # all samples if ``data`` has the first ones, or an object with the same methods

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """Starting weights."""
        return self.state.weights

    @property
    def samples(self) -> Any:
        """All samples, as a source."""
        return OneChunk(self.problem, self.data) if self.source is None else self.source

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.samples.n_samples

    def label_moments(self) -> tuple[np.ndarray, float]:
        """Return mean and standard deviation of scores that predict all labels; 0 and 1 if none do."""
        measured = self.samples.label_moments
        return label_moments(self.problem, self.data) if measured is None else measured

    def others(self, task: TrainingTask) -> dict[str, dict[str, np.ndarray]]:
        """Return alternative starting weights for standardised features."""
        others = {} if self.fresh is None else {"fresh": self._scaled_to_labels(self.fresh, task)}
        return {**others, "restandardised": self.weights} if first_layers(task) else others

    def _scaled_to_labels(self, fresh: dict[str, np.ndarray], task: TrainingTask) -> dict[str, np.ndarray]:
        """Scale the last layer so that predictions have the mean and the scale of the labels."""
        if self.problem.link_of_labels is None:
            return fresh
        scaled, (mean, spread), trainable = dict(fresh), self.label_moments(), self.problem.trainable
        for name in last_weights(task):
            array = fresh[name]
            if not trainable.parameters[name].drawn or name in trainable.constraints:
                continue
            if not task.graph.intercepts[name]:
                scaled[name] = (array * spread).astype(array.dtype)
            elif array.size == mean.size:
                scaled[name] = mean.reshape(array.shape).astype(array.dtype)
        return scaled


def new_start(
    configuration: Configuration,
    samples: Samples,
    random_state: np.random.RandomState,
    seed: int,
    last: FittedModel | None = None,
    expected: PartialFitClasses | None = None,
    stream: bool = False,
    total_weight: float | None = None,
    whole: SourceTotals | None = None,
    solves: bool = False,
    compares: bool = True,
) -> Start:
    """Validate the samples, and convert the model, after fitting it if it is not fitted.

    A warm start continues ``last``. With ``stream``, the samples are a batch of ``partial_fit``. ``whole``
    has the counts of a source of which they are the first; with ``solves``, a solver may take all at once.
    ``compares`` says whether the predictions of the graph are compared with those of the estimator.
    """
    if last is not None and configuration.conversion.dtype == "auto":
        configuration = configuration.in_type(last.problem.dtype)
    classes = None if expected is None else expected.checked_classes(samples.y)
    samples = replace(samples, X=as_column(samples.X, configuration.source))
    X, y, name = samples.X, samples.y, configuration.name
    check_lengths(X, y)
    _check_order_of_features(configuration, X, last)
    values = features = None
    is_onnx = is_onnx_source(configuration.source)
    if not is_onnx:
        features = InputFeatures.of(X, name)
        values = _check_before_fit(configuration, samples, features, classes)
        samples = samples.with_checked_weights()
        if configuration.warm_start and last is None and not is_fitted(configuration.source):
            warn_user(UNFITTED.format(type(configuration.source).__name__), UnfittedStartWarning, once=True)
    occurring = whole.labels if is_onnx and whole is not None else None
    n_given = count_samples(X) if whole is None else whole.n_rows
    configuration = configuration.in_batches(automatic_batch_size(configuration, n_given))
    problem = Problem.of(configuration, X, y, samples.sample_weight, random_state, classes, occurring)
    samples, values = labelled(problem, samples, values)
    X, y = samples.X, samples.y
    _warn_of_one_column(configuration, problem, y)
    own, names = problem.trainable.own_loss, InputFeatures.of(X, name).names
    if own is not None and names is not None:
        inputs = problem.trainable.entry.schema.types()
        check_inputs_of_loss(own, inputs, names.tolist(), samples.sample_weight is not None)
    features = features or InputFeatures.of(matrix_of(problem, X), name)
    values = read_samples(problem, X, features, values)
    samples = samples.with_checked_weights()
    if not is_grown(configuration, last):
        warn_of_ignored_parameters(configuration, problem.source)
        if problem.trainable.replaced is None:
            warn_of_seen_parts(configuration, problem.source)
    n_samples = None if stream or whole is not None else values.shape[0]
    if solves and whole is not None and not stream:
        n_samples = whole.n_rows
    known = (y, samples.sample_weight, None) if whole is None else (whole.labels, whole.weights, whole.total)
    labels, weights_of_labels, total = known

    def with_objective(problem: Problem, values: Any) -> tuple[Problem, Data]:
        given = (configuration, labels, weights_of_labels, n_samples, total_weight, None if stream else total)
        problem = problem.with_objective_of(*given)
        data = data_of(problem, values, samples)
        is_part = whole is not None and whole.n_rows != len(data)  # other chunks are read without members
        return problem, data if is_part else with_unseen_members(problem, samples, data)

    problem, data = with_objective(problem, values)
    if problem.source is None and problem.trainable.scores is not None:
        check_file(problem, data, configuration.runtime)
    if compares:
        precise, values = faithful(configuration, problem, samples, features, values)
        if precise is not problem:
            problem, data = with_objective(precise, values)
    if problem.source is not None:
        forget_outputs(problem.source)
    warn_of_scales(problem, data)
    if expected is not None:
        expected.check_known(problem.targets.classes, "the model")
    is_doubtful = bool(problem.doubt) and configuration.is_default and not stream and whole is None
    own_fit = configuration.is_trained or is_doubtful
    weights = _starting_weights(configuration, problem, random_state, last, own_fit)
    continues = _starts_from_model(configuration, problem)
    draws = configuration.updates.learning_rate is None and not (stream and continues)
    fresh = _fresh_weights(problem, random_state) if draws else None
    seen = problem.total_weight(labels, weights_of_labels, total)
    state = TrainingState(weights, seed=seed, total_weight=seen, penalty_weight=seen, anchor=weights)
    return Start(problem, features, data, state, not stream and (own_fit or continues), fresh)


def _starts_from_model(configuration: Configuration, problem: Problem) -> bool:
    """Return whether training begins with the weights of the model; those of adapters may be random."""
    trainable = problem.trainable
    drawn = {name for name in trainable.trained if trainable.parameters[name].drawn}
    return configuration.warm_start or drawn <= {adapter.a for adapter in trainable.adapters}


def next_start(
    configuration: Configuration,
    samples: Samples,
    last: FittedModel,
    total_weight: float | None,
    whole: SourceTotals | None = None,
) -> Start:
    """Return the start of a later ``partial_fit``; ``whole`` has the counts of a source, if any."""
    check_lengths(samples.X, samples.y)
    samples, _ = labelled(last.problem, samples)
    samples = samples.with_checked_weights()
    y, weights, known = samples.y, samples.sample_weight, None
    if whole is not None:
        y, weights, known = whole.labels, whole.weights, whole.total
    state = last.state.continued.with_more(last.problem.total_weight(y, weights, known))
    total = state.penalty_weight if total_weight is None else total_weight
    configuration = configuration.in_batches(last.problem.updates.batch_size)
    problem = last.problem.reconfigured(configuration, y, weights, total)
    data = read_data(problem, samples, last.features)
    if problem.trainable.scores is not None and None in problem.trainable.scores.shape[1:]:
        check_shape_of_scores(problem, data, configuration.runtime)
    return Start(problem, last.features, data, state)


def labelled(problem: Problem, samples: Samples, values: Any = None) -> tuple[Samples, Any]:
    """Return the samples without unlabelled ones, for semi-supervised models."""
    label = None if problem.source is None else unlabelled_label(problem.source)
    if label is None or samples.y is None:
        return samples, values
    kept = np.flatnonzero(np.asarray(samples.y) != label)
    if len(kept) == np.shape(samples.y)[0]:
        return samples, values
    return samples.take(kept), None if values is None else values[kept]


def _check_order_of_features(configuration: Configuration, X: Any, last: FittedModel | None) -> None:
    """Check that names and order of columns are the same as in an earlier fit."""
    source = configuration.source
    if not is_onnx_source(source) and is_fitted(source):
        check_feature_names(source, X)
    elif last is not None and not last.problem.trainable.entry.selects_by_name:
        last.features.check_order(X)


def _check_before_fit(
    configuration: Configuration, samples: Samples, features: InputFeatures, classes: Any
) -> Any:
    """Check samples before a scikit-learn model is fitted on them; return numeric ones as a matrix."""
    y, source, dtype = samples.y, configuration.source, configuration.conversion.float_dtype
    values = read_before_fit(samples.X, features, source, dtype)
    if y is not None and configuration.estimator_type == "regressor":
        check_numbers(y)
    if classes is None and y is not None and not is_fitted(source):
        label = single_class(y)
        if label is not None and configuration.estimator_type == "classifier":
            raise ValueError(
                f"A classifier needs samples of at least 2 classes, y has 1 class: [{label!r}]. If later "
                "calls have other classes, pass all of them: fit(X, y, classes=...), or partial_fit."
            )
    return values


def _warn_of_one_column(configuration: Configuration, problem: Problem, y: Any) -> None:
    """Warn, as scikit-learn does, of y with a single column for a regressor with one output."""
    scores = problem.trainable.scores
    if scores is None or scores.task != "regression" or problem.source is None:
        return
    if problem.targets.ndim == 2 and scores.n_outputs == 1 and not configuration.multi_output:
        column_or_1d(y, warn=True)


def _starting_weights(
    configuration: Configuration,
    problem: Problem,
    random_state: np.random.RandomState,
    last: FittedModel | None,
    own_fit: bool,
) -> dict[str, np.ndarray]:
    """Return random weights, or for a warm start those of the last solution or of the model.

    With ``own_fit``, those of the model are returned even without a warm start.
    """
    trainable = problem.trainable
    own = trainable.initial_weights()
    if own_fit and not configuration.warm_start:
        return own
    if not configuration.warm_start:
        return draw_weights(own, trainable.parameters, random_state, trainable.constraints)
    if last is None:  # weights of adapters are random, since gradients are zero for zero weights
        adapters = {adapter.a: own[adapter.a] for adapter in trainable.adapters}
        return own | draw_weights(adapters, trainable.parameters, random_state)
    weights = last.state.next_weights
    if {k: v.shape for k, v in weights.items()} != {k: v.shape for k, v in own.items()}:
        raise ValueError(
            "warm_start=True continues the last solution, whose weights have other shapes than the model for "
            "these data: set warm_start=False, or fit a clone. If y lacks a class that it had before, pass "
            "all classes: fit(X, y, classes=...)."
        )
    return weights


def _fresh_weights(problem: Problem, random_state: np.random.RandomState) -> dict[str, np.ndarray] | None:
    """Return random weights for standardised features, zeros for linear models; None if none is random."""
    trainable, weights = problem.trainable, problem.trainable.parameters
    if not any(weights[name].drawn for name in trainable.trained):
        return None
    drawn = draw_weights(trainable.initial_weights(), weights, random_state, trainable.constraints)
    if problem.flexible:
        return drawn
    zeroed = {name for name in drawn if weights[name].drawn and name not in trainable.constraints}
    return {name: np.zeros_like(array) if name in zeroed else array for name, array in drawn.items()}


def with_anchor(task: TrainingTask, start: Start) -> TrainingTask:
    """Return the task with starting weights for penalties with ``toward="start"``."""
    penalty, anchor = task.objective.penalty, start.state.anchor
    if anchor is None or all(part.toward == "zero" for part in penalty.parts()):
        return task
    return task.changed(penalty=AnchoredPenalty(penalty, anchor))
