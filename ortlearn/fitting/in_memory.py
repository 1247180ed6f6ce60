"""Samples of a call in memory: a source of one chunk, of which some samples may be held out."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from sklearn.utils import get_tags

from ..comparison.candidates import Pull
from ..onnx_files.loading import is_onnx_source
from ..preprocessing.initial_fit import is_fitted
from ..problem.samples import Samples, hold_out
from .given import Beginning, Call, Given, named_classes
from .growth import Growth, TreeStream, check_grows
from .run import is_grown
from .start import Start, labelled
from .validation import Validation
from .warm_starts import WarmStart

__all__ = ["InMemory"]

#: Smallest number of samples for which some are held out to decide when to stop.
FEWEST_SAMPLES = 20


class InMemory(Given):
    """Samples in memory."""

    in_memory = True

    def __init__(self, samples: Samples, held_out: Samples | None):
        super().__init__()
        self._samples, self._held_out = samples, held_out
        self.has_validation, self.is_split = held_out is not None, held_out is None

    def open(self, call: Call) -> Samples:
        """Hold samples out for early stopping, unless they are given; return the others."""
        own = call.beginning
        if own.configuration.stopping.early_stopping and self._held_out is None:
            _check_splits(own.configuration.source)
            kept, others = hold_out(self._samples, own.configuration, own.random_state)
            self._samples, self._held_out = self._samples.take(kept), self._samples.take(others)
        return self._samples

    def start(self, beginning: Beginning) -> Start:
        """Return the start of the training."""
        start = beginning.start(self._samples)
        self._samples, _ = labelled(start.problem, self._samples)
        return start

    def warm_start(self, call: Call, start: Start) -> WarmStart | None:
        """Return the comparison of candidates, if training is regularised towards its start."""
        own, problem = call.beginning, start.problem
        compared = own.configuration.keep_better and start.from_model and problem.loss is not None
        automatic = own.configuration.updates.learning_rate is None
        if not (automatic and problem.updates.is_solver and compared):
            return None
        candidate = None if call.resumed is None else call.resumed.fingerprint.candidate or Pull()
        expected = named_classes(own.configuration, own.classes, self._samples.y)
        growth = Growth.of(own.configuration, start, self._samples, expected)
        return WarmStart(self._samples, own.random_state, growth, candidate)

    def tree_stream(self, call: Call, start: Start) -> TreeStream | None:
        """Return the call of ``partial_fit`` for an ensemble of trees; single trees are an error."""
        check_grows(start.problem)
        own = call.beginning
        expected = named_classes(own.configuration, own.classes, self._samples.y)
        growth = Growth.of(own.configuration, start, self._samples, expected, of_stream=True)
        return (
            None if growth is None else TreeStream(own.configuration, start, self._samples, own.last, growth)
        )

    def validated(self, call: Call, start: Start, adapts: bool) -> tuple[Start, Validation | None]:
        """Hold samples out, to decide when to stop or which weights to keep, and return the validation."""
        own, is_open, members = call.beginning, not adapts and self._held_out is None, None
        if is_open and _needs_validation(own, start):
            with suppress(ValueError):  # too few samples of a class: no samples are held out
                kept, others = hold_out(self._samples, own.configuration, own.random_state)
                members = None if start.data.members is None else start.data.members[others]
                start = replace(start, data=start.data.take(kept))
                self._held_out = self._samples.take(others)
        held_out = self._held_out
        if held_out is None:
            return start, None
        return start, Validation.of(own.configuration, start, held_out, call.view.with_model, members)


def _needs_validation(beginning: Beginning, start: Start) -> bool:
    """Return whether to hold samples out, to decide when to stop or which weights to keep."""
    configuration, enough = beginning.configuration, len(start.data) >= FEWEST_SAMPLES
    if beginning.adds_epoch or is_grown(configuration, beginning.last):
        return False
    compared = start.from_model and configuration.keep_better
    return start.problem.flexible and enough and (configuration.updates.learning_rate is None or compared)


def _check_splits(source: Any) -> None:
    """Raise an error if samples cannot be held out, since the model takes a kernel matrix."""
    if is_onnx_source(source) or is_fitted(source):
        return
    if get_tags(source).input_tags.pairwise:
        raise ValueError(
            f"early_stopping cannot hold samples out of X, since {type(source).__name__} takes a kernel "
            "matrix with a column for each training sample: pass X_val, the kernel of other samples with "
            "those of X, or a fitted model."
        )
