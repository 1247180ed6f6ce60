"""TrainingCurveDisplay draws the history, and reports missing values."""

import subprocess
import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Lasso, Ridge
from sklearn.pipeline import make_pipeline

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.inspection import TrainingCurveDisplay


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def make_history(losses, validation=None, score=None, rate=None, first=1):
    columns = {"loss": losses, "validation_loss": validation, "validation_score": score, "rate": rate}
    return [
        {
            "epoch": first + i,
            "seconds": 0.1,
            **{key: None if values is None else values[i] for key, values in columns.items()},
        }
        for i in range(len(losses))
    ]


HISTORY = make_history(
    [4.0, 2.0, 1.0, 0.5],
    validation=[None, 2.5, None, 1.5],
    score=[None, 0.2, None, 0.6],
    rate=[0.1, 0.1, 0.05, 0.05],
)


def points(line):
    return list(zip(line.get_xdata().tolist(), line.get_ydata().tolist(), strict=True))


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_losses_are_drawn_where_they_were_measured():
    display = TrainingCurveDisplay(HISTORY).plot()
    assert points(display.line_) == [(1, 4.0), (2, 2.0), (3, 1.0), (4, 0.5)]
    assert points(display.validation_line_) == [(2, 2.5), (4, 1.5)]
    assert legend(display.ax_) == ["training loss", "validation loss"]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("epoch", "loss")
    assert display.figure_ is display.ax_.figure
    assert display.best_epoch_mark_ is display.score_ax_ is display.rate_ax_ is None
    assert display.figure_.axes == [display.ax_]


def test_without_validation_there_is_one_line():
    display = TrainingCurveDisplay(make_history([3.0, 2.0])).plot()
    assert display.validation_line_ is None and len(display.ax_.lines) == 1


def test_epochs_are_integers_of_the_history():
    display = TrainingCurveDisplay(make_history([3.0, 2.0], first=11)).plot()
    assert display.line_.get_xdata().tolist() == [11, 12]
    ticks = display.ax_.xaxis.get_major_locator()()
    assert np.array_equal(ticks, np.round(ticks))


@pytest.mark.slow
def test_single_epoch_has_a_marker():
    assert TrainingCurveDisplay(make_history([3.0])).plot().line_.get_marker() == "o"
    assert TrainingCurveDisplay(HISTORY).plot().line_.get_marker() == "None"


@pytest.mark.parametrize(
    "history, best, expected",
    [
        (HISTORY, 4, (4, 1.5)),  # on the validation loss
        (HISTORY, 3, (3, 1.0)),  # not validated then: on the training loss
        (make_history([4.0, 2.0, 3.0]), 2, (2, 2.0)),
    ],
    ids=["validated", "not validated", "never validated"],
)
def test_best_epoch_is_marked(history, best, expected):
    display = TrainingCurveDisplay(history, best_epoch=best).plot()
    assert points(display.best_epoch_mark_) == [expected]
    assert "best epoch" in legend(display.ax_)


def test_score_and_rate_have_separate_axes():
    display = TrainingCurveDisplay(HISTORY).plot(show_score=True, show_rate=True)
    assert points(display.score_line_) == [(2, 0.2), (4, 0.6)]
    assert points(display.rate_line_) == [(1, 0.1), (2, 0.1), (3, 0.05), (4, 0.05)]
    assert display.score_ax_.get_ylabel() == "validation score"
    assert display.rate_ax_.get_ylabel() == "learning rate"
    assert len({display.ax_, display.score_ax_, display.rate_ax_}) == 3
    labels = ["training loss", "validation loss", "validation score", "learning rate"]
    assert legend(display.ax_) == labels
    assert display.score_ax_.spines["right"].get_position() != display.rate_ax_.spines["right"].get_position()


def test_legend_is_in_front_of_every_line():
    display = TrainingCurveDisplay(HISTORY).plot(show_score=True)
    assert display.ax_.get_zorder() > display.score_ax_.get_zorder()
    assert not display.ax_.patch.get_visible()  # or it would hide the score


