"""The fitted model of an estimator: attributes, weights, and conditions for methods."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .. import conversion
from ..exceptions import WriteBackError
from ..fitting.callback_support import CALLBACKS, DURING_FIT
from .parameters import Parameters

if TYPE_CHECKING:
    from typing import Self, TypeGuard

    from ..fitting.callbacks import Progress
    from ..fitting.fitted_model import FittedModel
    from ..models import Scores
    from ..problem.configuration import Configuration
    from ..training.steps.base_step import BaseStep

__all__ = [
    "FittedEstimator",
    "has_decisions",
    "has_densities",
    "has_probabilities",
    "is_final",
    "predicts",
    "wraps",
]


def is_final(fitted: FittedModel | Progress | None) -> TypeGuard[FittedModel]:
    """Return whether an estimator is trained, and not in training."""
    return fitted is not None and fitted.is_final


class FittedAttribute:
    """Attribute of an estimator that is read from its fitted model; None means none, if it is optional."""

    def __init__(self, path: str, optional: bool = False) -> None:
        self._during_fit = path.startswith("state.")
        self._value = attrgetter(path)
        self._optional = optional

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        fitted = instance._fitted
        if is_final(fitted) or (fitted is not None and self._during_fit):
            value = self._value(fitted)
            if value is not None or not self._optional:
                return value
        raise AttributeError(f"{type(instance).__name__!r} object has no attribute {self._name!r}")


class WrittenAttribute:
    """Attribute of an estimator that is read from the result of ``to_sklearn``."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        fitted = instance._fitted
        if not is_final(fitted) or not hasattr(fitted.problem.source, self._name):
            raise AttributeError(f"{type(instance).__name__!r} object has no attribute {self._name!r}")
        try:
            written = fitted.written
        except WriteBackError as error:
            raise AttributeError(f"{self._name} is not available: {error}") from error
        return getattr(written, self._name)


class FittedEstimator(Parameters):
    """Parameters and fitted model of an estimator."""

    #: Path of the class of the training step, imported by ``fit``.
    _step_path: ClassVar[str]
    #: Only attribute that ``fit`` changes. During ``fit``, callbacks get a copy with a ``Progress`` instead.
    _fitted: FittedModel | Progress | None = None

    onnx_ = FittedAttribute("onnx")
    trained_coef_ = FittedAttribute("trained_coef")
    weights_to_train_ = FittedAttribute("origins")
    loss_ = FittedAttribute("problem.loss")
    penalty_ = FittedAttribute("penalty")
    learning_rate_ = FittedAttribute("problem.updates.learning_rate")
    classes_ = FittedAttribute("classes", optional=True)
    n_features_in_ = FittedAttribute("features.count", optional=True)
    feature_names_in_ = FittedAttribute("features.names", optional=True)
    history_ = FittedAttribute("state.history")
    n_iter_ = FittedAttribute("state.n_iter")
    train_losses_ = FittedAttribute("state.train_losses")
    validation_losses_ = FittedAttribute("state.validation_losses")
    validation_scores_ = FittedAttribute("state.validation_scores")
    start_kept_ = FittedAttribute("state.start_kept")
    stopped_ = FittedAttribute("state.best.stopped")
    coef_ = WrittenAttribute()
    intercept_ = WrittenAttribute()
    feature_importances_ = WrittenAttribute()
    best_epoch_ = FittedAttribute("state.best_epoch", optional=True)

    @property
    def _step_class(self) -> type[BaseStep]:
        return resolve_name(self._step_path)

    def __sklearn_is_fitted__(self) -> bool:
        return is_final(self._fitted)

    def __getstate__(self) -> Any:
        # Copies made by a callback have no callbacks: training them would call it again.
        in_training = self._fitted is not None and not self._fitted.is_final
        omitted = (*DURING_FIT, *CALLBACKS) if in_training else DURING_FIT
        return {key: value for key, value in super().__getstate__().items() if key not in omitted}

    def _configuration(self) -> Configuration:
        """Check the parameters, and return the configuration."""
        from ..problem.configuration import Configuration, check_source

        self._validate_params()
        check_source(self.estimator)
        parameters, name = self.get_params(deep=False), type(self).__name__
        return Configuration.of(parameters, get_tags(self), name, self._step_class)

    def _model(self) -> FittedModel:
        """Return the fitted model; open its sessions if there are none, on the device of the parameters."""
        model = self._fitted
        if not is_final(model):
            check_is_fitted(self)
            raise AssertionError  # for type checkers
        if model.inference is None:
            from ..problem.configuration import Runtime
            from ..runtime.devices import parse_device

            model.open(Runtime(parse_device(self.device), self.n_jobs, self._step_class))
        return model

    def get_weights(self) -> Any:
        """Return the trained weights by name.

        Returns
        -------
        dict of str to ndarray
            Copies of the arrays of ``trained_coef_``.
        """
        return {name: array.copy() for name, array in self._model().trained_coef.items()}

    def set_weights(self, weights: Any) -> Self:
        """Set trained weights.

        Predictions, ``get_trained_onnx`` and ``to_sklearn`` use them from now on; ``partial_fit`` and a warm
        start begin with them. The state of the learning rate (momentum, averages) is reset.

        Parameters
        ----------
        weights : mapping of str to array-like
            New values, by the names of ``trained_coef_``. Other weights are not changed.

        Returns
        -------
        OrtGradientOptimizer or OrtGradientForwardBackwardOptimizer
            This object.

        Raises
        ------
        ValueError
            If a name is unknown, or an array has the wrong shape, is not finite, or violates a constraint
            of its weight, such as being positive. The object is not changed.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LinearRegression
        >>> from ortlearn import OrtGradientOptimizer
        >>> X = np.linspace(0, 1, 50).reshape(-1, 1)
        >>> trained = OrtGradientOptimizer(LinearRegression(), random_state=0).fit(X, 2 * X.ravel() + 1)
        >>> weights = trained.get_weights()
        >>> trained.set_weights({"coef": np.zeros_like(weights["coef"]), "intercept": [3.0]}).predict([[0.5]])
        array([3.])
        """
        self._fitted = self._model().with_weights(weights)
        return self


