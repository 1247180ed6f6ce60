"""Ensembles get trees fitted on new samples if they improve the predictions of held-out samples."""

import pickle
import warnings
from functools import partial

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_digits, make_classification, make_friedman1, make_regression
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeRegressor

from ortlearn import OrtGradientOptimizer
from ortlearn.comparison.candidates import LeafMeans
from ortlearn.exceptions import StartKeptWarning
from ortlearn.models.capabilities import GrowingEnsemble, capability_of
from ortlearn.saving import load, save

CLASSES = make_classification(300, 6, n_informative=4, n_classes=3, random_state=0)
VALUES = make_regression(300, 6, noise=10, random_state=0)
COUNTS = VALUES[0], np.abs(VALUES[1])
PAIR = CLASSES[0], np.minimum(CLASSES[1], 1)
ENSEMBLES = [
    (GradientBoostingClassifier(n_estimators=5, random_state=0), CLASSES),
    (GradientBoostingClassifier(n_estimators=5, random_state=0), PAIR),
    (GradientBoostingClassifier(n_estimators=5, init="zero", random_state=0), PAIR),
    (GradientBoostingRegressor(n_estimators=5, random_state=0), VALUES),
    (GradientBoostingRegressor(n_estimators=5, loss="quantile", random_state=0), VALUES),
    (HistGradientBoostingClassifier(max_iter=5), CLASSES),
    (HistGradientBoostingClassifier(max_iter=5), PAIR),
    (HistGradientBoostingRegressor(max_iter=5, loss="poisson"), COUNTS),
]


def ensemble_of(model):
    return capability_of(model, GrowingEnsemble)


def raw(model, X):
    """Return the raw scores that scikit-learn's predictions imply."""
    if hasattr(model, "decision_function"):
        return model.decision_function(X).reshape(len(X), -1)
    values = model.predict(X).reshape(len(X), -1)
    return np.log(values) if model.loss == "poisson" else values


@pytest.mark.parametrize("model, data", ENSEMBLES)
@pytest.mark.parametrize("share", [0.25, 0.5])
def test_joined_ensemble_has_weighted_mean_of_scores(model, data, share):
    X, y = data
    model.fit(X[:150], y[:150])
    other, ensemble = type(model)(**model.get_params()).fit(X[150:] + 1, y[150:]), ensemble_of(model)
    assert ensemble.grows(model, 100)
    before = pickle.dumps((model, other))
    joined = ensemble.joined(model, other, share)
    np.testing.assert_allclose(ensemble.scores_of(other, X), raw(other, X), rtol=1e-10)
    expected = (1 - share) * raw(model, X) + share * raw(other, X)
    found = raw(joined, X)
    if found.shape[1] > 1:  # defined up to a constant per sample
        found, expected = (scores - scores.mean(axis=1, keepdims=True) for scores in (found, expected))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert ensemble.n_trees(joined) == 10 and joined.get_params() == model.get_params()
    assert pickle.dumps((model, other)) == before


def members(model):
    """Return the trees of a model with their columns."""
    trees = getattr(model, "estimators_", [model])
    return list(zip(trees, getattr(model, "estimators_features_", [slice(None)] * len(trees)), strict=True))


@pytest.mark.parametrize("share", [0.25, 0.5])
@pytest.mark.parametrize(
    "kind, data",
    [
        (RandomForestRegressor, VALUES),
        (ExtraTreesRegressor, VALUES),
        (ExtraTreesClassifier, CLASSES),
        (partial(BaggingRegressor, max_features=0.6), VALUES),
        (partial(BaggingClassifier, max_features=0.6), CLASSES),
    ],
)
def test_new_trees_replace_as_many_of_a_forest(kind, data, share):
    X, y = data
    model, other = (
        kind(n_estimators=8, random_state=0).fit(X[:150], y[:150]),
        kind(n_estimators=8, random_state=1).fit(X[150:] + 1, y[150:]),
    )
    ensemble, before = ensemble_of(model), pickle.dumps((model, other))
    assert ensemble.grows(model, 100)
    predict = "predict_proba" if hasattr(model, "classes_") else "predict"
    n_new = int(8 * share)
    joined = ensemble.joined(model, other, share)
    trees = [*members(other)[:n_new], *members(model)[n_new:]]
    expected = np.mean([getattr(tree, predict)(X[:, columns]) for tree, columns in trees], axis=0)
    np.testing.assert_allclose(getattr(joined, predict)(X), expected, rtol=1e-10)
    assert len(joined.estimators_) == joined.n_estimators == 8
    joined.estimators_[-1].tree_.value[...] = 0
    assert pickle.dumps((model, other)) == before
    scores, others = ensemble.scores_of(model, X), ensemble.scores_of(other, X)
    mixed = ensemble.mixed_scores(scores, others, share)
    expected = (1 - share) * getattr(model, predict)(X) + share * getattr(other, predict)(X)
    found = np.exp(mixed) if predict == "predict_proba" else mixed
    np.testing.assert_allclose(found, expected.reshape(len(X), -1), atol=0.02 if found is not mixed else 1e-6)


