"""The command line: ``ortlearn`` and ``python -m ortlearn``, one file per command."""

from .dispatch import main

__all__ = ["main"]
