"""Resumed trainings end with the same bits as uninterrupted ones."""

import pickle
import signal
import threading
import time
from itertools import cycle

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import HuberRegressor, LogisticRegression, Ridge, SGDRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer, saving
from ortlearn.callbacks import ModelCheckpoint
from ortlearn.exceptions import ResumedWarning, SavedFileError
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD, PlateauSchedule
from ortlearn.losses import FunctionLoss
from tests.saving.checkpoints import EveryState, training_state
from tests.simulated_clock import slow_batches

pytestmark = [pytest.mark.needs_callbacks, pytest.mark.filterwarnings("ignore")]

KINDS = {"one_graph": OrtGradientOptimizer, "two_calls": OrtGradientForwardBackwardOptimizer}
rng = np.random.default_rng(0)
X = rng.normal(size=(90, 4))
Y = np.sin(X @ [1.0, -2.0, 0.5, 0.1])
CLASSES = (Y > 0).astype(int)
WEIGHTS = rng.uniform(0.5, 2, size=90)
BOOSTED = HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=5)
MLP = MLPRegressor(hidden_layer_sizes=(3,), max_iter=2, random_state=0)


def squared_error(expected, predicted):
    """Return the squared error and its gradient."""
    return ((predicted - expected) ** 2).sum(axis=1) / 2, predicted - expected


#: Model, parameters and arguments of fit.
CASES = {
    "sgd": (MLP, {"learning_rate": LearningRateSGD(eta0=0.01, learning_rate="exponential")}, {}),
    **{name: (MLP, {"learning_rate": name}, {}) for name in ("SGDNesterov", "Adam", "AdamW", "RMSprop")},
    **{name: (MLP, {"learning_rate": name}, {}) for name in ("Adagrad", "Adadelta", "Lion")},
    "plateau": (MLP, {"learning_rate": LearningRateAdam(learning_rate=PlateauSchedule(patience=0))}, {}),
    "one_cycle": (MLP, {"learning_rate": LearningRateAdam(learning_rate="one_cycle")}, {}),
    "average": (MLP, {"learning_rate": "Adam", "average": 150}, {}),
    "clipping": (MLP, {"learning_rate": 0.1, "clip_norm": 0.5}, {"sample_weight": WEIGHTS}),
    "proximal": (Ridge(), {"learning_rate": 0.01, "learning_penalty": "l1"}, {}),
    "early_stopping": (MLP, {"learning_rate": 0.1, "early_stopping": True, "n_iter_no_change": 2}, {}),
    "stops": (MLP, {"learning_rate": 0.05, "tol": 1.0, "n_iter_no_change": 2}, {}),
    "validation": (MLP, {"learning_rate": "Adam"}, {"X_val": X[:9], "y_val": Y[:9]}),
    "solver": (MLP, {"learning_rate": "LBFGS"}, {}),
    "rounded": (MLP, {"learning_rate": "LBFGS", "learning_loss": "absolute_error"}, {}),
    "automatic": (HuberRegressor(), {}, {}),
    "automatic_mlp": (MLP, {}, {}),
    "automatic_adam": (Ridge(), {"clip_norm": 1.0}, {}),
    "adapted": (Ridge().fit(X[:20], Y[:20] - 1), {"warm_start": True}, {}),
    "grown": (BOOSTED.fit(X[:60, [1, 0, *range(2, X.shape[1])]], Y[:60] - 1), {"warm_start": True}, {}),
    "unfitted_warm": (SGDRegressor(random_state=None), {"warm_start": True, "learning_rate": "Adam"}, {}),
    "pipeline": (make_pipeline(StandardScaler(), MLP), {"learning_rate": "Adam", "shuffle": False}, {}),
}


def make(case, kind, **more):
    model, options, _ = CASES[case]
    return kind(model, **{"max_iter": 6, "random_state": 0, "batch_size": 16, **options, **more})


def data(case):
    return (csr_matrix(X), Y) if case == "sparse" else (X, Y)


@pytest.fixture
def slow(monkeypatch):
    """Simulate slow batches."""
    with slow_batches(monkeypatch):
        yield


