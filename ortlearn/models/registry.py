"""Definitions of estimators, by the path of their class."""

from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any

from .. import plugins
from ..exceptions import ConversionError
from .base import ModelDefinition

#: Function of a writer, an estimator without a definition, and samples, that appends the graph.
Fallback = Callable[[Any, Any, Any], Any]
#: Methods that a definition computes: a subclass that overrides one needs its own definition.
METHODS = set("decision_function predict predict_log_proba predict_proba score_samples transform".split())


def public_path(kind: type) -> str:
    """Return the path a class is imported from: its module up to the first private part.

    Parameters
    ----------
    kind : type
        Class.

    Returns
    -------
    str
        Path, ``"sklearn.linear_model.Ridge"``.
    """
    public = takewhile(lambda part: not part.startswith("_"), kind.__module__.split("."))
    return ".".join([*public, kind.__name__])


def find_definition(estimator: Any) -> ModelDefinition | None:
    """Return the definition of the class, or of a base class with the same methods; None if undefined."""
    for cls in type(estimator).__mro__:
        path = public_path(cls)
        if plugins.has(plugins.MODELS, path):
            return plugins.get(plugins.MODELS, path)()
        if not METHODS.isdisjoint(vars(cls)):
            return None
    return None


def definition_of(estimator: Any) -> ModelDefinition:
    """Return the definition of the class of an estimator; raise a ConversionError if undefined."""
    found = find_definition(estimator)
    if found is None:
        path = public_path(type(estimator))
        raise ConversionError(
            f"{path} has no model definition: declare one in the entry-point group {plugins.MODELS!r} under "
            "this name."
        )
    return found


def definition_or_default(estimator: Any) -> ModelDefinition:
    """Return the definition of the class of an estimator, or the defaults of the base class."""
    return find_definition(estimator) or ModelDefinition()


def all_covered(estimator: Any) -> bool:
    """Return whether definitions cover an estimator and all its parts."""
    return all(found is not None and found.covers(part) for part, found in _walk(estimator))


def needs_float64(estimator: Any, computed: bool = False) -> bool:
    """Return whether a fitted estimator compares float64 samples with thresholds, or computed ones."""
    found = find_definition(estimator)
    if found is None or not found.covers(estimator):
        return False
    own = found.needs_float64(estimator, computed)
    return any(needs_float64(part, computed) for part in found.children(estimator)) if own is None else own


def is_exact(estimator: Any) -> bool:
    """Return whether the graph of a fitted transformer computes the same numbers as scikit-learn."""
    found = find_definition(estimator)
    if found is None or [route.part for route in found.routes(estimator, ())] == [None]:
        return found is not None  # columns are passed through
    return found.exact and all(map(is_exact, found.children(estimator)))


def doubtful_part(estimator: Any) -> Any:
    """Return the first part without a definition, otherwise the first that is not continuous, or None."""
    parts = list(_walk(estimator))  # skl2onnx, or rounding to float32, may change the output of these
    uncovered = (part for part, found in parts if found is None or not found.covers(part))
    return next(uncovered, next((part for part, found in parts if found and not found.continuous), None))


def parts_of(estimator: Any) -> Iterator[Any]:
    """Yield a fitted estimator and the estimators that its graph contains."""
    yield from (part for part, _ in _walk(estimator))


def _walk(estimator: Any) -> Iterator[tuple[Any, ModelDefinition | None]]:
    """Yield an estimator and its parts, each with its definition."""
    found = find_definition(estimator)
    yield estimator, found
    if found is not None and found.covers(estimator):
        for child in found.children(estimator):
            yield from _walk(child)


def inner_part(estimator: Any) -> tuple[str, Any] | None:
    """Return the attribute and the estimator that a fitted meta-estimator predicts with, or None."""
    attributes = definition_or_default(estimator).inner
    for attribute in attributes:
        if hasattr(estimator, attribute):
            return attribute, getattr(estimator, attribute)
    if attributes:
        raise ConversionError(
            f"{type(estimator).__name__} has no {attributes[-1]}: set refit=True, or pass the selected "
            "estimator."
        )
    return None


def unwrapped(estimator: Any) -> Any:
    """Return the estimator that a fitted meta-estimator predicts with, such as the best one of a search."""
    inner = inner_part(estimator)
    return estimator if inner is None else unwrapped(inner[1])


def fitted_part(estimator: Any) -> Any:
    """Return the part of a fitted estimator that is trained, such as the last step of a pipeline."""
    part = definition_or_default(estimator).fitted_part(estimator)
    return part if part is estimator else fitted_part(part)


def has_own_score(estimator: Any) -> bool:
    """Return whether ``score`` of a fitted estimator is not computed from the outputs of its graph.

    This is declared by its definition, or follows from a subclass that overrides the method.
    """
    overridden = False
    for cls in type(estimator).__mro__:
        path = public_path(cls)
        if plugins.has(plugins.MODELS, path):
            return overridden or plugins.get(plugins.MODELS, path)().has_own_score(estimator)
        overridden = overridden or "score" in vars(cls)
    return False


def unlabelled_label(estimator: Any) -> Any:
    """Return the label of unlabelled samples for a fitted estimator, or None."""
    definition = definition_or_default(estimator)
    label, part = definition.unlabelled, definition.fitted_part(estimator)
    return label if part is estimator or label is not None else unlabelled_label(part)


def shape_predictions(estimator: Any, n_dimensions: int) -> None:
    """Make a regressor with one output predict shape (n,) or (n, 1), if its attributes determine it."""
    inner = definition_or_default(estimator).shape_predictions(estimator, n_dimensions)
    if inner is not None:
        shape_predictions(inner, n_dimensions)


def no_fallback(op: Any, estimator: Any, x: Any) -> Any:
    """Raise a ConversionError for an estimator without a definition that covers it."""
    definition_of(estimator)
    raise op.fail(estimator, "its definition does not support its parameters: change them.")
