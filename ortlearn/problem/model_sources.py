"""Convert the parameter ``estimator`` to a graph that can be trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import ModelProto
from sklearn.base import clone, is_regressor
from sklearn.compose import TransformedTargetRegressor

from ..differentiation.random_feed import random_feed
from ..exceptions import ObjectiveWarning, warn_user
from ..losses import BaseLoss
from ..models.capabilities import BoostedStages, capability_of, with_few_members
from ..onnx_files.integer_weights import check_multiplied_integers
from ..onnx_files.loading import is_onnx_source
from ..preprocessing.column_reading import read_columns
from ..preprocessing.columns import shape_of
from ..preprocessing.estimator_checks import last_step
from ..preprocessing.initial_fit import final_step, fit_clone, is_fitted, shape_parameters
from ..preprocessing.missing import accepts_missing, has_missing_operators, missing_columns
from ..runtime.devices import Device
from ..runtime.sessions import make_session, session_options
from ..trainable.conversion import to_trainable
from .automatic import doubt_of, own_loss
from .boosted_stages import boosting_of, fit_stages
from .configuration import Configuration
from .cross_fitting import cross_fitted, records_outputs
from .objectives import is_for_classes_only

if TYPE_CHECKING:
    from ..preprocessing.schema import InputSchema
    from ..trainable.conversion import TrainableModel

__all__ = ["converted", "fitted_source", "missing_columns_of"]

#: Warning of a loss with which stages are not grown.
IN_PYTHON = (
    "The stages of {} are grown with its own loss, since a Python function has no second derivative. Their "
    "values are trained with yours, on the samples of the fit: quantiles cover too few labels. Write the "
    "loss as an expression or a subclass of BaseLoss to grow stages with it."
)


def fitted_source(
    configuration: Configuration, X: Any, y: Any, sample_weight: Any, random_state: Any, classes: Any
) -> Any:
    """Return the model of a configuration, or a clone fitted on the samples if it is not fitted."""
    source = configuration.source
    if is_onnx_source(source):
        return source
    transforms = isinstance(final_step(source), TransformedTargetRegressor)
    if is_fitted(source):
        if y is None or not _predicts_labels(configuration, source):
            return source
        if configuration.warm_start:
            names = type(configuration.loss).__name__, type(source).__name__
            text = "{} takes the predictions of {} as logarithms: start from a model of the logarithms of y."
            warn_user(text.format(*names), ObjectiveWarning)
        if configuration.warm_start or transforms:
            return source
    if transforms:
        _check_transformed(final_step(source), y)
    boosted = boosting_of(configuration)
    if boosted is not None:
        return fit_stages(configuration, boosted, X, y, sample_weight, random_state, classes)
    in_python = configuration.loss is not None and configuration.loss.in_python
    if in_python and capability_of(last_step(source), BoostedStages) is not None and not is_fitted(source):
        warn_user(IN_PYTHON.format(type(last_step(source)).__name__), ObjectiveWarning, once=True)
    options: Any = {"sample_weight": sample_weight, "random_state": random_state, "classes": classes}
    shapes_only = not configuration.warm_start and configuration.conversion.weights_to_train is None
    if shapes_only and not configuration.is_default:
        options["within"] = records_outputs(source)

    def fitted(y: Any, shapes_only: bool = shapes_only, given: Configuration = configuration) -> Any:
        found = cross_fitted(given, X, y, **options) if shapes_only else None
        return (
            found if found is not None else fit_clone(given.source, X, y, shapes_only=shapes_only, **options)
        )

    of_logarithms = configuration.loss is not None and configuration.loss.link == "log"
    few = with_few_members(source) if of_logarithms and not transforms else source
    found = fitted(y) if few is source else fit_clone(few, X, y, **options)
    if not transforms and _predicts_labels(configuration, found):  # a transformation is of responses, too
        responses = _working_responses(y, sample_weight)
        if responses is not None:
            return fitted(responses, given=replace(configuration, source=_of_any_sign(source)))
    if few is not source:
        return fitted(y)
    is_short = shapes_only and shape_parameters(final_step(source)) is not None
    if is_short and configuration.is_default and doubt_of(found, None):  # the fit may be kept
        return fitted(y, shapes_only=False)
    return found


def _check_transformed(model: Any, y: Any) -> None:
    """Raise an error if a model transforms labels to values that are not finite, before it is fitted."""
    labels = np.asarray(y)
    if model.func is None or labels.dtype.kind not in "iuf":
        return
    with np.errstate(all="ignore"):
        found = np.asarray(model.func(labels[:, None] if labels.ndim == 1 else labels), dtype=np.float64)
    if np.isfinite(labels).all() and not np.isfinite(found).all():
        raise ValueError(
            "func of TransformedTargetRegressor gives values that are not finite for some labels: use a "
            "function that is finite for all of them, such as numpy.log1p instead of numpy.log for zeros."
        )


def _predicts_labels(configuration: Configuration, source: Any) -> bool:
    """Return whether a fitted model predicts labels, and the loss takes logarithms of predictions."""
    if configuration.loss is None or configuration.loss.link != "log" or not is_regressor(source):
        return False
    own = own_loss(source)
    return own is None or own.link != "log"


def _of_any_sign(source: Any) -> Any:
    """Return an unfitted model whose trees take negative labels, which logarithms are."""
    params = source.get_params().items()
    names = [name for name, value in params if name.endswith("criterion") and value == "poisson"]
    return clone(source).set_params(**dict.fromkeys(names, "squared_error")) if names else source


def _working_responses(y: Any, sample_weight: Any) -> np.ndarray | None:
    """Return logarithms of y for a fit; None if they are not defined.

    With ``mu = (y + mean(y)) / 2``, these are ``log(mu) + (y - mu) / mu``, the usual start of iteratively
    reweighted least squares (McCullagh, P. and Nelder, J. A., "Generalized linear models", 1989, 2.5).
    """
    labels = np.asarray(y, dtype=np.float64)
    means = (labels + np.average(labels, axis=0, weights=sample_weight)) / 2
    return np.log(means) + (labels - means) / means if np.all(means > 0) else None


def converted(
    configuration: Configuration, source: Any, X: Any, y: Any, loss: BaseLoss | None
) -> TrainableModel:
    """Return the trainable graph of a fitted model or an ONNX file."""
    options = configuration.conversion
    classifies = is_onnx_source(source) and is_for_classes_only(loss)
    found = to_trainable(
        source,
        options.weights_to_train,
        X=X,
        run=_GraphRunner(),
        dtype=options.float_dtype,
        loss_output_name=options.loss_output_name,
        label_name=options.label_name,
        weight_name=options.weight_name,
        forced_task="classification" if classifies else None,
        link="identity" if loss is None else loss.link,
        label_shape=None if y is None or not is_onnx_source(source) else shape_of(y, "y"),
        lora=options.lora,
        straight_through=options.straight_through,
        output_name=options.output_name,
    )
    if found.upgraded is not None and options.weights_to_train is None and options.lora is None:
        check_multiplied_integers(found.upgraded)
    return found


def missing_columns_of(source: Any, trainable: TrainableModel, X: Any) -> frozenset[int]:
    """Return the columns of a fitted model, or inputs of a file, that take missing values, by trial."""
    schema, predictor = trainable.entry.schema, source
    if is_onnx_source(source):
        if schema.is_array or not has_missing_operators(trainable.model):
            return frozenset()
        predictor = _FileScores(trainable.objective_graph(), schema)
    elif not accepts_missing(source):
        return frozenset()
    if X is None or isinstance(X, Mapping):
        return frozenset()
    found, names = missing_columns(predictor, X), getattr(X, "columns", None)
    if predictor is source or names is None:
        return found
    taken = {names[position] for position in found}
    return frozenset(number for number, item in enumerate(schema.inputs) if item.column in taken)


class _FileScores:
    """An ONNX file as an estimator that predicts its scores, or its own losses of random labels."""

    def __init__(self, graph: ModelProto, schema: InputSchema) -> None:
        self._graph, self._schema, self._run = graph, schema, _GraphRunner()

    def predict(self, X: Any) -> np.ndarray:
        """Return the scores of a sample."""
        return self._run(self._graph, random_feed(self._graph, 1) | read_columns(X, self._schema))


class _GraphRunner:
    """Run a graph and return its first output; the last session is cached."""

    def __init__(self) -> None:
        self._last: tuple[ModelProto, Any] | None = None

    def __call__(self, model: ModelProto, feeds: dict[str, np.ndarray]) -> np.ndarray:
        if self._last is None or self._last[0] is not model:
            options = session_options()
            options.log_severity_level = 4  # errors are reported as Python warnings
            self._last = model, make_session(model, Device("cpu"), options=options)
        session = self._last[1]
        names = {value.name for value in session.get_inputs()}
        return session.run(None, {name: array for name, array in feeds.items() if name in names})[0]