def test_several_estimators_share_the_axes():
    first = TrainingCurveDisplay(HISTORY, estimator_name="SGD").plot(show_score=True, show_rate=True)
    second = TrainingCurveDisplay(HISTORY, best_epoch=2).plot(
        first.ax_, name="Adam", show_score=True, show_rate=True
    )
    assert second.ax_ is first.ax_ and second.score_ax_ is first.score_ax_
    assert second.rate_ax_ is first.rate_ax_ and len(first.figure_.axes) == 3
    assert second.line_.get_color() != first.line_.get_color()
    for display in (first, second):
        others = (display.validation_line_, display.score_line_, display.rate_line_)
        assert {line.get_color() for line in others} == {display.line_.get_color()}
    assert len({line.get_linestyle() for line in (first.line_, *others)}) == 4
    names = ["SGD: training loss", "SGD: validation loss", "Adam: training loss", "Adam: validation loss"]
    assert legend(first.ax_)[:5] == [*names, "Adam: best epoch"]
    assert len(legend(first.ax_)) == 9


def test_several_unnamed_curves_get_names(diabetes):
    models = [Ridge(), Ridge(), Lasso()]
    trainers = [OrtGradientOptimizer(model, max_iter=2, random_state=0) for model in models]
    samples = diabetes.X_train, diabetes.y_train
    ax = TrainingCurveDisplay.from_estimator(trainers[0].fit(*samples)).ax_
    assert legend(ax) == ["training loss"]
    for trainer in trainers[1:]:
        TrainingCurveDisplay.from_estimator(trainer.fit(*samples), ax)
    assert legend(ax) == [f"{name}: training loss" for name in ("Ridge 1", "Ridge 2", "Lasso")]
    TrainingCurveDisplay.from_estimator(trainers[0], ax, name="mine")
    TrainingCurveDisplay.from_estimator(trainers[0], ax, label="whole: label")
    assert legend(ax)[3:] == ["mine: training loss", "whole: label"]
    ax.clear()
    assert legend(TrainingCurveDisplay.from_estimator(trainers[0], ax).ax_) == ["training loss"]


def test_histories_are_numbered():
    ax = TrainingCurveDisplay(HISTORY, best_epoch=4).plot().ax_
    TrainingCurveDisplay(make_history([1.0, 2.0])).plot(ax, show_score=False)
    labels = ["curve 1: training loss", "curve 1: validation loss", "curve 1: best epoch"]
    assert legend(ax) == [*labels, "curve 2: training loss"]


@pytest.mark.parametrize("given", [False, True], ids=["new", "given"])
def test_legend_covers_no_line_of_other_axes(given):
    ax = plt.subplots()[1] if given else None
    ax = TrainingCurveDisplay(HISTORY, best_epoch=4).plot(ax, show_score=True, show_rate=True).ax_
    TrainingCurveDisplay(HISTORY, best_epoch=2).plot(ax, show_score=True, show_rate=True)
    ax.figure.canvas.draw()
    box, inside = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert not box.overlaps(inside) and not box.overlaps(ax.xaxis.get_label().get_window_extent())
    assert ax.figure.bbox.y0 <= box.y0, "the legend is cut off"


@pytest.mark.parametrize("ax", [3, "left", np.array([1, 2])], ids=["number", "text", "array"])
def test_axes_must_be_axes(ax):
    with pytest.raises(TypeError, match=f"ax must be a matplotlib Axes object, not {type(ax).__name__}"):
        TrainingCurveDisplay(HISTORY).plot(ax)


def test_axes_of_other_plots_are_not_changed():
    figure, (left, right) = plt.subplots(1, 2, sharex=True)
    right.plot([1, 2], [5, 6], label="not ours")
    display = TrainingCurveDisplay(HISTORY).plot(left)
    assert display.figure_ is figure and right.get_legend() is None
    assert "not ours" not in legend(left)


def test_log_scale():
    assert TrainingCurveDisplay(HISTORY).plot(log_scale=True).ax_.get_yscale() == "log"
    assert TrainingCurveDisplay(HISTORY).plot().ax_.get_yscale() == "linear"
    for history in (make_history([1.0, 0.0]), make_history([1.0, 1.0], validation=[1.0, -2.0])):
        with pytest.raises(ValueError, match="logarithmic axis.*log_scale=False"):
            TrainingCurveDisplay(history).plot(log_scale=True)
        assert TrainingCurveDisplay(history).plot().ax_.get_yscale() == "linear"


