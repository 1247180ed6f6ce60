"""Faults by the names of their modules."""

from __future__ import annotations

import importlib

from benchmarks.faults.fault import Fault

__all__ = ["NAMES", "load"]

#: Names in the order of the table.
NAMES = (
    "killed_trainings",
    "interrupted_trainings",
    "interrupted_saves",
    "full_disks",
    "denied_permissions",
    "altered_files",
    "altered_packages",
    "raised_errors",
    "failing_sources",
    "wrong_sources",
    "memory_limits",
    "shared_folders",
    "fits_in_threads",
    "predictions_in_threads",
    "forked_processes",
    "repeated_fits",
    "worker_processes",
)


def load(name: str) -> Fault:
    """Return the ``FAULT`` of a module."""
    return importlib.import_module(f"benchmarks.faults.{name}").FAULT
