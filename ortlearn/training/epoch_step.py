"""A whole epoch as one call: a Loop over batches inside the graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base_step import BaseStep
from .buffers import CarriedBuffers, Data
from .epoch_graph import LAST, LOSSES, ORDER, REST, EpochGraph, epoch_graph
from .sessions import ort_value
from .step_graphs import RATE, SAMPLE_WEIGHT, Carried, step_graph

__all__ = ["EpochStep"]


class EpochStep(BaseStep):
    """Train with one call of onnxruntime for each epoch.

    Parameters
    ----------
    task : TrainingTask
        What is trained.
    device : Device
        Where.
    n_jobs : int, default=None
        Threads of an operator.
    """

    def build(self) -> list[Carried]:
        """Return what is carried; graphs follow once the sizes of batches are known."""
        return step_graph(self.task).carried
