"""Dask client: submit tasks, gather their results in order, and translate their errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dask
import distributed
from distributed import Client, Future

from ..exceptions import ClusterError, SourceError

__all__ = ["Cluster", "find_client"]


def find_client(client: Client | None) -> Client:
    """Return the given client, or the current one; raise an error if it is not connected."""
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError as error:
            raise ClusterError(
                "There is no Dask client. Create one with distributed.Client(), which starts a cluster on "
                "this machine, or with Client('tcp://scheduler:8786'), or pass client=."
            ) from error
    if client.asynchronous:
        raise ClusterError("The Dask client is asynchronous. Pass one created with asynchronous=False.")
    if client.status != "running":
        raise ClusterError(f"The Dask client is {client.status}. Create a new one and pass it as client=.")
    return client


class Cluster:
    """Tasks on a cluster."""

    def __init__(self, client: Client):
        self.client = client

    def submit(self, function: Callable, *arguments: Any) -> Future:
        """Return the future of a task; it depends on the futures among its arguments."""
        self.check()
        return self.client.submit(function, *arguments, pure=False)

    def send(self, value: Any) -> Future:
        """Return the future of a value; the scheduler keeps the value, so that it survives lost workers."""
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"}):  # weights
            return self.submit(_identity, value)

    def check(self) -> None:
        """Raise a ClusterError if the client is closed."""
        if self.client.status != "running":
            raise ClusterError(
                f"The Dask client is {self.client.status}. Connect again, set client=, and continue with "
                "fit(..., resume_from=...)."
            )

    def gather(
        self, futures: Sequence[Future], tasks: Sequence[Future] | None = None, names: Sequence[str] = ()
    ) -> list[Any]:
        """Return the results of futures; cancel all tasks after an error or an interrupt.

        ``tasks`` (the futures by default) are the tasks on shards, and ``names`` these shards, for messages.
        """
        tasks = futures if tasks is None else tasks
        try:
            return self.client.gather(list(futures))
        except BaseException as error:
            failed = _first_failure(tasks, names)
            self.cancel([*futures, *tasks])
            if not isinstance(error, Exception):
                raise
            raise _explained(error, failed, self.client) from error

    def cancel(self, futures: Sequence[Future]) -> None:
        """Cancel tasks if the client is connected."""
        if self.client.status == "running":
            self.client.cancel(list(futures), force=True)


def _identity(value: Any) -> Any:
    return value


def _first_failure(tasks: Sequence[Future], names: Sequence[str]) -> str | None:
    """Return the name of the first shard whose task failed."""
    return next((name for future, name in zip(tasks, names, strict=False) if future.status == "error"), None)


def _explained(error: Exception, name: str | None, client: Client) -> Exception:
    """Return an error that names the shard, with the type of the error of the task where it is ours."""
    if client.status != "running":
        return ClusterError(
            f"The Dask client was closed ({type(error).__name__}). Connect again, and continue with "
            "fit(..., resume_from=...)."
        )
    if name is None:
        return error
    text = f"{name}: {type(error).__name__}: {error}"
    if isinstance(error, SourceError):
        return SourceError(text)
    if isinstance(error, ValueError):
        return ValueError(text)
    return ClusterError(f"{text}. The round was discarded.")
