"""Streams are tested before they are trained on, and drift restarts or stops them."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, log_loss, r2_score

from ortlearn import OrtGradientOptimizer
from ortlearn.callbacks import PageHinkley, StreamMonitor
from ortlearn.inspection import StreamDisplay
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD

pytestmark = pytest.mark.needs_callbacks
CLASSES = ["no", "yes"]


def batches(n_batches, changes_at=1000, size=50):
    """Yield batches whose labels depend on another column from one of them on."""
    rng = np.random.default_rng(0)
    for number in range(n_batches):
        X = rng.normal(size=(size, 2))
        yield X, np.where(X[:, int(number >= changes_at)] > 0, "yes", "no")


def stream_of(*callbacks, model=None, **parameters):
    rate = LearningRateAdam(eta0=0.1)
    parameters = {"learning_rate": rate, "batch_size": 10, "random_state": 0, **parameters}
    return OrtGradientOptimizer(LogisticRegression() if model is None else model, **parameters).set_callbacks(
        *callbacks
    )


def test_records_are_those_of_test_then_train():
    monitor = StreamMonitor(window=120)
    watched, plain, y_seen, predicted, losses = stream_of(monitor), stream_of(), [], [], []
    for number, (X, y) in enumerate(batches(8)):
        if number:
            y_seen.append(y)
            predicted.append(plain.predict(X))
            losses.append(log_loss(y, plain.predict_proba(X)))
        watched, plain = (each.partial_fit(X, y, classes=CLASSES) for each in (watched, plain))
    np.testing.assert_array_equal(watched.trained_coef_["coef"], plain.trained_coef_["coef"])
    records = monitor.records
    assert [record["call"] for record in records] == list(range(2, 9))
    assert [record["n_samples"] for record in records] == list(range(100, 401, 50))
    np.testing.assert_allclose([record["loss"] for record in records], losses, rtol=1e-4)
    assert [record["score"] for record in records] == [
        accuracy_score(*pair) for pair in zip(y_seen, predicted, strict=True)
    ]
    for end, record in enumerate(records, 1):
        last = [np.concatenate(parts[:end])[-120:] for parts in (y_seen, predicted)]
        assert record["window_score"] == accuracy_score(*last)


def test_restart_trains_the_weights_with_a_new_update():
    monitor = StreamMonitor(window=100, on_drift="restart")
    stream = stream_of(monitor)
    for X, y in batches(30, changes_at=20):
        before = stream.to_sklearn() if monitor.records else None
        stream.partial_fit(X, y, classes=CLASSES)
        if monitor.records and monitor.records[-1]["drift"]:
            break
    assert monitor.records[-1]["call"] in (21, 22, 23)
    assert stream.n_iter_ == len(stream.history_) == 1
    fresh = stream_of(model=before, warm_start=True).partial_fit(X, y)
    again = stream_of(model=before, warm_start=True, random_state=1).partial_fit(X, y)
    moved = np.abs(again.trained_coef_["coef"] - fresh.trained_coef_["coef"]).max()
    difference = np.abs(stream.trained_coef_["coef"] - fresh.trained_coef_["coef"]).max()
    assert difference <= 3 * moved + 1e-6  # up to the order of the samples
    stream.partial_fit(X, y)
    assert (stream.n_iter_, monitor.restarts) == (2, False)


@pytest.mark.slow
def test_restart_recovers_faster_than_a_decayed_rate():
    scores = {}
    for reaction in (None, "restart"):
        monitor = StreamMonitor(window=250, on_drift=reaction)
        rate = LearningRateSGD(eta0=0.5, learning_rate="invscaling", power_t=1.0)
        stream = stream_of(monitor, learning_rate=rate)
        for X, y in batches(40, changes_at=20):
            stream.partial_fit(X, y, classes=CLASSES)
        scores[reaction] = monitor.records[-1]["window_score"]
    assert scores["restart"] > scores[None] + 0.1


@pytest.mark.slow
def test_stop_by_drift_and_by_the_window():
    found = []
    monitors = [
        StreamMonitor(on_drift="stop"),
        StreamMonitor(window=100, n_iter_no_change=3, tol=0.05),
        StreamMonitor(on_drift=found.append),
    ]
    stream, stopped = stream_of(*monitors), {}
    for number, (X, y) in enumerate(batches(30, changes_at=20), 1):
        stream.partial_fit(X, y, classes=CLASSES)
        for place, monitor in enumerate(monitors):
            if monitor.stopped:
                stopped.setdefault(place, number)
    assert stopped[0] in (21, 22, 23)
    best, without = np.inf, 0
    for record in monitors[1].records[: stopped[1] - 1]:
        assert without < 3
        without = 0 if record["window_loss"] < best - 0.05 else without + 1
        best = min(best, record["window_loss"])
    assert without == 3
    assert 2 not in stopped and found[0]["call"] == stopped[0] and found[0]["drift"]


def test_parameters_stay_as_given():
    """A detector of a name is made once, and continues in the next call."""
    monitor = StreamMonitor(window=50, detector="PageHinkley")
    stream = OrtGradientOptimizer(LogisticRegression(), learning_rate=0.5, random_state=0)
    stream = stream.set_callbacks(monitor)
    X = np.random.default_rng(0).normal(size=(50, 2))
    for _ in range(3):
        stream = stream.partial_fit(X, X[:, 0] > 0)
    assert monitor.detector == "PageHinkley"
    assert monitor.detector_.n_samples == 100


def test_regression_of_several_labels():
    monitor = StreamMonitor(window=60, scoring=lambda y, found: r2_score(y, found))
    stream = stream_of(monitor, model=Ridge())
    rng = np.random.default_rng(0)
    for _ in range(4):
        X = rng.normal(size=(30, 3))
        y = X[:, :2]
        expected = None if stream._fitted is None else ((y - stream.predict(X)) ** 2).mean()
        stream.partial_fit(X, y)
    assert monitor.records[-1]["loss"] == pytest.approx(expected, rel=1e-5)


def test_call_that_fails_is_not_recorded():
    monitor = StreamMonitor()
    stream = stream_of(monitor)
    for X, y in batches(3):
        stream.partial_fit(X, y, classes=CLASSES)
    with pytest.raises(ValueError, match="maybe"):
        stream.partial_fit(X, np.where(y == "yes", "maybe", "no"))
    assert len(monitor.records) == 2
    stream.partial_fit(X, y)
    assert monitor.records[-1]["call"] == 4


def test_wrong_arguments():
    with pytest.raises(ValueError, match="window=0"):
        StreamMonitor(0)
    with pytest.raises(ValueError, match="on_drift='refit'"):
        StreamMonitor(on_drift="refit")
    with pytest.raises(ValueError, match="threshold=0"):
        PageHinkley(threshold=0)
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(TypeError, match="needs a classifier or a regressor"):
        stream_of(StreamMonitor(), model=KMeans(2).fit(X), learning_rate=0.1).partial_fit(X)


def test_detector_is_the_test_of_page_and_hinkley():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.exponential(size=300), rng.exponential(size=300) + 1])
    detector, found, sums = PageHinkley(0.2, 20.0, 30), None, []
    for n in range(1, len(values) + 1):
        part = values[:n]
        spread = part.std()
        sums.append(min((part[-1] - part.mean()) / spread if spread else 0.0, 4.0) - 0.2)
        total = np.cumsum(sums)
        expected = n >= 30 and total[-1] - min(0.0, total.min()) > 20.0
        assert detector.update(float(values[n - 1])).drift_detected == expected
        if expected:
            found = n
            break
    assert 300 < found < 400
    assert detector.update(0.0).n_samples == 1


@pytest.mark.slow
def test_false_alarms_and_delay_of_the_detector():
    rng = np.random.default_rng(0)
    alarms = sum(PageHinkley().update(0).drift_detected for _ in range(1))
    detector = PageHinkley()
    for value in rng.normal(size=300_000).tolist():
        alarms += detector.update(value).drift_detected
    assert alarms <= 3  # 0.3 are expected
    delays = []
    for _ in range(20):
        detector = PageHinkley()
        for value in rng.normal(size=2000).tolist():
            detector.update(value)
        shifted = enumerate((rng.normal(size=1000) + 1).tolist())
        delays.append(next(n for n, value in shifted if detector.update(value).drift_detected))
    assert 45 < np.mean(delays) < 75


@pytest.mark.slow
def test_display_shows_score_and_drifts():
    plt = pytest.importorskip("matplotlib.pyplot")
    monitor = StreamMonitor(window=100)
    stream = stream_of(monitor)
    for X, y in batches(30, changes_at=20):
        stream.partial_fit(X, y, classes=CLASSES)
    display = StreamDisplay.from_monitor(monitor, name="stream")
    np.testing.assert_array_equal(
        display.line_.get_ydata(), [record["window_score"] for record in monitor.records]
    )
    drifts = [record["n_samples"] for record in monitor.records if record["drift"]]
    assert [mark.get_xdata()[0] for mark in display.drift_marks_] == drifts and drifts
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["stream", "drift"]
    assert StreamDisplay.from_monitor(monitor, ax=display.ax_, key="loss").ax_ is display.ax_
    plt.close(display.figure_)
    with pytest.raises(ValueError, match="no records"):
        StreamDisplay.from_monitor(StreamMonitor())
