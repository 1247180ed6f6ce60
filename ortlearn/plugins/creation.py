"""Create plugin objects from names, classes or objects."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..exceptions import OrtlearnError, PluginError
from .groups import LABELS
from .lookup import get
from .registry import known_names

__all__ = ["blamed", "create"]


@contextmanager
def blamed(plugin: Any, method: str) -> Iterator[None]:
    """Name the plugin in errors that its code raises; errors of ortlearn are not changed.

    Parameters
    ----------
    plugin : object
        Plugin whose code runs.
    method : str
        Method that runs.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    PluginError
        For any other exception.

    Examples
    --------
    >>> from ortlearn import plugins
    >>> with plugins.blamed("a plugin", "forward"):
    ...     {}["key"]
    Traceback (most recent call last):
    ...
    ortlearn.exceptions.PluginError: forward of str raised KeyError: 'key'.
    """
    try:
        yield
    except OrtlearnError:
        raise
    except Exception as error:
        name, kind = type(plugin).__name__, type(error).__name__
        hint = " Tensors are names here: combine them by methods of op, such as op.Sub(a, b)."
        is_arithmetic = isinstance(error, TypeError) and ("'str'" in str(error) or "StrDType" in str(error))
        raise PluginError(f"{method} of {name} raised {kind}: {error}.{hint * is_arithmetic}") from error


def create(group: str, spec: Any, base: type, **params: Any) -> Any:
    """Return a new plugin object.

    Parameters
    ----------
    group : str
        Plugin group, such as ``"ortlearn.losses"``.
    spec : str, class or object
        A plugin's name, a subclass of ``base``, or an instance of it (copied).
    base : type
        Base class of the group.
    **params
        Constructor arguments, only for a name or a class.

    Returns
    -------
    object
        Instance of ``base``.

    Raises
    ------
    PluginError
        If the object has another type, if arguments do not fit its
        constructor, or if the plugin cannot be loaded.
    UnknownPluginError
        If no distribution declares the name.

    Examples
    --------
    >>> from ortlearn import plugins
    >>> plugins.create(plugins.PENALTIES, "l1", object, l1=0.1)
    L1Penalty(l1=0.1)
    """
    target = get(group, spec) if isinstance(spec, str) else spec
    if isinstance(target, type) and issubclass(target, base):
        try:
            return target(**params)
        except OrtlearnError:
            raise
        except Exception as error:  # constructors may raise any error
            raise PluginError(
                f"{target.__name__} cannot be created from {params}: {type(error).__name__}: "
                f"{str(error).rstrip('.')}."
            ) from error
    if isinstance(target, base) and not params:
        return copy.deepcopy(target)
    if params and isinstance(target, base):
        raise PluginError(f"{spec!r} is already an object: set {sorted(params)} on it.")
    raise PluginError(
        f"{spec!r} is not a {LABELS[group]}: pass a name ({', '.join(known_names(group))}), or a subclass or "
        f"an instance of {base.__name__}."
    )
