"""The parameters of the estimators, and the tags that follow from them."""

from __future__ import annotations

import copy
import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from numbers import Integral, Real
from typing import Any

from sklearn.base import MetaEstimatorMixin
from sklearn.utils import ClassifierTags, RegressorTags, TransformerTags, get_tags
from sklearn.utils._param_validation import Interval, StrOptions

from .. import conversion, plugins
from ..exceptions import PluginError
from ..parameters import OTHER_NAMES, ParameterNames
from .display import DisplayMixin

__all__ = ["Parameters"]

#: Plugin group, and a class for examples, of the parameters that accept a name.
OBJECTS = {
    "learning_loss": (plugins.LOSSES, "ElasticLoss"),
    "learning_penalty": (plugins.PENALTIES, "ElasticPenalty"),
    "learning_rate": (plugins.LEARNING_RATES, "LearningRateSGD"),
}
#: Types of estimators that are trained without labels.
NEEDS_NO_LABELS = ("clusterer", "density_estimator")
#: Types of estimators that may be transformers.
TRANSFORM = (None, "transformer", "clusterer")


def _by_present_names(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters by their present names."""
    for other, name in OTHER_NAMES.items():
        if other in given and name in given:
            raise ValueError(f"{other!r} is another name of {name!r}: pass one of them.")
    return {OTHER_NAMES.get(name, name): value for name, value in given.items()}


def _named_arguments(function: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that accepts other names, and whose errors name the class and similar ones."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        kwargs = _by_present_names(kwargs)
        try:
            function(self, *args, **kwargs)
        except TypeError:
            try:
                signature.bind(self, *args, **kwargs)
            except TypeError as error:
                unknown = [name for name in kwargs if name not in signature.parameters][:1]
                close = [m for name in unknown for m in difflib.get_close_matches(name, signature.parameters)]
                hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
                raise TypeError(f"{type(self).__name__}: {error}.{hint}") from None
            raise

    return construct


class Parameters(DisplayMixin, MetaEstimatorMixin, ParameterNames):
    """Parameters of both estimators, described there."""

    _parameter_constraints: dict = {
        "estimator": "no_validation",
        "weights_to_train": [str, list, tuple, set, None],
        "learning_loss": "no_validation",
        "learning_rate": "no_validation",
        "learning_penalty": "no_validation",
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "keep_better": ["boolean"],
        "gradient": [StrOptions({"auto", "rules", "ort"})],
        "straight_through": ["boolean"],
        "device": [str, tuple],
        "n_jobs": [
            Interval(Integral, None, -1, closed="right"),
            Interval(Integral, 1, 2**31 - 1, closed="both"),
            None,
        ],
        "validation_every": [
            Interval(Real, 0, 1, closed="right"),
            Interval(Integral, 1, None, closed="left"),
        ],
        "verbose": ["verbose"],
        "exc": ["boolean"],
        "dtype": [StrOptions({"auto", "float32", "float64"})],
        "precompute": ["boolean"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "scoring": [str, callable, None],
        "average": ["boolean", Interval(Integral, 0, None, closed="left")],
        "clip_norm": [Interval(Real, 0, None, closed="neither"), None],
        "clip_value": [Interval(Real, 0, None, closed="neither"), None],
        "class_weight": [dict, list, StrOptions({"auto", "balanced"}), None],
        "loss_output_name": [str],
        "label_name": [str],
        "weight_name": [str],
        "lora": "no_validation",
        "output_name": [str, None],
    }

    @_named_arguments
    def __init__(
        self,
        estimator: Any,
        weights_to_train: Any = None,
        *,
        learning_loss: Any = "auto",
        learning_rate: Any = "auto",
        learning_penalty: Any = "auto",
        max_iter: int = 100,
        batch_size: int | str = "auto",
        shuffle: bool = True,
        random_state: Any = None,
        warm_start: bool = False,
        keep_better: bool = True,
        gradient: Any = "auto",
        device: Any = "cpu",
        n_jobs: Any = None,
        validation_every: float = 0.1,
        verbose: int = 0,
        exc: bool = True,
        dtype: Any = "auto",
        precompute: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        tol: Any = None,
        scoring: Any = "loss",
        average: bool | int = False,
        clip_norm: Any = None,
        clip_value: Any = None,
        class_weight: Any = "auto",
        loss_output_name: Any = "loss",
        label_name: Any = "label",
        weight_name: Any = "sample_weight",
        straight_through: bool = False,
        lora: Any = None,
        output_name: Any = None,
        max_seconds: Any = None,
    ) -> None:
        self.estimator = estimator
        self.weights_to_train = weights_to_train
        self.learning_loss = learning_loss
        self.learning_rate = learning_rate
        self.learning_penalty = learning_penalty
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.random_state = random_state
        self.warm_start = warm_start
        self.keep_better = keep_better
        self.gradient = gradient
        self.straight_through = straight_through
        self.device = device
        self.n_jobs = n_jobs
        self.validation_every = validation_every
        self.verbose = verbose
        self.exc = exc
        self.dtype = dtype
        self.precompute = precompute
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.scoring = scoring
        self.average = average
        self.clip_norm = clip_norm
        self.clip_value = clip_value
        self.class_weight = class_weight
        self.loss_output_name = loss_output_name
        self.label_name = label_name
        self.weight_name = weight_name
        self.lora = lora
        self.output_name = output_name
        self.max_seconds = max_seconds

    @property
    def hoist(self) -> bool:
        """Another name of ``precompute``."""
        return self.precompute

    @hoist.setter
    def hoist(self, value: bool) -> None:
        self.precompute = value

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes of a pickle, whose parameters may have other names."""
        super().__setstate__(_by_present_names(state))

    def set_params(self, **params: Any) -> Any:
        """Set parameters, including those of nested objects (``learning_rate__eta0``).

        Parameters
        ----------
        **params
            Parameters.

        Returns
        -------
        OrtGradientOptimizer or OrtGradientForwardBackwardOptimizer
            This object.

        Raises
        ------
        ValueError
            If a parameter is unknown, is given by both of its names, or belongs to a plugin that is given by
            its name or a number.
        """
        params = _by_present_names(params)
        for key in params:
            name, nested, _ = key.partition("__")
            value = params.get(name, getattr(self, name, None))
            if nested and hasattr(self, name) and not hasattr(value, "set_params"):
                example = "PerWeightPenalty({...})" if isinstance(value, dict) else _object_like(name, value)
                raise ValueError(
                    f"{key!r} cannot be set, since {name}={value!r} is not an object: pass an object, such "
                    f"as {name}={example}."
                )
        return super().set_params(**params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if conversion.is_onnx_source(self.estimator):
            kind = {"classification": "classifier", "regression": "regressor"}
            asked = "classification" if self._asks_for_classes() else None
            task = asked or conversion.source_task(self.estimator, self.output_name)
            tags.estimator_type = kind.get(task or "")
            tags.classifier_tags = ClassifierTags() if task == "classification" else None
            tags.regressor_tags = RegressorTags() if task == "regression" else None
            tags.target_tags.multi_output = task == "regression"
            tags.input_tags.sparse = True
        elif hasattr(self.estimator, "__sklearn_tags__") and not isinstance(self.estimator, type):
            inner = get_tags(self.estimator)
            tags.estimator_type = inner.estimator_type
            tags.classifier_tags = copy.copy(inner.classifier_tags)
            tags.regressor_tags = copy.copy(inner.regressor_tags)
            tags.target_tags = conversion.target_tags(self.estimator)
            tags.input_tags = copy.copy(inner.input_tags)
            tags.input_tags.sparse |= conversion.is_fitted(self.estimator)
            if inner.transformer_tags is not None and inner.estimator_type in TRANSFORM:
                tags.transformer_tags = TransformerTags(preserves_dtype=[])  # the result depends on dtype
        for own in (tags.classifier_tags, tags.regressor_tags):
            if own is not None:
                own.poor_score = True
        tags.input_tags.allow_nan = conversion.accepts_missing(self.estimator)
        tags.target_tags.required = tags.estimator_type not in NEEDS_NO_LABELS
        tags.non_deterministic = False
        return tags

    def _asks_for_classes(self) -> bool:
        """Return whether the loss is for classification alone."""
        from ..problem.configuration import requested_loss
        from ..problem.objectives import is_for_classes_only

        try:
            return is_for_classes_only(requested_loss(self.learning_loss))
        except PluginError:  # fit raises it
            return False


def _object_like(name: str, value: Any) -> str:
    """Return the text of an object that may replace the value of a parameter."""
    if name == "lora":
        return f"LoRA({'' if value is None else value})"
    if name not in OBJECTS:
        return "..."
    group, example = OBJECTS[name]
    if isinstance(value, str):
        with suppress(PluginError):
            example = plugins.get(group, value).__name__
    return f"{example}(eta0={value!r})" if isinstance(value, Real) else f"{example}()"
