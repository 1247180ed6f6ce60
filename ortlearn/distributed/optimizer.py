"""The estimator that trains on a Dask cluster."""

from __future__ import annotations

import inspect
from inspect import cleandoc, getdoc
from typing import Any

from ..estimators import OrtGradientOptimizer
from .lazy_methods import LazyMethods, check_installed

__all__ = ["DaskOrtGradientOptimizer"]


_DOC = """Train a scikit-learn model or an ONNX graph by gradient on a Dask cluster.

    The data are in shards: the blocks of a dask array, the partitions of a dataframe, delayed ``(X, y)``, or
    parquet files. In a round every shard is trained on from the same weights, in a task of its own, and the
    driver averages weights and states of the update, weighted by the rows of the shards. The result depends
    on the shards, not on the number of workers or the order in which they finish, and the tasks of a worker
    that is lost are computed again. With a learning rate by name, one shard gives what
    :class:`~ortlearn.OrtGradientOptimizer` gives, bit for bit.

    Solvers (``learning_rate="LBFGS"``, which ``"auto"`` takes for linear models of up to 10,000 rows) and
    batches of all rows (``batch_size`` at least their number) are exact: objective and gradient are summed
    over the shards, and the result is that of one machine up to rounding. A solver has one round for each
    evaluation.

    Rows of a batch are those of a shard, ``max_iter`` counts passes over all shards, and an estimator that is
    not fitted, with the steps of a pipeline in front of it, is fitted on the first shard. With
    ``early_stopping``, pass ``X_val``: shards are not split. The history has of each pass ``rounds`` (their
    number), ``shard_losses`` (of each partition, one for each round), ``worker_rows`` and ``worker_seconds``
    (rows and time of computation of each worker), too: ``pandas.json_normalize(model.history_)`` has a column
    for each worker.

    Parameters
    {parameters}
    client : distributed.Client, default=None
        Connection to the cluster; the current one by default. Clones share it, pickles leave it out.
    sync_every : int or str, default=1
        How often shards are averaged: after a number of passes, as 1 or ``"2 passes"``, or of batches of each
        shard, as ``"100 batches"``.

    Attributes
    {attributes}
    See Also
    --------
    ortlearn.OrtGradientOptimizer : The same on one machine; its other attributes are here, too.
    average_trainers : What a round averages, for other schedulers.

    Notes
    -----
    Averaging of shards is local SGD (Stich, S. U., "Local SGD converges fast and communicates little", ICLR
    2019). More shards make fewer updates in a pass: a smaller ``batch_size``, a larger learning rate (times
    the square root of the number of shards), or more passes make up for it. ``sync_every`` in batches helps
    where shards differ.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from sklearn.linear_model import LinearRegression
    >>> from ortlearn.distributed import DaskOrtGradientOptimizer
    >>> X = np.random.default_rng(0).standard_normal((1000, 3)).astype(np.float32)
    >>> y = X @ np.array([1.0, 2.0, 3.0], np.float32)
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     model = DaskOrtGradientOptimizer(LinearRegression(), random_state=0)
    ...     shards = da.from_array(X, chunks=(250, 3)), da.from_array(y, chunks=250)
    ...     model = model.fit(*shards)
    >>> model.to_local().predict([[1.0, 1.0, 1.0]]).round(2)
    array([6.])
    """


def _documented() -> str:
    """Return the docstring, with parameters and attributes of the estimator for one machine."""
    known = getdoc(OrtGradientOptimizer) or ""
    parameters, _, attributes = known.partition("Parameters\n")[2].partition("\nAttributes\n")
    found = cleandoc(_DOC).replace("{parameters}\n", parameters)
    return found.replace("{attributes}\n", attributes.partition("See Also\n")[0]) + "\n"


