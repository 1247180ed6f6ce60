"""Pipelines, searches, clones and parameters, as of scikit-learn's estimators."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import InvalidParameterError

from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD
from ortlearn.losses import ElasticLoss


def test_pipeline(optimizer, diabetes):
    X, y = diabetes
    inner = optimizer(LinearRegression(), learning_rate=0.01, max_iter=30, random_state=0)
    pipeline = make_pipeline(StandardScaler(), inner).fit(X * 100 + 3, y)
    alone = clone(inner).fit(StandardScaler().fit_transform(X * 100 + 3), y)
    assert pipeline.score(X * 100 + 3, y) > 0.45
    np.testing.assert_array_equal(pipeline[-1].trained_coef_["coef"], alone.trained_coef_["coef"])
    assert is_regressor(pipeline) and not is_classifier(pipeline)


@pytest.mark.slow
@pytest.mark.sweep(1)
def test_grid_search(optimizer, diabetes):
    X, y = diabetes
    grid = {
        "learning_rate__eta0": [1e-9, 1e-3],
        "learning_loss": ["squared_error", ElasticLoss()],
        "estimator__hidden_layer_sizes": [(4,), (6, 3)],
    }
    model = optimizer(
        MLPRegressor(), learning_rate=LearningRateSGD(), max_iter=15, random_state=0, batch_size=20
    )
    n_jobs = 2 if optimizer.__name__ == "OrtGradientOptimizer" else 1
    search = GridSearchCV(model, grid, n_jobs=n_jobs, cv=2, error_score="raise")
    search.fit(X[:150], y[:150] / 100)
    assert search.best_params_["learning_rate__eta0"] == 1e-3
    assert len(search.cv_results_["params"]) == 8
    sizes = search.best_params_["estimator__hidden_layer_sizes"]
    shapes = [array.shape for array in search.best_estimator_.trained_coef_.values() if array.shape[0] > 1]
    assert shapes == list(zip((10, *sizes), (*sizes, 1), strict=True))
    assert np.ptp(search.cv_results_["mean_test_score"]) > 0


def test_cross_val_score_uses_the_accuracy_of_a_classifier(optimizer, cancer):
    model = optimizer(LogisticRegression(), learning_rate=0.05, max_iter=5, random_state=0)
    assert cross_val_score(model, *cancer, cv=2).min() > 0.9


def test_clone_is_unfitted_and_equal(optimizer, diabetes):
    rate = LearningRateAdam(eta0=0.5)
    model = optimizer(Ridge(alpha=3), learning_rate=rate, max_iter=1, random_state=0).fit(*diabetes)
    copied = clone(model)
    assert copied.get_params().keys() == model.get_params().keys()
    assert copied.learning_rate is not rate and copied.learning_rate.eta0 == 0.5
    assert copied.estimator is not model.estimator and copied.estimator.alpha == 3
    assert not any(name.endswith("_") and not name.startswith("_") for name in copied.__dict__)
    with pytest.raises(NotFittedError, match="not fitted"):
        copied.predict(diabetes[0])


def test_constructor_only_stores(optimizer):
    nonsense = object()
    names = set(optimizer(Ridge()).get_params(deep=False))
    model = optimizer(**dict.fromkeys(names, nonsense))
    assert model.__dict__ == dict.fromkeys(names, nonsense)


def test_deep_parameters(optimizer):
    model = optimizer(
        make_pipeline(StandardScaler(), MLPClassifier()),
        learning_rate=LearningRateSGD(),
        learning_loss=ElasticLoss(l1_weight=0.25),
    )
    params = model.get_params(deep=True)
    assert params["learning_rate__eta0"] == 0.01
    assert params["learning_loss__l1_weight"] == 0.25
    assert "learning_rate__eta0" not in model.get_params(deep=False)
    model.set_params(
        learning_rate__eta0=3.0, learning_loss__l1_weight=0.5, estimator__mlpclassifier__alpha=7, max_iter=2
    )
    assert model.learning_rate.eta0 == 3.0
    assert model.learning_loss.l1_weight == 0.5
    assert model.estimator[-1].alpha == 7
    assert model.max_iter == 2
    model.set_params(learning_rate=LearningRateAdam(), learning_rate__beta_1=0.5)
    assert model.learning_rate.beta_1 == 0.5


@pytest.mark.parametrize(
    "name, value", [("learning_rate", "SGD"), ("learning_rate", 0.1), ("learning_penalty", None)]
)
def test_nested_parameters_of_a_named_plugin(name, value, optimizer):
    model = optimizer(Ridge(), **{name: value})
    with pytest.raises(
        ValueError, match=f"'{name}__eta0' cannot be set, since {name}=.*is not an object: pass an object"
    ):
        model.set_params(**{f"{name}__eta0": 1.0})
    with pytest.raises(ValueError, match="Invalid parameter 'nothing'"):
        model.set_params(nothing=3)


def test_other_name_of_a_parameter(optimizer, diabetes):
    model = optimizer(Ridge(), hoist=False, learning_rate="SGD", max_iter=1, random_state=0)
    parameters = model.get_params()
    assert parameters["precompute"] is False and "hoist" not in parameters
    assert "precompute=False" in repr(model)
    assert clone(model).precompute is clone(model).hoist is False
    state = model.__getstate__()
    state["hoist"] = state.pop("precompute")  # as in a pickle of an earlier version
    loaded = object.__new__(type(model))
    loaded.__setstate__(state)
    assert loaded.precompute is False and clone(loaded).precompute is False
    assert model.set_params(hoist=True).precompute is True
    model.hoist = False
    assert model.precompute is False
    pipeline = Pipeline([("scaler", StandardScaler()), ("trainer", model)]).set_params(trainer__hoist=True)
    assert pipeline[-1].precompute is True
    search = GridSearchCV(model, {"hoist": [False, True]}, cv=2, error_score="raise").fit(*diabetes)
    assert search.best_estimator_.precompute is search.best_params_["hoist"]
    for both in (optimizer, model.set_params):
        with pytest.raises(ValueError, match="'hoist' is another name of 'precompute': pass one"):
            both(estimator=Ridge(), hoist=True, precompute=True)
    with pytest.raises(InvalidParameterError, match="'precompute' parameter"):
        model.set_params(hoist="no").fit(*diabetes)


@pytest.mark.slow
def test_wrapped_estimator_is_not_changed(optimizer, diabetes):
    X, y = diabetes
    given = [Ridge(), Ridge().fit(X, y), make_pipeline(StandardScaler(), Ridge())]
    for model in given:
        rate, loss = LearningRateAdam(), ElasticLoss()
        before = pickle.dumps((model, rate, loss))
        for warm_start in (False, True):
            trained = optimizer(
                model, learning_rate=rate, learning_loss=loss, warm_start=warm_start, max_iter=2
            )
            trained.fit(X, y).partial_fit(X, y).predict(X)
            assert trained.estimator is model and trained.learning_rate is rate
        assert pickle.dumps((model, rate, loss)) == before


def test_tags_of_the_estimator(optimizer):
    assert is_regressor(optimizer(Ridge())) and not is_classifier(optimizer(Ridge()))
    assert is_classifier(optimizer(LogisticRegression())) and not is_regressor(optimizer(MLPClassifier()))
    assert not hasattr(optimizer(Ridge()), "predict_proba")
    assert not hasattr(optimizer(Ridge()), "decision_function")
    assert hasattr(optimizer(LogisticRegression()), "predict_proba")


def test_same_seed_same_bits(optimizer, wine):
    X, y = wine

    def trained(seed):
        model = optimizer(MLPClassifier(hidden_layer_sizes=(6,)), max_iter=3, random_state=seed)
        return model.fit(X, y)

    first, again, other = trained(3), trained(3), trained(4)
    refitted = trained(3).fit(X, y)
    from_instance = trained(np.random.RandomState(3))
    assert first.train_losses_ == again.train_losses_ == refitted.train_losses_
    for name, array in first.trained_coef_.items():
        assert array.tobytes() == again.trained_coef_[name].tobytes()
        assert array.tobytes() == refitted.trained_coef_[name].tobytes()
        assert array.tobytes() == from_instance.trained_coef_[name].tobytes()
    assert any((array != other.trained_coef_[n]).any() for n, array in first.trained_coef_.items())


def test_fitted_attributes(optimizer, wine):
    X, y = wine
    model = optimizer(LogisticRegression(), learning_penalty="l2", max_iter=4, random_state=0)
    assert model.fit(X, y) is model
    assert (model.n_features_in_, model.n_iter_, len(model.train_losses_)) == (13, 4, 4)
    assert model.classes_.tolist() == [0, 1, 2]
    assert list(model.weights_to_train_) == ["coef", "intercept"] == list(model.trained_coef_)
    kinds = [type(p).__name__ for p in (model.loss_, model.penalty_, model.learning_rate_)]
    assert kinds == ["LogLoss", "L2Penalty", "LearningRateSGD"]
    assert model.validation_losses_ == []
    assert not hasattr(model, "feature_names_in_")
