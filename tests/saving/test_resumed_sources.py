"""Trainings on sources, resumed within a pass, end with the same bits as uninterrupted ones."""

import pickle
import signal

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPRegressor

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer, saving
from ortlearn.callbacks import ModelCheckpoint
from ortlearn.exceptions import SavedFileError, SourceError
from tests.saving.checkpoints import EveryState, training_state
from tests.simulated_clock import slow_batches

pytestmark = [pytest.mark.needs_callbacks, pytest.mark.filterwarnings("ignore")]

KINDS = {"one_graph": OrtGradientOptimizer, "two_calls": OrtGradientForwardBackwardOptimizer}
rng = np.random.default_rng(0)
X = rng.normal(size=(210, 4)).astype(np.float32)
Y = np.sin(X @ np.array([1.0, -2.0, 0.5, 0.1], np.float32))
WEIGHTS = rng.uniform(0.5, 2, size=210)
HELD_OUT = {"source_val": X[:50], "y_val": Y[:50]}
MLP = MLPRegressor(hidden_layer_sizes=(3,), max_iter=2, random_state=0)
#: Model, parameters and arguments of fit_stream.
CASES = {
    "adam": (MLP, {"learning_rate": "Adam"}, {}),
    "in order": (MLP, {"learning_rate": "SGDNesterov", "shuffle": False}, {}),
    "average": (MLP, {"learning_rate": "Adam", "average": 20}, {}),
    "automatic": (Ridge(), {"clip_norm": 1.0}, {}),
    "validation": (MLP, {"learning_rate": "Adam", "validation_every": 1, "early_stopping": True}, HELD_OUT),
    "weights": (LogisticRegression(class_weight="balanced"), {"learning_rate": 0.5}, {}),
}


def blocks(weights=False, labels=Y):
    for start in range(0, len(X), 30):
        samples = slice(start, start + 30)
        yield (X[samples], labels[samples], WEIGHTS[samples])[: 3 if weights else 2]


def fit(case, kind, *callbacks, source=None, **more):
    """Return an estimator, and a function that trains it on a source (by default ``blocks``)."""
    model, options, arguments = CASES[case]
    given = {"max_iter": 3, "random_state": 0, "batch_size": 8, **options}
    if case == "weights":
        source = source or (lambda: blocks(True, Y > 0))
    trainer = KINDS[kind](model, **given)
    if callbacks:
        trainer.set_callbacks(*callbacks)
    return trainer, lambda **also: trainer.fit_stream(
        source or blocks, shuffle_buffer=64, **arguments, **more, **also
    )


@pytest.fixture
def parts(monkeypatch):
    """Call the callbacks after every batch."""
    with slow_batches(monkeypatch):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES)
def test_resuming_within_a_pass(kind, case, parts, tmp_path):
    checkpoint = EveryState(tmp_path)
    expected = fit(case, kind, checkpoint)[1]()
    done = [saving.read_summary(path)["batches"] for path in checkpoint.written]
    # three full chunks of 8 batches, and a last one of 3
    assert {*range(27)} == {*done} and len(done) >= 3 * 27
    for path in checkpoint.written[:: 7 if kind == "one_graph" else 19]:
        resumed = fit(case, kind)[1](resume_from=path)
        assert training_state(resumed) == training_state(expected), path.name
    assert training_state(fit(case, kind)[1](resume_from=checkpoint.written[-1])) == training_state(expected)
    assert training_state(fit(case, kind)[1](resume_from=tmp_path)) == training_state(expected)


class Interrupt(ModelCheckpoint):
    """Interrupt a training at one of its pauses."""

    def __init__(self, folder, at):
        super().__init__(folder, seconds=None)
        self.left = at

    def on_training_pause(self, estimator, context):
        self.left -= 1
        if not self.left:
            signal.raise_signal(signal.SIGINT)


