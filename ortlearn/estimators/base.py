"""What both estimators share: everything but the training step."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.multiclass import check_classification_targets

from .. import conversion
from ..differentiation import require_gradients
from ..graphs import runtime_errors
from ..learning_rates import resolve_learning_rate
from ..preprocessing.columns import count_rows
from ..training import Data, LoopSettings, TrainingResult, hoist, parse_device, run_training
from ..training.averaging import begin_later
from ..training.base_step import BaseStep
from ..training.hoisting import needs_hoisting
from ..training.step_graphs import OBJECTIVE, objective_graph
from .announced import announced
from .callbacks import DURING_FIT, CallbackSupportMixin, FitTask, begin_task, with_callbacks
from .inference import Inference
from .parameters import Parameters
from .prediction import PredictionMixin
from .problem import Problem
from .results import ResultsMixin, draw_seed
from .rows import RowsMixin, check_lengths
from .settings import check_epoch_by_epoch, check_stream, loop_settings
from .shortcuts import ShortcutsMixin
from .validation import Rows, Validation, check_weights, split_off

__all__ = ["BaseOrtGradientEstimator"]

NOT_PICKLED = ("_step", "_inference", *DURING_FIT)


class BaseOrtGradientEstimator(
    CallbackSupportMixin,
    RowsMixin,
    ResultsMixin,
    ShortcutsMixin,
    PredictionMixin,
    MetaEstimatorMixin,
    Parameters,
):
    """Base class of the estimators; a subclass names its training step."""

    _step_class: ClassVar[type[BaseStep]]
    _inference: Inference | None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "onnx_")

    def __getstate__(self):
        state = super().__getstate__()
        return {key: value for key, value in state.items() if key not in NOT_PICKLED}

    def fit(self, X, y=None, sample_weight=None, X_val=None, y_val=None, sample_weight_val=None):
        """Train.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features), or dict
            Features: numbers, or columns of several kinds for a pipeline that encodes them; a dictionary of
            arrays for an ONNX model of several inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Labels: several columns for several outputs, values of the shape that ``transform`` gives for
            a transformer, 1 and -1 for an outlier detector, none for a mixture or KMeans.
        sample_weight : array-like of shape (n_samples,) or (n_samples, 1), default=None
            Weights of the rows, not negative.
        X_val, y_val : array-like, default=None
            Rows on which loss and score are measured every ``validation_every`` epochs; without them,
            ``early_stopping`` splits some off.
        sample_weight_val : array-like of shape (n_validation_samples,), default=None
            Weights of these rows.

        Returns
        -------
        OrtGradientOptimizer or OrtGradientForwardBackwardOptimizer
            This object, trained.

        Raises
        ------
        ValueError
            If an argument or a parameter makes no sense (also PluginError, DeviceError,
            ConversionError, GradientError). The object stays as it was.
        ConvergenceError
            If the loss stops being finite and ``exc`` is True. The object stays as it was.
        MissingRuntimeError
            If no suitable onnxruntime is installed.
        """
        held_out = self._held_out(X_val, y_val, sample_weight_val)
        return self._commit(lambda twin: twin._fit(Rows(X, y, sample_weight), held_out))

    def partial_fit(self, X, y=None, classes=None, sample_weight=None):
        """Train one epoch on some rows, going on from the weights and the state of the last call.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Labels: several columns for several outputs, values of the shape that ``transform`` gives for
            a transformer, 1 and -1 for an outlier detector, none for a mixture or KMeans.
        classes : array-like of shape (n_classes,), or sequence of one per output, default=None
            All classes that will come, in any order, for the first call on an unfitted classifier. Those
            of a fitted model or of a later call are known: passing others is an error.
        sample_weight : array-like of shape (n_samples,) or (n_samples, 1), default=None
            Weights of the rows.

        Returns
        -------
        OrtGradientOptimizer or OrtGradientForwardBackwardOptimizer
            This object, trained.
        """
        return self._commit(lambda twin: twin._partial_fit(X, y, classes, sample_weight))

    def _commit(self, train):
        """Train a twin and take its attributes over once it succeeds, so that an error changes nothing."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        with runtime_errors():
            with_callbacks(train)(twin)
        self.__dict__ = twin.__dict__
        return self

    def _fit(self, rows: Rows, held_out: Rows | None):
        self._validate_params()
        check_epoch_by_epoch(self, resolve_learning_rate(self.learning_rate))
        random_state = check_random_state(self.random_state)
        seed = draw_seed(random_state)
        if self.early_stopping and held_out is None:
            rows, held_out = self._split_off(rows, random_state)
        task = begin_task(self, "fit", rows, self.max_iter)
        problem, data = self._pose(rows.X, rows.y, rows.sample_weight, random_state)
        self._source = problem.source
        validation = None if held_out is None else self._validation(problem, held_out)
        weights = self._starting_weights(problem, random_state)
        self._begin_anew(seed)
        data = self._make_step(problem, data)
        settings = loop_settings(self, self.max_iter, 0, ())
        self._train(problem, data, weights, settings, validation, task)

    def _partial_fit(self, X, y, classes, sample_weight):
        self._validate_params()
        check_stream(self, resolve_learning_rate(self.learning_rate), classes)
        random_state = check_random_state(self.random_state)
        rows = Rows(X, y, sample_weight)
        X, y, sample_weight = rows.X, rows.y, rows.sample_weight
        coming = announced(classes, y)
        task = begin_task(self, "partial_fit", rows, 1)
        if hasattr(self, "onnx_"):
            problem = self._problem.renewed(self, y)
            data = self._data(problem, self._check_rows(problem, X, y), y, sample_weight)
            if coming is not None:
                coming.check_known(problem.classes, "the first call")
            weights = self._last_weights()
        else:
            seed = draw_seed(random_state)
            if coming is not None:
                coming.check_labels(y)
            problem, data = self._pose(
                X, y, sample_weight, random_state, None if coming is None else coming.classes
            )
            if coming is not None:
                coming.check_known(problem.classes, "the model")
            self._source = problem.source
            weights = self._starting_weights(problem, random_state)
            self._begin_anew(seed)
        data = self._make_step(problem, data)
        past = [record["loss"] for record in self.history_]
        settings = loop_settings(self, 1, self._epoch, past, stream=True)
        self._train(problem, data, weights, settings, None, task)

    def _held_out(self, X_val, y_val, sample_weight_val) -> Rows | None:
        """Return the rows to validate on that were given."""
        if X_val is None and (y_val is not None or sample_weight_val is not None):
            raise ValueError("X_val is missing: y_val and sample_weight_val belong to its rows.")
        return None if X_val is None else Rows(X_val, y_val, sample_weight_val)

    def _split_off(self, rows: Rows, random_state) -> tuple[Rows, Rows]:
        """Split off rows to validate on, with the classes of one column of labels in their shares."""
        check_lengths(rows.X, rows.y)
        if rows.sample_weight is not None:
            rows = replace(rows, sample_weight=check_weights(rows.sample_weight, count_rows(rows.X)))
        one_label = get_tags(self).estimator_type == "classifier" and np.shape(rows.y)[1:] in ((), (1,))
        if one_label and rows.y is not None:
            check_classification_targets(rows.y)
        return split_off(rows, self.validation_fraction, random_state, rows.y is not None and one_label)

    def _validation(self, problem: Problem, rows: Rows) -> Validation:
        if problem.needs_labels and rows.y is None:
            raise ValueError("X_val and y_val go together: pass both or none.")
        if rows.sample_weight is not None:
            rows = replace(rows, sample_weight=check_weights(rows.sample_weight, count_rows(rows.X)))
        read = self._check_rows(problem, rows.X, rows.y)
        return Validation(self, problem, rows, self._data(problem, read, rows.y, rows.sample_weight))

    def _make_step(self, problem: Problem, data: Data) -> Data:
        """Build the training step, and return the rows as it takes them."""
        task = problem.task(data.sample_weight is not None, len(data), self._rows_seen)
        self._states = begin_later(self._states, task.learning_rate)
        device = self._device()
        if self.hoist or needs_hoisting(task):
            task, data = hoist(task, data, device, self.n_jobs)
        names = problem.trainable.original_names
        if task.loss is None or not task.loss.in_python:
            score = None if task.loss is None else task.output
            require_gradients(objective_graph(task), OBJECTIVE, task.weights, task.origin, names, score)
        self._step = self._new_step(task)
        return data

    def _device(self):
        return parse_device(self.device)

    def _starting_weights(self, problem: Problem, random_state) -> dict[str, np.ndarray]:
        trainable = problem.trainable
        own = trainable.initial_weights()
        if self.warm_start and hasattr(self, "_trained"):
            last = self._last_weights(trainable.trained)
            if {k: v.shape for k, v in last.items()} != {k: v.shape for k, v in own.items()}:
                raise ValueError(
                    "warm_start=True goes on from the last solution, whose weights have other shapes than "
                    "the model for these data: set warm_start=False, or fit a clone."
                )
            return last
        if self.warm_start:
            return own
        return conversion.draw_weights(own, trainable.weights, random_state, trainable.constraints)

    def _train(
        self,
        problem: Problem,
        data: Data,
        weights: dict[str, np.ndarray],
        settings: LoopSettings,
        validation: Validation | None,
        task: FitTask | None,
    ) -> None:
        def take_over(trained: BaseOrtGradientEstimator, result: TrainingResult) -> None:
            trained._take_over(problem, result, len(data))

        self._forget("classes_", "best_epoch_")
        self.__dict__.update(self._fitted_kind(problem))
        result = run_training(
            self._step,
            data,
            weights,
            settings,
            self._seed,
            states=self._states,
            validate=None if validation is None else validation.measure,
            observer=None if task is None else task.observer(take_over),
        )
        self._step.release()
        take_over(self, result)
        if task is not None:
            task.end()