def _type(estimator: Any) -> str | None:
    fitted = estimator._fitted
    if is_final(fitted):  # computing tags takes longer than a prediction
        return fitted.problem.estimator_type
    return get_tags(estimator).estimator_type


def _scores(estimator: Any) -> Scores | None:
    """Return the scores of a graph; None before ``fit`` and for a graph with its own loss."""
    fitted = estimator._fitted
    return fitted.problem.trainable.scores if is_final(fitted) else None


def _wrapped(estimator: Any) -> Any:
    """Return the wrapped model, fitted if possible: some have methods only then."""
    fitted = estimator._fitted
    source = fitted.problem.source if is_final(fitted) else None
    return estimator.estimator if source is None else source


def has_decisions(estimator: Any) -> bool:
    """Return whether ``decision_function`` is available; a graph is examined only after ``fit``."""
    scores = _scores(estimator)
    if scores is not None and not scores.has_decisions:
        raise AttributeError(
            "decision_function is not available: the graph of this model does not compute it."
        )
    return _type(estimator) in ("classifier", "outlier_detector")


def has_probabilities(estimator: Any) -> bool:
    """Return whether the wrapped model has probabilities."""
    if _type(estimator) not in ("classifier", "density_estimator"):
        raise AttributeError(
            "predict_proba applies to classifiers and mixtures only, and this model is neither."
        )
    scores = _scores(estimator)
    if scores is not None and scores.probabilities is None:
        raise AttributeError("predict_proba is not available: the graph of this model does not compute it.")
    wrapped = _wrapped(estimator)
    return conversion.is_onnx_source(wrapped) or hasattr(wrapped, "predict_proba")


def predicts(estimator: Any) -> bool:
    """Return whether ``predict`` is available; transformers and densities may lack it."""
    wrapped = _wrapped(estimator)
    if conversion.is_onnx_source(wrapped) or hasattr(wrapped, "predict"):
        return True
    return not any(hasattr(wrapped, method) for method in ("transform", "score_samples"))


def wraps(*methods: str) -> Callable[[Any], bool]:
    """Return the condition that the wrapped scikit-learn model has all of these methods."""

    def condition(estimator: Any) -> bool:
        wrapped = _wrapped(estimator)
        return not conversion.is_onnx_source(wrapped) and all(hasattr(wrapped, name) for name in methods)

    return condition


def has_densities(estimator: Any) -> bool:
    """Return whether the wrapped model is a density or an outlier detector with ``score_samples``."""
    wrapped = _wrapped(estimator)
    known = _type(estimator) in ("density_estimator", "outlier_detector")
    only = not any(hasattr(wrapped, method) for method in ("predict", "transform"))
    return (known or only) and hasattr(wrapped, "score_samples")
