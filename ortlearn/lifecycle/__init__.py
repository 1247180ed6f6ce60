"""From drift to a promoted model: tests of drift, retraining, a gate, versions of a model, and cards."""

from .adaptation import adapt
from .drift import ColumnDrift
from .gate import Gate, Verdict
from .promotion import promote
from .results import Adaptation, Drift
from .two_samples import TwoSampleTest
from .versions import ModelFolder

__all__ = [
    "Adaptation",
    "ColumnDrift",
    "Drift",
    "Gate",
    "ModelFolder",
    "TwoSampleTest",
    "Verdict",
    "adapt",
    "promote",
]
