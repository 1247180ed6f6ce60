"""The base class of the estimators: everything but the training step."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from ..graphs import runtime_errors
from ..training.positions import Interrupted
from ..training.stream_progress import close_stream
from .callbacks import CallbackSupportMixin, EstimatorView, with_callbacks
from .export import ExportMethods
from .fitted_model import FittedModel
from .fitting import Trainer
from .prediction import PredictionMethods
from .resuming import find_resumption
from .samples import Samples
from .transformation import TransformerMethods

__all__ = ["BaseOrtGradientEstimator"]


class BaseOrtGradientEstimator(CallbackSupportMixin, ExportMethods, PredictionMethods, TransformerMethods):
    """Base class of the estimators; a subclass names its training step."""

    def fit(
        self,
        X,
        y=None,
        sample_weight=None,
        X_val=None,
        y_val=None,
        sample_weight_val=None,
        classes=None,
        resume_from=None,
    ):
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
        classes : array-like of shape (n_classes,), or sequence of one per output, default=None
            All classes of a classifier, in any order, where y may lack some of them; those of y by default.
            The first fit of an estimator that is not fitted sees a copy of the first row for each class that
            y lacks. Those of a fitted model are known: passing others is an error.
        resume_from : str, os.PathLike or estimator, default=None
            Training to resume: a file or folder that :func:`ortlearn.saving.save` has written of an estimator
            in training, the folder of a :class:`~ortlearn.callbacks.ModelCheckpoint`, or an estimator that
            was interrupted. Parameters, model and samples must be those that it began with (``max_iter``,
            ``tol`` and a few more may change); the result is bit for bit that of a training without
            interruption.

        Returns
        -------
        OrtGradientOptimizer or OrtGradientForwardBackwardOptimizer
            This object, trained.

        Raises
        ------
        KeyboardInterrupt
            At a Ctrl-C: the object has what it has reached, if that is anything, predicts, and
            ``fit(..., resume_from=self)`` resumes its training.
        ValueError
            If an argument or a parameter is invalid (also PluginError, DeviceError,
            ConversionError, GradientError). The object stays as it was.
        ConvergenceError
            If the loss stops being finite and ``exc`` is True. The object stays as it was.
        MissingRuntimeError
            If no suitable onnxruntime is installed.
        """
        samples = Samples(X, y, sample_weight)
        held_out = _validation_samples(X_val, y_val, sample_weight_val)
        resumption = None if resume_from is None else find_resumption(resume_from)
        close_stream(self)
        return self._commit(lambda trainer: trainer.fit(samples, held_out, classes, resumption))

    def partial_fit(
        self,
        X,
        y=None,
        classes=None,
        sample_weight=None,
        total_weight=None,
        X_val=None,
        y_val=None,
        sample_weight_val=None,
    ):
        """Train one epoch on some rows, from the weights and the state of the last call.

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
        total_weight : float, default=None
            Sum of the weights of all rows of the stream, to which the penalty of the model itself is
            relative (``alpha`` of Ridge, ``C``); that of the rows that came so far by default, every one as
            often as it came.
        X_val, y_val : array-like, default=None
            Rows on which loss and score are measured after this call. With ``early_stopping``, the same ones
            each time: once ``n_iter_no_change`` calls in a row made nothing better by ``tol``, the weights
            are those of the best call, and ``stopped_`` is True. A call after that begins a new window.
        sample_weight_val : array-like of shape (n_validation_samples,), default=None
            Weights of these rows.

        Returns
        -------
        OrtGradientOptimizer or OrtGradientForwardBackwardOptimizer
            This object, trained.
        """
        samples = Samples(X, y, sample_weight)
        if total_weight is not None and not 0 < total_weight < math.inf:
            raise ValueError(f"total_weight={total_weight!r} must be a number above 0.")
        held_out = _validation_samples(X_val, y_val, sample_weight_val)
        return self._commit(lambda trainer: trainer.partial_fit(samples, classes, total_weight, held_out))

    def _commit(self, train: Callable[[Trainer], FittedModel]):
        """Train, and take the fitted model over once everything succeeded: an error changes nothing."""
        last = self._fitted if isinstance(self._fitted, FittedModel) else None
        twin = copy.copy(self)  # what callbacks see: they may set attributes, and fail
        with runtime_errors():
            parameters = self.get_params(deep=False)
            trainer = Trainer(self._configuration(), last, EstimatorView(twin), self, parameters)
            try:
                twin._fitted = with_callbacks(lambda twin: train(trainer))(twin)
            except Interrupted as interrupt:
                if interrupt.model is not None:
                    twin._fitted = interrupt.model
                    self.__dict__.update(vars(twin))
                raise
        self.__dict__.update(vars(twin))
        return self


def _validation_samples(X: Any, y: Any, sample_weight: Any) -> Samples | None:
    """Return the samples to validate on, None without any."""
    if X is None and (y is not None or sample_weight is not None):
        raise ValueError("X_val is missing: y_val and sample_weight_val belong to its rows.")
    return None if X is None else Samples(X, y, sample_weight)
