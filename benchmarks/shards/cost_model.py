"""Cost model of time and communication of training over shards, from measured costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

__all__ = ["Costs", "Estimate", "Measured", "estimate", "fit_rounds", "fit_samples"]

#: Largest number of shards for which the effect of a pass was measured, and of workers that ran side by side.
STATISTICS, WORKERS = 64, 2


@dataclass(frozen=True)
class Measured:
    """Costs as a sum of measured terms, and where they were measured.

    Attributes
    ----------
    terms : tuple of float
        Seconds per unit of each term.
    largest : tuple of float
        Largest values of the variables at which seconds were measured.
    error : float
        Largest relative difference between a measured time and the sum of the terms.
    """

    terms: tuple[float, ...]
    largest: tuple[float, ...]
    error: float


@dataclass(frozen=True)
class Costs:
    """Measured costs of the model.

    Attributes
    ----------
    rounds : Measured
        Seconds of a round besides training: fixed, per shard, and per byte of each shard; measured up to a
        number of shards and a number of bytes of a model with its states.
    samples : Measured
        Seconds of a sample of a pass: fixed, per column, and per weight; measured up to a number of columns
        and a number of weights.
    efficiency : float, default=1
        Share of its speed that a worker keeps beside others: half of the ratio of two processes.
    """

    rounds: Measured
    samples: Measured
    efficiency: float = 1.0


@dataclass(frozen=True)
class Estimate:
    """Estimate of a training.

    Attributes
    ----------
    compute, communication : float
        Seconds of a pass that workers train for, and that rounds take besides.
    sent : float
        Bytes of a pass that go to the shards and come back.
    one_machine : float
        Seconds of a pass on one worker without rounds.
    updates : float
        Updates of each shard in a pass.
    extra_passes : float
        Passes to a loss, as a multiple of those on one worker.
    extrapolated : tuple of str
        Quantities that lie outside of what was measured.
    """

    compute: float
    communication: float
    sent: float
    one_machine: float
    updates: float
    extra_passes: float
    extrapolated: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """Seconds of a pass."""
        return self.compute + self.communication

    @property
    def speedup(self) -> float:
        """Speed-up to reach a loss, relative to one worker."""
        return self.one_machine / (self.extra_passes * self.seconds)


def _fitted(design: np.ndarray, seconds: np.ndarray, largest: Sequence[float]) -> Measured:
    """Return terms that are not negative, by least squares of relative differences."""
    terms, _ = nnls(design / seconds[:, np.newaxis], np.ones(len(seconds)))
    error = np.abs(design @ terms / seconds - 1).max()
    return Measured(tuple(terms.tolist()), tuple(map(float, largest)), float(error))


def fit_rounds(n_shards: Sequence[int], n_bytes: Sequence[int], seconds: Sequence[float]) -> Measured:
    """Return the cost of a round: ``fixed + shards * (per_shard + bytes * per_byte)``.

    Parameters
    ----------
    n_shards, n_bytes : sequence of int
        Shards, and bytes of the arrays that each of them takes and returns.
    seconds : sequence of float
        Measured seconds.

    Returns
    -------
    Measured
        Terms in this order.
    """
    shards, size = np.asarray(n_shards, dtype=float), np.asarray(n_bytes, dtype=float)
    design = np.stack([np.ones_like(shards), shards, shards * size], axis=1)
    return _fitted(design, np.asarray(seconds, dtype=float), (shards.max(), size.max()))


def fit_samples(n_columns: Sequence[int], n_weights: Sequence[int], seconds: Sequence[float]) -> Measured:
    """Return the cost of a sample of a pass: ``fixed + columns * per_column + weights * per_weight``.

    Parameters
    ----------
    n_columns, n_weights : sequence of int
        Columns of X, and weights of a dense network or linear model.
    seconds : sequence of float
        Measured seconds of a sample.

    Returns
    -------
    Measured
        Terms in this order.
    """
    columns, weights = np.asarray(n_columns, dtype=float), np.asarray(n_weights, dtype=float)
    design = np.stack([np.ones_like(columns), columns, weights], axis=1)
    return _fitted(design, np.asarray(seconds, dtype=float), (columns.max(), weights.max()))


def estimate(
    costs: Costs,
    n_samples: float,
    n_columns: float,
    n_weights: float,
    n_workers: int,
    *,
    shards_per_worker: int = 1,
    averages: int = 1,
    batch_size: int = 256,
    bytes_per_weight: float = 12.0,
    bandwidth: float | None = None,
    tree: bool = False,
    extra_passes: float = 1.0,
) -> Estimate:
    """Return cost and gain of a pass, by the model.

    A round sends weights and states to every shard and takes them back, and workers train their shards at
    the same time. With a tree, workers average in pairs, all pairs at the same time: bytes go out and come
    back once for each of ``log2(shards)`` levels instead of once for each shard.

    Parameters
    ----------
    costs : Costs
        Measured costs.
    n_samples, n_columns, n_weights : float
        Samples of all shards, columns, and trained weights.
    n_workers : int
        Worker processes of one thread, each on a core of its own.
    shards_per_worker : int, default=1
        Shards that a worker trains one after another.
    averages : int, default=1
        Averages per pass.
    batch_size : int, default=256
        Samples of a batch.
    bytes_per_weight : float, default=12
        Bytes of a weight with its states: 12 for Adam in float32, 4 for SGD.
    bandwidth : float, default=None
        Bytes per second of the driver's network; by default the measured cost of a byte counts, that of
        processes on one machine.
    tree : bool, default=False
        Whether workers average in pairs, which no measurement of ours covers.
    extra_passes : float, default=1
        Passes to a loss over these shards, as a multiple of those on one worker: the statistical cost.

    Returns
    -------
    Estimate
        Time and communication, and what of it lies outside of the measurements.

    Raises
    ------
    ValueError
        If a number is not above zero.

    Examples
    --------
    >>> from benchmarks.shards.cost_model import Costs, Measured, estimate
    >>> of_rounds, of_samples = (0.005, 0.001, 1e-9), (1e-6, 0.0, 0.0)
    >>> costs = Costs(Measured(of_rounds, (64, 1e7), 0.1), Measured(of_samples, (1000, 1e6), 0.1))
    >>> found = estimate(costs, n_samples=1e8, n_columns=100, n_weights=1e4, n_workers=10)
    >>> round(found.one_machine), round(found.compute), round(found.communication, 3), round(found.speedup, 1)
    (100, 10, 0.016, 10.0)
    >>> estimate(costs, n_samples=1e8, n_columns=100, n_weights=1e4, n_workers=64).extrapolated
    ('64 workers (measured up to 2)',)
    """
    given = (
        extra_passes,
        n_samples,
        n_columns,
        n_weights,
        n_workers,
        shards_per_worker,
        averages,
        batch_size,
        bytes_per_weight,
    )
    if not all(math.isfinite(value) and value > 0 for value in (*given, bandwidth or 1.0)):
        raise ValueError(
            "Samples, columns, weights, workers and all other numbers of the model must be above 0."
        )
    shards, size = n_workers * shards_per_worker, n_weights * bytes_per_weight
    fixed, per_shard, per_byte = costs.rounds.terms
    per_byte = per_byte if bandwidth is None else 2.0 / bandwidth
    copies = math.ceil(math.log2(max(shards, 2))) if tree else shards
    of_sample = float(np.dot(costs.samples.terms, (1.0, n_columns, n_weights)))
    limits = (
        ("workers", n_workers, WORKERS),
        ("shards", shards, costs.rounds.largest[0]),
        ("bytes of a model", size, costs.rounds.largest[1]),
        ("columns", n_columns, costs.samples.largest[0]),
        ("weights", n_weights, costs.samples.largest[1]),
    )
    outside = [
        f"{value:,.0f} {what} (measured up to {most:,.0f})" for what, value, most in limits if value > most
    ]
    if bandwidth is not None:
        outside.append("a network")
    if shards > STATISTICS:
        outside.append(f"effect of a pass (measured up to {STATISTICS} shards)")
    if tree:
        outside.append("averages in pairs")
    return Estimate(
        compute=of_sample * n_samples / n_workers / (costs.efficiency if n_workers > 1 else 1.0),
        communication=averages * (fixed + shards * per_shard + copies * size * per_byte),
        sent=2.0 * averages * shards * size,
        one_machine=of_sample * n_samples,
        updates=n_samples / (shards * batch_size),
        extra_passes=extra_passes,
        extrapolated=tuple(outside),
    )
