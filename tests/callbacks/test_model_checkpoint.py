"""Checkpoints are complete and ranked, and trainings continue from them."""

import pickle

import numpy as np
import onnx
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import BaggingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer, saving
from ortlearn.callbacks import ModelCheckpoint
from ortlearn.callbacks.checkpoint_files import read_value, written_by
from ortlearn.exceptions import ConvergenceError
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD

OPTIMIZERS = {"one_graph": OrtGradientOptimizer, "two_calls": OrtGradientForwardBackwardOptimizer}


@pytest.fixture(scope="module")
def samples():
    X, y = load_diabetes(return_X_y=True)
    return scale(X)[:80], scale(y)[:80]


def train(checkpoint, samples, kind=OrtGradientOptimizer, model=None, fit=None, **options):
    options = {"max_iter": 4, "random_state": 0, "batch_size": 16, "learning_rate": "Adam", **options}
    trainer = kind(model or Ridge(), **options)
    return trainer.set_callbacks(checkpoint).fit(*samples, **(fit or {}))


def names(checkpoint):
    return [str(path.relative_to(checkpoint.folder)) for path in checkpoint.paths()]


def epochs(checkpoint):
    return [int(read_value(path, "epoch")) for path in checkpoint.paths()]


def test_keep_best_is_save_best_and_warns(tmp_path):
    with pytest.warns(FutureWarning, match="renamed to save_best in version 0.2 .* Use save_best"):
        renamed = ModelCheckpoint(tmp_path, keep_best=2)
    new = ModelCheckpoint(tmp_path, save_best=2)
    assert {**vars(renamed), "_writer": new._writer} == vars(new)


@pytest.mark.needs_callbacks
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_file_for_every_epoch(kind, samples, tmp_path, run_onnx):
    checkpoint = ModelCheckpoint(tmp_path / "new" / "folder", every=1)
    train(checkpoint, samples, OPTIMIZERS[kind])
    assert names(checkpoint) == [f"epoch-00000{i}.onnx" for i in (1, 2, 3, 4)]
    for epoch, path in enumerate(checkpoint.paths(), start=1):
        fewer = OPTIMIZERS[kind](
            Ridge(), max_iter=epoch, random_state=0, batch_size=16, learning_rate="Adam"
        ).fit(*samples)
        model = onnx.load(path)
        assert model.graph.initializer == fewer.onnx_.graph.initializer
        found = run_onnx(model, samples[0].astype(np.float32))[0]
        np.testing.assert_array_equal(found.ravel(), fewer.predict(samples[0]))


@pytest.mark.needs_callbacks
def test_measured_values_are_in_the_metadata(samples, tmp_path):
    checkpoint = ModelCheckpoint(tmp_path, every=1)
    trainer = train(checkpoint, samples, fit={"X_val": samples[0], "y_val": samples[1]}, validation_every=2)
    for record, path in zip(trainer.history_, checkpoint.paths(), strict=True):
        for key, value in record.items():
            assert read_value(path, key) == value
    assert checkpoint.best_path() == tmp_path / "epoch-000004.onnx"
    assert read_value(checkpoint.paths()[0], "validation_loss") is None
    assert "ortlearn.loss" not in {entry.key for entry in trainer.onnx_.metadata_props}


@pytest.mark.needs_callbacks
def test_every_parameter(samples, tmp_path):
    checkpoint = ModelCheckpoint(tmp_path, every=3)
    train(checkpoint, samples, max_iter=7)
    assert epochs(checkpoint) == [3, 6]


@pytest.mark.needs_callbacks
@pytest.mark.parametrize("monitor", ["validation_loss", "validation_score", "loss"])
def test_best_checkpoints_are_kept(monitor, samples, tmp_path):
    checkpoint = ModelCheckpoint(tmp_path, save_best=2, monitor=monitor, with_estimator=True)
    fit = {"X_val": samples[0][:9], "y_val": samples[1][:9]}
    # With a rate this high, the loss oscillates.
    trainer = train(checkpoint, samples, fit=fit, validation_every=1, learning_rate=0.5, max_iter=12)
    values = [record[monitor] for record in trainer.history_]
    order = np.argsort(np.array(values) * (-1 if monitor == "validation_score" else 1), kind="stable") + 1
    assert epochs(checkpoint) == sorted(order[:2])
    assert epochs(checkpoint) not in ([1, 2], [11, 12]), "the order of the epochs decided"
    assert read_value(checkpoint.best_path(), "epoch") == order[0]
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.needs_callbacks
def test_epochs_without_a_validation_are_not_ranked(samples, tmp_path):
    checkpoint = ModelCheckpoint(tmp_path, save_best=3)
    train(checkpoint, samples, fit={"X_val": samples[0], "y_val": samples[1]}, validation_every=3, max_iter=8)
    assert epochs(checkpoint) == [3, 6]


