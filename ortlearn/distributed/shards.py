"""Samples of a distributed training: shards on the workers, with their total counts on the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from distributed import Future

from ..exceptions import SourceError
from ..fitting.run import Preparation
from ..fitting.sources.counts import SourceTotals
from ..fitting.sources.samples import SourceReader
from ..problem.configuration import Runtime
from ..problem.input_validation import InputFeatures
from ..problem.label_scales import score_moments
from ..problem.problem import Problem
from ..training.graphs.first_layers import Moments
from . import readings, tasks
from .averaging import average_arrays
from .cluster import Cluster
from .partitions import Partitions

__all__ = ["ShardSamples", "count_partitions"]


def count_partitions(
    cluster: Cluster, partitions: Partitions, is_classifier: bool, of_file: bool, one_by_one: bool = False
) -> tuple[Partitions, list[SourceTotals]]:
    """Return the non-empty partitions, and the counts of each."""
    flags = (is_classifier, of_file, one_by_one)
    futures = [cluster.submit(readings.count_samples, block, *flags) for block in partitions.blocks]
    found = cluster.gather(futures, names=partitions.names)
    numbers = [number for number, (whole, _) in enumerate(found) if whole.n_rows]
    if not numbers:
        raise SourceError("There are no samples: all partitions are empty. Check the data and their filters.")
    names, forms = partitions.names, [form for _, form in found]
    for number in numbers:
        try:
            forms[numbers[0]].check(forms[number], names[numbers[0]])
        except ValueError as error:
            raise SourceError(f"{names[number]}: {error}") from error
    return partitions.take(numbers), [found[number][0] for number in numbers]


class ShardSamples:
    """All samples of a training in shards, which are the non-empty partitions."""

    def __init__(
        self,
        cluster: Cluster,
        partitions: Partitions,
        sizes: list[int],
        whole: SourceTotals,
        problem: Problem,
        features: InputFeatures,
        runtime: Runtime,
    ):
        self.cluster, self.names, self.sizes, self.whole = cluster, partitions.names, sizes, whole
        self.problem, self.runtime = problem, runtime
        reader = cluster.send(SourceReader(problem, features, whole, partitions.is_named))
        self._read = [cluster.submit(readings.read, reader, block) for block in partitions.blocks]
        # Invalid samples raise an error here, before the first round.
        self._texts = self.gather(self.on_shards(readings.texts_of))
        self.shards: list[Future] = []  # inputs of the training step
        self._reports: list[tuple[tasks.Report, int]] = []

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.whole.n_rows

    @property
    def summary(self) -> bytes:
        """Text of the counts of all samples, by which a resumed training detects other data."""
        whole = self.whole
        labels = None if whole.labels is None else whole.labels.tolist()
        return repr((self.sizes, whole.largest, whole.weights.tolist(), labels)).encode()

    def array_texts(self) -> dict[str, str]:
        """Return the texts of the arrays of all shards."""
        names = list(self._texts[0])
        return {name: "; ".join(texts[name] for texts in self._texts) for name in names}

    def texts(self) -> dict[str, str]:
        """Return the fingerprint of the samples of all shards."""
        return {**self.array_texts(), "source": self.whole.text()}

    def on_shards(self, task: Callable, *arguments: Any) -> list[Future]:
        """Submit a task for each shard, and return the futures."""
        return [self.cluster.submit(task, *arguments, data) for data in self._read]

    def gather(self, futures: Sequence[Future]) -> list[Any]:
        """Return the results of a task for each shard, in order."""
        return self.cluster.gather(futures, names=self.names)

    def prepare(self, preparation: Preparation) -> None:
        """Make the shards inputs of the training step."""
        self.shards = self.on_shards(readings.prepare, self.cluster.send(preparation))

    def add_reports(self, reports: Sequence[tasks.Report], number: int = 0) -> None:
        """Record the reports of a round on its epoch with this number, counted from 0."""
        self._reports += [(report, number) for report in reports]

    def columns(self) -> dict[str, Any]:
        """Return the columns of the history for the rounds since the last call."""
        reports, self._reports = self._reports, []
        losses: dict[str, list[float]] = {name: [] for name in self.names}
        samples: dict[str, int] = {}
        seconds: dict[str, float] = {}
        for report, number in reports:
            n_passes = len(report.losses)
            losses[self.names[report.shard]].append(report.losses[number])
            samples[report.worker] = samples.get(report.worker, 0) + report.n_samples // n_passes
            seconds[report.worker] = seconds.get(report.worker, 0.0) + report.seconds / n_passes
        n_rounds = max(map(len, losses.values()), default=0)
        return {"rounds": n_rounds, "shard_losses": losses, "worker_rows": samples, "worker_seconds": seconds}

    @cached_property
    def label_moments(self) -> tuple[np.ndarray, float]:
        """Mean and deviation of scores that predict the labels."""
        whole = Moments()
        for part in self.gather(self.on_shards(readings.label_moments)):
            whole.merge(part)
        return score_moments(self.problem, *whole.mean_and_variance)

    def measure(self, preparation: Preparation) -> dict[str, Moments]:
        """Return the moments of features, by name."""
        found = self.gather(self.on_shards(readings.moments, self.cluster.send(preparation)))
        for other in found[1:]:
            for name, moments in other.items():
                found[0][name].merge(moments)
        return found[0]

    def mean_loss(self, live: Any) -> float:
        """Return the mean loss of all samples with the weights of a model."""
        evaluator = self.cluster.send(readings.Evaluator(self.problem, self.runtime))
        return self.mean_loss_of(evaluator, live.weights)

    def mean_loss_of(self, evaluator: Future, weights: Mapping[str, np.ndarray]) -> float:
        """Return the mean loss of all samples with some weights, computed by an evaluator on the workers."""
        means = self.gather(self.on_shards(readings.mean_loss, evaluator, self.cluster.send(dict(weights))))
        losses, counts = [mean.arrays for mean in means], [mean.weight for mean in means]
        return float(average_arrays(losses, counts)["loss"])
