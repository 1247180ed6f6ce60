"""The estimator that trains on a Dask cluster."""

from __future__ import annotations

import inspect
from inspect import cleandoc, getdoc
from typing import TYPE_CHECKING, Any, NoReturn

from ..estimators import OrtGradientOptimizer
from .lazy_methods import LazyMethods, check_installed

if TYPE_CHECKING:
    from typing import Self

__all__ = ["DaskOrtGradientOptimizer"]


_DOC = """Train a scikit-learn model or an ONNX graph by gradient on a Dask cluster.

    Shards are the blocks of a dask array, the partitions of a dataframe, delayed ``(X, y)``, or parquet
    files. In a round, each shard is trained in a separate task from the same weights, and the driver averages
    the weights and update states, weighted by the samples of the shards. The result depends on the shards,
    not on the number of workers or the order in which they finish. The tasks of a lost worker are computed
    again. With a learning rate given by name, training on one shard equals
    :class:`~ortlearn.OrtGradientOptimizer`, bit for bit.

    Solvers (``learning_rate="LBFGS"``, which ``"auto"`` selects for linear models and few samples)
    and full batches (``batch_size`` at least the number of samples) are exact: objective and gradient are
    summed over the shards, and the result equals training on one machine up to rounding. A solver needs one
    round per evaluation.

    A batch has samples of one shard only, and ``max_iter`` counts passes over all shards. An unfitted
    estimator, with the preceding steps of a pipeline, is fitted on the first shard. ``early_stopping``
    requires ``X_val``, since shards are not split. The history has four more columns: ``rounds`` (number of
    rounds), ``shard_losses`` (losses of each partition, one per round), ``worker_rows`` and
    ``worker_seconds`` (samples and computing time of each worker). ``pandas.json_normalize(model.history_)``
    has a column per worker.

    Parameters
    {parameters}
    client : distributed.Client, default=None
        Connection to the cluster; the current one by default. Clones share it; it is not pickled.
    sync_every : int or str, default=1
        How often shards are averaged: after a number of passes, such as 1 or ``"2 passes"``, or after a
        number of batches of each shard, such as ``"100 batches"``.

    Attributes
    {attributes}
    See Also
    --------
    ortlearn.OrtGradientOptimizer : The same on one machine, with the same attributes.
    average_trainers : Average estimators that another scheduler trains.

    Notes
    -----
    Averaging of shards is local SGD (Stich, S. U., "Local SGD converges fast and communicates little", ICLR
    2019). With more shards there are fewer updates per pass. To compensate, use a smaller ``batch_size``, a
    larger learning rate (times the square root of the number of shards), or more passes. ``sync_every`` in
    batches helps if the distributions of the shards differ.

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
    """Return the docstring, with the parameters and attributes of OrtGradientOptimizer."""
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

    def __init__(
        self,
        estimator: Any,
        weights_to_train: Any = None,
        *,
        client: Any = None,
        sync_every: int | str = 1,
        **parameters: Any,
    ) -> None:
        super().__init__(estimator, weights_to_train, **parameters)
        self.client = client
        self.sync_every = sync_every

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}

    def __sklearn_clone__(self) -> DaskOrtGradientOptimizer:
        twin = self._copy_of(type(self))
        twin.set_params(client=self.client)
        return twin

    def _copy_of(self, cls: type) -> Any:
        """Return an estimator of a class with copies of the parameters that both classes have."""
        from sklearn.base import clone

        names = inspect.signature(cls).parameters
        own = {name: value for name, value in self.get_params(deep=False).items() if name != "client"}
        return cls(**{name: clone(value, safe=False) for name, value in own.items() if name in names})

    def _samples_on_cluster(
        self, X: Any, y: Any, sample_weight: Any, held_out: tuple[Any, Any, Any], features: list[str] | None
    ) -> Any:
        """Return the samples of a call; check ``sync_every`` and the client."""
        check_installed()
        from .cluster import Cluster, find_client
        from .cluster_fit import OnCluster
        from .rounds import Interval

        interval, client = Interval.of(self.sync_every), find_client(self.client)
        if held_out[0] is None and any(part is not None for part in held_out):
            raise ValueError("y_val or sample_weight_val is given without X_val. Pass X_val, too.")
        return OnCluster(Cluster(client), (X, y, sample_weight, features), held_out, interval)

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        classes: Any = None,
        resume_from: Any = None,
        *,
        features: list[str] | None = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : dask array or dataframe, list of delayed, str, os.PathLike or list of paths
            Features: the shards are the blocks of an array, the partitions of a dataframe, the items of a
            list of delayed ``(X, y)`` or ``(X, y, sample_weight)``, parquet files, which the workers read, or
            the row groups of a single file. Empty partitions are left out.
        y : dask array, series or dataframe, array-like, str or list of str, default=None
            Labels, in the same number of partitions as X, or names of columns of a dataframe or of files.
        sample_weight : as y, default=None
            Weights of the samples, not negative.
        X_val, y_val, sample_weight_val : as X, y and sample_weight, or arrays in memory, default=None
            Samples on which loss and score are measured: on the workers, or on the driver if they are in
            memory. By default, labels and weights are the columns that y and sample_weight name.
        classes : array-like of shape (n_classes,), or sequence of one per output, default=None
            All classes of a classifier; the classes of all shards by default.
        resume_from : str, os.PathLike or estimator, default=None
            Training to resume, as in :meth:`OrtGradientOptimizer.fit`; the shards must be the same.
        features : list of str, default=None
            Columns of parquet files that are features; all others by default.

        Returns
        -------
        DaskOrtGradientOptimizer
            This object, trained.

        Raises
        ------
        ValueError
            If an argument or the samples of a shard are invalid; the message names the partition. It is
            raised before the first round, and the object is not changed.
        ClusterError
            If there is no client, it is closed, or a task fails; the message names the partition. The round
            is discarded, the object keeps the model of the last complete epoch, if there is one, and
            ``fit(..., resume_from=self)`` resumes the training.
        KeyboardInterrupt
            After Ctrl-C, with the same state.
        ConvergenceError
            If a loss becomes non-finite and ``exc`` is True; the message names the partition.
        """
        from ..training.stream_progress import close_stream

        held_out = (X_val, y_val, sample_weight_val)
        given = self._samples_on_cluster(X, y, sample_weight, held_out, features)
        close_stream(self)
        return self._commit(lambda trainer: trainer.fit(given, classes, resume_from))

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        total_weight: float | None = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        *,
        features: list[str] | None = None,
    ) -> Self:
        """Train one pass over some shards, continuing from the last call.

        Parameters
        ----------
        X : dask array or dataframe, list of delayed, str, os.PathLike or list of paths
            Features, as in :meth:`fit`.
        y : dask array, series or dataframe, array-like, str or list of str, default=None
            Labels.
        classes : array-like of shape (n_classes,), or sequence of one per output, default=None
            All classes, also of later calls; required in the first call on an unfitted classifier.
        sample_weight : as y, default=None
            Weights of the samples.
        total_weight : float, default=None
            Sum of the weights of all samples of the stream; it scales the penalty of the model.
        X_val, y_val, sample_weight_val : as X, y and sample_weight, or arrays in memory, default=None
            Samples on which loss and score are measured.
        features : list of str, default=None
            Columns of parquet files that are features; all others by default.

        Returns
        -------
        DaskOrtGradientOptimizer
            This object, trained.
        """
        held_out = (X_val, y_val, sample_weight_val)
        given = self._samples_on_cluster(X, y, sample_weight, held_out, features)
        if total_weight is not None and not 0 < total_weight < float("inf"):
            raise ValueError(f"total_weight={total_weight!r} must be a positive, finite number.")
        return self._commit(lambda trainer: trainer.partial_fit(given, classes, total_weight))

    def fit_stream(self, source: Any, *arguments: Any, **options: Any) -> NoReturn:
        """Raise an error: streams are read on one machine.

        Parameters
        ----------
        source : object
            Ignored.
        *arguments, **options
            Ignored.

        Raises
        ------
        ValueError
            Always; :meth:`fit` takes the paths of parquet files.
        """
        raise ValueError(
            "fit_stream is not supported on a cluster, because one machine reads a stream: pass parquet "
            "files or a dask collection to fit, or use OrtGradientOptimizer."
        )

    def to_local(self) -> OrtGradientOptimizer:
        """Return the trained estimator as an OrtGradientOptimizer.

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
    """Return the signature of the constructor with all parameters, which scikit-learn reads."""
    own = inspect.signature(DaskOrtGradientOptimizer.__init__).parameters
    base = inspect.signature(OrtGradientOptimizer.__init__).parameters
    return inspect.Signature([*base.values(), own["client"], own["sync_every"]])


DaskOrtGradientOptimizer.__init__.__signature__ = _signature()  # type: ignore[attr-defined]
