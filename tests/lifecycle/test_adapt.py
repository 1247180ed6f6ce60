"""Stories of an adaptation: better models are promoted, others kept or refused, and the result says why."""

import sys

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import balanced_accuracy_score
from sklearn.neighbors import KNeighborsClassifier

from ortlearn import OrtGradientOptimizer, OrtIntervalRegressor, OrtSetClassifier
from ortlearn.inspection import weight_changes
from ortlearn.lifecycle import Gate, ModelFolder, adapt, promote
from ortlearn.lifecycle.cards import html_card, markdown_card
from tests.lifecycle.data import month, numbers


@pytest.fixture(scope="module")
def new_concept(classifier):
    return adapt(classifier, month(1, sign=-1.0), month(0), by="town")


@pytest.mark.slow
def test_new_concept_is_learnt(new_concept, classifier):
    assert (new_concept.outcome, new_concept.reasons) == ("promoted", [])
    assert new_concept.verdict.gain > 0.2
    X, y = month(2, 400, sign=-1.0)
    predicted = new_concept.estimator.predict(X)
    assert (predicted == y).mean() > 0.85 > 0.7 > classifier.score(X, y)
    assert new_concept.n_samples + new_concept.n_held_out == 240


@pytest.mark.slow
def test_losses_of_candidates_are_those_of_left_out_samples(new_concept):
    losses = new_concept.losses
    assert set(losses) == {"keep", "warm_start", "refit", "refit_both"}
    assert losses[new_concept.candidate] == min(losses.values()) or new_concept.candidate != "keep"
    assert losses["keep"] > losses["refit_both"] > losses["warm_start"]


@pytest.mark.slow
def test_same_distribution_keeps_the_model(classifier):
    found = adapt(classifier, month(3), month(0))
    assert found.outcome == "kept"
    assert found.reasons
    assert found.estimator is classifier
    assert not [item for item in found.drift.columns if item.drifted]


@pytest.mark.slow
def test_copies_of_samples_show_no_gain(classifier):
    X, y = month(3, 60, noise=0.4)
    copies = np.tile(np.arange(60), 8)
    found = adapt(classifier, (X.iloc[copies], y[copies]), month(0))
    assert found.outcome == "kept" and found.n_held_out == 18 and found.n_samples == 42 * 8
    with pytest.raises(ValueError, match="19 new samples are too few"):
        adapt(classifier, (X.iloc[copies % 19], y[copies % 19]))


@pytest.mark.slow
def test_moved_column_is_named(classifier):
    found = adapt(classifier, month(3, shift=1.5), month(0))
    assert [item.name for item in found.drift.columns if item.drifted] == ["age"]
    assert next(iter(found.drift.two_samples.columns)) == "age"
    assert found.drift.scores["new"]["accuracy"] < found.drift.scores["reference"]["accuracy"] - 0.1


@pytest.mark.slow
def test_group_that_becomes_worse_refuses_the_model(classifier):
    """The concept changes in the north, where most samples are, and not in the south."""
    (X_north, y_north), (X_south, y_south) = month(4, 1000, sign=-1.0), month(5, 240)
    north, south = (X_north["town"] == "north").to_numpy(), (X_south["town"] == "south").to_numpy()
    X = pd.concat([X_north[north], X_south[south]], ignore_index=True)
    y = np.concatenate([y_north[north], y_south[south]])
    gate = Gate(largest_loss=0.02)
    found = adapt(classifier, (X, y), candidates=["refit"], by="town", gate=gate)
    assert found.outcome == "refused"
    assert "group 'south' becomes worse" in found.reasons[0]
    assert found.verdict.gain > 0
    with pytest.raises(ValueError, match="The model is refused: accuracy of the group"):
        promote(found, "unused")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "outcome", "reason"),
    [
        ({"minimum_gain": 0.9}, "kept", "must be at least 0.9"),
        ({"max_bytes": 10}, "refused", "bytes, more than 10"),
        ({"max_latency": 1e-6}, "refused", "times as long"),
        ({"metric": "log_loss"}, "promoted", None),
        ({"metric": balanced_accuracy_score}, "promoted", None),
    ],
)
def test_limits(classifier, limits, outcome, reason):
    found = adapt(classifier, month(1, sign=-1.0), candidates=["refit"], gate=Gate(**limits))
    assert found.outcome == outcome
    assert reason is None or reason in found.reasons[0]
    assert found.verdict.gain > 0


@pytest.mark.slow
def test_regression_of_arrays():
    model = Ridge().fit(*numbers(0))
    found = adapt(model, numbers(1, slope=-1.0))
    assert found.outcome == "promoted"
    assert found.verdict.metric == "r2"
    X, y = numbers(2, slope=-1.0)
    assert found.estimator.score(X, y) > 0.9 > model.score(X, y)


