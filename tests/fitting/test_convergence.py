"""Trainings whose loss becomes non-finite."""

import pickle

import numpy as np
import pandas
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from ortlearn.exceptions import ConvergenceError
from ortlearn.graphs import initializer_arrays
from ortlearn.learning_rates import LearningRateSGD

HUGE = LearningRateSGD(eta0=1e12, learning_rate="constant")


def test_error_with_losses_and_rate(optimizer, diabetes):
    model = optimizer(LinearRegression(), learning_rate=HUGE, max_iter=5, random_state=0)
    before = dict(model.__dict__)
    with pytest.raises(
        ConvergenceError, match=r"training diverged.*epoch 1.*Lower the learning rate"
    ) as caught:
        model.fit(*diabetes)
    error = caught.value
    assert error.rate == 1e12 and error.__suppress_context__  # no chained error in the traceback
    assert not np.isfinite(error.losses[-1]) and np.isfinite(error.losses[:-1]).all()
    assert error.losses[0] > 0
    assert pickle.loads(pickle.dumps(error)).losses[:-1] == error.losses[:-1]
    assert model.__dict__ == before


def test_fitted_estimator_is_not_changed(optimizer, diabetes, unchanged):
    X, y = diabetes
    model = optimizer(LinearRegression(), learning_rate=0.01, max_iter=2, random_state=0).fit(X, y)
    model.set_params(learning_rate=HUGE)

    def fails():
        for method in (model.fit, model.partial_fit):
            with pytest.raises(ConvergenceError):
                method(X, y)

    unchanged(model, X, fails)


@pytest.mark.parametrize("eta0", [1e3, 1e6, 1e12, 1e18])
@pytest.mark.parametrize("max_iter", [1, 3])
def test_warning_and_last_finite_weights(eta0, max_iter, optimizer, diabetes):
    X, y = diabetes
    rate = LearningRateSGD(eta0=eta0, learning_rate="constant")
    model = optimizer(LinearRegression(), learning_rate=rate, max_iter=max_iter, exc=False, random_state=0)
    with pytest.warns(ConvergenceWarning, match="the last finite weights are kept"):
        model.fit(X, y)
    assert all(np.isfinite(array).all() for array in model.trained_coef_.values())
    assert all(np.isfinite(array).all() for array in initializer_arrays(model.onnx_).values())
    assert np.isfinite(model.train_losses_).all()
    assert np.isfinite(model.predict(X)).all()


def test_weights_before_the_last_batch_are_kept(optimizer):
    X = np.array([[1.0], [1.0], [1.0], [1.0]])
    y = np.array([2.0, 2.0, 2.0, 1e30])
    rate = LearningRateSGD(eta0=0.25, learning_rate="constant")
    options = {"learning_rate": rate, "batch_size": 1, "shuffle": False, "warm_start": True}
    source = LinearRegression(fit_intercept=False).fit([[1.0]], [0.0])
    model = optimizer(source, "coef", max_iter=1, exc=False, **options)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    # the loss of the fourth sample is not finite, so the weights of the previous update are kept
    np.testing.assert_allclose(model.trained_coef_["coef"], [[2 - 2 * 0.75**2]], rtol=1e-6)
    assert np.isfinite(model.losses(X[:3], y[:3])).all()


def test_divergence_after_the_last_batch(optimizer):
    X, y = np.array([[1e10], [1e10]]), np.array([1e9, 1e9])
    source = LinearRegression(fit_intercept=False).fit([[1.0]], [0.0])
    options = {"max_iter": 1, "batch_size": 2, "warm_start": True}
    for eta0 in (1e5, 1e25):  # finite weights with infinite loss, and infinite weights
        model = optimizer(source, "coef", learning_rate=eta0, **options)
        with pytest.raises(ConvergenceError, match="in epoch 1") as caught:
            model.fit(X, y)
        assert np.isfinite(caught.value.losses[0])
        model.set_params(exc=False)
        with pytest.warns(ConvergenceWarning):
            model.fit(X, y)
        np.testing.assert_array_equal(model.trained_coef_["coef"], [[0.0]])
        assert np.isfinite(model.losses(X, y)).all()
        assert model.n_iter_ == 1


AREAS = np.random.RandomState(0).randn(50, 3) * [1.0, 2e5, 1e5] + [0.0, 0.0, 2e5]
ROOMS = AREAS @ [1.0, 2e-5, 3e-5]


@pytest.mark.parametrize("exc", [True, False])
def test_message_names_features_of_the_largest_scale(exc, optimizer):
    frame = pandas.DataFrame(AREAS, columns=["rooms", "area", "price"])
    model = optimizer(LinearRegression(), learning_rate=0.1, random_state=0, exc=exc)
    piped = make_pipeline(FunctionTransformer(), LinearRegression())
    for source, X, largest, second in (
        (LinearRegression(), frame, "'price'", "'area'"),
        (LinearRegression(), AREAS, "column 2", "column 1"),
        (piped, AREAS, "column 2", "column 1"),
    ):
        model.set_params(estimator=source)
        names = rf"mean square are {largest} \(.*e\+05\), {second} \(.*e\+05\)\. Put a Standard.*'LBFGS'"
        with (
            pytest.raises(ConvergenceError, match=names)
            if exc
            else pytest.warns(ConvergenceWarning, match=names)
        ):
            model.fit(X, ROOMS)


def test_message_does_not_name_scaled_features(optimizer, diabetes):
    for model, X, y in (
        (LinearRegression(), *diabetes),
        (make_pipeline(StandardScaler(), LinearRegression()), AREAS, ROOMS),
        (
            make_pipeline(TfidfVectorizer(), LinearRegression()),
            ["aa bb", "bb cc", "cc dd ee", "ff"] * 5,
            np.arange(20),
        ),
    ):
        with pytest.raises(ConvergenceError) as caught:
            optimizer(model, learning_rate=HUGE, max_iter=3, random_state=0).fit(X, y)
        assert str(caught.value).endswith("exc=False.")


def test_large_sparse_features(optimizer):
    with pytest.raises(ConvergenceError, match="column 2 .*, column 1"):
        optimizer(LinearRegression(), learning_rate=0.1, random_state=0).fit(csr_array(AREAS), ROOMS)


@pytest.mark.parametrize("around", ["alone", "pipeline"])
def test_warnings_refer_to_the_calling_line(around, optimizer, diabetes_units):
    model = optimizer(LinearRegression(), tol=1e-9, max_iter=2, random_state=0)
    model = make_pipeline(StandardScaler(), model) if around == "pipeline" else model
    with pytest.warns(ConvergenceWarning, match="max_iter=2") as caught:
        model.fit(*diabetes_units)
    assert caught[0].filename == __file__
