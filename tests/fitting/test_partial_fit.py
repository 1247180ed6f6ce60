"""partial_fit trains one epoch per call and keeps all state between calls."""

import pickle

import numpy as np
import pytest
from skl2onnx import to_onnx
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.data.orders import epoch_order
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD, LearningRateSGDNesterov
from tests.calls import calls_of

RATES = [
    LearningRateSGD(eta0=0.05, power_t=0.5),
    LearningRateSGDNesterov(eta0=0.02),
    LearningRateAdam(eta0=0.01, learning_rate="invscaling"),
]


@pytest.mark.parametrize("rate", RATES, ids=lambda rate: type(rate).__name__)
@pytest.mark.parametrize("weighted", [False, True])
def test_calls_equal_one_fit(rate, weighted, optimizer, cancer):
    X, y = cancer[0][:99], cancer[1][:99]
    weights = np.linspace(0, 2, 99) if weighted else None
    source = LogisticRegression().fit(X[::3], y[::3])
    options = {"learning_rate": rate, "shuffle": False, "warm_start": True}
    whole = optimizer(source, max_iter=4, **options).fit(X, y, sample_weight=weights)
    steps = optimizer(source, **options)
    for _ in range(4):
        steps.partial_fit(X, y, sample_weight=weights)
    for name, array in whole.trained_coef_.items():
        np.testing.assert_array_equal(steps.trained_coef_[name], array)
    np.testing.assert_array_equal(steps.train_losses_, whole.train_losses_)
    assert steps.n_iter_ == 4


@pytest.mark.parametrize("form", ["model", "pipeline", "file"])
@pytest.mark.parametrize("kind", [LogisticRegression, MLPClassifier])
def test_a_stream_of_a_warm_start_begins_with_the_weights_of_the_model(kind, form, optimizer):
    """With the default rate, too, whose coordinates are those of standardised features."""
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    options = {"random_state": 0} if kind is MLPClassifier else {}
    model = make_pipeline(StandardScaler(), kind(**options)) if form == "pipeline" else kind(**options)
    model.fit(X[:900], y[:900])
    source = to_onnx(model, X[:1], options={"zipmap": False}) if form == "file" else model
    trainer = optimizer(source, warm_start=True, random_state=0).partial_fit(X[900:950], y[900:950])
    assert trainer.score(X[950:], y[950:]) > model.score(X[950:], y[950:]) - 0.03


@pytest.mark.parametrize("average", [False, 50])
@pytest.mark.parametrize("model", [LinearRegression(), MLPRegressor(hidden_layer_sizes=5, random_state=0)])
def test_standardised_weights_are_not_rounded_between_calls(model, average, optimizer):
    """The state has the weights in the coordinates in which they are updated."""
    rng = np.random.default_rng(0)
    X = 100 * rng.normal(size=(60, 4)) + 50
    y = 30 * X @ [1.0, -2.0, 0.5, 0.1]
    options = {"learning_rate": "auto", "learning_penalty": None, "average": average, "random_state": 0}
    whole = optimizer(model, max_iter=3, **options).fit_stream(X, y)
    steps = optimizer(model, **options)
    for _ in range(3):
        steps.partial_fit(X, y)
    assert steps.train_losses_ == whole.train_losses_
    for name, array in whole.trained_coef_.items():
        np.testing.assert_array_equal(steps.trained_coef_[name], array)


@pytest.mark.slow
def test_order_of_samples_is_continued(optimizer, wine):
    X, y = wine
    options = {"learning_rate": 0.05, "random_state": 0}
    whole = optimizer(MLPClassifier((4,)), max_iter=3, **options).fit(X, y)
    steps = optimizer(MLPClassifier((4,)), **options)
    for _ in range(3):
        steps.partial_fit(X, y)
    after_fit = optimizer(MLPClassifier((4,)), max_iter=1, **options).fit(X, y)
    after_fit.partial_fit(X, y).partial_fit(X, y)
    for name, array in whole.trained_coef_.items():
        np.testing.assert_array_equal(steps.trained_coef_[name], array)
        np.testing.assert_array_equal(after_fit.trained_coef_[name], array)


def test_fit_discards_earlier_calls(optimizer, wine):
    X, y = wine
    model = optimizer(MLPClassifier((4,)), learning_rate="Adam", max_iter=2, random_state=0)
    expected = model.fit(X, y).partial_fit(X, y).trained_coef_["coefs_0"]
    model.partial_fit(X, y).partial_fit(X, y)
    got = model.fit(X, y).partial_fit(X, y).trained_coef_["coefs_0"]
    np.testing.assert_array_equal(got, expected)
    assert model.n_iter_ == len(model.train_losses_) == 3


