"""Contenders: one module per library, imported only in the process of the contender."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module, util
from typing import Any

__all__ = ["CONTENDERS", "OURS", "Entry", "installed"]


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
    """

    label: str
    module: str
    kind: str
    needs: tuple[str, ...]

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
}


def installed(name: str) -> bool:
    """Return whether the packages of a contender are installed; its process checks that they work."""
    return all(util.find_spec(package) is not None for package in CONTENDERS[name].needs)
