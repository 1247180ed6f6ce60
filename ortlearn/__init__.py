"""Train any scikit-learn model by gradient with ONNX Runtime."""

from ._version import __version__

__all__ = ["__version__"]