def test_arguments_of_the_line():
    display = TrainingCurveDisplay(HISTORY).plot(color="red", linewidth=5, label="mine")
    assert display.line_.get_color() == display.validation_line_.get_color() == "red"
    assert display.line_.get_linewidth() == 5 and legend(display.ax_)[0] == "mine"


@pytest.mark.parametrize(
    "asked, message", [("show_score", "history has no validation score. Fit with"), ("show_rate", "no rate")]
)
def test_missing_values_are_an_error_and_nothing_is_drawn(asked, message):
    display, before = TrainingCurveDisplay(make_history([1.0, 2.0])), plt.get_fignums()
    with pytest.raises(ValueError, match=message):
        display.plot(**{asked: True})
    assert plt.get_fignums() == before and not hasattr(display, "ax_")


@pytest.mark.parametrize(
    "history, message",
    [
        ([], "empty"),
        (None, "list of one dict per epoch.*NoneType"),
        ([1.0, 2.0], "list of one dict per epoch"),
        ([{"epoch": 1}], "needs 'loss'"),
        ([{"loss": 1.0}], "needs 'epoch'"),
    ],
    ids=["empty", "None", "numbers", "no loss", "no epoch"],
)
def test_invalid_history_is_rejected(history, message):
    with pytest.raises(ValueError, match=message):
        TrainingCurveDisplay(history).plot()


def test_unfitted_and_foreign_estimators_are_rejected():
    with pytest.raises(NotFittedError):
        TrainingCurveDisplay.from_estimator(OrtGradientOptimizer(Ridge()))
    X, y = np.eye(4), np.arange(4.0)
    for other in (Ridge().fit(X, y), make_pipeline(Ridge()).fit(X, y)):
        with pytest.raises(ValueError, match=f"{type(other).__name__} has no history_.*best_estimator_"):
            TrainingCurveDisplay.from_estimator(other)
    with pytest.raises(ValueError, match="not the class OrtGradientOptimizer"):
        TrainingCurveDisplay.from_estimator(OrtGradientOptimizer)


@pytest.mark.parametrize("kind", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
def test_from_estimator(kind, diabetes):
    trainer = kind(Ridge(), max_iter=6, validation_every=2, random_state=0)
    trainer.fit(diabetes.X_train, diabetes.y_train, X_val=diabetes.X_test, y_val=diabetes.y_test)
    ax = plt.figure().add_subplot()
    display = TrainingCurveDisplay.from_estimator(
        trainer, ax, name="ridge", log_scale=True, show_rate=True, color="green"
    )
    assert display.ax_ is ax and display.line_.get_color() == "green"
    assert points(display.line_) == list(zip(range(1, 7), trainer.train_losses_, strict=True))
    assert display.validation_line_.get_ydata().tolist() == trainer.validation_losses_
    assert legend(ax)[0] == "ridge: training loss" and ax.get_yscale() == "log"
    assert len(display.rate_line_.get_xdata()) == 6


def test_best_epoch_of_early_stopping(diabetes):
    trainer = OrtGradientOptimizer(
        Ridge(), learning_rate=0.05, max_iter=50, early_stopping=True, tol=1e-3, random_state=0
    )
    trainer.fit(diabetes.X_train, diabetes.y_train)
    display = TrainingCurveDisplay.from_estimator(trainer)
    (epoch, loss), *others = points(display.best_epoch_mark_)
    assert not others and epoch == trainer.best_epoch_
    assert loss == min(display.validation_line_.get_ydata())


@pytest.mark.slow
def test_matplotlib_is_imported_lazily():
    code = """
import sys
from ortlearn.inspection import TrainingCurveDisplay

display = TrainingCurveDisplay([{"epoch": 1, "loss": 1.0}])
assert not [name for name in ("matplotlib", "pandas", "sklearn", "onnxruntime") if name in sys.modules]
sys.modules["matplotlib"] = None
try:
    display.plot()
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "pip install 'ortlearn[plot]'" in done.stdout


def test_epochs_of_other_programs_have_no_loss():
    """Epochs of a training package, whose losses are not known, are not drawn."""
    history = [{"epoch": 1, "loss": 0.9}, {"epoch": 2, "loss": None}, {"epoch": 3, "loss": 0.4}]
    display = TrainingCurveDisplay(history).plot()
    assert display.line_.get_xdata().tolist() == [1, 3]