@pytest.mark.slow
def test_onnx_file_has_a_warm_start_only():
    trainer = OrtGradientOptimizer(Ridge()).fit(*numbers(0))
    model = trainer.get_trained_onnx()
    found = adapt(model, numbers(1, slope=-1.0))
    assert set(found.losses) == {"keep", "warm_start"}
    assert found.outcome == "promoted"
    with pytest.raises(ValueError, match="a refit needs a scikit-learn estimator"):
        adapt(model, numbers(1), candidates=["refit"])


@pytest.mark.slow
def test_models_with_other_inputs_are_not_promoted(tmp_path):
    model, folder = OrtGradientOptimizer(Ridge()).fit(*numbers(0)), ModelFolder(tmp_path)
    X, y = numbers(0)
    other = OrtGradientOptimizer(Ridge()).fit(np.hstack([X, X]), y).get_trained_onnx()
    folder.switch(folder.add(other.SerializeToString()))
    found = adapt(model, numbers(1, slope=-1.0), candidates=["warm_start"])
    with pytest.raises(ValueError, match="differ from those of model-0001.onnx, which is in use"):
        promote(found, folder)
    assert len(folder.history()) == 1


def test_own_estimator_and_trees():
    model = RandomForestRegressor(10, random_state=0)
    forest = OrtGradientOptimizer(model, learning_loss="absolute_error", keep_better=False).fit(*numbers(0))
    found = adapt(forest, numbers(1, slope=-2.0), candidates=["refit"])
    assert found.outcome == "promoted"
    assert isinstance(found.estimator, RandomForestRegressor)


@pytest.mark.slow
def test_three_months_in_a_folder(classifier, tmp_path):
    """A drift is followed, a quiet month changes nothing, a bad month is undone."""
    folder = ModelFolder(tmp_path)
    first = adapt(classifier, month(1, sign=-1.0), candidates=["warm_start"])
    assert promote(first, folder) == 1
    quiet_month = adapt(tmp_path, month(2, sign=-1.0), candidates=["warm_start"], dry_run=False)
    assert (quiet_month.outcome, quiet_month.version, folder.current) == ("kept", None, 1)
    dry = adapt(tmp_path, month(3), candidates=["warm_start"])
    assert (dry.outcome, dry.version, folder.current) == ("promoted", None, 1)
    bad = adapt(str(tmp_path), month(3), candidates=["warm_start"], dry_run=False)
    assert (bad.outcome, bad.version, folder.current) == ("promoted", 2, 2)
    assert folder.rollback() == 1
    refused = adapt(folder, month(3), candidates=["warm_start"], gate=Gate(max_bytes=1), dry_run=False)
    assert (refused.outcome, refused.version, folder.current) == ("refused", 3, 1)
    assert {path.name for path in tmp_path.glob("card-*")} == {
        f"card-000{number}.{kind}" for number in (1, 2, 3) for kind in ("html", "md")
    }


@pytest.mark.slow
def test_cards_tell_the_result(new_concept):
    html, text = html_card(new_concept), markdown_card(new_concept)
    for card in (html, text):
        assert "promoted" in card
        assert "Drift of columns" in card
        assert "income" in card
        assert f"{new_concept.verdict.scores['accuracy']['new']['value']:.4g}" in card
    assert "<svg" in html
    assert "http" not in html.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    ).replace("https://matplotlib.org", "")


@pytest.mark.slow
def test_markdown_has_the_sections_of_skops(new_concept, monkeypatch):
    pytest.importorskip("skops.card")
    text = markdown_card(new_concept)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "skops.card", None)
        plain = markdown_card(new_concept)
    assert "## Outcome" in plain and "| random_state | 0 |" in plain.partition("## Parameters")[2]
    titles = [line for line in text.splitlines() if line.startswith("#")]
    assert titles[0] == "# Adaptation of Pipeline: promoted"
    places = ("# Model description", "## Evaluation Results", "## Training Procedure", "### Hyperparameters")
    assert set(places) <= set(titles) and titles[1] == "# Model description"
    part = text.partition("## Evaluation Results")[2].partition("\n#")[0]
    assert f"{new_concept.verdict.scores['accuracy']['new']['value']:.4g}" in part
    assert "| random_state | 0 |" in text.partition("### Hyperparameters")[2]
    assert text.startswith("---\nlibrary_name: ortlearn\n")


@pytest.mark.slow
def test_card_shows_changed_weights(classifier):
    found = adapt(classifier, month(1, sign=-1.0), candidates=["warm_start"])
    assert "norm of the change, relative to the weight" in html_card(found)
    part = markdown_card(found).partition("Changed weights")[2]
    changes = weight_changes(found.old.source, found.new.source, month(1)[0])
    assert f"| {changes[0].name} | {changes[0].norm:.4g} |" in part


