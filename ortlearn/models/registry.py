"""Find the definition of an estimator."""

from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any

from .. import plugins
from ..exceptions import ConversionError
from .base import ModelDefinition

#: Appends the graph of an estimator that no definition covers: takes writer, estimator and samples.
Undefined = Callable[[Any, Any, Any], Any]
#: Methods that a definition describes: a class that overrides one needs another definition.
COMPUTING = set("decision_function predict predict_log_proba predict_proba score_samples transform".split())


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
    """Return the definition of a class, or of a base class that computes the same; None without any."""
    for cls in type(estimator).__mro__:
        path = public_path(cls)
        if plugins.has(plugins.MODELS, path):
            return plugins.get(plugins.MODELS, path)()
        if not COMPUTING.isdisjoint(vars(cls)):
            return None
    return None


def definition_of(estimator: Any) -> ModelDefinition:
    """Return the definition of the class of an estimator; none is an error."""
    found = find_definition(estimator)
    if found is None:
        path = public_path(type(estimator))
        raise ConversionError(
            f"{path} has no model definition: declare one in the entry-point group {plugins.MODELS!r} under "
            "this name."
        )
    return found


def definition_or_default(estimator: Any) -> ModelDefinition:
    """Return the definition of the class of an estimator, or the base class."""
    return find_definition(estimator) or ModelDefinition()


def all_covered(estimator: Any) -> bool:
    """Return whether an estimator and all estimators in it have definitions that cover them."""
    return all(found is not None and found.covers(part) for part, found in _walk(estimator))


def doubtful_part(estimator: Any) -> Any:
    """Return the first part that no definition covers, or else the first that is not continuous, or None."""
    parts = list(_walk(estimator))  # float32, or skl2onnx, may compute them otherwise than scikit-learn
    uncovered = (part for part, found in parts if found is None or not found.covers(part))
    return next(uncovered, next((part for part, found in parts if found and not found.continuous), None))


def _walk(estimator: Any) -> Iterator[tuple[Any, ModelDefinition | None]]:
    """Yield an estimator and those in it, each with its definition."""
    found = find_definition(estimator)
    yield estimator, found
    if found is not None and found.covers(estimator):
        for child in found.children(estimator):
            yield from _walk(child)


def inner_part(estimator: Any) -> tuple[str, Any] | None:
    """Return attribute and estimator that a fitted meta-estimator predicts with; None for any other."""
    attributes = definition_or_default(estimator).inner
    for attribute in attributes:
        if hasattr(estimator, attribute):
            return attribute, getattr(estimator, attribute)
    if attributes:
        raise ConversionError(
            f"{type(estimator).__name__} has no {attributes[-1]}: set refit=True, or pass the estimator that "
            "you chose."
        )
    return None


def unwrapped(estimator: Any) -> Any:
    """Return the estimator that a fitted meta-estimator predicts with, such as the best one of a search."""
    inner = inner_part(estimator)
    return estimator if inner is None else unwrapped(inner[1])


def fitted_part(estimator: Any) -> Any:
    """Return the part of a fitted estimator that training fits again: the last step of a pipeline.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from ortlearn.models import fitted_part
    >>> fitted_part(make_pipeline(StandardScaler(), Ridge()).fit([[0.0], [1.0]], [1.0, 3.0]))
    Ridge()
    """
    part = definition_or_default(estimator).fitted_part(estimator)
    return part if part is estimator else fitted_part(part)


def unlabelled_label(estimator: Any) -> Any:
    """Return the label that marks unlabelled samples for a fitted estimator, None if it has none."""
    definition = definition_or_default(estimator)
    label, part = definition.unlabelled, definition.fitted_part(estimator)
    return label if part is estimator or label is not None else unlabelled_label(part)


def shape_predictions(estimator: Any, n_dimensions: int) -> None:
    """Make a regressor of one output predict (n,) or (n, 1), if its attributes show which."""
    inner = definition_or_default(estimator).shape_predictions(estimator, n_dimensions)
    if inner is not None:
        shape_predictions(inner, n_dimensions)


def refuse_undefined(op: Any, estimator: Any, x: Any) -> Any:
    """Raise a ConversionError: no definition covers the estimator."""
    definition_of(estimator)
    raise op.fail(estimator, "its definition does not cover the parameters it was fitted with.")