#: Cases alternate between the two estimators.
@pytest.mark.sweep(4)
@pytest.mark.parametrize(("kind", "case"), list(zip(cycle(KINDS), CASES, strict=False)))
def test_resuming_from_checkpoints(kind, case, tmp_path):
    samples, labels = data(case)
    checkpoint = ModelCheckpoint(tmp_path / "expected", every=1)
    expected = make(case, KINDS[kind]).set_callbacks(checkpoint).fit(samples, labels, **CASES[case][2])
    files = sorted((tmp_path / "expected").glob("epoch-*.zip"))
    assert len(files) == expected.n_iter_ > 1
    for path in [files[0], files[len(files) // 2], files[-1]]:
        resumed = make(case, KINDS[kind]).fit(samples, labels, **CASES[case][2], resume_from=path)
        assert training_state(resumed) == training_state(expected), path.name


@pytest.mark.sweep(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ["Adam", "average", "plateau", "sparse"])
@pytest.mark.usefixtures("slow")
def test_resuming_within_an_epoch(kind, case, tmp_path, monkeypatch):
    """Every call trains one batch, and writes a file."""
    monkeypatch.setitem(CASES, "sparse", (Ridge(), {"learning_rate": "Adam"}, {}))
    samples, labels = data(case)
    checkpoint = EveryState(tmp_path)
    expected = make(case, KINDS[kind], max_iter=3).set_callbacks(checkpoint).fit(samples, labels)
    batches = [saving.read_summary(path)["batches"] for path in checkpoint.written]
    assert {*range(5)} <= {*batches} and len(batches) >= 15
    for path in checkpoint.written[:: 4 if kind == "one_graph" else 5]:
        resumed = make(case, KINDS[kind], max_iter=3).fit(samples, labels, resume_from=path)
        assert training_state(resumed) == training_state(expected), path.name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ["Adam", "solver"])
def test_resuming_after_an_interrupt(kind, case, tmp_path):
    expected = make(case, KINDS[kind], max_iter=8).fit(X, Y)

    class Interrupt(ModelCheckpoint):
        def on_fit_task_end(self, estimator, context):
            if context.task_name != "fit" and len(estimator.history_) == 3:
                signal.raise_signal(signal.SIGINT)

    trainer = make(case, KINDS[kind], max_iter=8).set_callbacks(Interrupt(tmp_path / "own"))
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(X, Y)
    assert trainer.n_iter_ == 3 and np.isfinite(trainer.predict(X)).all()
    trainer.set_callbacks()
    saving.save(trainer, tmp_path / "interrupted.zip")
    assert saving.read_summary(tmp_path / "interrupted.zip")["finished"] is False
    later = saving.load(tmp_path / "interrupted.zip")
    np.testing.assert_array_equal(later.predict(X), trainer.predict(X))
    for source in (tmp_path / "interrupted.zip", later, pickle.loads(pickle.dumps(trainer)), trainer):
        resumed = make(case, KINDS[kind], max_iter=8).fit(X, Y, resume_from=source)
        assert training_state(resumed) == training_state(expected)
    assert training_state(trainer.fit(X, Y, resume_from=trainer)) == training_state(expected)


@pytest.mark.slow
def test_interrupts_by_a_timer():
    options = {"learning_rate": "Adam", "batch_size": 2, "random_state": 0, "max_iter": 150}
    expected = OrtGradientOptimizer(MLP, **options).fit(X, Y)
    for delay in (0.05, 0.1, 0.2, 0.4):
        trainer, source = OrtGradientOptimizer(MLP, **options), None
        timer = threading.Timer(delay, signal.raise_signal, [signal.SIGINT])
        try:
            timer.start()
            trainer.fit(X, Y)
            timer.join()
            time.sleep(0.01)
        except KeyboardInterrupt:
            fitted = trainer._fitted
            if fitted is not None and fitted.state.fingerprint is not None:  # not after the training
                source = trainer
        assert training_state(trainer.fit(X, Y, resume_from=source)) == training_state(expected)


def test_an_interrupted_stream_keeps_its_state(tmp_path):
    model = OrtGradientOptimizer(MLP, learning_rate="Adam", random_state=0).partial_fit(X, Y)
    before = training_state(model)

    class Interrupt(ModelCheckpoint):
        def on_fit_task_end(self, estimator, context):
            signal.raise_signal(signal.SIGINT)

    model.set_callbacks(Interrupt(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X, Y)
    assert training_state(model) == before


def test_random_states(tmp_path):
    """A resumed training continues with the seed drawn at its start."""
    for state in (None, np.random.RandomState(5)):
        options = {"random_state": state, "max_iter": 5, "early_stopping": True}
        checkpoint = ModelCheckpoint(tmp_path / f"{state is None}", every=2)
        expected = make("Adam", OrtGradientOptimizer, **options).set_callbacks(checkpoint).fit(X, Y)
        resumed = make("Adam", OrtGradientOptimizer, **options).fit(X, Y, resume_from=checkpoint.folder)
        assert training_state(resumed) == training_state(expected)


def test_a_second_fit_of_a_warm_start(tmp_path):
    trainer = make("Adam", OrtGradientOptimizer, warm_start=True).fit(X, Y)
    checkpoint = ModelCheckpoint(tmp_path, every=2)
    expected = training_state(trainer.set_callbacks(checkpoint).fit(X, Y))
    resumed = make("Adam", OrtGradientOptimizer, warm_start=True).fit(X, Y, resume_from=tmp_path)
    assert training_state(resumed) == expected


def test_python_loss_is_taken_from_the_estimator(tmp_path):
    loss = {"learning_loss": FunctionLoss(squared_error), "learning_penalty": None}
    kind = OrtGradientForwardBackwardOptimizer
    checkpoint = ModelCheckpoint(tmp_path, every=2)
    expected = make("Adam", kind, **loss).set_callbacks(checkpoint).fit(X, Y)
    assert training_state(
        make("Adam", kind, **loss).fit(X, Y, resume_from=tmp_path / "epoch-000002.zip")
    ) == training_state(expected)


def test_larger_max_iter(tmp_path):
    checkpoint = ModelCheckpoint(tmp_path, every=1)
    make("Adam", OrtGradientOptimizer).set_callbacks(checkpoint).fit(X, Y)
    longer = make("Adam", OrtGradientOptimizer, max_iter=9)
    assert training_state(longer.fit(X, Y, resume_from=tmp_path)) == training_state(
        make("Adam", OrtGradientOptimizer, max_iter=9).fit(X, Y)
    )


def test_trainings_that_cannot_be_resumed(tmp_path):
    trained = make("Adam", OrtGradientOptimizer).fit(X, Y)
    saving.save(trained, tmp_path / "over.zip")
    for source in (tmp_path / "over.zip", trained):
        with pytest.raises(SavedFileError, match="finished training"):
            make("Adam", OrtGradientOptimizer).fit(X, Y, resume_from=source)
    (tmp_path / "empty").mkdir()
    with pytest.raises(SavedFileError, match="has no training that can be resumed"):
        make("Adam", OrtGradientOptimizer).fit(X, Y, resume_from=tmp_path / "empty")
    with pytest.raises(SavedFileError, match="neither a path nor an estimator"):
        make("Adam", OrtGradientOptimizer).fit(X, Y, resume_from=3)


def test_a_damaged_checkpoint_is_skipped(tmp_path):
    checkpoint = ModelCheckpoint(tmp_path, every=1)
    expected = make("Adam", OrtGradientOptimizer).set_callbacks(checkpoint).fit(X, Y)
    path = tmp_path / "epoch-000006.zip"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert training_state(
        make("Adam", OrtGradientOptimizer).fit(X, Y, resume_from=tmp_path)
    ) == training_state(expected)


@pytest.mark.parametrize("n_damaged", [1, 2])
def test_damaged_checkpoints_are_named(n_damaged, tmp_path):
    make("Adam", OrtGradientOptimizer).set_callbacks(ModelCheckpoint(tmp_path, every=6 // n_damaged)).fit(
        X, Y
    )
    files = sorted(tmp_path.glob("*.zip"))
    assert len(files) == n_damaged
    for file in files:
        file.write_bytes(file.read_bytes()[:-100])
    text = ".*".join(f"{file.name} is not a saved estimator, or is damaged.* truncated" for file in files)
    with pytest.raises(SavedFileError, match=f"{text}.*Restore .*remove"):
        make("Adam", OrtGradientOptimizer).fit(X, Y, resume_from=tmp_path)
    checkpoint = ModelCheckpoint(tmp_path, every=6, resume=True)
    with pytest.raises(SavedFileError, match=f"{text}.*Restore .*remove"):
        make("Adam", OrtGradientOptimizer).set_callbacks(checkpoint).fit(X, Y)


def test_models_without_states(tmp_path):
    checkpoint = ModelCheckpoint(tmp_path, every=6, with_estimator=False)
    expected = make("Adam", OrtGradientOptimizer).set_callbacks(checkpoint).fit(X, Y)
    with pytest.raises(
        SavedFileError, match="no saved estimators.*only ONNX models such as epoch-000006.onnx"
    ):
        make("Adam", OrtGradientOptimizer).fit(X, Y, resume_from=tmp_path)
    checkpoint = ModelCheckpoint(tmp_path, every=6, resume=True)
    with pytest.warns(ResumedWarning, match="epoch-000006.onnx.* no saved estimator .*begins anew"):
        found = make("Adam", OrtGradientOptimizer).set_callbacks(checkpoint).fit(X, Y)
    assert training_state(found) == training_state(expected)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_resumed_search(n_jobs, tmp_path):
    """Its trainings resume from separate folders."""

    def search(folder, max_iter, **options):
        checkpoint = ModelCheckpoint(folder, every=1, **options)
        trainer = make("Adam", OrtGradientOptimizer, max_iter=max_iter).set_callbacks(checkpoint)
        return GridSearchCV(trainer, {"batch_size": [8, 16]}, cv=2, n_jobs=n_jobs).fit(X, Y)

    expected = search(tmp_path / "expected", 5)
    search(tmp_path / "killed", 3)  # simulates an interrupted search
    epochs = sorted((tmp_path / "killed").rglob("epoch-*.zip"))
    assert len(epochs) == 5 * 3
    for path in (*epochs[2::6], *epochs[1::6]):
        path.unlink()
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "killed").rglob("epoch-*.zip")}
    again = search(tmp_path / "killed", 5, resume=True)
    assert training_state(again.best_estimator_) == training_state(expected.best_estimator_)
    for name in ("split0_test_score", "split1_test_score"):
        np.testing.assert_array_equal(again.cv_results_[name], expected.cv_results_[name])
    assert len(list((tmp_path / "killed").rglob("epoch-000005.zip"))) == 5
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items()), "an epoch ran twice"


