"""Who runs: one module for each library, which only that contender's process imports."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module, util
from typing import Any

__all__ = ["CONTENDERS", "OURS", "Entry", "installed"]


@dataclass(frozen=True)
class Entry:
    """A contender, without importing it.

    Attributes
    ----------
    label : str
        What a reader sees.
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
    """Tell whether a contender's packages are there; whether they work, its process will tell."""
    return all(util.find_spec(package) is not None for package in CONTENDERS[name].needs)
