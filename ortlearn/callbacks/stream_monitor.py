"""Test each batch of a stream before it is trained on, and react to drift."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .page_hinkley import PageHinkley
from .tasks import check_trainer, imported

if TYPE_CHECKING:
    import numpy as np

__all__ = ["StreamMonitor"]

#: Reactions to a drift that have a name.
REACTIONS = (None, "restart", "stop")


class StreamMonitor:
    """Test each batch of ``partial_fit`` before it is trained on, and look for drift.

    The predictions of the model before a call are compared with the labels of its samples ("test then
    train"; Dawid, A. P., "Statistical theory: the prequential approach", Journal of the Royal Statistical
    Society A 147 (1984), 278-292), so that no samples are held out. Loss and score are those of the last
    ``window`` samples. The loss of a sample is the log loss, 0 or 1 without probabilities, or the squared
    error. The detector gets the losses of a batch in random order, always the same one.

    Parameters
    ----------
    window : int, default=1000
        Number of samples.
    detector : str or object, default="PageHinkley"
        Detector of an increase of the loss: :class:`PageHinkley`, the name of one in ``river.drift``, such as
        ``"ADWIN"``, or an object with ``update(value)`` and ``drift_detected``.
    on_drift : {"restart", "stop"} or callable, default=None
        Reaction. ``"restart"`` begins the schedule of the learning rate and the state of the update anew,
        with the weights reached: the call in which the drift is found is the first one of the new training
        (``n_iter_`` is 1 after it), and the first one of the window. ``"stop"`` sets ``stopped``. A function
        gets the record of the call.
    n_iter_no_change : int, default=None
        Number of calls without an improvement of the loss of the window by ``tol`` after which ``stopped`` is
        set; by default it is not.
    tol : float, default=1e-4
        Smallest improvement.
    scoring : callable, default=None
        Function ``scoring(y_true, y_pred)``; accuracy or R2 by default.

    Attributes
    ----------
    records : list of dict
        For each call after the first one: ``"call"``, ``"n_samples"`` so far, ``"loss"`` and ``"score"`` of
        its samples, ``"window_loss"`` and ``"window_score"``, and whether there was a ``"drift"``.
    stopped : bool
        Whether the stream should end, by ``on_drift="stop"`` or ``n_iter_no_change``. The weights are those
        of the last call.
    detector_ : object or None
        Detector in use, from the first call of ``partial_fit`` on.

    Raises
    ------
    TypeError
        In ``partial_fit``, if the model is neither a classifier nor a regressor.
    ImportError
        If ``detector`` names one of river, and river is not installed.

    See Also
    --------
    ortlearn.inspection.StreamDisplay : Plot of score and drifts.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from ortlearn import OrtGradientOptimizer
    >>> from ortlearn.callbacks import StreamMonitor
    >>> monitor = StreamMonitor(window=200, on_drift="restart")
    >>> stream = OrtGradientOptimizer(LogisticRegression(), learning_rate=0.5, random_state=0)
    >>> stream = stream.set_callbacks(monitor)
    >>> rng = np.random.default_rng(0)
    >>> for number in range(40):
    ...     X = rng.normal(size=(50, 2))
    ...     stream = stream.partial_fit(X, X[:, number // 20] > 0, classes=[False, True])
    >>> [record["call"] for record in monitor.records if record["drift"]]
    [21]
    >>> round(monitor.records[-1]["window_score"], 2)
    0.97
    """

    def __init__(
        self,
        window: int = 1000,
        detector: Any = "PageHinkley",
        *,
        on_drift: str | Callable[[dict[str, Any]], object] | None = None,
        n_iter_no_change: int | None = None,
        tol: float = 1e-4,
        scoring: Callable[[np.ndarray, np.ndarray], float] | None = None,
    ) -> None:
        if window < 1:
            raise ValueError(f"window={window!r} must be 1 or more.")
        if on_drift not in REACTIONS and not callable(on_drift):
            raise ValueError(f"on_drift={on_drift!r} must be 'restart', 'stop', a function or None.")
        self.window, self.on_drift = window, on_drift
        self.n_iter_no_change, self.tol, self.scoring = n_iter_no_change, tol, scoring
        self.detector = detector
        self.detector_: Any = None
        self.records: list[dict[str, Any]] = []
        self.stopped = False
        #: Hook of FitTask: whether the call that begins starts the training anew.
        self.restarts = False
        self._calls = self._n_samples = self._without_change = 0
        self._best = float("inf")
        self._recent: deque[tuple[Any, Any, np.ndarray]] = deque()
        self._pending: dict[str, Any] | None = None

    def setup(self, estimator: Any, context: Any) -> None:
        """Check the estimator, and load the detector."""
        from sklearn.base import is_classifier, is_regressor

        check_trainer(self, estimator)
        if not (is_classifier(estimator) or is_regressor(estimator)):
            raise TypeError("StreamMonitor needs a classifier or a regressor, which predicts labels.")
        if self.detector_ is None:
            self.detector_ = self._loaded()
        self._pending, self.restarts = None, False

    def _loaded(self) -> Any:
        """Return the detector, or a new one of the given name."""
        name = self.detector
        if not isinstance(name, str):
            return name
        found = PageHinkley if name == "PageHinkley" else getattr(_river(self), name, None)
        if found is None:
            raise ValueError(f"detector={name!r} must be 'PageHinkley' or the name of one in river.drift.")
        return found()

    def on_fit_task_begin(self, estimator: Any, context: Any, *, X: Any, y: Any) -> None:
        """Test the model on the samples of a call of ``partial_fit``."""
        if context.task_name != "partial_fit" or not hasattr(estimator, "n_iter_"):
            return
        import numpy as np

        from .sample_losses import default_score, tested

        y, predicted, losses = tested(estimator, X, y)
        drift = False
        # A batch may be sorted by class, and all its samples meet the same model.
        for loss in np.random.default_rng(self._calls).permutation(losses).tolist():
            self.detector_.update(loss)
            drift = drift or bool(self.detector_.drift_detected)
        if drift and self.on_drift == "restart":
            self.restarts = True
            self._recent.clear()
            self._best, self._without_change = float("inf"), 0
        self._recent.append((y, predicted, losses))
        window = [np.concatenate(parts)[-self.window :] for parts in zip(*self._recent, strict=True)]
        while sum(len(part[0]) for part in self._recent) - len(self._recent[0][0]) >= self.window:
            self._recent.popleft()
        score = self.scoring or default_score(estimator)
        self._pending = {
            "loss": float(losses.mean()),
            "score": float(score(y, predicted)),
            "window_loss": float(window[2].mean()),
            "window_score": float(score(window[0], window[1])),
            "drift": drift,
        }

    def on_fit_task_end(self, estimator: Any, context: Any, *, y: Any) -> None:
        """Record the call of ``partial_fit``, once it is complete."""
        if context.task_name != "partial_fit":
            return
        self._calls += 1
        self._n_samples += len(y)
        if self._pending is None:
            return
        record = {"call": self._calls, "n_samples": self._n_samples, **self._pending}
        self.records.append(record)
        loss = record["window_loss"]
        self._without_change = 0 if loss < self._best - self.tol else self._without_change + 1
        self._best = min(loss, self._best)
        waited = self.n_iter_no_change is not None and self._without_change >= self.n_iter_no_change
        self.stopped = self.stopped or waited or (record["drift"] and self.on_drift == "stop")
        if record["drift"] and callable(self.on_drift):
            self.on_drift(record)

    def teardown(self, estimator: Any, context: Any) -> None:
        """Forget a call that failed."""
        self._pending, self.restarts = None, False


def _river(monitor: StreamMonitor) -> Any:
    """Return the detectors of river."""
    imported("river", "river", monitor)
    return import_module("river.drift")
