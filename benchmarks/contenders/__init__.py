"""Contenders: one module per library, imported only in the process of the contender."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module, util
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

__all__ = ["CONTENDERS", "JAX", "OURS", "Entry", "installed"]


@dataclass(frozen=True)
class Entry:
    """Entry of a contender, which is not imported yet.

    Attributes
    ----------
    label : str
        Title in the report.
    module : str
        Module of this package.
    kind : str
        Class in that module.
    needs : tuple of str
        Packages it needs.
    pinned : tuple of str
        Requirements of another version of them, installed in ``folder``.
    """

    label: str
    module: str
    kind: str
    needs: tuple[str, ...]
    pinned: tuple[str, ...] = ()

    @property
    def folder(self) -> Path | None:
        """Folder of another version of the packages, in the environment of the benchmark."""
        return Path(sys.prefix) / "peers" / "-".join(self.pinned) if self.pinned else None

    def load(self) -> Any:
        """Import the library and return the contender's class."""
        return getattr(import_module(f".{self.module}", __name__), self.kind)


OURS = "ortlearn"

CONTENDERS = {
    OURS: Entry("OrtGradientOptimizer", "of_ortlearn", "SingleGraph", ("onnxruntime",)),
    "forward-backward": Entry(
        "OrtGradientForwardBackwardOptimizer", "of_ortlearn", "ForwardBackward", ("onnxruntime",)
    ),
    "sklearn-mlp": Entry(
        "scikit-learn MLPRegressor, MLPClassifier", "of_sklearn", "Perceptron", ("sklearn",)
    ),
    "sklearn-sgd": Entry("scikit-learn SGDRegressor, SGDClassifier", "of_sklearn", "Linear", ("sklearn",)),
    "torch": Entry("torch, eager", "of_torch", "Torch", ("torch",)),
    "skorch": Entry("skorch", "of_skorch", "Skorch", ("torch", "skorch")),
    "jax": Entry("JAX, jit and lax.scan", "of_jax", "Jax", ("jax",)),
    # The last version before another runtime on CPUs, which is slower for small models.
    "jax-0.4.31": Entry(
        "JAX 0.4.31, jit and lax.scan", "of_jax", "Jax", ("jax", "jaxlib"), ("jax==0.4.31", "jaxlib==0.4.31")
    ),
}

#: Versions of JAX: the faster one is compared with.
JAX = ("jax", "jax-0.4.31")


def installed(name: str) -> bool:
    """Return whether the packages of a contender are installed; its process checks that they work."""
    entry = CONTENDERS[name]
    if entry.folder is not None:
        return all(PathFinder.find_spec(package, [str(entry.folder)]) is not None for package in entry.needs)
    return all(util.find_spec(package) is not None for package in entry.needs)
