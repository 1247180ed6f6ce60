"""Check the parameters of a plugin."""

from __future__ import annotations

import pickle
import sys

from sklearn.base import BaseEstimator, clone

__all__ = ["check_parameters"]


def check_parameters(plugin: BaseEstimator) -> None:
    """Check that the parameters of a plugin survive ``clone`` and pickle."""
    name = type(plugin).__name__
    copies = {"clone": clone(plugin)}
    if _is_importable(plugin):
        copies["pickle"] = pickle.loads(pickle.dumps(plugin))
    for how, copied in copies.items():
        same = repr(copied.get_params()) == repr(plugin.get_params())
        assert same, f"{name}: {how} changes the parameters to {copied.get_params()}"
        if hasattr(plugin, "graph_key"):
            assert copied.graph_key() == plugin.graph_key(), f"{name}: {how} changes graph_key()"


def _is_importable(plugin: BaseEstimator) -> bool:
    """Return whether pickle can find the classes of a plugin and its parameters."""
    kinds = {type(value) for value in (plugin, *plugin.get_params().values())}
    own = [kind for kind in kinds if issubclass(kind, BaseEstimator)]
    return all(getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind for kind in own)
