"""partial_fit with changed losses, penalties and updates, and with late classes."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.exceptions import PluginError
from ortlearn.learning_rates import BaseLearningRate, LearningRateSGD, LearningRateSGDNesterov
from ortlearn.losses import ElasticLoss, HuberLoss
from ortlearn.penalties import L2Penalty


def constant(rate):
    return LearningRateSGD(eta0=rate, learning_rate="constant")


def coefficients(model):
    return np.vstack([model.trained_coef_[name] for name in ("coef", "intercept")])


def test_changed_loss_and_penalty(optimizer, diabetes_units):
    X, y = diabetes_units
    options = {"shuffle": False, "learning_rate": constant(0.01), "warm_start": True}
    stream = optimizer(LinearRegression(), **options).partial_fit(X, y)
    halfway = LinearRegression().fit(X, y)
    halfway.coef_, halfway.intercept_ = (
        stream.trained_coef_["coef"].ravel(),
        stream.trained_coef_["intercept"][0],
    )
    for change in (
        {"learning_loss": "absolute_error"},
        {"learning_penalty": L2Penalty(0.5)},
        {"learning_loss": HuberLoss(delta=0.1), "learning_penalty": "l1"},
        {"learning_loss": "auto", "learning_penalty": None},
    ):
        stream.set_params(**change).partial_fit(X, y)
        afresh = optimizer(halfway, max_iter=1, **options).set_params(
            learning_loss=stream.learning_loss, learning_penalty=stream.learning_penalty
        )
        np.testing.assert_array_equal(coefficients(stream), coefficients(afresh.fit(X, y)))
        assert stream.train_losses_[-1] == afresh.train_losses_[0]
        assert type(stream.loss_) is type(afresh.loss_) and type(stream.penalty_) is type(afresh.penalty_)
        halfway.coef_ = stream.trained_coef_["coef"].ravel()
        halfway.intercept_ = stream.trained_coef_["intercept"][0]
    assert stream.n_iter_ == len(stream.history_) == 5


def test_changed_parameter_of_the_loss(optimizer, diabetes_units):
    X, y = diabetes_units
    model = optimizer(
        LinearRegression(), learning_loss=ElasticLoss(l1_weight=0.0), learning_rate=1e-30, batch_size=1000
    )
    before = model.partial_fit(X, y).train_losses_[-1]
    model.set_params(learning_loss__l2_weight=3 * model.learning_loss.l2_weight).partial_fit(X, y)
    assert model.train_losses_[-1] == pytest.approx(3 * before, rel=1e-5)


def test_momentum_is_kept_for_another_loss(optimizer, diabetes_units):
    X, y = diabetes_units[0][:, :3], diabetes_units[1]
    rate = LearningRateSGDNesterov(eta0=0.1, learning_rate="constant", momentum=0.8, nesterov=False)
    model = optimizer(LinearRegression(fit_intercept=False), learning_rate=rate, batch_size=1000)
    model.set_params(dtype="float64", warm_start=True).partial_fit(X, y)
    model.set_params(learning_loss="absolute_error", learning_penalty=L2Penalty(0.25)).partial_fit(X, y)
    start = LinearRegression(fit_intercept=False).fit(X, y).coef_
    velocity = -0.1 * X.T @ (X @ start - y) / len(X)
    weights = start + velocity
    velocity = 0.8 * velocity - 0.1 * (X.T @ np.sign(X @ weights - y) / len(X) + 0.5 * weights)
    np.testing.assert_allclose(model.trained_coef_["coef"].ravel(), weights + velocity, rtol=1e-9)


class Remembering(BaseLearningRate):
    """Update with a constant rate and a state of any shape."""

    def __init__(self, shape=()):
        self.shape = shape

    def rate(self, epoch, memory=None):
        return 0.1

    def init(self, weight):
        return {"velocity": np.ones(self.shape, dtype=weight.dtype)}

    def update(self, op, weight, gradient, state, rate):
        seen = op.Mul(state["velocity"], 2.0)
        return op.Sub(weight, op.Mul(gradient, rate)), {"velocity": seen}


def test_states_of_other_shapes_are_initialized(optimizer, diabetes_units):
    X, y = diabetes_units
    model = optimizer(LinearRegression(), learning_rate=Remembering((2,)), batch_size=1000).partial_fit(X, y)
    model.partial_fit(X, y)
    assert model._fitted.state.states["I0_coef", "velocity"].tolist() == [4.0, 4.0]
    model.set_params(learning_rate=Remembering()).partial_fit(X, y)
    assert model._fitted.state.states["I0_coef", "velocity"] == 2.0


def test_loss_with_another_form_of_labels(optimizer, wine):
    """Class numbers are converted to indicator columns."""
    X, y = wine
    model = optimizer(LogisticRegression(), learning_rate=0.05, random_state=0).partial_fit(X, y)
    model.set_params(learning_loss="hinge")
    for _ in range(5):
        model.partial_fit(X, y)
    assert type(model.loss_).__name__ == "HingeLoss"
    assert model.score(X, y) > 0.9
    model.set_params(learning_loss="log_loss").partial_fit(X, y)
    assert model.losses(X, y).shape == (178,)
    np.testing.assert_allclose(
        model.losses(X, y), -np.log(model.predict_proba(X)[np.arange(178), y]), rtol=1e-3, atol=1e-6
    )


WRONG = {
    "link": (
        {"learning_loss": "poisson"},
        "partial_fit cannot change the loss from SquaredErrorLoss to PoissonLoss",
    ),
    "task": ({"learning_loss": "hinge"}, "HingeLoss is for classification"),
    "unknown": ({"learning_loss": "squared"}, "squared"),
    "penalty": ({"learning_penalty": L2Penalty(weights="tree")}, "must name trained weights"),
}


@pytest.mark.parametrize("name", WRONG)
def test_rejected_changes(name, optimizer, diabetes_units, unchanged):
    X, y = diabetes_units
    change, message = WRONG[name]
    model = optimizer(LinearRegression(), learning_rate=0.01).partial_fit(X, y).set_params(**change)

    def fails():
        with pytest.raises(PluginError, match=message):
            model.partial_fit(X, np.abs(y))

    unchanged(model, X, fails)


LATE = {
    "logistic": LogisticRegression(),
    "network": MLPClassifier((8,)),
    "sgd": SGDClassifier(),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "rest": OneVsRestClassifier(LogisticRegression()),
}


@pytest.mark.parametrize("name", LATE)
def test_late_class(name, optimizer, wine):
    X, y = wine
    names = np.array(["a", "b", "c"])[y]
    model = optimizer(LATE[name], learning_rate=0.3, random_state=0)
    model.partial_fit(X[y < 2], names[y < 2], classes=["c", "a", "b"])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert set(model.predict(X)) <= {"a", "b", "c"}
    for _ in range(4):
        model.partial_fit(X, names)
    assert model.score(X, names) > 0.9
    assert model.partial_fit(X[y == 2], names[y == 2], classes=["a", "b", "c"]).n_iter_ == 6


def test_first_batch_with_one_class(optimizer, wine):
    X, y = wine
    weights = np.linspace(0, 2, len(y))
    for source in (LogisticRegression(), RandomForestClassifier(2, random_state=0)):
        model = optimizer(source, learning_rate=0.2, random_state=0)
        model.partial_fit(X[y == 1], y[y == 1], classes=[0, 1, 2], sample_weight=weights[y == 1])
        assert model.predict_proba(X).shape == (178, 3)
        assert model.score(X[y == 1], y[y == 1]) > 0.9


def test_models_without_fresh_weights(optimizer, wine):
    X, y = wine
    for source in (GaussianNB(), RandomForestClassifier(3, random_state=0)):
        model = optimizer(source, learning_rate=1e-3, random_state=0)
        model.partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
        assert model.predict_proba(X).shape == (178, 3)
        assert model.score(X[y < 2], y[y < 2]) > 0.9


def test_late_classes_of_several_columns(optimizer, wine):
    X, y = wine
    Y = np.stack([y, y > 0], axis=1)
    model = optimizer(MultiOutputClassifier(LogisticRegression()), learning_rate=0.5, random_state=0)
    model.partial_fit(X[y == 1], Y[y == 1], classes=[np.arange(3), np.arange(2)])
    assert [classes.tolist() for classes in model.classes_] == [[0, 1, 2], [0, 1]]
    for _ in range(3):
        model.partial_fit(X, Y)
    assert model.score(X, Y) > 0.9
    with pytest.raises(ValueError, match="differ from the classes of the first call"):
        model.partial_fit(X, Y, classes=[np.arange(3), np.arange(3)])


@pytest.mark.parametrize("begun", [False, True])
def test_classes_of_a_regressor(begun, optimizer, diabetes_units):
    X, y = diabetes_units
    model = optimizer(Ridge(), learning_rate=0.01)
    if begun:
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="classes applies to classifiers only, .* is not a classifier: omit"):
        model.partial_fit(X, y, classes=[0, 1])
