"""A training on a stream is resumed only on equal data."""

import os
import signal

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from ortlearn import saving
from ortlearn.callbacks import ModelCheckpoint
from ortlearn.exceptions import SavedFileError
from tests.saving.checkpoints import training_state
from tests.saving.interrupted_trainings import (
    KINDS,
    OPTIONS,
    VALIDATION,
    WEIGHTS,
    X_VAL,
    Y_VAL,
    X,
    Y,
    changed_at,
    interrupted,
)

pytestmark = [
    pytest.mark.needs_callbacks,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return KINDS[request.param]


def batches(labels=Y, weights=WEIGHTS):
    return [(X[at : at + 30], labels[at : at + 30], weights[at : at + 30]) for at in range(0, 90, 30)]


STREAM = {"shuffle_buffer": 32, "source_val": X_VAL, "y_val": Y_VAL, "sample_weight_val": WEIGHTS[:20]}


@pytest.mark.slow
def test_streams(kind, tmp_path):
    checkpoint = ModelCheckpoint(tmp_path, every=1)
    expected = kind(Ridge(), **OPTIONS).set_callbacks(checkpoint).fit_stream(batches(), **STREAM)
    path = tmp_path / "epoch-000002.zip"
    resumed = kind(Ridge(), **OPTIONS).fit_stream(batches(), **STREAM, resume_from=path)
    assert training_state(resumed) == training_state(expected)
    for source, changes, name in (
        (batches(), {"random_state": 1}, "random_state=1 instead of 0"),
        (batches(), {"shuffle_buffer": 48}, "shuffle_buffer=48 instead of 32"),
        (batches(changed_at(Y, 3)), {}, "y=32 x 1 values"),
        (batches(weights=2 * WEIGHTS), {}, "sample_weight=32 values .* and the sum"),
        (batches(weights=changed_at(WEIGHTS, 89)), {}, "source=90 rows"),
        (batches(changed_at(Y, 89)), {}, "source=90 rows"),
        (batches(), {"source_val": X_VAL + 1}, "X_val=20 x 3 values"),
        (batches(), {"sample_weight_val": 3 * WEIGHTS[:20]}, "sample_weight_val="),
        (batches(), {"source_val": None, "y_val": None, "sample_weight_val": None}, "X_val=None instead of"),
    ):
        options = {**OPTIONS, **{key: value for key, value in changes.items() if key in OPTIONS}}
        arguments = {**STREAM, **{key: value for key, value in changes.items() if key in STREAM}}
        with pytest.raises(SavedFileError, match=rf"[ ,]{name}"):
            kind(Ridge(), **options).fit_stream(source, **arguments, resume_from=path)
    with pytest.raises(SavedFileError, match="source=None instead of 90 rows"):
        kind(Ridge(), **OPTIONS).fit(X, Y, WEIGHTS, **VALIDATION, resume_from=path)


def test_labels_of_an_array_are_compared(kind):
    """The model is fitted, since labels of the first buffer alone change an unfitted one."""
    model = Ridge().fit(X, Y)
    begun = interrupted(kind(model, **OPTIONS), X, Y, method="fit_stream", shuffle_buffer=32)
    expected = kind(model, **OPTIONS).fit_stream(X, Y, shuffle_buffer=32)
    found = kind(model, **OPTIONS).fit_stream(X.copy(), Y.copy(), shuffle_buffer=32, resume_from=begun)
    assert training_state(found) == training_state(expected)
    with pytest.raises(SavedFileError, match="source=90 rows"):
        kind(model, **OPTIONS).fit_stream(X, changed_at(Y, 89), shuffle_buffer=32, resume_from=begun)


@pytest.mark.slow
@pytest.mark.sweep(1)
def test_files_are_counted_again_only_if_they_changed(kind, tmp_path, capsys):
    pytest.importorskip("rich")
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    texts = np.array(["no", "yes"])[(Y > 0).astype(int)]

    def write(labels):
        pq.write_table(pa.table([*X.T, labels], names=[*"abc", "y"]), path, row_group_size=30)

    def train(trainer, **options):
        capsys.readouterr()
        trainer = trainer.fit_stream(path, "y", shuffle_buffer=32, source_val=path, **options)
        return trainer, capsys.readouterr().out.count("counting")

    write(texts)
    options = {**OPTIONS, "verbose": 1}
    expected, n_counted = train(kind(LogisticRegression(), **options))
    assert n_counted > 0
    begun = interrupted(
        kind(LogisticRegression(), **options),
        path,
        "y",
        shuffle_buffer=32,
        source_val=path,
        method="fit_stream",
    )
    saving.save(begun, tmp_path / "begun.zip")
    found, n_counted = train(kind(LogisticRegression(), **options), resume_from=tmp_path / "begun.zip")
    assert n_counted == 0 and training_state(found) == training_state(expected)
    os.utime(path, (1, 1))
    found, n_counted = train(kind(LogisticRegression(), **options), resume_from=tmp_path / "begun.zip")
    assert n_counted > 0 and training_state(found) == training_state(expected)
    write(np.where(np.arange(90) == 89, "yes" if texts[89] == "no" else "no", texts))
    with pytest.raises(SavedFileError, match="source=90 rows"):
        train(kind(LogisticRegression(), **options), resume_from=tmp_path / "begun.zip")


def test_interrupt_of_the_counting_pass(kind):
    """Nothing is trained, and the error says so."""

    def source():
        yield X[:30], Y[:30]
        signal.raise_signal(signal.SIGINT)

    trainer = kind(Ridge(), **OPTIONS)
    with pytest.raises(KeyboardInterrupt):
        trainer.fit_stream(source, shuffle_buffer=32)
    with pytest.raises(SavedFileError, match="no training to resume: .* counted, or before the first batch"):
        trainer.fit_stream(batches(), shuffle_buffer=32, resume_from=trainer)
    assert trainer.fit_stream(batches(), shuffle_buffer=32).n_iter_ == 4