@pytest.mark.needs_callbacks
def test_missing_criterion_is_an_early_error(samples, tmp_path):
    seen = []

    class Counter(ModelCheckpoint):
        def on_fit_task_end(self, estimator, context):
            seen.append(context.task_name)
            super().on_fit_task_end(estimator, context)

    with pytest.raises(ValueError, match="best epochs by validation_loss, which is not measured. Pass X_val"):
        train(Counter(tmp_path, save_best=1), samples, max_iter=50)
    assert seen == ["epoch"] * 5
    with pytest.raises(ValueError, match="There is no checkpoint in .*. Call fit first"):
        ModelCheckpoint(tmp_path).best_path()


@pytest.mark.needs_callbacks
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_warm_start_from_an_onnx_file(kind, samples, tmp_path):
    """Without optimizer state, schedule and shuffling, the weights determine the rest of the training."""
    options = {
        "learning_rate": LearningRateSGD(eta0=0.01, learning_rate="constant"),
        "shuffle": False,
        "batch_size": 16,
        "warm_start": True,
    }
    checkpoint = ModelCheckpoint(tmp_path, every=1)
    model = Ridge().fit(samples[0], -samples[1])
    whole = OPTIMIZERS[kind](model, max_iter=6, **options).set_callbacks(checkpoint).fit(*samples)
    later = OPTIMIZERS[kind](checkpoint.paths()[3], max_iter=2, **options).fit(*samples)
    np.testing.assert_allclose(later.train_losses_, whole.train_losses_[4:], rtol=1e-6)
    np.testing.assert_allclose(later.predict(samples[0]), whole.predict(samples[0]), rtol=1e-5, atol=1e-6)


@pytest.mark.needs_callbacks
def test_measured_values_are_not_copied_to_later_models(samples, tmp_path):
    """Duplicate metadata keys would not be valid ONNX."""
    first, second = (
        ModelCheckpoint(tmp_path / "first", every=1),
        ModelCheckpoint(tmp_path / "second", every=1),
    )
    train(first, samples)
    later = train(second, samples, model=first.paths()[-1], warm_start=True)
    assert not later.get_trained_onnx().metadata_props
    for path in second.paths():
        onnx.checker.check_model(onnx.load(path))
    assert [read_value(path, "loss") for path in second.paths()] == later.train_losses_


@pytest.mark.needs_callbacks
def test_warm_start_of_a_classifier_from_an_onnx_file(tmp_path):
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    checkpoint = ModelCheckpoint(tmp_path, every=1)
    first = train(
        checkpoint, (X, y), model=MLPClassifier(hidden_layer_sizes=(5,), random_state=0), max_iter=3
    )
    later = OrtGradientOptimizer(checkpoint.paths()[-1], warm_start=True, max_iter=10, random_state=0)
    later.fit(X, y)
    assert later.train_losses_[0] < first.train_losses_[0]
    assert later.score(X, y) > first.score(X, y) and (later.classes_ == [0, 1, 2]).all()


@pytest.mark.needs_callbacks
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_loaded_estimator_continues_with_the_same_result(kind, samples, tmp_path):
    checkpoint = ModelCheckpoint(tmp_path, with_estimator=True, every=2)
    whole = train(
        checkpoint, samples, OPTIMIZERS[kind], learning_rate=LearningRateAdam(eta0=0.01), max_iter=6
    )
    later = saving.load(tmp_path / "epoch-000002.zip")
    assert later.n_iter_ == 2 and "_skl_callbacks" not in vars(later)
    for _ in range(4):
        later.partial_fit(*samples)
    assert later.train_losses_ == whole.train_losses_
    for name, array in whole.trained_coef_.items():
        np.testing.assert_array_equal(later.trained_coef_[name], array)


@pytest.mark.needs_callbacks
def test_partial_fit_adds_files(samples, tmp_path):
    checkpoint = ModelCheckpoint(tmp_path, save_best=2, monitor="loss")
    trainer = OrtGradientOptimizer(Ridge(), random_state=0, learning_rate=0.01).set_callbacks(checkpoint)
    for _ in range(4):
        trainer.partial_fit(*samples)
    assert epochs(checkpoint) == [3, 4]
    again = ModelCheckpoint(tmp_path, save_best=2, monitor="loss")
    trainer.set_callbacks(again).partial_fit(*samples)
    assert epochs(again) == [4, 5]


