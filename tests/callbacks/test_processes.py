"""Trainings in other processes call the callbacks and write the same files."""

import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.preprocessing import scale

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.callbacks import LearningRateMonitor, ModelCheckpoint
from ortlearn.callbacks.checkpoint_files import read_value

pytestmark = pytest.mark.needs_callbacks


class OfThree:
    """Callback that stops after the third epoch, in any process."""

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        return context.task_name == "epoch" and context.task_id == 2


def searched(kind, n_jobs, folder):
    """Return the logs, the output and the files of a search."""
    from sklearn.callback import ProgressBar, ScoringMonitor

    X, y = load_diabetes(return_X_y=True)
    scores, rates = ScoringMonitor(scoring="r2"), LearningRateMonitor()
    checkpoint = ModelCheckpoint(folder, save_best=1, monitor="loss")
    trainer = kind(Ridge(), max_iter=9, random_state=0).set_callbacks(scores, rates, checkpoint, OfThree())
    search = GridSearchCV(trainer, {"learning_rate": [0.01, 1e-5]}, cv=2, n_jobs=n_jobs)
    search.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(scale(X)[:80], scale(y)[:80])
    files = {str(path.relative_to(folder)): read_value(path, "loss") for path in checkpoint.paths()}
    return scores.get_logs().data, rates.get_logs().data, files


@pytest.mark.slow
def test_two_processes_give_the_results_of_one(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for kind in (OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer):
        one = searched(kind, None, tmp_path / kind.__name__ / "one")
        shown = capsys.readouterr().out
        two = searched(kind, 2, tmp_path / kind.__name__ / "two")
        assert one == two
        assert capsys.readouterr().out.count("100%") == shown.count("100%") == 7
        scores, rates, files = two
        assert len(scores) == 5 * 4 and len(rates) == 5 * 3 and len(files) == 5


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_folds_of_a_cross_validation_have_separate_folders(n_jobs, tmp_path):
    X, y = load_diabetes(return_X_y=True)
    X, y = scale(X)[:80], scale(y)[:80]
    checkpoint = ModelCheckpoint(tmp_path, save_best=1, monitor="loss")
    trainer = OrtGradientOptimizer(Ridge(), max_iter=2, random_state=0).set_callbacks(checkpoint)
    found = cross_validate(trainer, X, y, cv=4, n_jobs=n_jobs, return_estimator=True, error_score="raise")
    files = [str(path.relative_to(tmp_path)) for path in checkpoint.paths()]
    runs = ["", "fit-2/", "fit-3/", "fit-4/"]
    assert files == [f"{run}epoch-000002.onnx" for run in runs]
    losses = {read_value(path, "loss") for path in checkpoint.paths()}
    assert losses == {trained.train_losses_[-1] for trained in found["estimator"]}
    assert not list(tmp_path.rglob(".*")), "something is left"
