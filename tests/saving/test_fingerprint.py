"""A training is resumed only if everything that changes its result is equal; the error names what differs."""

import zlib
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor

from ortlearn import OrtGradientOptimizer, saving
from ortlearn.callbacks import ModelCheckpoint
from ortlearn.data.checksums import checksum
from ortlearn.exceptions import ResumedWarning, SavedFileError
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD
from ortlearn.losses import HuberLoss
from ortlearn.penalties import L1Penalty
from ortlearn.search import OrtGridSearchCV
from tests.saving.checkpoints import training_state
from tests.saving.interrupted_trainings import (
    KINDS,
    OPTIONS,
    VALIDATION,
    WEIGHTS,
    X_VAL,
    Y_VAL,
    Stop,
    X,
    Y,
    changed_at,
    interrupted,
    message_of,
)

pytestmark = [
    pytest.mark.needs_callbacks,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

#: Another value of each parameter, which changes the result or might do so.
CHANGES = {
    "estimator": MLPRegressor(hidden_layer_sizes=(2,), max_iter=2),
    "random_state": 1,
    "batch_size": 8,
    "learning_loss": "absolute_error",
    "learning_rate": "AdamW",
    "learning_penalty": "l1",
    "weights_to_train": ["intercept"],
    "dtype": "float64",
    "average": 20,
    "clip_norm": 0.5,
    "clip_value": 0.5,
    "class_weight": None,
    "warm_start": True,
    "keep_better": False,
    "precompute": False,
    "shuffle": False,
    "early_stopping": True,
    "validation_fraction": 0.2,
    "scoring": "r2",
    "validation_every": 3,
    "device": "cpu:0",
    "gradient": "rules",
    "straight_through": True,
    "lora": 1,
    "label_name": "other",
    "loss_output_name": "other",
    "weight_name": "other",
    "output_name": "variable",
}


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture(scope="module")
def begun(kind):
    return interrupted(kind(Ridge(), **OPTIONS), X, Y, WEIGHTS, **VALIDATION)


def test_equal_arguments_give_the_same_bits(kind, begun):
    expected = kind(Ridge(), **OPTIONS).fit(X, Y, WEIGHTS, **VALIDATION)
    typed = {name: np.int64(OPTIONS[name]) for name in ("random_state", "max_iter", "batch_size")}
    typed = {**OPTIONS, **typed, "verbose": 0, "n_jobs": 1}
    for model, options in ((Ridge(), OPTIONS), (Ridge(alpha=np.float64(1.0)), typed)):
        found = kind(model, **options).fit(
            X.copy(), Y.copy(), WEIGHTS[:, None], **VALIDATION, resume_from=begun
        )
        assert training_state(found) == training_state(expected)


def test_every_parameter_is_free_or_compared(kind):
    free = {"max_iter", "max_seconds", "verbose", "exc", "tol", "n_iter_no_change", "n_jobs"}
    assert {*CHANGES} == {*kind(Ridge()).get_params(deep=False)} - free


@pytest.mark.parametrize("name", CHANGES)
def test_changed_parameter_is_named(kind, begun, name):
    changed = kind(**{"estimator": Ridge(), **OPTIONS, name: CHANGES[name]})
    with pytest.raises(SavedFileError, match=rf"not the training to resume: (.* instead of .*, )?{name}="):
        changed.fit(X, Y, WEIGHTS, **VALIDATION, resume_from=begun)


@pytest.mark.parametrize(
    ("name", "model"),
    [("estimator__alpha", Ridge(alpha=2.0)), ("estimator__tol", Ridge(tol=1e-2)), ("graph", "fitted")],
)
def test_changed_model_is_named(kind, begun, name, model):
    model = Ridge().fit(X, Y + 1) if model == "fitted" else model
    with pytest.raises(SavedFileError, match=f"{name}=.* instead of"):
        kind(model, **OPTIONS).fit(X, Y, WEIGHTS, **VALIDATION, resume_from=begun)


@pytest.mark.slow
def test_equal_plugins_of_different_notation(kind):
    for name, one, other in (
        ("learning_rate", "Adam", LearningRateAdam()),
        ("learning_rate", 0.05, LearningRateSGD(eta0=0.05)),
        ("learning_loss", "huber", HuberLoss()),
        ("learning_penalty", "l1", L1Penalty()),
    ):
        expected = kind(Ridge(), **{**OPTIONS, name: one}).fit(X, Y)
        for first, second in ((one, other), (other, one)):
            begun = interrupted(kind(Ridge(), **{**OPTIONS, name: first}), X, Y)
            found = kind(Ridge(), **{**OPTIONS, name: second}).fit(X, Y, resume_from=begun)
            assert training_state(found) == training_state(expected)


def test_differences_are_named_once(kind, begun):
    arguments = {"X": X, "y": Y, "sample_weight": WEIGHTS, **VALIDATION, "resume_from": begun}
    rate = kind(Ridge(), **{**OPTIONS, "learning_rate": LearningRateAdam(eta0=0.5)})
    assert message_of(rate, **arguments) == (
        "resume: learning_rate=LearningRateAdam(eta0=0.5) instead of LearningRateAdam()"
    )
    model = kind(MLPRegressor(), **OPTIONS)
    assert message_of(model, **arguments) == "resume: estimator=MLPRegressor instead of Ridge"
    changes = {
        "clip_norm": 1.0,
        "clip_value": 1.0,
        "average": 3,
        "precompute": False,
        "shuffle": False,
        "dtype": "float64",
    }
    many = kind(MLPRegressor(), **{**OPTIONS, **changes})
    text = message_of(many, **arguments)
    assert text.startswith("resume: estimator=MLPRegressor instead of Ridge, average=3 instead of False, ")
    assert text.count(" instead of ") == 5 and text.endswith(" and 2 more")
    fitted = message_of(kind(Ridge().fit(X, Y + 1), **OPTIONS), **arguments)
    assert "graph=checksum" in fitted and "order of features, or a model that is fitted" in fitted


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("X", {"X": changed_at(X, 89)}),
        ("y", {"y": changed_at(Y, 89)}),
        ("sample_weight", {"sample_weight": changed_at(WEIGHTS, 89)}),
        ("sample_weight", {"sample_weight": 2 * WEIGHTS}),
        ("sample_weight", {"sample_weight": None}),
        ("X_val", {"X_val": changed_at(X_VAL, 19)}),
        ("y_val", {"y_val": changed_at(Y_VAL, 19)}),
        ("sample_weight_val", {"sample_weight_val": changed_at(WEIGHTS[:20], 19)}),
        ("sample_weight_val", {"sample_weight_val": 2 * WEIGHTS[:20]}),
        ("sample_weight_val", {"sample_weight_val": None}),
        ("X_val", {"X_val": None, "y_val": None, "sample_weight_val": None}),
    ],
)
def test_changed_data_are_named(kind, begun, name, changes):
    arguments = {"X": X, "y": Y, "sample_weight": WEIGHTS, **VALIDATION, **changes}
    with pytest.raises(SavedFileError, match=rf"[ ,]{name}=.* instead of"):
        kind(Ridge(), **OPTIONS).fit(**arguments, resume_from=begun)