@pytest.mark.needs_callbacks
def test_files_of_an_earlier_fit(samples, tmp_path):
    checkpoint = ModelCheckpoint(tmp_path, every=1)
    trainer = train(checkpoint, samples)
    (tmp_path / "notes.txt").write_text("mine")
    before = {path: path.read_bytes() for path in checkpoint.paths()}
    other_day = OrtGradientOptimizer(Ridge()).set_callbacks(ModelCheckpoint(tmp_path, every=1))
    for call in (trainer.fit, other_day.fit, other_day.partial_fit):
        with pytest.raises(ValueError, match="already has 4 checkpoints of an earlier fit. Pass"):
            call(*samples)
    again = ModelCheckpoint(tmp_path, overwrite=True, every=1)
    with pytest.raises(ValueError, match="NaN"):
        train(again, (samples[0] * np.nan, samples[1]))
    assert {path: path.read_bytes() for path in checkpoint.paths()} == before
    train(again, samples, max_iter=2)
    assert names(again) == ["epoch-000001.onnx", "epoch-000002.onnx"]
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.needs_callbacks
def test_files_are_kept_when_the_training_fails(samples, tmp_path):
    checkpoint = ModelCheckpoint(tmp_path, every=1)
    trainer = OrtGradientOptimizer(Ridge(), max_iter=50, learning_rate=3.0, random_state=0)
    with pytest.raises(ConvergenceError):
        trainer.set_callbacks(checkpoint).fit(*samples)
    assert names(checkpoint)[0] == "epoch-000001.onnx" and len(names(checkpoint)) < 50
    assert all(np.isfinite(read_value(path, "loss")) for path in checkpoint.paths())
    assert not list(tmp_path.glob(".*")), "a half-written file is left"


@pytest.mark.needs_callbacks
def test_pipeline_has_a_folder_for_its_step(samples, tmp_path):
    checkpoint = ModelCheckpoint(tmp_path, every=1)
    trainer = OrtGradientOptimizer(Ridge(), max_iter=2).set_callbacks(checkpoint)
    make_pipeline(StandardScaler(), trainer).fit(*samples)
    assert names(checkpoint) == [f"fit-final-estimator-1/epoch-00000{i}.onnx" for i in (1, 2)]


@pytest.mark.needs_callbacks
def test_search_has_a_folder_for_every_training(samples, tmp_path):
    checkpoint = ModelCheckpoint(tmp_path, save_best=1, monitor="loss")
    trainer = OrtGradientOptimizer(Ridge(), max_iter=3, random_state=0).set_callbacks(checkpoint)
    search = GridSearchCV(trainer, {"learning_rate": [0.01, 1e-5]}, cv=2).fit(*samples)
    folders = [f"search-0/candidate-split-evaluation-{i}" for i in range(4)]
    expected = [f"{folder}/epoch-000003.onnx" for folder in ["refit-with-best-params-1", *folders]]
    assert names(checkpoint) == expected
    losses = {path: read_value(path, "loss") for path in checkpoint.paths()}
    assert losses[checkpoint.paths()[0]] == search.best_estimator_.train_losses_[-1]
    assert losses[checkpoint.best_path()] == min(losses.values())


@pytest.mark.needs_callbacks
def test_other_estimators_are_rejected(samples, tmp_path):
    pipeline = make_pipeline(StandardScaler(), OrtGradientOptimizer(Ridge()))
    with pytest.raises(TypeError, match="ModelCheckpoint supports OrtGradientOptimizer .* not Pipeline"):
        pipeline.set_callbacks(ModelCheckpoint(tmp_path, every=1)).fit(*samples)


@pytest.mark.needs_callbacks
def test_solver_has_checkpoints(samples, tmp_path):
    checkpoint = ModelCheckpoint(tmp_path, every=1)
    trainer = train(checkpoint, samples, learning_rate="LBFGS", max_iter=30, model=Ridge())
    assert epochs(checkpoint) == list(range(1, trainer.n_iter_ + 1))