@pytest.fixture
def interrupts():
    """Let SIGINT raise KeyboardInterrupt: processes started in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.sweep(3)
@pytest.mark.usefixtures("interrupts", "parts")
@pytest.mark.parametrize("at", [1, 8, 20, 33])
@pytest.mark.parametrize("kind", KINDS)
def test_resuming_after_an_interrupt(kind, at, tmp_path):
    expected = fit("adam", kind)[1]()
    trainer, interrupted = fit("adam", kind, Interrupt(tmp_path / "own", at))
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert trainer.n_iter_ == at // 27 and np.isfinite(trainer.predict(X)).all()
    trainer.set_callbacks()
    saving.save(trainer, tmp_path / "interrupted.zip")
    assert saving.read_summary(tmp_path / "interrupted.zip")["finished"] is False
    for source in (tmp_path / "interrupted.zip", pickle.loads(pickle.dumps(trainer)), trainer):
        assert training_state(fit("adam", kind)[1](resume_from=source)) == training_state(expected)


@pytest.mark.slow
@pytest.mark.sweep(1)
@pytest.mark.parametrize("encoding", ["dictionary", "plain"])
def test_row_groups_of_a_pass_are_not_read_again(tmp_path, parts, encoding):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = pa.table([*X.T, Y], names=[*"abcd", "y"])
    options = {"use_dictionary": encoding == "dictionary", "row_group_size": 30}
    pq.write_table(columns, tmp_path / "rows.parquet", **options)
    source = {"source": tmp_path / "rows.parquet", "y": "y"}
    checkpoint = EveryState(tmp_path / "states")
    expected = fit("adam", "one_graph", checkpoint, **source)[1]()
    assert training_state(expected) != training_state(fit("in order", "one_graph", **source)[1]())
    for path in checkpoint.written[::13]:
        assert training_state(fit("adam", "one_graph", **source)[1](resume_from=path)) == training_state(
            expected
        )


def test_source_with_several_errors():
    """An error of a resumed pass keeps its progress, and that of the pass before."""
    reads = []

    def failing():
        reads.append(None)
        for number, samples in enumerate(blocks()):
            if len(reads) in failures and number == failures[len(reads)]:
                raise SourceError("gone")
            yield samples

    trainer, train = fit("adam", "one_graph", source=failing)
    done = []
    for at in (3, 0, 5):  # after one chunk, none, and another one
        failures = {len(reads) + 4: at}  # the first three reads precede the training
        with pytest.raises(SourceError, match="gone"):
            train(**({"resume_from": trainer} if done else {}))
        done.append(len(trainer._fitted.state.objectives))
    assert done == [8, 8, 16]
    assert training_state(train(resume_from=trainer)) == training_state(fit("adam", "one_graph")[1]())


def test_other_samples_are_rejected(tmp_path):
    checkpoint = ModelCheckpoint(tmp_path, every=1)
    fit("weights", "one_graph", checkpoint)[1]()
    path = tmp_path / "epoch-000001.zip"
    later = Y.copy()
    later[-1] *= -1
    for other, name in (
        (lambda: blocks(False, Y > 0), "sample_weight=64 values .* instead of 64 values"),
        (lambda: list(blocks(True, Y > 0))[:-1], "source=180 rows"),
        (lambda: blocks(True, later > 0), "source=210 rows"),
    ):
        with pytest.raises(SavedFileError, match=name):
            fit("weights", "one_graph", source=other)[1](resume_from=path)


@pytest.mark.slow
def test_partial_fit_continues_from_a_checkpoint(tmp_path):
    """No state is written within a call of ``partial_fit``, which is repeated."""
    samples = list(blocks())
    checkpoint = EveryState(tmp_path)
    stream = OrtGradientOptimizer(MLP, learning_rate="Adam", average=20, batch_size=8, random_state=0)
    for part in samples:
        stream.set_callbacks(checkpoint).partial_fit(*part)
    assert [saving.read_summary(path)["epochs"] for path in checkpoint.written] == [1, 2, 3, 4, 5, 6, 7]
    for path in checkpoint.written[:-1]:
        later = saving.load(path)
        for part in samples[later.n_iter_ :]:
            later.partial_fit(*part)
        assert training_state(later) == training_state(stream)