@pytest.mark.parametrize("options", [{"early_stopping": True}, {"learning_rate": "auto", "clip_norm": 1.0}])
def test_samples_that_are_held_out_are_compared(kind, options):
    """They are held out of X by early stopping, or of the samples of a network."""
    model = MLPRegressor(hidden_layer_sizes=(2,), max_iter=2, random_state=0).fit(X, Y)
    begun = interrupted(kind(model, **{**OPTIONS, **options}), X, Y)
    assert begun.validation_losses_
    for row in range(0, 90, 6):
        with pytest.raises(SavedFileError, match="resume: X=90 x|resume: X=81 x"):
            kind(model, **{**OPTIONS, **options}).fit(changed_at(X, row), Y, resume_from=begun)


def test_added_arguments_are_named(kind):
    plain = interrupted(kind(Ridge(), **OPTIONS), X, Y)
    for name, added in (("X_val", VALIDATION), ("sample_weight", {"sample_weight": 2 * np.ones(90)})):
        with pytest.raises(SavedFileError, match=rf"[ ,]{name}=.* instead of None"):
            kind(Ridge(), **OPTIONS).fit(X, Y, **added, resume_from=plain)
    labels = (Y > 0).astype(int)
    classifier = interrupted(kind(LogisticRegression(), **OPTIONS), X, labels)
    expected = kind(LogisticRegression(), **OPTIONS).fit(X, labels)
    again = kind(LogisticRegression(), **OPTIONS).fit(X, labels, classes=[1, 0], resume_from=classifier)
    assert training_state(again) == training_state(expected)
    for other, classes in ((labels, [0, 1, 2]), (np.array(["a", "b"])[labels], None)):
        with pytest.raises(SavedFileError, match=r"classes=\[\[.*\]\] instead of \[\[0, 1\]\]"):
            kind(LogisticRegression(), **OPTIONS).fit(X, other, classes=classes, resume_from=classifier)


