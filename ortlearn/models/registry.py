"""Find the definition of an estimator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import plugins
from ..exceptions import ConversionError, UnknownPluginError
from .base import ModelDefinition

__all__ = ["all_covered", "definition_of", "find_definition", "is_continuous", "public_path"]

#: Methods that a definition writes: a class that has its own needs a definition of its own.
COMPUTING = {
    "decision_function",
    "predict",
    "predict_log_proba",
    "predict_proba",
    "score_samples",
    "transform",
}


def public_path(kind: type) -> str:
    """Return the path a class is imported from: its module up to the first private part.

    Parameters
    ----------
    kind : type
        Class.

    Returns
    -------
    str
        Path.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.models.registry import public_path
    >>> public_path(Ridge)
    'sklearn.linear_model.Ridge'
    """
    public: list[str] = []
    for part in kind.__module__.split("."):
        if part.startswith("_"):
            break
        public.append(part)
    return ".".join([*public, kind.__name__])


def find_definition(estimator: Any) -> ModelDefinition | None:
    """Return the definition of the class of an estimator, None where there is none.

    A class without one has that of its base class, where it computes what that one does.

    Parameters
    ----------
    estimator : estimator
        Estimator.

    Returns
    -------
    ModelDefinition or None
        Definition.

    Raises
    ------
    PluginError
        If the definition cannot be loaded.
    """
    for cls in type(estimator).__mro__:
        try:
            return plugins.get(plugins.MODELS, public_path(cls))()
        except UnknownPluginError:
            if not COMPUTING.isdisjoint(vars(cls)):
                return None
    return None


def definition_of(estimator: Any) -> ModelDefinition:
    """Return the definition of the class of an estimator.

    Parameters
    ----------
    estimator : estimator
        Estimator.

    Returns
    -------
    ModelDefinition
        Definition.

    Raises
    ------
    ConversionError
        If there is none.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.models import definition_of
    >>> type(definition_of(Ridge())).__name__
    'RidgeDefinition'
    """
    found = find_definition(estimator)
    if found is None:
        path = public_path(type(estimator))
        raise ConversionError(
            f"{path} has no model definition: declare one in the entry-point group {plugins.MODELS!r} under "
            "this name."
        )
    return found


def all_covered(estimator: Any) -> bool:
    """Return whether an estimator and all estimators in it have definitions that cover them.

    Parameters
    ----------
    estimator : estimator
        Fitted.

    Returns
    -------
    bool
        Whether definitions alone write its graph.
    """
    return all(found is not None and found.covers(part) for part, found in _walk(estimator))


def is_continuous(estimator: Any) -> bool:
    """Return whether what an estimator gives changes little where samples change little.

    Parameters
    ----------
    estimator : estimator
        Fitted; it and all estimators in it have definitions.

    Returns
    -------
    bool
        False with bins among its parts: float32 may put a sample into another one than float64.
    """
    return all(found is not None and found.continuous for _, found in _walk(estimator))


def _walk(estimator: Any) -> Iterator[tuple[Any, ModelDefinition | None]]:
    """Yield an estimator and those in it, each with its definition."""
    found = find_definition(estimator)
    yield estimator, found
    if found is not None and found.covers(estimator):
        for child in found.children(estimator):
            yield from _walk(child)
