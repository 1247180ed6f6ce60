"""Turn what a user passes (a name, a class, an object) into a plugin object."""

from __future__ import annotations

import copy
from typing import Any

from ..exceptions import PluginError
from .registry import get

__all__ = ["create"]


def create(group: str, spec: Any, base: type, **params: Any) -> Any:
    """Return a new plugin object; what was passed stays as it is.

    Parameters
    ----------
    group : str
        Plugin group, such as ``"ortlearn.losses"``.
    spec : str, class or object
        A plugin's name, a subclass of ``base``, or an instance of it (copied).
    base : type
        What the object must be an instance of.
    **params
        Constructor arguments, for a name or a class only.

    Returns
    -------
    object
        Instance of ``base``.

    Raises
    ------
    PluginError
        If the object is of another kind, if arguments do not fit its
        constructor, or if the plugin cannot be loaded.
    UnknownPluginError
        If nobody declares the name.

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
        except TypeError as error:
            raise PluginError(f"{target.__name__} cannot be made from {params}: {error}.") from error
    if isinstance(target, base) and not params:
        return copy.deepcopy(target)
    if params and isinstance(target, base):
        raise PluginError(f"{spec!r} is an object already: set {sorted(params)} on it.")
    raise PluginError(
        f"{spec!r} is not a plugin of {group!r}: "
        f"pass a name, or a subclass or an instance of {base.__name__}."
    )
