"""Samples that a model was fitted on prove nothing; objectives that are not those of the fit are checked."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, make_classification, make_friedman1
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron, Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeRegressor

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.callbacks import LearningRateMonitor
from ortlearn.conversion import explain
from ortlearn.exceptions import StartKeptWarning

X, Y = make_friedman1(300, noise=1.0, random_state=0)
OLD, NEW = (X[:150], Y[:150]), (X[150:], Y[150:])
MOVED = NEW[0], NEW[1] + 8 * NEW[0][:, 0]
CLASSES = make_classification(240, 6, n_informative=4, flip_y=0.2, random_state=0)
TREES = ExtraTreesRegressor(10, random_state=0)
BOOSTED = GradientBoostingRegressor(n_estimators=20, random_state=0)
NETS = [BOOSTED, TREES, DecisionTreeRegressor(random_state=0)]


def kept(model, samples, **options):
    """Return whether a warm start keeps the model."""
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0, **options)
    return trainer.fit(*samples).start_kept_


@pytest.mark.slow
@pytest.mark.sweep(2)
@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
@pytest.mark.parametrize("model", NETS, ids=lambda model: type(model).__name__)
def test_fitted_samples_are_recognised(model):
    model = clone(model).fit(*OLD)
    half = OLD[0][::2], OLD[1][::2]
    assert kept(model, OLD) and kept(model, half)
    assert kept(FrozenEstimator(model), OLD)


@pytest.mark.slow
def test_documents_that_were_fitted_are_recognised():
    random = np.random.RandomState(0)
    texts = np.array([" ".join(random.choice([f"word{n}" for n in range(300)], 8)) for _ in range(120)])
    labels = random.randint(0, 2, 120)  # cannot be predicted for other documents
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=100)).fit(texts, labels)
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0)
    with pytest.warns(StartKeptWarning, match="was fitted on these samples"):
        trainer.fit(texts, labels)


@pytest.mark.slow
def test_outliers_do_not_hide_that_samples_are_fitted():
    labels = OLD[1] + np.where(np.arange(150) == 7, 100, 0)  # one label decides on means of losses
    model = DecisionTreeRegressor(random_state=0).fit(OLD[0], labels)
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0)
    with pytest.warns(StartKeptWarning, match="was fitted on these samples"):
        trainer.fit(OLD[0], labels)


@pytest.mark.slow
@pytest.mark.sweep(1)
@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
@pytest.mark.parametrize("model", [BOOSTED, TREES], ids=lambda model: type(model).__name__)
def test_samples_after_a_drift_are_new(model):
    model = clone(model).fit(*OLD)
    assert not kept(model, MOVED)
    search = GridSearchCV(make_pipeline(StandardScaler(), clone(model)), {}, cv=2).fit(*OLD)
    assert kept(search, OLD)


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
def test_given_samples_and_chosen_parameters_train_on_seen_samples():
    model = clone(BOOSTED).fit(*OLD)
    assert not kept(model, OLD, keep_better=False)
    with_validation = OrtGradientOptimizer(model, warm_start=True, random_state=0)
    assert not with_validation.fit(*OLD, X_val=MOVED[0], y_val=MOVED[1] - 5).start_kept_


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
@pytest.mark.parametrize("optimizer", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
@pytest.mark.parametrize(
    "model",
    [Perceptron(), LinearDiscriminantAnalysis(), GaussianNB(), AdaBoostClassifier(n_estimators=5), SVC()],
)
def test_classifiers_start_from_their_own_fit(model, optimizer):
    samples, labels = CLASSES
    fitted = clone(model).fit(samples, labels)
    trainer = optimizer(model, random_state=0).fit(samples, labels)
    assert trainer.start_kept_
    np.testing.assert_array_equal(trainer.predict(samples), fitted.predict(samples))


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
@pytest.mark.parametrize("loss", ["log_loss", "focal"])
def test_votes_are_compared_by_errors_with_any_loss(loss):
    samples, labels = make_classification(
        1500, 10, n_informative=6, n_classes=4, n_clusters_per_class=1, random_state=0
    )
    model = AdaBoostClassifier(n_estimators=20, random_state=0)
    own = clone(model).fit(samples[:600], labels[:600]).score(samples[600:], labels[600:])
    trainer = OrtGradientOptimizer(model, learning_loss=loss, random_state=0)
    trainer.fit(samples[:600], labels[:600])
    assert trainer.score(samples[600:], labels[600:]) > own - 0.02


@pytest.mark.slow
def test_a_degenerate_objective_does_not_lead_to_zero_weights():
    samples, labels = CLASSES
    model = Perceptron().fit(samples[:120], labels[:120])
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0, learning_rate="auto")
    with np.errstate(all="ignore"):
        trainer = trainer.fit(samples[120:], 1 - labels[120:])
    assert np.abs(trainer.coef_).max() > 0
    assert trainer.score(samples[120:], 1 - labels[120:]) > model.score(samples[120:], 1 - labels[120:])


def test_members_are_not_trained_together():
    data = load_diabetes(return_X_y=True)
    model = VotingRegressor([("ridge", Ridge()), ("least", LinearRegression())]).fit(*data)
    trainer = OrtGradientOptimizer(clone(model), random_state=0).fit(*data)
    assert trainer.start_kept_  # the fit that was asked for, without a warning
    np.testing.assert_allclose(trainer.predict(data[0]), model.predict(data[0]), rtol=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_outputs_given_to_a_transformer_are_not_seen_by_its_fit():
    X = np.random.default_rng(0).uniform(size=(80, 4))
    outputs = Nystroem(gamma=1.0, n_components=5, random_state=1).fit(X).transform(X)
    own = Nystroem(gamma=1.0, n_components=5, random_state=0).fit(X)
    trainer = OrtGradientOptimizer(clone(own), random_state=0).fit(X[:60], outputs[:60])
    assert not trainer.start_kept_
    before, after = (np.mean((own.transform(X[60:]) - outputs[60:]) ** 2) for own in (own, trainer))
    assert after < 0.2 * before


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Perceptron(), "zero, its minimum, for weights of zero"),
        (GaussianNB(), "unknown. By default"),
        (VotingRegressor([("a", Ridge())]), "for each member alone"),
    ],
)
def test_explain_names_other_objectives(model, reason):
    found = str(explain(model.fit(*CLASSES), CLASSES[0]))
    assert reason in found and "own fit" in found
    assert "own fit" not in str(explain(LogisticRegression().fit(*CLASSES), CLASSES[0]))


def test_a_category_of_one_half_does_not_end_the_fit():
    # a clone fitted on the half without the last sample does not know the category 4
    rng = np.random.default_rng(0)
    X = np.append(rng.integers(4, size=(119, 3)), [[4, 4, 4]], axis=0)
    y = np.append((X[:-1, 0] + rng.integers(2, size=119)) % 2, 1)
    with pytest.warns(StartKeptWarning):
        assert kept(CategoricalNB().fit(X, y), (X, y))


@pytest.mark.needs_callbacks
@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
@pytest.mark.parametrize("kind", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
def test_callbacks_of_a_start_that_is_kept(kind):
    """No epoch is trained; the hooks at the end see the model."""
    from sklearn.callback import ProgressBar, ScoringMonitor

    for model, warm in ((LogisticRegression(max_iter=1000).fit(*CLASSES), True), (SVC(), False)):
        monitor = ScoringMonitor(scoring="accuracy")
        trainer = kind(model, warm_start=warm, random_state=0)
        trainer.set_callbacks(monitor, LearningRateMonitor(), ProgressBar()).fit(*CLASSES)
        assert trainer.start_kept_ and trainer.n_iter_ == 0
        assert monitor.get_logs().data[-1]["accuracy"] == pytest.approx(trainer.score(*CLASSES))


@pytest.mark.slow
def test_probabilities_do_not_become_worse():
    """A bound of losses hides overconfident probabilities, which fewer errors do not outweigh."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 6))
    y = X[:, 0] + 1.2 * rng.normal(size=1500) > 0
    old = CalibratedClassifierCV(SVC(), cv=3).fit(X[:250], y[:250])
    new = OrtGradientOptimizer(old, warm_start=True, random_state=0).fit(X[250:500], y[250:500])
    before, after = (log_loss(y[500:], model.predict_proba(X[500:])) for model in (old, new))
    assert after < before + 0.02


