"""Save estimators, trained or in training, to a folder or a zip file, and load them without pickle.

``FORMAT`` is the number of the format that is written, ``SCHEMA`` the JSON schema of ``manifest.json``.
"""

from .packages import export_training, load_training, merge_weights
from .public import load, save
from .schema import FORMAT, SCHEMA
from .summaries import read_summary

__all__ = [
    "FORMAT",
    "SCHEMA",
    "export_training",
    "load",
    "load_training",
    "merge_weights",
    "read_summary",
    "save",
]