@pytest.mark.needs_callbacks
def test_callback_pickled_with_its_estimator(samples, tmp_path):
    checkpoint = ModelCheckpoint(tmp_path, save_best=1, monitor="loss")
    trainer = pickle.loads(pickle.dumps(train(checkpoint, samples, model=Ridge())))
    trainer.partial_fit(*samples)
    assert epochs(checkpoint) == [5]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"every": 0}, "every must be an integer of 1 or more, not 0"),
        ({"every": 1.5}, "every must be"),
        ({"every": True}, "every must be"),
        ({"save_best": 0}, "save_best must be"),
        ({"keep": 0}, "keep must be"),
        ({"seconds": -1}, "seconds must be None or a number of 0 or more"),
        ({"monitor": "accuracy"}, "monitor must be one of .*'validation_score'.*not 'accuracy'"),
    ],
    ids=lambda value: None if isinstance(value, str) else str(value),
)
def test_invalid_parameters(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        ModelCheckpoint(tmp_path, **options)


@pytest.mark.needs_callbacks
@pytest.mark.parametrize("name", ["file", "file/inside"])
def test_folder_that_cannot_be_created(name, samples, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=f"cannot create the folder .*{name}, since it or one of"):
        train(ModelCheckpoint(tmp_path / name, every=1), samples)


@pytest.mark.parametrize("folder", [None, 3])
def test_invalid_folder(folder):
    with pytest.raises(TypeError, match=f"folder must be a path, .*, not {folder}"):
        ModelCheckpoint(folder, every=1)


@pytest.mark.needs_callbacks
def test_trainings_of_clones_have_separate_folders(samples, tmp_path):
    checkpoint = ModelCheckpoint(tmp_path, save_best=1, monitor="loss")
    trainer = OrtGradientOptimizer(Ridge(), max_iter=3, random_state=0, learning_rate=0.01)
    ensemble = BaggingRegressor(trainer.set_callbacks(checkpoint), n_estimators=3, random_state=0).fit(
        *samples
    )
    epoch = "epoch-000003.onnx"
    assert names(checkpoint) == [epoch, f"fit-2/{epoch}", f"fit-3/{epoch}"]
    losses = [member.train_losses_[-1] for member in ensemble.estimators_]
    assert [read_value(path, "loss") for path in checkpoint.paths()] == losses
    assert read_value(checkpoint.best_path(), "loss") == min(losses)
    second = ensemble.estimators_[1]
    with pytest.raises(ValueError, match="fit-2 already has 1 checkpoints of an earlier fit"):
        second.fit(*samples)
    easy = samples[0], second.predict(samples[0])  # a loss near zero, lower than any before
    pickle.loads(pickle.dumps(second)).partial_fit(*easy)  # continues in its folder
    assert names(checkpoint) == [epoch, "fit-2/epoch-000004.onnx", f"fit-3/{epoch}"]


@pytest.mark.needs_callbacks
def test_a_clone_does_not_write_into_a_folder_from_which_a_training_was_resumed(samples, tmp_path):
    train(ModelCheckpoint(tmp_path, every=2), samples)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("epoch-*")}
    checkpoint = ModelCheckpoint(tmp_path, every=3, overwrite=True)
    resumed = train(checkpoint, samples, fit={"resume_from": tmp_path})  # at its end: nothing new is written
    clone(resumed).set_callbacks(checkpoint).fit(*samples)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("epoch-*")} == before
    assert (tmp_path / "fit-2" / "epoch-000003.onnx").exists()


@pytest.mark.needs_callbacks
def test_overwrite_keeps_the_trainings_of_clones(samples, tmp_path):
    for _ in range(2):  # the second time overwrites the files of the first
        checkpoint = ModelCheckpoint(tmp_path, overwrite=True, every=1)
        trainer = OrtGradientOptimizer(Ridge(), max_iter=1, random_state=0).set_callbacks(checkpoint)
        cross_validate(trainer, *samples, cv=2, error_score="raise")
        assert names(checkpoint) == ["epoch-000001.onnx", "fit-2/epoch-000001.onnx"]
        assert {written_by([path]) for path in checkpoint.paths()} == {checkpoint._writer}


@pytest.mark.needs_callbacks
def test_training_without_files_releases_its_folder(samples, tmp_path):
    checkpoint = ModelCheckpoint(tmp_path, every=1)
    with pytest.raises(ValueError, match="NaN"):
        train(checkpoint, (samples[0] * np.nan, samples[1]))
    train(checkpoint, samples, max_iter=1)
    assert names(checkpoint) == ["epoch-000001.onnx"]


@pytest.mark.needs_callbacks
def test_searches_inside_a_cross_validation(samples, tmp_path):
    checkpoint = ModelCheckpoint(tmp_path, every=1)
    trainer = OrtGradientOptimizer(Ridge(), max_iter=1, random_state=0).set_callbacks(checkpoint)
    search = GridSearchCV(trainer, {"learning_rate": [0.01]}, cv=2)
    cross_validate(search, *samples, cv=2, error_score="raise")
    folders = ["refit-with-best-params-1", *(f"search-0/candidate-split-evaluation-{i}" for i in range(2))]
    epoch = "epoch-000001.onnx"
    assert names(checkpoint) == [f"{folder}/{run}{epoch}" for folder in folders for run in ("", "fit-2/")]


@pytest.mark.needs_callbacks
def test_checkpoints_of_the_highest_score_are_kept(tmp_path):
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    checkpoint = ModelCheckpoint(tmp_path, save_best=1, monitor="validation_score")
    fit = {"X_val": X[::5], "y_val": y[::5]}
    trainer = train(checkpoint, (X, y), model=LogisticRegression(), fit=fit, validation_every=1, max_iter=15)
    best = int(np.argmax(trainer.validation_scores_)) + 1
    assert epochs(checkpoint) == [best]