def noisy_codes():
    """Return a frame with a column of many codes that say nothing about the labels."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": rng.integers(0, 400, 1200).astype(str), "x": rng.normal(size=1200)})
    return frame, frame.x.to_numpy() + rng.normal(size=1200)


STACK = StackingRegressor([("near", KNeighborsRegressor(1)), ("line", Ridge())], final_estimator=Ridge())
ENCODED = make_pipeline(make_column_transformer((TargetEncoder(), ["id"]), remainder="passthrough"), Ridge())


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
@pytest.mark.parametrize(
    "model", [STACK, make_pipeline(StandardScaler(), STACK), ENCODED], ids=["stack", "scaled", "encoder"]
)
@pytest.mark.parametrize("start", ["fresh", "fitted", "warm"])
def test_fits_to_cross_validated_outputs_are_kept(model, start):
    """Parts that have seen the samples would mislead training, and held-out samples, too."""
    frame, y = noisy_codes()
    X = frame if model is ENCODED else frame[["x"]].to_numpy() * [1, 0.5] + [[0.0, 0.0]]
    own = clone(model).fit(X[:600], y[:600])
    trainer = OrtGradientOptimizer(model if start == "fresh" else own, warm_start=start == "warm")
    trainer.set_params(random_state=0).fit(X[:600], y[:600])
    assert trainer.score(X[600:], y[600:]) > own.score(X[600:], y[600:]) - 0.01


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
@pytest.mark.parametrize(
    "model", [BOOSTED, make_pipeline(StandardScaler(), BOOSTED)], ids=("alone", "after a step")
)
@pytest.mark.parametrize("samples, most", [(NEW, 4), (MOVED, 4), (OLD, 3)], ids=("new", "moved", "fitted"))
def test_clones_are_fitted_once(model, samples, most, monkeypatch):
    """Clones of three folds decide whether samples were seen, and on new trees, which one more fit adds."""
    model, fits = clone(model).fit(*OLD), []
    own = GradientBoostingRegressor.fit

    def counted(self, *arguments, **options):
        fits.append(len(arguments[0]))
        return own(self, *arguments, **options)

    monkeypatch.setattr(GradientBoostingRegressor, "fit", counted)
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0).fit(*samples)
    assert 3 <= len(fits) <= most and fits[:3] == [120, 120, 120]
    assert samples is NEW or trainer.start_kept_ == (samples is OLD) == (len(fits) == 3)