@pytest.mark.slow
def test_more_epochs_are_refused_only_if_they_change_the_first_ones(kind):
    longer = {**OPTIONS, "max_iter": 30}
    plain = interrupted(kind(Ridge(), **OPTIONS), X, Y)
    expected = kind(Ridge(), **longer).fit(X, Y)
    assert training_state(kind(Ridge(), **longer).fit(X, Y, resume_from=plain)) == training_state(expected)
    validated = interrupted(kind(Ridge(), **OPTIONS), X, Y, **VALIDATION)
    with pytest.raises(SavedFileError, match="validation_every=3 epochs instead of 1 epochs"):
        kind(Ridge(), **longer).fit(X, Y, **VALIDATION, resume_from=validated)
    every = {**longer, "validation_every": 1}
    found = kind(Ridge(), **every).fit(X, Y, **VALIDATION, resume_from=validated)
    expected = kind(Ridge(), **every).fit(X, Y, **VALIDATION)
    assert training_state(found) == training_state(expected)
    rate = {"learning_rate": LearningRateAdam(learning_rate="cosine")}
    scheduled = interrupted(kind(Ridge(), **{**OPTIONS, **rate}), X, Y)
    with pytest.raises(SavedFileError, match="learning_rate_=.*period=30.* instead of .*period=4"):
        kind(Ridge(), **{**longer, **rate}).fit(X, Y, resume_from=scheduled)


@pytest.mark.slow
def test_random_states(kind):
    """A seed of None takes the stored state; a generator is in that state, or in the one after the draws."""
    options = {**OPTIONS, "early_stopping": True}
    state = np.random.RandomState(3)
    first = interrupted(kind(Ridge(), **{**options, "random_state": state}), X, Y)
    expected = kind(Ridge(), **{**options, "random_state": 3}).fit(X, Y)
    for same in (state, np.random.RandomState(3), None):
        found = kind(Ridge(), **{**options, "random_state": same})
        assert training_state(found.fit(X, Y, resume_from=first)) == training_state(expected)
    unseeded = interrupted(kind(Ridge(), **{**options, "random_state": None}), X, Y)
    kind(Ridge(), **{**options, "random_state": None}).fit(X, Y, resume_from=unseeded)
    for other, source in ((np.random.RandomState(4), first), (3, first), (0, unseeded)):
        with pytest.raises(SavedFileError, match="random_state="):
            kind(Ridge(), **{**options, "random_state": other}).fit(X, Y, resume_from=source)
    # the state is handed on: a training that was resumed with None has the seed that it began with
    seeded = interrupted(kind(Ridge(), **options), X, Y)
    later = kind(Ridge(), **{**options, "random_state": None}).set_callbacks(Stop(3))
    with pytest.raises(KeyboardInterrupt):
        later.fit(X, Y, resume_from=seeded)
    with pytest.raises(SavedFileError, match="random_state=1 instead of 0"):
        kind(Ridge(), **{**options, "random_state": 1}).fit(X, Y, resume_from=later)
    found = kind(Ridge(), **options).fit(X, Y, resume_from=later)
    assert training_state(found) == training_state(kind(Ridge(), **options).fit(X, Y))