def test_resume_in_an_empty_folder(tmp_path):
    expected = make("Adam", OrtGradientOptimizer).fit(X, Y)
    for _ in range(2):
        checkpoint = ModelCheckpoint(tmp_path, every=2, resume=True)
        assert training_state(
            make("Adam", OrtGradientOptimizer).set_callbacks(checkpoint).fit(X, Y)
        ) == training_state(expected)
    assert [path.name for path in checkpoint.paths()] == [f"epoch-00000{i}.onnx" for i in (2, 4, 6)]


def test_checkpoints_of_a_resumed_training(tmp_path):
    first = ModelCheckpoint(tmp_path, every=1)
    make("Adam", OrtGradientOptimizer, max_iter=3).set_callbacks(first).fit(X, Y)
    again = ModelCheckpoint(tmp_path, every=1)
    resumed = make("Adam", OrtGradientOptimizer).set_callbacks(again).fit(X, Y, resume_from=tmp_path)
    assert training_state(resumed) == training_state(make("Adam", OrtGradientOptimizer).fit(X, Y))
    assert len(again.paths()) == 6


@pytest.mark.slow
def test_classes_and_class_weights(tmp_path):
    model = MLPClassifier(hidden_layer_sizes=(3,), max_iter=2)
    options = {"learning_rate": "Adam", "class_weight": "balanced", "early_stopping": True, "random_state": 0}
    checkpoint = ModelCheckpoint(tmp_path, every=1)
    expected = OrtGradientOptimizer(model, max_iter=4, **options).set_callbacks(checkpoint).fit(X, CLASSES)
    resumed = OrtGradientOptimizer(model, max_iter=4, **options)
    assert training_state(
        resumed.fit(X, CLASSES, resume_from=tmp_path / "epoch-000002.zip")
    ) == training_state(expected)
    solver = OrtGradientOptimizer(LogisticRegression(), random_state=0).set_callbacks(
        ModelCheckpoint(tmp_path / "solver", every=1)
    )
    expected = solver.fit(X, CLASSES)
    for path in sorted((tmp_path / "solver").glob("*.zip")):
        resumed = OrtGradientOptimizer(LogisticRegression(), random_state=0).fit(X, CLASSES, resume_from=path)
        assert training_state(resumed) == training_state(expected)
