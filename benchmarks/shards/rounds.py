"""Rounds of training over shards, one shard after another on one machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from benchmarks.shards.problems import BATCH, Problem
from ortlearn import OrtGradientOptimizer
from ortlearn.data.orders import batch_sizes, epoch_order
from ortlearn.distributed import average_arrays
from ortlearn.exceptions import ConvergenceError
from ortlearn.fitting.callbacks import EstimatorView
from ortlearn.fitting.run import new_step
from ortlearn.fitting.start import new_start
from ortlearn.fitting.validation import Validation
from ortlearn.problem.samples import Samples

__all__ = ["Outer", "Shards", "Strategy"]

#: Weights and states of an update: by weight, and by name of the state or None.
Arrays = dict[tuple[str, str | None], np.ndarray]


@dataclass(frozen=True)
class Outer:
    """Update of the driver, whose gradient is the difference of the last weights and the mean.

    With momentum it is Nesterov's, as in DiLoCo (Douillard et al., 2023, algorithm 1).

    Attributes
    ----------
    rate, momentum : float
        Rate and momentum; 1 and 0 are plain averages.
    """

    rate: float = 1.0
    momentum: float = 0.0

    def step(self, old: Arrays, mean: Arrays, velocity: Arrays) -> tuple[Arrays, Arrays]:
        """Return new weights and velocities; states of the workers' update are their means."""
        new, next_velocity = dict(mean), {}
        for key in old:
            if key[1] is not None or (self.rate == 1.0 and not self.momentum):
                continue
            gradient = old[key].astype(np.float64) - mean[key]
            next_velocity[key] = self.momentum * velocity.get(key, 0.0) + gradient
            stepped = old[key] - self.rate * (gradient + self.momentum * next_velocity[key])
            new[key] = stepped.astype(old[key].dtype)
        return new, next_velocity


@dataclass(frozen=True)
class Strategy:
    """Averaging strategy.

    Attributes
    ----------
    name : str
        What the tables call it.
    averages : int
        Averages per pass.
    outer : Outer
        Update of the driver.
    keeps_states : bool
        Whether states of the workers' update are averaged; otherwise they are reset in each round.
    often_until : int
        Passes at the beginning with an average after every batch (post-local SGD, Lin et al., 2020).
    divides_batch : bool
        Whether batches are smaller by the number of shards: a shard then makes as many updates in a pass as
        one machine does on all samples.
    alone : bool
        Whether only the first shard is trained on: what the same time gives without other machines.
    """

    name: str
    averages: int = 1
    outer: Outer = Outer()
    keeps_states: bool = True
    often_until: int = 0
    divides_batch: bool = False
    alone: bool = False

    def batch_size(self, n_shards: int) -> int:
        """Return the samples of a batch of each shard."""
        return max(1, BATCH // n_shards) if self.divides_batch else BATCH


class Shards:
    """A problem whose samples lie in shards of equal size.

    Parameters
    ----------
    problem : Problem
        What is trained.
    n_shards : int
        Number of shards.
    seed : int
        Seed of data, weights and orders.
    by_label : bool, default=False
        Whether samples are sorted by label before they are cut into shards, which then differ.
    """

    def __init__(self, problem: Problem, n_shards: int, seed: int, by_label: bool = False):
        self.problem, self.n_shards, self.seed = problem, n_shards, seed
        given = problem.data(seed)
        estimator = OrtGradientOptimizer(
            given.estimator,
            learning_rate=problem.rate(problem.eta0),
            batch_size=BATCH,
            warm_start=problem.warm_start,
            random_state=seed,
        )
        configuration = estimator._configuration()
        start = new_start(configuration, Samples(given.X, given.y), check_random_state(seed), seed)
        self.weights = start.weights
        self.step, data, _ = new_step(configuration, start)
        order = np.argsort(given.y, kind="stable") if by_label else np.arange(len(given.y))
        self.data = [data.take(part) for part in np.array_split(order, n_shards)]
        held_out = Samples(given.X_test, given.y_test)
        self._validation = Validation.of(configuration, start, held_out, EstimatorView(estimator).with_model)

    def train(self, strategy: Strategy, scale: float, n_passes: int) -> tuple[np.ndarray, float]:
        """Train from the same weights each time.

        Parameters
        ----------
        strategy : Strategy
            How rounds are made.
        scale : float
            What the rate on one machine is multiplied by.
        n_passes : int
            Passes over all samples.

        Returns
        -------
        losses : ndarray of shape (n_passes,)
            Loss on test samples after every pass, infinite once it was not finite.
        score : float
            Accuracy or R2 on test samples after the last one, nan where the loss is not finite.
        """
        losses, score = np.full(n_passes, np.inf), float("nan")
        rate = self.problem.eta0 * scale
        arrays: Arrays = {(name, None): array for name, array in self.weights.items()}
        velocity: Arrays = {}
        shards = self.data[:1] if strategy.alone else self.data
        for number in range(n_passes):
            orders = [epoch_order(len(data), self.seed, number, k) for k, data in enumerate(shards)]
            try:
                for parts in self._parts(orders, strategy, number):
                    old = arrays
                    found = [
                        self._local(old, *one, rate, strategy) for one in zip(shards, parts, strict=True)
                    ]
                    arrays, velocity = strategy.outer.step(old, average_arrays(found), velocity)
                weights = {key[0]: array for key, array in arrays.items() if key[1] is None}
                with np.errstate(all="ignore"):
                    measured = self._validation.measure(weights)
            except (ConvergenceError, ValueError) as error:
                if "finite" not in str(error) and "NaN" not in str(error):
                    raise
                break
            if not np.isfinite(measured.loss):
                break
            losses[number], score = measured.loss, float(measured.score or 0.0)
        return losses, score if np.isfinite(losses[-1]) else float("nan")

    def _parts(self, orders: list[np.ndarray], strategy: Strategy, number: int) -> Iterator[list[np.ndarray]]:
        """Yield for each round of a pass the samples that each shard visits."""
        size = strategy.batch_size(self.n_shards)
        n_batches = -(-len(orders[0]) // size)
        count = n_batches if number < strategy.often_until else min(strategy.averages, n_batches)
        for part in np.array_split(np.arange(n_batches), count):
            yield [order[part[0] * size : (part[-1] + 1) * size] for order in orders]

    def _local(self, arrays: Arrays, data, order: np.ndarray, rate: float, strategy: Strategy) -> Arrays:
        """Return weights and states after the batches of a shard."""
        weights = {key[0]: array for key, array in arrays.items() if key[1] is None}
        states = {key: array for key, array in arrays.items() if key[1] is not None}
        size = strategy.batch_size(self.n_shards)
        states = states if strategy.keeps_states else {}
        buffers = self.step.start(data, batch_sizes(len(data), size), weights, states)
        self.step.set_rate(rate)
        values = self.step.run_epoch(order, size, buffers)
        if not np.isfinite(values[-1]):
            raise ConvergenceError("The loss of a batch is not finite.")
        return buffers.read()
