"""partial_fit of ensembles of trees replaces trees, and that of neighbours samples."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ObjectiveWarning
from ortlearn.models.capabilities import GrowingEnsemble, capability_of

RNG = np.random.RandomState(0)
X = RNG.normal(size=(2600, 5))
OLD, NEW = ((X[:, 0] + X[:, 1] > 0).astype(int), (X[:, 2] - X[:, 3] > 0).astype(int))
MODELS = {
    "forest": RandomForestClassifier(10, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=10, random_state=0),
    "gradient boosting": GradientBoostingClassifier(n_estimators=10, random_state=0),
    "adaboost": AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=10, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), RandomForestClassifier(10, random_state=0)),
}


@pytest.mark.slow
@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", MODELS)
def test_a_stream_follows_a_new_concept_in_bounded_size(name):
    trainer, sizes = OrtGradientOptimizer(MODELS[name], random_state=0), []
    for number in range(5):
        samples, labels = slice(400 * number, 400 * number + 400), OLD if number < 2 else NEW
        trainer.partial_fit(X[samples], labels[samples], classes=[0, 1])
        written = trainer.to_sklearn()
        sizes.append(len(getattr(written, "estimators_", ())))
        if number == 1:
            assert trainer.score(X[2000:], OLD[2000:]) > 0.8
    assert trainer.score(X[2000:], NEW[2000:]) > 0.8
    assert [own["epoch"] for own in trainer.history_] == [1, 2, 3, 4, 5] and trainer.n_iter_ == 5
    assert max(sizes) <= 1.5 * sizes[0]
    assert (written.predict(X) == trainer.predict(X)).mean() > 0.995
    if name == "forest":
        again = pickle.loads(pickle.dumps(trainer))
        for other in (trainer, again):
            other.partial_fit(X[2000:2100], NEW[2000:2100])
        np.testing.assert_array_equal(again.predict_proba(X), trainer.predict_proba(X))


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [RandomForestClassifier(20, random_state=0), GradientBoostingClassifier(n_estimators=20, random_state=0)],
    ids=lambda model: type(model).__name__,
)
def test_few_samples_do_not_replace_trees(model):
    model = clone(model).fit(X[:1000], OLD[:1000])
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0)
    for first in [1000, *range(1001, 1049, 4)]:
        trainer.partial_fit(X[first : first + 1], OLD[first : first + 1])
    assert (trainer.predict(X) == model.predict(X)).all()
    for first in range(1048, 1500, 10):
        trainer.partial_fit(X[first : first + 10], NEW[first : first + 10])
    assert trainer.score(X[2000:], NEW[2000:]) > 0.75 > 0.6 > model.score(X[2000:], NEW[2000:])


@pytest.mark.slow
def test_a_stream_of_neighbors_keeps_a_window_of_samples():
    X, y = make_friedman1(4400, noise=1, random_state=0)
    other = X[:, ::-1]
    trainer = OrtGradientOptimizer(KNeighborsRegressor(), random_state=0)
    scores = []
    for number in range(14):
        samples, inputs = slice(200 * number, 200 * number + 200), X if number < 8 else other
        trainer.partial_fit(inputs[samples], y[samples])
        scores.append(trainer.score(inputs[3400:], y[3400:]))
    assert scores[7] > scores[0] + 0.1 and scores[13] > scores[7] - 0.05
    assert len(trainer.to_sklearn()._fit_X) <= 1000  # five calls


@pytest.mark.parametrize(
    "model, options, n_calls",
    [
        (RandomForestClassifier(5, max_depth=4, random_state=0), {}, 2),
        (GradientBoostingRegressor(n_estimators=5, random_state=0), {"learning_loss": "absolute_error"}, 0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_trees_in_nested_pipelines_grow_as_in_flat_ones(model, options, n_calls):
    scalers, found = (StandardScaler(), MinMaxScaler()), []
    for source in (
        make_pipeline(*scalers, model),
        make_pipeline(scalers[0], make_pipeline(scalers[1], model)),
    ):
        trainer = OrtGradientOptimizer(source, random_state=0, **options)
        for _ in range(n_calls):
            trainer.partial_fit(X[:200], OLD[:200], classes=[0, 1])
        found.append((trainer if n_calls else trainer.fit(X[:200], OLD[:200])).predict(X[200:400]))
    np.testing.assert_array_equal(*found)


def test_a_fitted_forest_keeps_its_trees_if_they_are_better():
    model = RandomForestClassifier(20, random_state=0).fit(X[:1000], OLD[:1000])
    trainer = OrtGradientOptimizer(model, random_state=0).partial_fit(X[1000:1040], OLD[1000:1040])
    np.testing.assert_allclose(trainer.predict_proba(X[1040:]), model.predict_proba(X[1040:]), atol=1e-5)
    with pytest.raises(ValueError, match="partial_fit cannot grow DecisionTreeClassifier"):
        OrtGradientOptimizer(DecisionTreeClassifier()).partial_fit(X[:100], OLD[:100])
    trees = OrtGradientOptimizer(RandomForestRegressor(3, random_state=0), random_state=0)
    trees.fit(X[:60], X[:60, 0])
    with pytest.raises(ValueError, match="the trees of an ONNX file"):
        OrtGradientOptimizer(trees.get_trained_onnx()).partial_fit(X[:60].astype(np.float32), X[:60, 0])


@pytest.mark.parametrize("name", ["forest", "boosting"])
def test_a_fitted_model_does_not_unlearn_classes_that_a_window_lacks(name):
    labels = OLD + (X[:, 4] > 0.5)
    model = clone(MODELS[name]).fit(X[:400], labels[:400])
    trainer, before = OrtGradientOptimizer(model, random_state=0), model.score(X[2200:], labels[2200:])
    lacking = 400 + np.flatnonzero(labels[400:2200] < 2)
    assert len(lacking) > 1_000
    for numbers in np.array_split(lacking, 2):
        trainer.partial_fit(X[numbers], labels[numbers])
    assert trainer.score(X[2200:], labels[2200:]) > before - 0.03


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75, 1.0])
def test_a_share_of_new_trees_in_bounded_size(share):
    first, second = (RandomForestClassifier(20, random_state=i).fit(X[:90], OLD[:90]) for i in (0, 1))
    rule = capability_of(first, GrowingEnsemble)
    found = rule.extended(rule.extended(first, second, 0.5, 30), second, share, 30)
    new = [tree.random_state for tree in second.estimators_]
    own = [tree.random_state for tree in found.estimators_]
    n_new = sum(own[-number:] == new[:number] and number or 0 for number in [round(share * len(own))])
    assert len(own) <= 30 and n_new == round(share * len(own)) and found.n_estimators == len(own)


@pytest.mark.slow
@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    "wrap, options",
    [(FrozenEstimator, {}), (lambda model: model, {"learning_loss": "log_loss"})],
    ids=["frozen", "own loss by name"],
)
def test_the_same_growth_by_every_method(wrap, options):
    model = HistGradientBoostingClassifier(max_iter=10, random_state=0).fit(X[:400], OLD[:400])
    plain, other = (
        OrtGradientOptimizer(own, warm_start=True, random_state=0, **more).fit(X[400:700], NEW[400:700])
        for own, more in ((model, {}), (wrap(model), options))
    )
    assert plain.score(X[1000:], NEW[1000:]) > model.score(X[1000:], NEW[1000:]) + 0.2
    np.testing.assert_array_equal(other.predict_proba(X), plain.predict_proba(X))
    assert type(other.to_sklearn()) is type(wrap(model))
    assert clone(other) is not other


class Recorder:
    """Callback that records its calls."""

    max_estimator_depth = 1

    def __init__(self):
        self.calls = []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.calls.append(f"{context.task_name} begins")

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        trees = len(fitted_estimator.to_sklearn().estimators_)
        self.calls.append((context.task_name, len(estimator.history_), fitted_estimator.n_iter_, trees > 4))

    def teardown(self, estimator, context):
        self.calls.append("teardown")


@pytest.mark.slow
def test_a_call_of_a_stream_of_trees_is_an_epoch(capsys):
    recorder, model = Recorder(), RandomForestClassifier(5, random_state=0)
    options = {"early_stopping": True, "n_iter_no_change": 2, "tol": 10.0, "verbose": 1, "random_state": 0}
    trainer = OrtGradientOptimizer(model, **options).set_callbacks(recorder)
    held_out = {"X_val": X[2000:], "y_val": OLD[2000:], "sample_weight_val": np.linspace(1, 2, 600)}
    stopped = []
    for number in range(4):
        samples = slice(200 * number, 200 * number + 200)
        trainer.partial_fit(X[samples], OLD[samples], classes=[0, 1], **held_out)
        record, weights = trainer.history_[-1], held_out["sample_weight_val"]
        score = trainer.score(X[2000:], OLD[2000:], sample_weight=weights)
        losses = trainer.losses(X[2000:], OLD[2000:])
        assert record["validation_score"] == pytest.approx(score, abs=1e-6)
        assert record["validation_loss"] == pytest.approx(np.average(losses, weights=weights), rel=1e-5)
        stopped.append(trainer.stopped_)
    assert stopped == [False, False, True, False]  # a later call begins to count again
    calls = [
        "setup",
        "partial_fit begins",
        "epoch begins",
        ("epoch", 4, 4, True),
        ("partial_fit", 4, 4, True),
        "teardown",
    ]
    assert recorder.calls[-6:] == calls and len(recorder.calls) == 4 * 6
    del trainer
    shown = capsys.readouterr().out
    assert "epoch 4" in shown and f"val {record['validation_loss']:.3g}" in shown


@pytest.mark.slow
@pytest.mark.parametrize("change", [1250, 1280])
def test_a_change_within_a_call_is_forgotten_twice(change):
    """The window began with samples from before the change: R2 of the next calls was -0.7 to 0.6."""
    X, y = make_friedman1(1800, noise=1.0, random_state=5)
    y = np.where(np.arange(1800) < change, y, 20 - y)
    trainer = OrtGradientOptimizer(HistGradientBoostingRegressor(max_iter=50, random_state=0), random_state=0)
    scores = []
    for start in range(0, 1800, 100):
        if start >= 1400:
            scores.append(trainer.score(X[start : start + 100], y[start : start + 100]))
        trainer.partial_fit(X[start : start + 100], y[start : start + 100])
    assert min(scores) > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_samples_are_not_forgotten_without_a_change(seed):
    """The loss of samples that the first trees were grown on is far below that of new ones."""
    X, y = make_friedman1(5000, 10, noise=1.0, random_state=seed)
    trainer = OrtGradientOptimizer(GradientBoostingRegressor(random_state=0), random_state=0)
    for start in range(0, 800, 200):
        trainer.partial_fit(X[start : start + 200], y[start : start + 200])
    refit = GradientBoostingRegressor(random_state=0).fit(X[:800], y[:800])
    assert trainer.score(X[3000:], y[3000:]) > refit.score(X[3000:], y[3000:]) - 0.02


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [RandomForestClassifier(20, random_state=0), BaggingClassifier(random_state=0)]
)
def test_samples_that_lack_a_class_wait(model):
    """They would show that trees which do not know the class are better."""
    samples, labels = make_classification(
        3000, 10, n_informative=6, n_classes=3, n_clusters_per_class=1, random_state=0
    )
    model = clone(model).fit(samples[:400], labels[:400])
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0)
    others = 400 + np.flatnonzero(labels[400:1000] < 2)
    for part in np.array_split(others, 3):
        trainer.partial_fit(samples[part], labels[part])
        assert (
            trainer.score(samples[2000:], labels[2000:]) > model.score(samples[2000:], labels[2000:]) - 0.02
        )
    for first in range(1000, 2000, 250):
        trainer.partial_fit(samples[first : first + 250], labels[first : first + 250])
    assert trainer.score(samples[2000:], labels[2000:]) > model.score(samples[2000:], labels[2000:])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", [GradientBoostingRegressor, RandomForestRegressor])
def test_trees_are_compared_with_leaves_that_were_trained_before(model):
    labels = X[:, 0] + X[:, 1] + 10
    fitted = model(n_estimators=20, random_state=0).fit(X[:500], labels[:500] - 10)
    trainer = OrtGradientOptimizer(
        fitted, learning_rate="Adam", max_iter=100, warm_start=True, random_state=0
    )
    scores = [trainer.fit(X[500:1000], labels[500:1000]).score(X[2000:], labels[2000:])]
    for first in (1000, 1100, 1200):
        trainer.partial_fit(X[first : first + 100], labels[first : first + 100])
        scores.append(trainer.score(X[2000:], labels[2000:]))
    assert min(np.diff(scores)) > -0.001


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(3, random_state=0),
        GradientBoostingClassifier(n_estimators=5, init=LogisticRegression(), random_state=0),
    ],
)
def test_splits_that_stay_are_told(model):
    X, y = make_classification(100, random_state=0)
    with pytest.warns(ObjectiveWarning, match="the splits stay those of the first samples"):
        OrtGradientOptimizer(model, random_state=0).partial_fit(X, y)
