"""The gate: whether a retrained model may replace the one in use."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..evaluation.bootstrap import MOST, Bootstrap
from ..evaluation.data_files import Table
from ..evaluation.metrics import Metrics, model_metrics
from ..evaluation.predictions import Model, Predictions
from .samples import labels_of

__all__ = ["Gate", "Verdict"]

#: Metrics of which smaller values are better.
LOSSES = ("log_loss", "brier", "mae", "rmse")
#: Metric by default, by task.
DEFAULTS = {"classification": "accuracy", "regression": "r2"}
#: Fewest samples of a group that can refuse a model, and fewest held-out ones whose interval shows a gain.
FEWEST_SAMPLES, FEWEST_HELD_OUT = 10, 20
#: Calls whose median is the latency.
CALLS = 5


@dataclass(frozen=True)
class Gate:
    """Conditions under which a retrained model is promoted.

    Parameters
    ----------
    metric : str or callable, default=None
        ``"accuracy"``, ``"roc_auc"``, ``"log_loss"`` or ``"brier"`` for classifiers, ``"r2"``, ``"mae"`` or
        ``"rmse"`` for regressors; or a function ``metric(y_true, y_pred, sample_weight=...)`` of which larger
        values are better, such as scikit-learn's. Accuracy or R2 by default.
    minimum_gain : float, default=0.0
        Smallest gain of the metric, in its units (of a loss, the decrease). Besides, the bootstrap interval
        of the gain must be above zero, from 20 held-out samples or more, of two classes at least.
    largest_loss : float, default=0.05
        Most that the metric of a group of samples may become worse.
    max_bytes : int, default=None
        Largest size of the ONNX file.
    max_latency : float, default=None
        Most seconds for the predictions of the held-out samples, relative to the model in use: 2.0 is twice
        its time. The median of five calls.
    level : float, default=0.95
        Level of the intervals.
    resamples : int, default=1000
        Bootstrap samples.
    """

    metric: str | Callable[..., float] | None = None
    minimum_gain: float = 0.0
    largest_loss: float = 0.05
    max_bytes: int | None = None
    max_latency: float | None = None
    level: float = 0.95
    resamples: int = 1000

    def __post_init__(self) -> None:
        for name in ("minimum_gain", "largest_loss"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name}={getattr(self, name)!r} must be 0 or more.")
        for name in ("max_bytes", "max_latency"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name}={value!r} must be positive.")
        if not 0 < self.level < 1:
            raise ValueError(f"level={self.level!r} must be between 0 and 1.")
        if not 2 <= self.resamples <= MOST:
            raise ValueError(f"resamples={self.resamples!r} must be between 2 and {MOST}.")

    def check(self, model: Model, held_out: Table) -> None:
        """Raise an error if a model does not have the metric.

        Parameters
        ----------
        model : Model
            The model in use.
        held_out : Table
            Samples with labels.

        Raises
        ------
        ValueError
            If it does not have it.
        """
        self._name(model, self._metrics(model, labels_of(held_out, model), model.predict(held_out)))

    def judged(self, old: Model, new: Model, held_out: Table, size: int | None, seed: int) -> Verdict:
        """Return the verdict on a model, by samples that neither model was trained on.

        Parameters
        ----------
        old, new : Model
            The model in use, and the one to replace it.
        held_out : Table
            Samples.
        size : int or None
            Bytes of the ONNX file of the new model.
        seed : int
            Seed of the bootstrap.

        Returns
        -------
        Verdict
            Outcome with its reasons.
        """
        labels, models = labels_of(held_out, old), (old, new)
        predictions = [model.predict(held_out) for model in models]
        metrics = [self._metrics(old, labels, found) for found in predictions]
        name = self._name(old, metrics[0])
        bootstrap = Bootstrap(self.resamples, self.level, seed)
        weights = held_out.weight_per_sample
        scores = bootstrap.compare(metrics[0], metrics[1], weights)
        groups = self._groups(name, old, labels, predictions, held_out, bootstrap)
        seconds = [_seconds(model, held_out) for model in models]
        sign = -1.0 if name in LOSSES else 1.0
        gain, interval = sign * scores[name]["difference"]["value"], scores[name]["difference"]["interval"]
        low = None if interval is None else min(sign * bound for bound in interval)
        reasons = []
        if len(held_out) < FEWEST_HELD_OUT:
            few = f"{len(held_out)} held-out samples are too few to show a gain"
            reasons.append(f"{few}: {FEWEST_HELD_OUT} are needed")
        elif old.task == "classification" and len(np.unique(labels)) < 2:
            reasons.append("the held-out samples have one class, which shows nothing of the others")
        elif not gain >= self.minimum_gain or low is None or low <= 0:
            shown = "unknown" if low is None else f"{low:+.4g}"
            reasons.append(
                f"the gain of {name} on {len(held_out)} held-out samples is {gain:+.4g} (interval from "
                f"{shown}), and must be at least {self.minimum_gain:g} with an interval above 0"
            )
        refusals = [
            f"{name} of the group {group!r} becomes worse by {-change:.4g}, more than {self.largest_loss:g}"
            for group, change in groups.items()
            if change < -self.largest_loss
        ]
        if self.max_bytes is not None and size is not None and size > self.max_bytes:
            refusals.append(f"the file has {size} bytes, more than {self.max_bytes}")
        if self.max_latency is not None and seconds[1] > self.max_latency * seconds[0]:
            ratio = seconds[1] / seconds[0]
            refusals.append(f"predictions take {ratio:.2f} times as long, more than {self.max_latency:g}")
        outcome = "kept" if reasons else "refused" if refusals else "promoted"
        latency = {"old": seconds[0], "new": seconds[1]}
        return Verdict(outcome, reasons or refusals, name, gain, scores, groups, size, latency)

    def _metrics(self, model: Model, labels: np.ndarray, predictions: Predictions) -> Metrics:
        """Return the metrics by name, with a given function among them."""
        found = model_metrics(model, labels, predictions)
        if callable(self.metric):
            function = self.metric
            name = getattr(function, "__name__", "metric")
            found[name] = lambda weights: float(function(labels, predictions.values, sample_weight=weights))
        return found

    def _name(self, model: Model, metrics: Metrics) -> str:
        name = self.metric if self.metric is not None else DEFAULTS[str(model.task)]
        name = getattr(name, "__name__", "metric") if callable(name) else name
        if name not in metrics:
            raise ValueError(f"metric={name!r} must be a function or one of {list(metrics)} for this model.")
        return str(name)

    def _groups(
        self,
        name: str,
        model: Model,
        labels: np.ndarray,
        predictions: list[Predictions],
        table: Table,
        bootstrap: Bootstrap,
    ) -> dict[str, float]:
        """Return the gain of each group with enough samples."""
        if table.groups is None:
            return {}
        sign, changes = (-1.0 if name in LOSSES else 1.0), {}
        if max(np.unique(table.groups, return_counts=True)[1]) < FEWEST_SAMPLES:
            raise ValueError(
                f"No group has {FEWEST_SAMPLES} held-out samples: choose another column to compare by."
            )
        for group in sorted(set(table.groups.tolist())):
            members = np.flatnonzero(table.groups == group)
            if len(members) < FEWEST_SAMPLES:
                continue
            weights = table.weight_per_sample[members]
            values = [
                self._metrics(model, labels[members], found.take(members))[name](weights)
                for found in predictions
            ]
            change = sign * (values[1] - values[0])
            if np.isfinite(change):
                changes[group] = change
        return changes


@dataclass(frozen=True)
class Verdict:
    """Outcome of a gate.

    Attributes
    ----------
    outcome : {"promoted", "kept", "refused"}
        Whether the new model is better by the evidence asked for (otherwise the old one is kept), and meets
        all limits (otherwise it is refused).
    reasons : list of str
        Why it is not promoted.
    metric : str
        Name of the metric.
    gain : float
        Improvement of the metric; positive if the new model is better, also for losses.
    scores : dict
        Value and interval of each metric for ``old``, ``new`` and ``difference``.
    groups : dict of str to float
        Gain of each group.
    size : int or None
        Bytes of the ONNX file; None if the model has no ONNX form.
    latency : dict of str to float
        Seconds of the predictions of the held-out samples.
    """

    outcome: str
    reasons: list[str] = field(default_factory=list)
    metric: str = ""
    gain: float = float("nan")
    scores: dict[str, Any] = field(default_factory=dict)
    groups: dict[str, float] = field(default_factory=dict)
    size: int | None = None
    latency: dict[str, float] = field(default_factory=dict)


def _seconds(model: Model, table: Table) -> float:
    """Return the median time of a prediction of all samples."""
    model.predict(table)
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        model.predict(table)
        times.append(time.perf_counter() - start)
    return float(np.median(times))