def test_card_escapes_names(classifier):
    names = {"age": "<script>", "income": "a|b"}
    X, y = month(1, sign=-1.0)
    model = Ridge().fit(X.drop(columns="town").rename(columns=names), y == "yes")
    new = X.drop(columns="town").rename(columns=names), (y == "yes").astype(float)
    found = adapt(model, new, new, candidates=["refit"])
    assert "<script>" not in html_card(found)
    assert "| a\\|b" in markdown_card(found).replace("(drifted)", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"new": month(1, 19)}, "19 new samples are too few"),
        ({"new": (month(1)[0], None)}, "has no labels"),
        ({"new": month(1)[0]}, r"new must be \(X, y\)"),
        ({"new": (month(1)[0], month(1)[1][:-1])}, "inconsistent numbers of samples"),
        ({"new": (month(1)[0], np.full(240, "maybe"))}, "column 'y' of new has labels .* \\['maybe'\\]; its"),
        ({"new": (month(1)[0].assign(age=np.nan), month(1)[1])}, "new has empty cells in .*'age'"),
        ({"new": (month(1)[0].drop(columns="age"), month(1)[1])}, "lacks columns that the model takes"),
        ({"by": "country"}, "no column 'country' to compare by"),
        ({"held_out": 1.5}, "must be a share between 0 and 1"),
        ({"new": (csr_array(np.eye(30)), np.arange(30))}, r"X of new is sparse, .*: pass X.toarray\(\)"),
        ({"new": (month(1)[0], np.eye(240))}, r"one label for each sample, and has shape \(240, 240\)"),
        ({"by": month(1)[0]["town"].to_numpy()}, "by must be the name of a column of X, not ndarray"),
        ({"level": 0.0}, "level=0.0 must be between 0 and 1"),
        ({"candidates": ["retrain"]}, "must be some of"),
        ({"candidates": []}, "at least one"),
        ({"candidates": ["refit_both"]}, "needs reference samples"),
        ({"gate": Gate(metric="r2"), "candidates": ["refit"]}, "metric='r2' must be a function or one of"),
    ],
)
def test_wrong_arguments(classifier, arguments, message):
    arguments = {"new": month(1, sign=-1.0), **arguments}
    with pytest.raises((ValueError, TypeError), match=message):
        adapt(classifier, **arguments)


@pytest.mark.parametrize(
    "wrong",
    [
        {"minimum_gain": -1},
        {"largest_loss": float("nan")},
        {"max_bytes": 0},
        {"max_latency": -1},
        {"level": 2},
        {"resamples": 1},
    ],
)
def test_wrong_gates(wrong):
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))}=.* must be"):
        Gate(**wrong)


@pytest.mark.slow
def test_a_refit_does_not_lose_classes():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(600, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = LogisticRegression().fit(X[:200], y[:200])
    some = y[200:] < 2
    moved, labels = X[200:] + [0.8, 0, 0], y[200:]
    found = adapt(model, (moved[some], labels[some]))
    assert (found.outcome, sorted(found.losses)) == ("kept", ["keep", "warm_start"])
    alone = adapt(model, (moved[some], labels[some]), candidates=["refit"])
    assert alone.reasons == ["a refit would forget classes, as the samples have too few of them"]
    both = adapt(model, (moved[some], labels[some]), (X[:200], y[:200]))
    assert sorted(both.losses) == ["keep", "refit_both", "warm_start"]
    some |= np.cumsum(labels == 2) <= 3  # folds lack the class
    assert sorted(adapt(model, (moved[some], labels[some])).losses) == ["keep", "warm_start"]
    assert "refit" in adapt(model, (moved, labels)).losses


def test_models_with_intervals_or_sets_are_refused():
    X, y = numbers(0)
    intervals = OrtIntervalRegressor(Ridge(), random_state=0).fit(X, y)
    sets = OrtSetClassifier(LogisticRegression(), random_state=0).fit(X, y > 0)
    for model, labels in ((intervals, y), (sets, y > 0)):
        for form in (model, model.get_trained_onnx()):
            with pytest.raises(ValueError, match="coverage would be lost: use partial_fit or recalibrate"):
                adapt(form, (X, labels))


def test_models_without_weights_are_fitted_again():
    X, y = numbers(0, slope=-3.0)
    old = KNeighborsClassifier().fit(*(part[:50] for part in (X, numbers(0, slope=3.0)[1] > 0)))
    found = adapt(old, (X, y > 0))
    assert (found.outcome, sorted(found.losses)) == ("promoted", ["keep", "refit"])
    with pytest.raises(ValueError, match="no weight to train"):
        adapt(old, (X, y > 0), candidates=["warm_start"])


def test_few_held_out_samples_promote_nothing():
    model, new = Ridge().fit(*numbers(0)), numbers(1, slope=-3.0)
    for n_samples, outcome in ((1, "kept"), (19, "kept"), (20, "promoted")):
        found = adapt(model, new, held_out=numbers(2, n_samples, -3.0), candidates=["refit"])
        assert found.outcome == outcome
        few = [f"{n_samples} held-out samples are too few to show a gain: 20 are needed"]
        assert found.reasons == (few if outcome == "kept" else [])


def test_samples_of_one_class_promote_nothing(classifier):
    X, y = month(1)
    found = adapt(classifier, (X, np.full(len(y), "yes")), month(0), candidates=["refit_both"])
    assert found.outcome == "kept" and "one class" in found.reasons[0]
