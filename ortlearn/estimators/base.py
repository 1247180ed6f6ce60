"""What both estimators share: everything but the training step."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import ClassVar

import numpy as np
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import check_random_state, get_tags

from .. import conversion
from ..differentiation import require_gradients
from ..exceptions import PluginError
from ..graphs import initializer_arrays
from ..learning_rates import BaseLearningRate, resolve_learning_rate
from ..training import Data, FullBatchStep, LoopSettings, hoist, parse_device, run_training
from ..training.base_step import BaseStep
from ..training.hoisting import needs_hoisting
from ..training.step_graphs import OBJECTIVE, objective_graph
from .inference import Inference
from .parameters import Parameters
from .prediction import PredictionMixin
from .problem import Problem
from .rows import RowsMixin
from .shortcuts import ShortcutsMixin

__all__ = ["BaseOrtGradientEstimator"]

NOT_PICKLED = ("_step", "_inference")


class BaseOrtGradientEstimator(RowsMixin, ShortcutsMixin, PredictionMixin, MetaEstimatorMixin, Parameters):
    """Base class of the estimators; a subclass names its training step."""

    _step_class: ClassVar[type[BaseStep]]
    train_losses_: list[float]
    validation_losses_: list[float]
    n_iter_: int
    _inference: Inference | None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "onnx_")

    def __getstate__(self):
        state = super().__getstate__()
        return {key: value for key, value in state.items() if key not in NOT_PICKLED}

    def fit(self, X, y=None, sample_weight=None, X_val=None, y_val=None):
        """Train.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features), or dict
            Features: numbers, or columns of several kinds for a pipeline that encodes them; a dictionary of
            arrays for an ONNX model of several inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Labels: several columns for several outputs, values of the shape that ``transform`` gives for
            a transformer, 1 and -1 for an outlier detector, none for a mixture or KMeans.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, not negative.
        X_val, y_val : array-like, default=None
            Rows on which the loss is measured every ``validation_every`` epochs.

        Returns
        -------
        self

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
        return self._commit(lambda twin: twin._fit(X, y, sample_weight, X_val, y_val))

    def partial_fit(self, X, y=None, classes=None, sample_weight=None):
        """Train one epoch on some rows, going on from the weights and the state of the last call.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Labels: several columns for several outputs, values of the shape that ``transform`` gives for
            a transformer, 1 and -1 for an outlier detector, none for a mixture or KMeans.
        classes : array-like of shape (n_classes,), default=None
            All classes that will come, for the first call on an unfitted classifier.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self
        """
        return self._commit(lambda twin: twin._partial_fit(X, y, classes, sample_weight))

    def _commit(self, train):
        """Train a twin and take its attributes over once it succeeds, so that an error changes nothing."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        train(twin)
        self.__dict__ = twin.__dict__
        return self

    def _fit(self, X, y, sample_weight, X_val, y_val):
        self._validate_params()
        random_state = check_random_state(self.random_state)
        problem, data = self._pose(X, y, sample_weight, random_state)
        validation = None
        if (X_val is None) != (y_val is None) and problem.needs_labels:
            raise ValueError("X_val and y_val go together: pass both or none.")
        if X_val is not None:
            validation = self._data(problem, self._check_rows(problem, X_val, y_val), y_val, None)
        weights = self._starting_weights(problem, random_state)
        data = self._make_step(problem, data)
        self._epoch, self._states = 0, {}
        self._train(problem, data, weights, random_state, self.max_iter, validation)
        self._partial_random_state = copy.deepcopy(random_state)

    def _partial_fit(self, X, y, classes, sample_weight):
        self._validate_params()
        _check_goes_epoch_by_epoch(resolve_learning_rate(self.learning_rate))
        random_state = check_random_state(self.random_state)
        begun = hasattr(self, "onnx_")
        if begun:
            problem = self._problem.with_rate(resolve_learning_rate(self.learning_rate))
            data = self._data(problem, self._check_rows(problem, X, y), y, sample_weight)
            known = problem.classes
            if classes is not None and known is not None and not _same_classes(classes, known):
                raise ValueError(f"classes={classes!r} are not those of the first call: {known}.")
            weights = initializer_arrays(self._trained, problem.trainable.trained)
        else:
            problem, data = self._pose(X, y, sample_weight, random_state, classes)
            weights = self._starting_weights(problem, random_state)
            self._epoch, self._states, self._partial_random_state = 0, {}, random_state
        order = getattr(self, "_partial_random_state", random_state)
        self._partial_random_state = order = copy.deepcopy(order)
        data = self._make_step(problem, data)
        losses = (list(self.train_losses_), list(self.validation_losses_)) if begun else ([], [])
        done = self.n_iter_ if begun else 0
        self._train(problem, data, weights, order, 1, None)
        self.train_losses_ = losses[0] + self.train_losses_
        self.validation_losses_ = losses[1] + self.validation_losses_
        self.n_iter_ += done

    def _make_step(self, problem: Problem, data: Data) -> Data:
        """Build the training step, and return the rows as it takes them."""
        task, device = problem.task(data.sample_weight is not None), self._device()
        if self.hoist or needs_hoisting(task):
            task, data = hoist(task, data, device, self.n_jobs)
        names = problem.trainable.original_names
        if task.loss is None or not task.loss.in_python:
            require_gradients(objective_graph(task), OBJECTIVE, task.weights, task.origin, names)
        step_class = FullBatchStep if task.learning_rate.full_batch else self._step_class
        self._step = step_class(task, device, self.n_jobs)
        return data

    def _device(self):
        return parse_device(self.device)

    def _starting_weights(self, problem: Problem, random_state) -> dict[str, np.ndarray]:
        trainable = problem.trainable
        own = trainable.initial_weights()
        if self.warm_start and hasattr(self, "_trained"):
            last = initializer_arrays(self._trained, trainable.trained)
            if {k: v.shape for k, v in last.items()} != {k: v.shape for k, v in own.items()}:
                raise ValueError(
                    "warm_start=True goes on from the last solution, whose weights have other shapes than "
                    "the model for these data: set warm_start=False, or fit a clone."
                )
            return {name: array.copy() for name, array in last.items()}
        if self.warm_start:
            return own
        return conversion.draw_weights(own, trainable.weights, random_state)

    def _train(self, problem: Problem, data: Data, weights, random_state, max_iter, validation) -> None:
        every = self.validation_every
        settings = LoopSettings(
            max_iter=max_iter,
            batch_size=self.batch_size,
            shuffle=self.shuffle,
            first_epoch=self._epoch,
            past_losses=self.train_losses_[: self._epoch] if self._epoch else (),
            validation_every=max(1, round(every * max_iter)) if isinstance(every, float) else every,
            exc=self.exc,
            verbose=self.verbose,
            description=type(self).__name__,
        )
        validate = None
        if validation is not None:
            rows = Inference(problem, problem.trainable.model, self._device(), self.n_jobs)

            def validate(current):
                return rows.mean_loss(validation.X, validation.y, current)

        result = run_training(
            self._step, data, weights, settings, random_state, states=self._states, validate=validate
        )
        self._step.release()
        self._epoch += result.n_iter
        self._states = result.states
        self._set_fitted(problem, result)

    def _set_fitted(self, problem: Problem, result) -> None:
        trainable = problem.trainable
        self._problem = replace(problem, source=None)
        self._kind = get_tags(self).estimator_type
        self._trained = trainable.with_stable_weights(result.weights)
        self.onnx_ = trainable.with_weights(result.weights)
        self.trained_coef_ = trainable.coefficients(result.weights)
        self.weights_to_train_ = trainable.origins()
        self.train_losses_ = result.train_losses
        self.validation_losses_ = result.validation_losses
        self.n_iter_ = result.n_iter
        self.loss_, self.penalty_, self.learning_rate_ = problem.loss, problem.penalty, problem.learning_rate
        self.__dict__.pop("classes_", None)
        if problem.classes is not None and self._kind != "outlier_detector":
            self.classes_ = problem.classes
        self._inference = Inference(problem, self._trained, self._device(), self.n_jobs)


def _same_classes(classes, known) -> bool:
    if isinstance(known, list):
        return len(classes) == len(known) and all(map(_same_classes, classes, known))
    return np.array_equal(np.unique(classes), known)


def _check_goes_epoch_by_epoch(learning_rate: BaseLearningRate) -> None:
    if learning_rate.full_batch:
        raise PluginError(
            f"{type(learning_rate).__name__} trains on all rows at once and keeps no state: use fit, or "
            "another learning rate for partial_fit."
        )
