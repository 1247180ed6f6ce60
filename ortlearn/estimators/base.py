"""Base class of the estimators: ``fit``, ``partial_fit`` and ``fit_stream``."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..exceptions import warn_user
from ..fitting.callback_support import CallbackMethods, with_callbacks
from .export import ExportMethods
from .fitted_estimator import is_final
from .prediction import PredictionMethods
from .transformation import TransformerMethods

if TYPE_CHECKING:
    from typing import Self

    from ..fitting.fitted_model import FittedModel
    from ..fitting.trainer import Trainer
    from ..problem.samples import Samples

__all__ = ["BaseOrtGradientEstimator"]


def _validation_columns(source: Any, own: Any, of_training: Any, features: Any) -> Any:
    """Return labels, weights and features of a validation source; by default the training columns."""
    if own[0] is None and own[1] is None and isinstance(of_training[0], str | list):
        return (*of_training, features)
    named = isinstance(own[0], str) or hasattr(source, "columns")
    return (*own, features if named else None)


def _reject_source(X: Any) -> None:
    """Raise an error if X is a data source, which ``fit`` does not support."""
    from ..data.opening import is_source

    if is_source(X):
        raise ValueError(f"X is a {type(X).__name__}, which is not held in memory: use fit_stream.")


class BaseOrtGradientEstimator(CallbackMethods, ExportMethods, PredictionMethods, TransformerMethods):
    """Base class of the estimators; a subclass sets its training step."""

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        classes: Any = None,
        resume_from: Any = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features), or dict
            Features: numbers, or columns of several kinds for a pipeline that encodes them; a dictionary of
            arrays for an ONNX model of several inputs. An ONNX model takes arrays of the shape of its inputs,
            such as images (n_samples, channels, height, width).
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Labels: several columns for several outputs, values of the shape that ``transform`` gives for
            a transformer, 1 and -1 for an outlier detector, none for a mixture or KMeans; for an ONNX model
            arrays of the shape of its output, without the axis of the classes of a classifier.
        sample_weight : array-like of shape (n_samples,) or (n_samples, 1), default=None
            Sample weights of 0 or more; they have the shape of y for an ONNX model with several labels per
            sample, where zero masks a label.
        X_val, y_val : array-like, default=None
            Samples on which loss and score are measured every ``validation_every`` epochs; without them,
            ``early_stopping`` holds out some of X.
        sample_weight_val : array-like of shape (n_validation_samples,), default=None
            Weights of the validation samples.
        classes : array-like of shape (n_classes,), or sequence of one per output, default=None
            All classes of a classifier, in any order, if y may lack some of them; by default those of y. For
            an ONNX model without names of classes, they are in the order of its scores; by default 0, 1, ...
            if all labels are such numbers, and otherwise the classes of y. The initial fit of an unfitted
            estimator gets a copy of the first sample for each class that y lacks. Classes that differ from
            those of a fitted model are an error.
        resume_from : str, os.PathLike or estimator, default=None
            Training to resume: a file or folder that :func:`ortlearn.saving.save` has written of an estimator
            in training, the folder of a :class:`~ortlearn.callbacks.ModelCheckpoint`, or an estimator that
            was interrupted. Parameters, model and all data must be the same (``max_iter``, ``tol`` and a few
            more may change; ``random_state=None`` continues with the stored state); the result is bitwise
            that of a training without interruption.

        Returns
        -------
        OrtGradientOptimizer or OrtGradientForwardBackwardOptimizer
            This object, trained.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C. The object keeps the weights that it has reached, if any, can predict, and
            ``fit(..., resume_from=self)`` resumes the training.
        ValueError
            If an argument or a parameter is invalid (also PluginError, DeviceError, ConversionError,
            GradientError), or differs from that of the training to resume (SavedFileError). The object is
            not changed.
        ConvergenceError
            If the loss is not finite and ``exc`` is True. The object is not changed.
        MissingRuntimeError
            If no suitable onnxruntime is installed.
        """
        from ..fitting.given import InMemory
        from ..problem.samples import Samples
        from ..training.stream_progress import close_stream
        from .pretrained import pretrained_model

        trained = pretrained_model(self, y)
        if trained is not None:
            close_stream(self)
            self._fitted = trained
            return self
        _reject_source(X)
        samples = Samples(X, y, sample_weight)
        given = InMemory(samples, _validation_samples(X_val, y_val, sample_weight_val))
        close_stream(self)
        return self._commit(lambda trainer: trainer.fit(given, classes, resume_from))

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        total_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Train one epoch on a batch of samples, from the weights and the state of the last call.

        The first call starts as ``fit`` does: with ``warm_start=True`` from the model's own weights.
        Ensembles of trees with their own loss get trees fitted on a window of samples instead; then
        ``learning_rate`` has no effect.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Labels: several columns for several outputs, values of the shape that ``transform`` gives for
            a transformer, 1 and -1 for an outlier detector, none for a mixture or KMeans.
        classes : array-like of shape (n_classes,), or sequence of one per output, default=None
            All classes of the stream, in any order, for the first call on an unfitted classifier. Other
            classes than those of a fitted model or of an earlier call are an error.
        sample_weight : array-like of shape (n_samples,) or (n_samples, 1), default=None
            Sample weights.
        total_weight : float, default=None
            Sum of the weights of all samples of the stream, to which the penalty of the model is relative
            (``alpha`` of Ridge, ``C``); by default that of all samples so far, repetitions included.
        X_val, y_val : array-like, default=None
            Samples on which loss and score are measured after this call. With ``early_stopping``, pass the
            same ones each time: after ``n_iter_no_change`` consecutive calls without an improvement by
            ``tol``, the weights are those of the best call (of an ensemble that has grown, those of the last
            one), and ``stopped_`` is True. A later call starts counting anew.
        sample_weight_val : array-like of shape (n_validation_samples,), default=None
            Weights of the validation samples.

        Returns
        -------
        OrtGradientOptimizer or OrtGradientForwardBackwardOptimizer
            This object, trained.
        """
        from ..fitting.given import InMemory
        from ..problem.samples import Samples

        _reject_source(X)
        samples = Samples(X, y, sample_weight)
        if total_weight is not None and not 0 < total_weight < math.inf:
            raise ValueError(f"total_weight={total_weight!r} must be a finite number above 0.")
        given = InMemory(samples, _validation_samples(X_val, y_val, sample_weight_val))
        return self._commit(lambda trainer: trainer.partial_fit(given, classes, total_weight))

    def fit_stream(
        self,
        source: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        features: Any = None,
        classes: Any = None,
        shuffle_buffer: int = 65_536,
        source_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        resume_from: Any = None,
    ) -> Self:
        """Train on samples that do not fit in memory: an epoch is a pass over a source.

        Labels and weights are counted in a separate first pass; the learning rate ``"auto"`` measures
        features in another one. With a named learning rate, the weights are bitwise those of ``fit`` on the
        same samples, if ``shuffle_buffer`` is at least their number or ``shuffle=False``. Trees, neighbours,
        stacking and calibration are trained as by ``fit`` in such a buffer, with any rate.

        Parameters
        ----------
        source : path, dataset, reader, frame, array, iterable or callable
            A parquet file or folder, a pyarrow dataset or record batch reader, an object with
            ``__arrow_c_stream__`` (tables of polars, relations of duckdb), an array, memory map or sparse
            matrix, an iterable of ``(X, y)`` or ``(X, y, sample_weight)`` that can be iterated over again, or
            a function that returns an iterator of these, or a reader. Every pass must return the same samples
            in the same order. The source is read in a thread.
        y : str, list of str or array-like, default=None
            Column or columns of labels; an array with the same number of samples if the source is an array.
        sample_weight : str or array-like, default=None
            Column or array of sample weights.
        features : list of str, default=None
            Columns of features, in this order; all other columns by default.
        classes : array-like of shape (n_classes,), or sequence of one per output, default=None
            All classes of a classifier; by default those that the first pass finds.
        shuffle_buffer : int, default=65536
            Number of samples that are held in memory and shuffled; blocks of the source (row groups, slices
            of arrays) are read in random order. Two such buffers are in memory. An unfitted estimator, and
            the steps of a pipeline in front of it, are fitted on the first buffer.
        source_val : as source, default=None
            Samples on which loss and score are measured; required by ``early_stopping``.
        y_val, sample_weight_val : str, list of str or array-like, default=None
            Labels and weights of the validation samples; columns of the same names by default.
        resume_from : str, os.PathLike or estimator, default=None
            Training to resume, as in ``fit``: this object after an error of the source or Ctrl-C, or the
            folder of a :class:`~ortlearn.callbacks.ModelCheckpoint`. The source is read up to the next batch;
            blocks of known size are skipped, and files that have not changed are not counted again. Source
            and ``shuffle_buffer`` must be the same.

        Returns
        -------
        OrtGradientOptimizer or OrtGradientForwardBackwardOptimizer
            This object, trained.

        Raises
        ------
        SourceError
            If the source cannot be read, its samples are invalid, or its files or batches do not have the
            same columns; the message names file and row group, or the batch. The object keeps the weights
            that it has reached, if any, as after other errors during the training, and
            ``fit_stream(..., resume_from=self)`` resumes the training. It is also a ValueError.
        KeyboardInterrupt
            After Ctrl-C, with the same effect; before the first batch the object is not changed.
        ValueError
            If an argument or a parameter is invalid. The object is not changed.

        See Also
        --------
        partial_fit : One epoch on samples in memory.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LogisticRegression
        >>> from ortlearn import OrtGradientOptimizer
        >>> def batches():
        ...     rng = np.random.default_rng(0)
        ...     for _ in range(10):
        ...         X = rng.standard_normal((100, 3)).astype(np.float32)
        ...         yield X, X[:, 0] > X[:, 1]
        >>> model = OrtGradientOptimizer(LogisticRegression(), max_iter=5, random_state=0)
        >>> model = model.fit_stream(batches, shuffle_buffer=300)
        >>> bool(np.mean([model.score(X, y) for X, y in batches()]) > 0.95)
        True
        """
        from ..fitting.from_source import FromSource
        from ..training.stream_progress import close_stream

        if source_val is None and (y_val is not None or sample_weight_val is not None):
            raise ValueError("source_val is missing: pass it with y_val and sample_weight_val.")
        of_training = (y, sample_weight)
        columns = _validation_columns(source_val, (y_val, sample_weight_val), of_training, features)
        given = FromSource(source, (*of_training, features), source_val, columns, shuffle_buffer)
        close_stream(self)
        return self._commit(lambda trainer: trainer.fit(given, classes, resume_from))

    def _commit(self, train: Callable[[Trainer], FittedModel]) -> Self:
        """Train, and store the fitted model, or the model reached at an interrupt; errors change nothing."""
        from sklearn.exceptions import ConvergenceWarning

        from ..fitting.callbacks import EstimatorView
        from ..fitting.trainer import Trainer
        from ..runtime.errors import runtime_errors
        from ..training.state import Unfinished
        from ..training.time_limit import OutOfTime

        last = self._fitted if is_final(self._fitted) else None
        estimator = copy.copy(self)  # for callbacks, which may set attributes and fail
        with runtime_errors():
            parameters = self.get_params(deep=True)
            trainer = Trainer(self._configuration(), last, EstimatorView(estimator), self, parameters)
            cause: BaseException | None = None
            try:
                estimator._fitted = with_callbacks(lambda estimator: train(trainer))(estimator)
            except Unfinished as error:
                cause = error.__cause__
                if error.model is not None:
                    estimator._fitted = error.model
                    self.__dict__.update(vars(estimator))
            if isinstance(cause, OutOfTime):
                warn_user(
                    f"The training ended after max_seconds={self.max_seconds:g}, with the weights that it "
                    "has reached. Pass this estimator as resume_from to continue, or increase max_seconds.",
                    ConvergenceWarning,
                )
            elif cause is not None:  # raised outside of the except clause, so that it has no context
                raise cause
        self.__dict__.update(vars(estimator))
        return self


def _validation_samples(X: Any, y: Any, sample_weight: Any) -> Samples | None:
    """Return the validation samples, or None."""
    from ..problem.samples import Samples

    if X is None and (y is not None or sample_weight is not None):
        raise ValueError("X_val is missing: pass it with y_val and sample_weight_val.")
    return None if X is None else Samples(X, y, sample_weight)
