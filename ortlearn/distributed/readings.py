"""Tasks that read, prepare and measure shards: pure functions of their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..data.sample_blocks import SampleBlock
from ..data.samples import Data
from ..fitting.fingerprint_texts import arrays_text
from ..fitting.run import Preparation
from ..fitting.sources.checks import LabelForm
from ..fitting.sources.counts import SampleCounter, SourceTotals
from ..fitting.sources.samples import SourceReader, add_moments, flat_labels
from ..inference.running import LiveInference
from ..problem.configuration import Runtime
from ..problem.problem import Problem
from ..runtime.errors import runtime_errors
from ..training.graphs.first_layers import Moments
from .averaging import Mean

__all__ = [
    "Evaluator",
    "count_samples",
    "label_moments",
    "mean_loss",
    "moments",
    "prepare",
    "read",
    "texts_of",
]


def count_samples(
    block: SampleBlock, is_classifier: bool, of_file: bool, one_by_one: bool
) -> tuple[SourceTotals, LabelForm | None]:
    """Return the counts of a partition, and the form of its labels; None if it is empty."""
    if not len(block):
        return SourceTotals(0, None, np.zeros(1), None, 0.0), None
    form = LabelForm.of(block)
    counter = SampleCounter(is_classifier, of_file, one_by_one)
    counter.add(block)
    return counter.result(), form


def read(reader: SourceReader, block: SampleBlock) -> Data:
    """Return validated samples as inputs of the graph."""
    return reader.read(block)


def prepare(preparation: Preparation, data: Data) -> Data:
    """Return samples as inputs of the training step."""
    with runtime_errors():
        return preparation(data)


def texts_of(data: Data) -> dict[str, str]:
    """Return the fingerprint of the samples of a shard."""
    return arrays_text(data, "")


def moments(preparation: Preparation, data: Data) -> dict[str, Moments]:
    """Return the moments of the features of a shard, by name."""
    found: dict[str, Moments] = {}
    with runtime_errors():
        add_moments(found, preparation.features(data), data)
    return found


def label_moments(data: Data) -> Moments:
    """Return the moments of the labels of a shard."""
    found = Moments()
    found.add(flat_labels(data), data.weight_per_sample)
    return found


@dataclass
class Evaluator:
    """Evaluates a model during training; the sessions are created once per process."""

    problem: Problem
    runtime: Runtime

    def __getstate__(self) -> dict[str, Any]:
        return {"problem": self.problem, "runtime": self.runtime}

    @cached_property
    def inference(self) -> LiveInference:
        """Sessions with the trained weights as inputs."""
        return LiveInference(self.problem, self.problem.trainable.model, self.runtime)


def mean_loss(evaluator: Evaluator, weights: Mapping[str, np.ndarray], data: Data) -> Mean:
    """Return the mean loss of a shard, under the name ``"loss"``."""
    weight, loss = data.total_weight, 0.0
    if weight > 0:
        loss = evaluator.inference.with_weights(weights).mean_loss(data.X, data.y, data.sample_weight)
    return Mean({"loss": np.array(loss)}, weight)
