"""Save estimators, trained or in training, to a folder or a zip file, and load them without pickle."""

from .files import read_summary
from .public import load, save
from .schema import FORMAT, SCHEMA

__all__ = ["FORMAT", "SCHEMA", "load", "read_summary", "save"]
