"""Find the definition of an estimator."""

from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any

from .. import plugins
from ..exceptions import ConversionError
from .base import ModelDefinition

#: Appends the graph of an estimator that no definition covers: takes writer, estimator and samples.
Undefined = Callable[[Any, Any, Any], Any]
#: Methods that a definition writes: a class that has its own needs a definition of its own.
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
    """Return the definition of the class of an estimator, None where there is none.

    A class without one has that of its base class, where it computes what that one does.
    """
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


def all_covered(estimator: Any) -> bool:
    """Return whether an estimator and all estimators in it have definitions that cover them."""
    return all(found is not None and found.covers(part) for part, found in _walk(estimator))


def doubtful_part(estimator: Any) -> Any:
    """Return the first part of an estimator that no definition covers, or else that is not continuous.

    float32, or skl2onnx, may compute it otherwise than scikit-learn. None where all are trusted.
    """
    parts = list(_walk(estimator))
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
    """Return attribute and estimator that a fitted one stands for; None where it stands for itself."""
    found = find_definition(estimator)
    if found is None or not found.inner:
        return None
    for attribute in found.inner:
        if hasattr(estimator, attribute):
            return attribute, getattr(estimator, attribute)
    raise ConversionError(
        f"{type(estimator).__name__} has no {attribute}: set refit=True, or pass the estimator you chose."
    )


def unwrapped(estimator: Any) -> Any:
    """Return the estimator that a fitted one stands for, as a search does for the best one it found."""
    inner = inner_part(estimator)
    return estimator if inner is None else unwrapped(inner[1])


def fitted_part(estimator: Any) -> Any:
    """Return the part of a fitted estimator whose fit training repeats: of a pipeline, the last step.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from ortlearn.models import fitted_part
    >>> fitted_part(make_pipeline(StandardScaler(), Ridge()).fit([[0.0], [1.0]], [1.0, 3.0]))
    Ridge()
    """
    found = find_definition(estimator)
    part = estimator if found is None else found.fitted_part(estimator)
    return part if part is estimator else fitted_part(part)


def unlabelled_label(estimator: Any) -> Any:
    """Return the label of samples that a fitted estimator is not trained on, None where it has none."""
    found = find_definition(estimator)
    part = estimator if found is None else found.fitted_part(estimator)
    label = None if found is None else found.unlabelled
    return label if part is estimator or label is not None else unlabelled_label(part)


def shape_predictions(estimator: Any, n_dimensions: int) -> None:
    """Make a regressor of one output predict (n,) or (n, 1), where its attributes can tell which."""
    found = find_definition(estimator)
    inner = None if found is None else found.shape_predictions(estimator, n_dimensions)
    if inner is not None:
        shape_predictions(inner, n_dimensions)


def refuse_undefined(op: Any, estimator: Any, x: Any) -> Any:
    """Raise the error that no definition covers an estimator."""
    definition_of(estimator)
    raise op.fail(estimator, "its definition does not cover the parameters it was fitted with.")
