"""Save estimators, trained or in training, to a folder or a zip file, and load them without pickle.

``FORMAT`` is the number of the format that is written, ``SCHEMA`` the JSON schema of ``manifest.json``.
"""

from .public import load, save
from .schema import FORMAT, SCHEMA
from .summaries import read_summary

__all__ = ["FORMAT", "SCHEMA", "load", "read_summary", "save"]