@pytest.mark.slow
@pytest.mark.sweep(1)
@pytest.mark.parametrize("search", [GridSearchCV, OrtGridSearchCV])
def test_search_over_other_seeds_in_the_same_folder(search, tmp_path):
    """The checkpoints of another seed are refused, as those of other parameters are."""

    def found(folder, **grid):
        checkpoint = ModelCheckpoint(folder, every=1, resume=True)
        trainer = OrtGradientOptimizer(Ridge(), **OPTIONS).set_callbacks(checkpoint)
        return search(trainer, grid, cv=2, error_score="raise").fit(X, Y)

    first = found(tmp_path / "run", random_state=[0, 1])
    scores = first.cv_results_["split0_test_score"]
    assert scores[0] != scores[1]
    again = found(tmp_path / "run", random_state=[0, 1])
    np.testing.assert_array_equal(again.cv_results_["split0_test_score"], scores)
    for grid, text in (
        ({"random_state": [5, 6]}, "random_state=5 instead of 0"),
        ({"batch_size": [8, 16]}, "batch_size=8 instead of 16"),
    ):
        with pytest.raises(SavedFileError, match=text):
            found(tmp_path / "run", **grid)
    other = found(tmp_path / "other", random_state=[5, 6])
    assert not np.isin(other.cv_results_["split0_test_score"], scores).any()


def of_version_0_2_0(trainer):
    """Write a file whose record has only what files of version 0.2.0 have."""
    fitted = trainer._fitted
    own = fitted.state.fingerprint
    digest = zlib.crc32(fitted.problem.trainable.model.SerializeToString(deterministic=True))
    for array in (X, Y.reshape(-1, 1)):
        digest = zlib.crc32(array.tobytes(), digest)
    names = {"estimator", "random_state"}
    parameters = {k: v for k, v in own.parameters.items() if "__" not in k and k not in names}
    parameters |= {"validation_every": "0.1", "batch_size": "16"}
    old = replace(own, data={}, drawn="", counts={}, parameters=parameters, digest=digest)
    trainer._fitted = replace(fitted, state=replace(fitted.state, fingerprint=old))
    return trainer


def test_files_of_version_0_2_0(kind, tmp_path):
    begun = interrupted(kind(Ridge(), **OPTIONS), X, Y)
    saving.save(of_version_0_2_0(begun), tmp_path / "old.zip")
    checkpoint = ModelCheckpoint(tmp_path / "run", every=1)
    found = kind(Ridge(), **OPTIONS).set_callbacks(checkpoint)
    with pytest.warns(
        ResumedWarning, match="begun with version 0.2.0, whose files do not contain random_state"
    ):
        found.fit(X, Y, resume_from=tmp_path / "old.zip")
    assert training_state(found) == training_state(kind(Ridge(), **OPTIONS).fit(X, Y))
    for changes, labels, text in (
        ({"batch_size": 8}, Y, "batch_size=8 instead of 16"),
        ({}, Y + 1, "another model or other samples"),
    ):
        with pytest.raises(SavedFileError, match=text):
            kind(Ridge(), **{**OPTIONS, **changes}).fit(X, labels, resume_from=tmp_path / "old.zip")
    # files of the resumed training have all parts
    with pytest.raises(SavedFileError, match="random_state=1 instead of 0"):
        kind(Ridge(), **{**OPTIONS, "random_state": 1}).fit(X, Y, resume_from=tmp_path / "run")
    again = kind(Ridge(), **OPTIONS).fit(X, Y, resume_from=tmp_path / "run")
    assert training_state(again) == training_state(found)


def test_other_version_is_a_warning(kind):
    begun = interrupted(kind(Ridge(), **OPTIONS), X, Y)
    state = begun._fitted.state
    own = state.fingerprint
    data = {**own.data, "versions": "onnxruntime 1.0.0, numpy 1.0.0"}
    begun._fitted = replace(begun._fitted, state=replace(state, fingerprint=replace(own, data=data)))
    with pytest.warns(ResumedWarning, match=r"begun with onnxruntime 1\.0\.0"):
        kind(Ridge(), **OPTIONS).fit(X, Y, resume_from=begun)


@pytest.mark.parametrize("values", [["a", "é"], [1, "é"], [None, "é"], []])
def test_checksums_of_texts_do_not_depend_on_their_type(values):
    texts = list(map(str, values))
    expected = zlib.crc32("\0".join(texts).encode())
    assert checksum([np.array(values, dtype=object)]) == checksum([np.array(texts, dtype=str)]) == expected
