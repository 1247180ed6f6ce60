"""Event files of TensorBoard: the scalars of every epoch, read back by its own reader."""

import pickle

import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from ortlearn.callbacks import StreamMonitor, TensorBoardLogger

pytest.importorskip("tensorboardX")
pytestmark = [
    pytest.mark.needs_callbacks,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def scalars(folder):
    """Return name, epoch and value of the scalars in the event files of a folder."""
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.record_writer import RecordWriter  # noqa: F401  (the format read here)

    found = []
    for path in sorted(folder.glob("events*")):
        content, at = path.read_bytes(), 0
        while at < len(content):  # length, checksum, record, checksum
            size = int.from_bytes(content[at : at + 8], "little")
            event = Event.FromString(content[at + 12 : at + 12 + size])
            found += [(value.tag, event.step, value.simple_value) for value in event.summary.value]
            at += 12 + size + 4
    return found


def test_scalars_are_the_history(tmp_path, trainer, data):
    trainer.set_callbacks(TensorBoardLogger(tmp_path)).fit(*data)
    losses = [(step, value) for tag, step, value in scalars(tmp_path) if tag == "loss"]
    assert losses == [
        (record["epoch"], pytest.approx(record["loss"], rel=1e-6)) for record in trainer.history_
    ]
    assert {tag for tag, *_ in scalars(tmp_path)} == {
        *("loss", "validation_loss", "validation_score", "rate", "seconds")
    }


def test_each_training_of_a_search_has_a_folder(tmp_path, trainer, data):
    trainer.set_callbacks(TensorBoardLogger(tmp_path))
    GridSearchCV(trainer, {"learning_rate": [0.1, 0.01]}, cv=2).fit(*data)
    folders = {path.parent for path in tmp_path.rglob("events*")}
    assert len(folders) == 5 and all(len(scalars(folder)) >= 20 for folder in folders)


def losses_of(folder):
    """Return the epochs of the losses in the event files of a folder."""
    return [step for tag, step, _ in scalars(folder) if tag == "loss"]


def test_calls_of_partial_fit_continue_a_folder(tmp_path, trainer, data):
    """Quick calls lose nothing; another training, and one that a drift restarts, have other folders."""
    X, y = data
    logger, monitor = TensorBoardLogger(tmp_path), StreamMonitor(on_drift="restart")
    trainer.set_params(early_stopping=False).set_callbacks(logger, monitor).fit(X, y)
    for _ in range(3):
        trainer.partial_fit(X, y)
    stored = pickle.loads(pickle.dumps(trainer)).partial_fit(X, y)
    assert losses_of(tmp_path)[:4] == [1, 2, 3, 4]
    for each in (*stored._skl_callbacks[:1], logger):
        each.close()
    assert losses_of(tmp_path) == [*range(1, 9)] and len([*tmp_path.glob("events*")]) == 3
    clone(trainer).set_callbacks(logger).fit(X, y)
    assert losses_of(tmp_path / "fit-2") == [1, 2, 3, 4]
    for _ in range(4):
        trainer.partial_fit(X, (y + 1) % 3)
    logger.close()
    assert losses_of(tmp_path / "fit-3")[0] == 1