def test_chunks(optimizer, diabetes_units):
    X, y = diabetes_units
    model = optimizer(LinearRegression(), learning_rate=0.02, random_state=0)
    for _ in range(3):
        for start in range(0, 442, 100):
            model.partial_fit(X[start : start + 100], y[start : start + 100])
    assert model.score(X, y) > 0.4
    assert model.n_iter_ == 15


def test_later_classes(optimizer, wine):
    X, y = wine
    first = y < 2
    model = optimizer(MLPClassifier((8,)), learning_rate=0.1, random_state=0)
    model.partial_fit(X[first], y[first], classes=[0, 1, 2])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict_proba(X).shape == (178, 3)
    for _ in range(15):
        model.partial_fit(X, y)
    assert model.score(X, y) > 0.9
    with pytest.raises(ValueError, match="differ from the classes of the first call"):
        model.partial_fit(X, y, classes=[0, 1])


def test_unknown_class(optimizer, wine):
    X, y = wine
    model = optimizer(LogisticRegression(), random_state=0).partial_fit(X[y < 2], y[y < 2])
    with pytest.raises(ValueError, match=r"y has classes \[2\] that the model does not know.*partial_fit"):
        model.partial_fit(X, y)


def test_changed_rate(optimizer, diabetes_units):
    X, y = diabetes_units
    model = optimizer(LinearRegression(), learning_rate="Adam", random_state=0).partial_fit(X, y)
    before = model.trained_coef_["coef"]
    model.set_params(learning_rate=1e-30).partial_fit(X, y)
    np.testing.assert_array_equal(model.trained_coef_["coef"], before)
    assert type(model.learning_rate_).__name__ == "LearningRateSGD"


@pytest.mark.parametrize("random_state", [0, None], ids=["seed", "no seed"])
def test_pickled_estimator_continues_with_the_same_orders(random_state, optimizer, wine):
    X, y = wine
    model = optimizer(MLPClassifier((4,)), learning_rate="Adam", random_state=random_state)
    model.partial_fit(X, y).partial_fit(X, y)
    loaded = pickle.loads(pickle.dumps(model))
    for twin in (model, loaded):
        twin.partial_fit(X, y).partial_fit(X, y)
    np.testing.assert_array_equal(loaded.train_losses_, model.train_losses_)
    for name, array in model.trained_coef_.items():
        np.testing.assert_array_equal(loaded.trained_coef_[name], array)


def test_orders_are_determined_by_the_first_seed(optimizer, wine):
    X, y = wine
    model = optimizer(MLPClassifier((4,)), learning_rate=0.05, random_state=0)
    expected = model.fit(X, y).partial_fit(X, y).train_losses_
    model.fit(X, y).set_params(random_state=1).partial_fit(X, y)
    assert model.train_losses_ == expected


def test_epochs_are_numbered_within_a_training(optimizer, diabetes_units):
    X, y = diabetes_units
    options = {"learning_rate": 0.01, "max_iter": 2, "warm_start": True}
    model = optimizer(LinearRegression(), random_state=np.random.RandomState(0), **options)
    with calls_of(epoch_order) as calls:
        model.fit(X, y).partial_fit(X, y).partial_fit(X, y).set_params(max_iter=3).fit(X, y)
    asked = [(call["seed"], call["epoch"]) for call in calls]
    first, second = asked[0][0], asked[4][0]
    assert first != second  # a warm start is a new training with a new seed
    assert asked == [(first, epoch) for epoch in range(4)] + [(second, epoch) for epoch in range(3)]
    with calls_of(epoch_order) as calls:
        model.set_params(random_state=4).fit(X, y).fit(X, y)
    asked = [(call["seed"], call["epoch"]) for call in calls]
    assert asked[:3] == asked[3:]


def test_one_progress_line_for_all_calls(optimizer, diabetes_units, capsys):
    X, y = diabetes_units
    stream = optimizer(LinearRegression(), verbose=1, random_state=0)
    for begin in range(0, 200, 40):
        stream.partial_fit(X[begin : begin + 40], y[begin : begin + 40])
    other = pickle.loads(pickle.dumps(clone(stream).partial_fit(X, y)))
    assert capsys.readouterr().out.count("epoch 1 ") == 1, "the line is written when the clone is deleted"
    other.partial_fit(X, y)
    del other
    assert "epoch 2 loss" in capsys.readouterr().out
    stream.set_params(max_iter=2).fit(X, y)
    out = capsys.readouterr().out
    assert out.startswith(f"{optimizer.__name__} epoch 5 loss ") and "2/2" in out
