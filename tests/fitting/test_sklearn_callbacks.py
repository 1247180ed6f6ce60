"""scikit-learn's ScoringMonitor and ProgressBar, alone, in pipelines and in searches."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.exceptions import ConvergenceError
from tests.estimators.callback_recorders import MACHINERY, Lister, Recorder, ridge, rounds

try:
    from sklearn.callback import ProgressBar, ScoringMonitor
except ImportError:  # scikit-learn before 1.9: every test is skipped
    pass

pytestmark = pytest.mark.needs_callbacks


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    """Set a width sufficient for the names of nested tasks."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("rich._console", None)  # a console of another test would keep its width


def test_scores_of_all_epochs(optimizer, wine):
    X, y = wine
    monitor = ScoringMonitor(scoring=["accuracy", "neg_log_loss"])
    trainer = optimizer(LogisticRegression(), max_iter=3, random_state=0).set_callbacks(monitor)
    trainer.fit(X, y)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "epoch"]
    for epoch, row in enumerate(rows, start=1):
        fewer = clone(trainer).set_callbacks().set_params(max_iter=epoch).fit(X, y)
        assert row["accuracy"] == accuracy_score(y, fewer.predict(X))
        assert row["neg_log_loss"] == pytest.approx(-log_loss(y, fewer.predict_proba(X)))
    assert len(rows) == 3


def test_scores_are_weighted(small):
    X, y = small
    weights = np.linspace(0, 2, len(y))
    monitor = ScoringMonitor(scoring="r2")
    trainer = ridge().set_callbacks(monitor).fit(X, y, sample_weight=weights)
    assert monitor.get_logs().data[-1]["r2"] == pytest.approx(trainer.score(X, y, weights))
    assert trainer.score(X, y, weights) != pytest.approx(trainer.score(X, y))


def score_method(estimator, X, y, **weights):
    """Return the score method's result as a dictionary of scores."""
    return {"score": estimator.score(X, y, **weights)}


def test_score_method(optimizer, small):
    monitor = ScoringMonitor(scoring=score_method)
    trainer = optimizer(KMeans(2, n_init=1, random_state=0), max_iter=2, learning_rate=0.01, random_state=0)
    trainer.set_callbacks(monitor).fit(*small)
    assert monitor.get_logs().data[-1]["score"] == pytest.approx(trainer.score(*small))
    model = ridge(optimizer).set_callbacks(monitor).fit(*small, sample_weight=small[1] ** 2)
    assert monitor.get_logs().data[0]["score"] == pytest.approx(model.score(*small, small[1] ** 2))


def test_progress_bar(optimizer, small, capsys):
    ridge(optimizer).set_callbacks(ProgressBar()).fit(*small)
    out = capsys.readouterr().out
    assert f"{optimizer.__name__} - fit" in out and "100%" in out


def test_progress_bar_with_verbose(small, capsys):
    ridge(verbose=1).set_callbacks(ProgressBar()).fit(*small)
    out = capsys.readouterr().out
    assert "OrtGradientOptimizer - fit" in out and "3/3" in out


def test_pipeline(optimizer, small, capsys):
    seen = Recorder()
    trainer = ridge(optimizer).set_callbacks(seen)
    pipeline = make_pipeline(StandardScaler(), trainer).set_callbacks(ProgressBar())
    pipeline.fit(*small)
    out = capsys.readouterr().out
    assert f"Pipeline - fit-final-estimator | {optimizer.__name__} - fit #1" in " ".join(out.split())
    assert [call for call in seen.calls if call[1] == "epoch"] == rounds(3)
    assert vars(trainer)["_skl_callbacks"] == [seen] and not MACHINERY & vars(trainer).keys()
    trainer.set_callbacks(ProgressBar())
    with pytest.raises(TypeError, match="Register them directly"):
        pipeline.fit(*small)
    assert not MACHINERY & vars(trainer).keys()


def test_failing_training_in_a_pipeline(small, capsys):
    trainer = ridge(learning_rate=1e6, max_iter=50)
    pipeline = make_pipeline(StandardScaler(), trainer).set_callbacks(ProgressBar())
    with pytest.raises(ConvergenceError):
        pipeline.fit(*small)
    assert vars(trainer) == trainer.get_params(deep=False)


def test_search(optimizer, small, capsys):
    monitor = ScoringMonitor(scoring="r2")
    trainer = ridge(optimizer, max_iter=2).set_callbacks(monitor)
    search = GridSearchCV(trainer, {"batch_size": [10, 20]}, cv=2)
    search.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(*small)
    assert capsys.readouterr().out.count("100%") == 7  # fit, search, 4 candidates, refit
    rows, best = monitor.get_logs().data, search.best_estimator_
    paths = [row["task_id_path"] for row in rows if row["task_name"] == "epoch"]
    assert paths == [(0, 1, 0), (0, 1, 1)] + [(0, 0, i, e) for i in range(4) for e in range(2)]
    assert rows[0]["task_id_path"] == (0, 1) and rows[0]["r2"] == best.score(*small)
    assert not MACHINERY & vars(best).keys()
    assert pickle.loads(pickle.dumps(search)).best_score_ == search.best_score_


def test_search_continues_after_a_failed_training(small):
    seen = Lister()
    trainer = ridge(max_iter=30).set_callbacks(seen)
    search = GridSearchCV(trainer, {"learning_rate": [0.01, 1e6]}, cv=2).set_callbacks(ProgressBar())
    with pytest.warns(UserWarning, match="non-finite"), pytest.warns(FitFailedWarning, match="2 fits failed"):
        search.fit(*small)
    assert search.best_params_ == {"learning_rate": 0.01}
    assert [call[0] for call in seen.calls].count("teardown") == 5


@pytest.mark.parametrize(
    "callbacks, text",
    [
        ((3,), r"set_callbacks\(3\): a callback is an object with the methods"),
        ((print,), "a callback is an object with the methods"),
        ((Ridge(), "x"), "a callback is an object with the methods"),
        (([],), "takes the callbacks one by one, not as a list"),
        ((Ridge,), r"Ridge is a class: pass an instance, set_callbacks\(Ridge\(...\)\)"),
    ],
    ids=repr,
)
def test_objects_that_are_no_callbacks(optimizer, callbacks, text):
    trainer = optimizer(Ridge())
    with pytest.raises(TypeError, match=text):
        trainer.set_callbacks(*callbacks)
    assert not hasattr(trainer, "_skl_callbacks")
