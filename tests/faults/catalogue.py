"""The faults, each by the name of its module."""

from __future__ import annotations

import importlib

from tests.faults.fault import Fault

__all__ = ["NAMES", "load"]

#: In the order of the table.
NAMES = (
    "killed_trainings",
    "interrupted_trainings",
    "interrupted_saves",
    "full_disks",
    "denied_permissions",
    "altered_files",
    "raised_errors",
    "failing_sources",
    "memory_limits",
    "shared_folders",
    "fits_in_threads",
    "predictions_in_threads",
    "forked_processes",
    "repeated_fits",
    "worker_processes",
)


def load(name: str) -> Fault:
    """Return a fault: the ``FAULT`` of the module of that name."""
    return importlib.import_module(f"tests.faults.{name}").FAULT
