"""Fixtures: a Dask cluster in this process, and data."""

import contextlib

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

dask.config.set({"distributed.admin.system-monitor.gil.enabled": False})


@contextlib.contextmanager
def cluster_of(n_workers, is_current=True, **options):
    """Start a cluster with workers of one thread, and close it."""
    options |= {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(silence_logs=50, **options) as cluster:
        with Client(cluster, set_as_default=is_current) as client:
            yield client


@pytest.fixture(scope="session")
def client():
    """Return a client of two workers in this process, shared by most tests."""
    with cluster_of(2, processes=False) as client:
        yield client


@pytest.fixture
def regression():
    """Return X (float32) and y of a linear model with noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 4)).astype(np.float32)
    y = (X @ np.array([1.0, -2.0, 0.5, 3.0]) + 0.1 * rng.standard_normal(600) + 2).astype(np.float32)
    return X, y


@pytest.fixture
def classes():
    """Return X and y of three classes with text labels."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, 4)).astype(np.float32)
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + 0.3 * rng.standard_normal((600, 3)), axis=1)]
    return X, y
