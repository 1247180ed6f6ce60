"""Times of rounds on a Dask cluster, of passes on one process and on two, and of a sample."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import cloudpickle
import numpy as np
from dask import delayed
from distributed import Client, LocalCluster
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from ortlearn import OrtGradientOptimizer
from ortlearn.distributed import DaskOrtGradientOptimizer, average_arrays
from ortlearn.distributed.cluster import Cluster

__all__ = [
    "BATCH",
    "ROWS_OF_SHARD",
    "SCALED",
    "Times",
    "measure",
    "n_weights",
    "round_of",
    "seconds_of_passes",
]

#: Bytes of a model with its states, and shards, of the rounds that are measured; rounds of each.
SIZES, COUNTS, ROUNDS = (1_000, 100_000, 1_000_000, 10_000_000), (2, 8, 32), 15
#: Models whose samples are timed: columns, layers.
SHAPES = (
    (20, ()),
    (200, ()),
    (1000, ()),
    (50, (50, 10)),
    (100, (100, 50)),
    (200, (256, 128)),
    (500, (512, 256)),
)
#: The model of the passes over two shards, samples of a shard, passes, turns, samples of a batch.
SCALED, ROWS_OF_SHARD, PASSES, TURNS, BATCH = (100, (100, 50)), 600_000, 5, 4, 256
#: Seconds after which rounds of one kind are enough.
LONG = 8.0


@dataclass(frozen=True)
class Times:
    """Measured costs.

    Attributes
    ----------
    rounds : list of (int, int, float)
        Shards, bytes of a model, and seconds of the fastest round: other programs only add to it.
    one, two : list of float
        Seconds of the fastest pass of a training on one process, and on two, in turns.
    samples : list of (int, int, float)
        Columns, weights, and seconds of a sample.
    load : float
        Load average before the measurement: programs that ran on the machine.
    """

    rounds: list[tuple[int, int, float]]
    one: list[float]
    two: list[float]
    samples: list[tuple[int, int, float]]
    load: float


def touched(arrays: dict[str, np.ndarray], shard: int) -> dict[str, np.ndarray]:
    """Return new arrays of the same sizes, as a shard would."""
    return {name: array + np.float32(shard) for name, array in arrays.items()}


def round_of(client: Any, arrays: dict[str, np.ndarray], n_shards: int) -> dict[str, np.ndarray]:
    """Return the mean of what the shards return, in a round without training.

    Parameters
    ----------
    client : distributed.Client
        Cluster.
    arrays : dict of str to ndarray
        Weights and states.
    n_shards : int
        Number of shards, one task each.

    Returns
    -------
    dict of str to ndarray
        Mean.
    """
    sent = Cluster(client).send(arrays)
    futures = [client.submit(touched, sent, shard, pure=False) for shard in range(n_shards)]
    return average_arrays(client.gather(futures))


def n_weights(columns: int, layers: tuple[int, ...]) -> int:
    """Return the number of weights and intercepts of a network of one output."""
    sizes = (columns, *layers, 1)
    return sum((a + 1) * b for a, b in zip(sizes, sizes[1:], strict=False))


def samples(n_samples: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features, and labels that depend on ten of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, columns), dtype=np.float32)
    return X, (X[:, :10].sum(axis=1) + rng.standard_normal(n_samples) > 0).astype(np.int8)


def model_of(layers: tuple[int, ...]) -> OrtGradientOptimizer:
    """Return an estimator with Adam: a linear one without layers, else a network."""
    estimator = MLPClassifier(hidden_layer_sizes=layers) if layers else LogisticRegression()
    return OrtGradientOptimizer(estimator, learning_rate="Adam", batch_size=BATCH, random_state=0)


def seconds_of_sample(columns: int, layers: tuple[int, ...], n_samples: int = 20_000) -> float:
    """Return the seconds of a sample in the fastest of some passes on one thread."""
    X, y = samples(n_samples, columns, 0)
    model = model_of(layers).set_params(max_iter=7, keep_better=False).fit(X, y)
    return min(record["seconds"] for record in model.history_[1:]) / n_samples


def fastest(action: Callable[[], Any], count: int, clock: Callable[[], float] = perf_counter) -> float:
    """Return the seconds of the fastest of some calls after a first one, of fewer where they take long."""
    action()
    times: list[float] = []
    while len(times) < count and (len(times) < 3 or sum(times) < LONG):
        begun = clock()
        action()
        times.append(clock() - begun)
    return min(times)


def measure_rounds(client: Any) -> list[tuple[int, int, float]]:
    """Return shards, bytes and seconds of the fastest of some rounds."""
    found = []
    for size in SIZES:
        arrays = {"weights": np.zeros(size // 4, np.float32)}
        for count in COUNTS:
            seconds = fastest(lambda a=arrays, c=count: round_of(client, a, c), ROUNDS)
            found.append((count, size, seconds))
    return found


def seconds_of_passes(client: Client, n_samples: int, n_passes: int) -> list[float]:
    """Return the seconds of passes over two shards that are made on the workers, without the first one.

    Parameters
    ----------
    client : distributed.Client
        Cluster.
    n_samples : int
        Samples of a shard.
    n_passes : int
        Passes, 2 or more.

    Returns
    -------
    list of float
        Seconds, rounds included.
    """
    columns, layers = SCALED
    shards = [delayed(samples)(n_samples, columns, seed) for seed in range(2)]
    local = model_of(layers).set_params(max_iter=n_passes, keep_better=False)
    parameters = {name: value for name, value in local.get_params(deep=False).items() if name != "estimator"}
    model = DaskOrtGradientOptimizer(local.estimator, client=client, **parameters).fit(shards)
    return [record["seconds"] for record in model.history_[1:]]


def measure_passes() -> tuple[list[float], list[float]]:
    """Return seconds of the fastest pass of some trainings on one process and on two, in turns."""
    found: tuple[list[float], list[float]] = ([], [])
    with ExitStack() as stack:
        clients = [Client(stack.enter_context(local_cluster(count))) for count in (1, 2)]
        for client in clients:
            stack.enter_context(client)
        for _ in range(TURNS):
            for client, values in zip(clients, found, strict=True):
                values.append(min(seconds_of_passes(client, ROWS_OF_SHARD, PASSES)))
    return found


def local_cluster(n_workers: int) -> LocalCluster:
    """Return a cluster of processes of one thread."""
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0")


def measure(address: str | None = None) -> Times:
    """Measure rounds, passes and samples.

    Parameters
    ----------
    address : str, default=None
        Scheduler of a cluster to measure rounds on; a cluster of two processes here by default.

    Returns
    -------
    Times
        What was measured.
    """
    load = os.getloadavg()[0]
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers elsewhere have no benchmarks
    with ExitStack() as stack:
        cluster = address or stack.enter_context(local_cluster(2))
        rounds = measure_rounds(stack.enter_context(Client(cluster)))
    samples = [
        (columns, n_weights(columns, layers), seconds_of_sample(columns, layers))
        for columns, layers in SHAPES
    ]
    return Times(rounds, *measure_passes(), samples, load)