def test_ensembles_that_do_not_grow():
    X, y = PAIR
    for model in (RandomForestClassifier(3), BaggingClassifier(LogisticRegression())):
        assert not ensemble_of(model.fit(X, y)).grows(model, 100)
    tree = DecisionTreeClassifier().fit(X, y)
    assert ensemble_of(tree).shares(tree) == (1.0,)  # another tree, or none
    outputs = RandomForestClassifier(5).fit(X, np.column_stack([y, 1 - y]))
    assert not ensemble_of(outputs).grows(outputs, 100)
    model = GradientBoostingClassifier(loss="exponential").fit(X, y)
    assert not ensemble_of(model).grows(model, 100)
    model = GradientBoostingRegressor(n_estimators=2, init=GradientBoostingRegressor(n_estimators=2)).fit(
        X, y
    )
    assert not ensemble_of(model).grows(model, 100)
    X = np.column_stack([X, np.arange(len(X)) % 3])
    model = HistGradientBoostingClassifier(max_iter=2, categorical_features=[6]).fit(X, y)
    assert not ensemble_of(model).grows(model, 100)


def new_concept():
    """Return samples whose labels depend on the first features, and samples whose labels depend on others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1600, 6))
    score = np.where(np.arange(1600) < 400, X[:, 0] + X[:, 1], X[:, 3] - X[:, 4])
    y = (score + rng.logistic(scale=0.2, size=1600) > 0).astype(int)
    return (X[:400], y[:400]), (X[400:600], y[400:600]), (X[600:], y[600:])


OLD, NEW, TEST = new_concept()
BOOSTED = [
    GradientBoostingClassifier(n_estimators=10, learning_rate=0.3, random_state=0),
    HistGradientBoostingClassifier(max_iter=10, learning_rate=0.3, random_state=0),
    RandomForestClassifier(20, random_state=0),
    BaggingClassifier(n_estimators=20, random_state=0),
    AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=10, random_state=0),
]


@pytest.fixture(scope="module", params=BOOSTED, ids=lambda model: type(model).__name__)
def grown(request):
    model = request.param.fit(*OLD)
    return model, OrtGradientOptimizer(model, warm_start=True, random_state=0).fit(*NEW)


@pytest.mark.slow
@pytest.mark.sweep(2)
def test_splits_on_other_features_are_added(grown):
    model, trainer = grown
    refitted = clone(model).fit(*NEW)
    assert model.score(*TEST) < 0.6 < 0.8 < refitted.score(*TEST)
    assert trainer.score(*TEST) > refitted.score(*TEST) - 0.01
    assert not trainer.start_kept_
    assert trainer.loss_ is not None and trainer.n_iter_ >= 0


@pytest.mark.slow
def test_grown_model_predicts_the_same_in_every_format(grown, tmp_path):
    model, trainer = grown
    X = TEST[0].astype(np.float32)
    expected = trainer.predict_proba(X)
    written = trainer.to_sklearn()
    assert type(written) is type(model)
    np.testing.assert_allclose(written.predict_proba(X), expected, atol=1e-5)
    session = onnxruntime.InferenceSession(trainer.get_trained_onnx().SerializeToString())
    samples = X.astype(np.float64) if "double" in session.get_inputs()[0].type else X
    np.testing.assert_allclose(session.run(["probabilities"], {"X": samples})[0], expected, atol=1e-6)
    copied = pickle.loads(pickle.dumps(trainer))
    save(trainer, tmp_path / "grown.ortlearn")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = load(tmp_path / "grown.ortlearn")
    for other in (copied, loaded):
        np.testing.assert_array_equal(other.predict_proba(X), expected)


@pytest.mark.slow
@pytest.mark.sweep(1)
@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
def test_training_of_a_grown_model_continues(grown):
    trainer = pickle.loads(pickle.dumps(grown[1]))
    X, y = TEST
    before = trainer.score(X[600:], y[600:])
    for start in (0, 300):
        trainer.fit(X[start : start + 300], y[start : start + 300])
    assert trainer.score(X[600:], y[600:]) > before - 0.01
    trainer.set_params(learning_rate="Adam").partial_fit(X[:50], y[:50])
    assert trainer.score(X[600:], y[600:]) > before - 0.05


@pytest.mark.slow
def test_growth_is_reproducible():
    model = GradientBoostingClassifier(n_estimators=10, subsample=0.5).fit(*OLD)
    found = [OrtGradientOptimizer(model, warm_start=True, random_state=3).fit(*NEW) for _ in range(2)]
    assert found[0].score(*TEST) > model.score(*TEST) + 0.1
    np.testing.assert_array_equal(*(trainer.predict_proba(TEST[0]) for trainer in found))


def test_a_single_tree_is_replaced():
    X, y = VALUES
    model = ExtraTreeRegressor(random_state=0).fit(X[:100], y[:100])
    other = OrtGradientOptimizer(model, warm_start=True, random_state=0).fit(X[100:250], -y[100:250])
    assert other.score(X[250:], -y[250:]) > 0 > model.score(X[250:], -y[250:])
    before, after = (len(np.unique(own.predict(X[100:250]))) for own in (model, other.to_sklearn()))
    assert before < 100 < after  # a leaf for each of the new samples
    with pytest.raises(ValueError, match="partial_fit cannot grow ExtraTreeRegressor"):
        other.partial_fit(X[250:], -y[250:])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
@pytest.mark.parametrize("member", [None, LogisticRegression()], ids=["stumps", "logistic"])
def test_adaboost_is_replaced_or_kept_as_a_whole(member):
    X, y = make_classification(5_000, 20, n_informative=8, n_classes=3, flip_y=0.05, random_state=2)
    model = AdaBoostClassifier(member, n_estimators=20, random_state=0).fit(X[:1_000], y[:1_000])
    X_new, y_new = X[1_000:2_000], y[1_000:2_000]
    # a lower loss of probabilities, which training lowers, gives other votes: 0.546 instead of 0.586
    kept = OrtGradientOptimizer(model, warm_start=True, random_state=0).fit(X_new, y_new)
    assert kept.score(X[2_000:], y[2_000:]) > model.score(X[2_000:], y[2_000:]) - 0.01
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0).fit(-X_new, y_new)
    refit = clone(model).fit(-X_new, y_new)
    assert trainer.score(-X[2_000:], y[2_000:]) > refit.score(-X[2_000:], y[2_000:]) - 0.01
    if member is None:
        np.testing.assert_allclose(trainer.predict_proba(-X), refit.predict_proba(-X), atol=1e-5)


def test_the_median_of_adaboost_is_replaced():
    X, y = VALUES
    model = AdaBoostRegressor(n_estimators=10, random_state=0).fit(X[:100], y[:100])
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0).fit(-X[100:], y[100:])
    refit = clone(model).fit(-X[100:], y[100:])
    np.testing.assert_allclose(trainer.predict(-X), refit.predict(-X), rtol=1e-5)
    assert trainer.n_iter_ == 0  # leaves that are replaced are not trained


def test_stored_samples_are_replaced():
    X, y = make_friedman1(500, noise=1, random_state=0)
    model = make_pipeline(StandardScaler(), KNeighborsRegressor()).fit(X[:200], y[:200])
    X = X[:, ::-1]
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0).fit(X[200:], y[200:])
    scaled = model[0].transform(X)
    expected = clone(model[1]).fit(scaled[200:], y[200:]).predict(scaled)
    np.testing.assert_allclose(trainer.predict(X), expected, rtol=1e-4)
    np.testing.assert_allclose(trainer.to_sklearn().predict(X), expected, rtol=1e-6)


def frame(X):
    return pd.DataFrame(X * 100 + 7, columns=list("abcdef"))


@pytest.mark.slow
def test_final_step_of_a_pipeline_grows():
    names = np.array(["no", "yes"])
    model = make_pipeline(StandardScaler(), BOOSTED[0]).fit(frame(OLD[0]), names[OLD[1]])
    scaler = model[0].mean_.copy()
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0)
    trainer.fit(frame(NEW[0]), names[NEW[1]], sample_weight=np.linspace(0.5, 1, 200))
    X, y = frame(TEST[0]), names[TEST[1]]
    assert trainer.score(X, y) > 0.8
    written = trainer.to_sklearn()
    assert (written.predict(X) == trainer.predict(X)).mean() > 0.99
    np.testing.assert_array_equal(written[0].mean_, scaler)
    assert len(model[-1].estimators_) == 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", [RandomForestRegressor, AdaBoostRegressor, KNeighborsRegressor])
def test_models_of_transformed_labels_grow(kind):
    """Trees fitted to the labels, instead of their logarithms, were never better than the old ones."""
    X, y = make_friedman1(900, noise=1.0, random_state=0)
    y = y + 10
    options = {} if kind is KNeighborsRegressor else {"n_estimators": 30, "random_state": 0}
    own = TransformedTargetRegressor(kind(**options), func=np.log1p, inverse_func=np.expm1).fit(
        X[:250], y[:250]
    )
    moved = X[:, ::-1]
    trainer = OrtGradientOptimizer(own, warm_start=True, random_state=0).fit(moved[250:500], y[250:500])
    fresh = clone(own).fit(moved[250:500], y[250:500])
    assert trainer.score(moved[500:], y[500:]) > fresh.score(moved[500:], y[500:]) - 0.03
    assert own.score(moved[500:], y[500:]) < 0
    np.testing.assert_allclose(
        trainer.to_sklearn().predict(moved[500:]), trainer.predict(moved[500:]), rtol=1e-4
    )


@pytest.mark.slow
def test_validation_data_decide():
    trainer = OrtGradientOptimizer(BOOSTED[0].fit(*OLD), warm_start=True, random_state=0)
    trainer.fit(*NEW, X_val=TEST[0][:300], y_val=TEST[1][:300])
    assert trainer.score(*TEST) > 0.8
    model = OrtGradientOptimizer(BOOSTED[0], warm_start=True, random_state=0)
    with pytest.warns(StartKeptWarning):
        model.fit(*NEW, X_val=OLD[0], y_val=OLD[1])
    np.testing.assert_array_equal(model.predict(TEST[0]), BOOSTED[0].predict(TEST[0]))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
def test_models_without_growth():
    model, one_class = BOOSTED[0].fit(*OLD), NEW[1] == 1
    same_rows = OrtGradientOptimizer(model, warm_start=True, random_state=0).fit(*OLD)
    chosen = OrtGradientOptimizer(model, "estimators*", warm_start=True, random_state=0).fit(*NEW)
    one = OrtGradientOptimizer(model, warm_start=True, random_state=0).fit(
        NEW[0][one_class], NEW[1][one_class], classes=[0, 1]
    )
    named = OrtGradientOptimizer(model, warm_start=True, learning_rate="LBFGS", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        named.fit(*NEW)
    trained = [trainer.to_sklearn() for trainer in (same_rows, chosen, one, named)]
    assert [len(own.estimators_) for own in trained] == [10] * 4


@pytest.mark.slow
def test_a_forest_takes_in_trees_of_samples_that_lack_a_class():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    y = np.array(["a", "b", "c"])[np.where(X[:, 0] > 1.5, 2, X[:, 0] > 0)]
    model = RandomForestClassifier(20, random_state=0).fit(X, y)
    X_new = X[:400]
    y_new = np.where(X_new[:, 1] > 0, "b", "a")  # depends on another feature, without "c"
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0)
    trainer.fit(X_new[:200], y_new[:200], X_val=X_new[300:], y_val=y_new[300:])  # or else the model is kept
    X_new, y_new = X_new[:300], y_new[:300]
    assert list(trainer.classes_) == ["a", "b", "c"]
    assert trainer.score(X_new[200:], y_new[200:]) > 0.85 > model.score(X_new[200:], y_new[200:]) + 0.2
    assert trainer.to_sklearn().n_estimators == 20


@pytest.mark.parametrize(
    "model",
    [
        ExtraTreesClassifier(10, max_depth=4, random_state=0),
        DecisionTreeClassifier(max_depth=6, random_state=0),
        BaggingClassifier(DecisionTreeClassifier(max_depth=4), 5, max_features=3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_leaves_average_their_shares_with_those_of_new_samples(model):
    rng = np.random.default_rng(1)
    X, weights = rng.normal(size=(900, 4)), rng.uniform(0.5, 2, size=300)
    score = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=900)
    model.fit(X[:300], score[:300] > 0)
    X_new, y_new = X[300:600], score[300:600] > 1
    # no trees are added if weights are chosen
    trainer = OrtGradientOptimizer(model, "*", warm_start=True, random_state=0).fit(X_new, y_new, weights)
    assert trainer.score(X[600:], score[600:] > 1) > model.score(X[600:], score[600:] > 1) + 0.02
    found, weights = trainer.to_sklearn(), weights / weights.mean()
    candidates = []
    for strength in LeafMeans.strengths:
        trees = []
        for tree, columns in members(model):
            counts = np.zeros((tree.tree_.node_count, 2))
            np.add.at(counts, (tree.apply(X_new[:, columns]), y_new.astype(int)), weights)
            total = counts.sum(axis=1, keepdims=True)
            mean = (strength * tree.tree_.value[:, 0] + counts) / (strength + total)
            trees.append(np.where(total > 0, mean, tree.tree_.value[:, 0])[tree.tree_.children_left < 0])
        candidates.append(np.concatenate(trees))
    values = [tree.tree_.value[tree.tree_.children_left < 0, 0] for tree, _ in members(found)]
    assert min(np.abs(np.concatenate(values) - own).max() for own in candidates) < 1e-5


@pytest.mark.parametrize("kind", [RandomForestClassifier, HistGradientBoostingClassifier])
def test_more_than_ten_thousand_new_samples(kind):
    X, y = make_classification(23_500, 8, n_informative=5, random_state=0)
    moved = X[:, [1, 0, 2, 3, 4, 5, 6, 7]]
    model = kind(
        random_state=0,
        **({"max_depth": 6, "n_estimators": 10} if "Forest" in kind.__name__ else {"max_iter": 10}),
    )
    model.fit(X[:3_000], y[:3_000])
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0).fit(
        moved[3_000:13_500], y[3_000:13_500]
    )
    refit = clone(model).fit(moved[3_000:13_500], y[3_000:13_500])
    test = moved[13_500:], y[13_500:]
    assert trainer.learning_rate_.full_batch
    assert trainer.score(*test) > refit.score(*test) - 0.01 > model.score(*test)


def test_a_new_tree_is_compared_with_the_start_where_losses_have_no_bound():
    """Probabilities of a tree are zero or one: smoothed leaves, chosen before, have lower log losses."""
    X, y = load_digits(return_X_y=True)
    moved = X[:, ::-1] * np.where(np.arange(64) % 2, 1, 0.5)
    gains = []
    for seed in range(3):
        order = np.random.RandomState(seed).permutation(len(X))
        first, second, others = np.split(order[:800], [200, 400])
        old = DecisionTreeClassifier(random_state=0).fit(X[first], y[first])
        trainer = OrtGradientOptimizer(old, warm_start=True, random_state=0).fit(moved[second], y[second])
        new = DecisionTreeClassifier(random_state=0).fit(moved[second], y[second])
        gains.append(trainer.score(moved[others], y[others]) - new.score(moved[others], y[others]))
    assert min(gains) > -0.05
