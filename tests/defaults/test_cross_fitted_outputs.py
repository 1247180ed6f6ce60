"""Named losses train the last part of a stack on outputs for samples that its members have not seen."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor, StackingClassifier, StackingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder
from sklearn.tree import DecisionTreeClassifier

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import ObjectiveWarning

TRAINERS = OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer
MEMBERS = [("line", Ridge()), ("near", KNeighborsRegressor(1))]
STACK = StackingRegressor(MEMBERS, final_estimator=Ridge())
ENCODED = make_pipeline(make_column_transformer((TargetEncoder(), ["id"]), remainder="passthrough"), Ridge())


@pytest.fixture(scope="module")
def samples():
    """Return a frame with a column of many codes that say nothing about the labels."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": rng.integers(0, 400, 1200).astype(str), "x": rng.normal(size=1200)})
    return frame, frame.x.to_numpy() + rng.normal(size=1200)


def for_model(model, frame):
    """Return the columns that a model takes."""
    return frame if model is ENCODED else frame[["x"]].to_numpy()


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize(
    "options", [{"learning_loss": "huber"}, {"learning_rate": "Adam"}], ids=["loss", "rate"]
)
@pytest.mark.parametrize(
    "model",
    [
        STACK,
        make_pipeline(StandardScaler(), STACK),
        StackingRegressor(MEMBERS),
        StackingRegressor(MEMBERS, passthrough=True),
        ENCODED,
    ],
    ids=["stack", "scaled", "default", "passthrough", "encoder"],
)
def test_unseen_outputs_train_the_last_part(samples, model, options, trainer):
    """In outputs for samples that it has seen, the nearest neighbour is the label, as rare codes are."""
    X, y = for_model(model, samples[0]), samples[1]
    own = clone(model).fit(X[:600], y[:600])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ObjectiveWarning)
        found = trainer(model, random_state=0, **options).fit(X[:600], y[:600])
    assert found.score(X[600:], y[600:]) > own.score(X[600:], y[600:]) - 0.03
    written = found.to_sklearn()
    np.testing.assert_allclose(written.predict(X[600:]), found.predict(X[600:]), rtol=1e-4, atol=1e-4)
    assert pickle.loads(pickle.dumps(written)).score(X[600:], y[600:]) == written.score(X[600:], y[600:])
    assert repr(clone(written)).count("final_estimator") == repr(model).count("final_estimator")


def test_weights_are_those_of_a_fit_to_the_outputs(samples):
    frame, y = samples
    X = for_model(STACK, frame)[:600]
    found = OrtGradientOptimizer(STACK, learning_loss="squared_error", random_state=0).fit(X, y[:600])
    outputs = np.column_stack([cross_val_predict(member, X, y[:600]) for _, member in MEMBERS])
    expected = Ridge(alpha=1e-9).fit(outputs, y[:600])
    np.testing.assert_allclose(found.to_sklearn().final_estimator_.coef_, expected.coef_, atol=1e-3)
    assert len(found.trained_coef_) == 2


def test_classes_and_weights(samples):
    frame, y = samples
    X, classes = for_model(STACK, frame), np.array(["no", "yes"])[(y > 0).astype(int)]
    members = [("tree", DecisionTreeClassifier(random_state=0)), ("bayes", GaussianNB())]
    model, weights = StackingClassifier(members), np.where(frame.x[:600] > 0, 2.0, 1.0)
    own = clone(model).fit(X[:600], classes[:600], sample_weight=weights)
    found = OrtGradientOptimizer(model, learning_loss="focal", random_state=0)
    found.fit(X[:600], classes[:600], sample_weight=weights)
    assert found.score(X[600:], classes[600:]) > own.score(X[600:], classes[600:]) - 0.02


def test_later_samples_take_the_outputs_of_the_parts(samples):
    frame, y = samples
    X = for_model(STACK, frame)
    found = OrtGradientOptimizer(STACK, learning_loss="huber", random_state=0).fit(X[:600], y[:600])
    assert "_unseen_outputs" not in vars(found.to_sklearn().final_estimator_)
    before = found.score(X[600:], y[600:])
    found.partial_fit(X[600:900], y[600:900])
    assert found.score(X[900:], y[900:]) > before - 0.1


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (CalibratedClassifierCV(LogisticRegression()), {"learning_loss": "focal"}),
        (make_pipeline(TargetEncoder(), RandomForestRegressor(5)), {"learning_loss": "huber"}),
    ],
    ids=["calibrated", "forest"],
)
def test_other_parts_that_have_seen_the_samples_warn(samples, model, options):
    frame, y = samples
    is_classifier = options["learning_loss"] == "focal"
    X = frame[["x"]].to_numpy() if is_classifier else frame[["id"]]
    trainer = OrtGradientOptimizer(model, random_state=0, **options)
    with pytest.warns(ObjectiveWarning, match="may overfit: its fit takes cross-validated outputs"):
        trainer.fit(X[:600], y[:600] > 0 if is_classifier else y[:600])


def test_prefit_members_have_not_seen_the_samples(samples):
    frame, y = samples
    X = for_model(STACK, frame)
    members = [(name, FrozenEstimator(clone(member).fit(X[600:], y[600:]))) for name, member in MEMBERS]
    model = StackingRegressor(members, final_estimator=Ridge(), cv="prefit")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ObjectiveWarning)
        found = OrtGradientOptimizer(model, learning_loss="huber", random_state=0).fit(X[:600], y[:600])
    assert found.n_features_in_ == 1