class DaskOrtGradientOptimizer(LazyMethods):
    __doc__ = _documented()

    _parameter_constraints: dict = {
        **OrtGradientOptimizer._parameter_constraints,
        "client": "no_validation",
        "sync_every": "no_validation",
    }

    def __init__(self, estimator, weights_to_train=None, *, client=None, sync_every=1, **parameters):
        super().__init__(estimator, weights_to_train, **parameters)
        self.client = client
        self.sync_every = sync_every

    def __getstate__(self):
        return {**super().__getstate__(), "client": None}

    def __sklearn_clone__(self):
        twin = self._copy_of(type(self))
        twin.set_params(client=self.client)
        return twin

    def _copy_of(self, cls: type) -> Any:
        """Return an estimator of a class with copies of the parameters that it has."""
        from sklearn.base import clone

        names = inspect.signature(cls).parameters
        own = {name: value for name, value in self.get_params(deep=False).items() if name != "client"}
        return cls(**{name: clone(value, safe=False) for name, value in own.items() if name in names})

    def _request(self, X, y, sample_weight, held_out, features, classes) -> Any:
        """Return what a call asks of the cluster."""
        check_installed()
        from .cluster import Cluster, find_client
        from .fitting import Request
        from .rounds import Interval

        interval, client = Interval.of(self.sync_every), find_client(self.client)
        if held_out[0] is None and any(part is not None for part in held_out):
            raise ValueError("X_val is missing: y_val and sample_weight_val belong to its rows.")
        arguments = (X, y, sample_weight, held_out, features, classes, interval)
        return Request(Cluster(client), *arguments)

    def fit(
        self,
        X,
        y=None,
        sample_weight=None,
        X_val=None,
        y_val=None,
        sample_weight_val=None,
        classes=None,
        resume_from=None,
        *,
        features=None,
    ):
        """Train.

        Parameters
        ----------
        X : dask array or dataframe, list of delayed, str, os.PathLike or list of paths
            Features: the shards are the blocks of an array, the partitions of a dataframe, the items of a
            list of delayed ``(X, y)`` or ``(X, y, sample_weight)``, parquet files, which the workers read, or
            the row groups of a single file. Partitions without rows are left out.
        y : dask array, series or dataframe, array-like, str or list of str, default=None
            Labels, in as many partitions as X; the name of a column, or names, of a dataframe or of files.
        sample_weight : as y, default=None
            Weights of the rows, not negative.
        X_val, y_val, sample_weight_val : as X, y and sample_weight, or arrays in memory, default=None
            Rows on which loss and score are measured: on the workers, or on the driver where they are in
            memory. Labels and weights are columns of the same names by default.
        classes : array-like of shape (n_classes,), or sequence of one per output, default=None
            All classes of a classifier; those of all shards by default.
        resume_from : str, os.PathLike or estimator, default=None
            Training to resume, as for one machine; the shards must be the same.
        features : list of str, default=None
            Columns of parquet files that are features; all others by default.

        Returns
        -------
        DaskOrtGradientOptimizer
            This object, trained.

        Raises
        ------
        ValueError
            If an argument or the rows of a shard are invalid; the message names the partition. It is raised
            before the first round, and the object stays as it was.
        ClusterError
            If there is no client, it is closed, or a task fails; the message names the partition. The
            round is discarded, the object has what it had reached before, if that is anything, and
            ``fit(..., resume_from=self)`` resumes its training.
        KeyboardInterrupt
            At a Ctrl-C, likewise.
        ConvergenceError
            If a loss becomes non-finite and ``exc`` is True; the message names the partition.
        """
        from ..estimators.resuming import find_resumption
        from ..training.stream_progress import close_stream

        held_out = (X_val, y_val, sample_weight_val)
        request = self._request(X, y, sample_weight, held_out, features, classes)
        resumption = None if resume_from is None else find_resumption(resume_from)
        close_stream(self)
        from .fitting import fit_on_cluster

        return self._commit(lambda trainer: fit_on_cluster(trainer, request, resumption))

    def partial_fit(
        self,
        X,
        y=None,
        classes=None,
        sample_weight=None,
        total_weight=None,
        X_val=None,
        y_val=None,
        sample_weight_val=None,
        *,
        features=None,
    ):
        """Train one pass over some shards, from the weights and the state of the last call.

        Parameters
        ----------
        X : dask array or dataframe, list of delayed, str, os.PathLike or list of paths
            Features, as in :meth:`fit`.
        y : dask array, series or dataframe, array-like, str or list of str, default=None
            Labels.
        classes : array-like of shape (n_classes,), or sequence of one per output, default=None
            All classes that will come, for the first call on an unfitted classifier.
        sample_weight : as y, default=None
            Weights of the rows.
        total_weight : float, default=None
            Sum of the weights of all rows of the stream, to which the penalty of the model is relative.
        X_val, y_val, sample_weight_val : as X, y and sample_weight, or arrays in memory, default=None
            Rows on which loss and score are measured.
        features : list of str, default=None
            Columns of parquet files that are features; all others by default.

        Returns
        -------
        DaskOrtGradientOptimizer
            This object, trained.
        """
        held_out = (X_val, y_val, sample_weight_val)
        request = self._request(X, y, sample_weight, held_out, features, classes)
        if total_weight is not None and not 0 < total_weight < float("inf"):
            raise ValueError(f"total_weight={total_weight!r} must be a number above 0.")
        from .fitting import partial_fit_on_cluster

        return self._commit(lambda trainer: partial_fit_on_cluster(trainer, request, total_weight))

    def fit_stream(self, source, *arguments, **options):
        """Refuse a source that one machine reads.

        Parameters
        ----------
        source : object
            Rows of one machine.
        *arguments, **options
            As for one machine.

        Raises
        ------
        ValueError
            Always: :meth:`fit` takes the paths of parquet files.
        """
        raise ValueError(
            "fit_stream reads a source on one machine: pass parquet files or a dask collection to fit, or "
            "use OrtGradientOptimizer."
        )

    def to_local(self):
        """Return the same estimator for one machine, trained.

        Returns
        -------
        OrtGradientOptimizer
            Estimator with copies of the parameters, and the same fitted model.
        """
        model = self._model()
        local = self._copy_of(OrtGradientOptimizer)
        local._fitted = model
        return local


def _signature() -> inspect.Signature:
    """Return the signature of the constructor, with all parameters by name, as scikit-learn reads it."""
    own = inspect.signature(DaskOrtGradientOptimizer.__init__).parameters
    base = inspect.signature(OrtGradientOptimizer.__init__).parameters
    return inspect.Signature([*base.values(), own["client"], own["sync_every"]])


DaskOrtGradientOptimizer.__init__.__signature__ = _signature()  # type: ignore[attr-defined]
