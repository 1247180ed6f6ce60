"""Sample weights and validation data in pipelines, searches and cross-validation."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from ortlearn import OrtGradientOptimizer


@pytest.fixture
def routing():
    """Enable metadata routing."""
    with config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="module")
def weighted_wine(wine):
    X, y = wine
    return X, y, np.random.RandomState(0).uniform(0, 3, len(y))


@pytest.fixture
def trainer():
    return OrtGradientOptimizer(LogisticRegression(), max_iter=3, random_state=0, learning_rate=0.05)


def coefficients(model):
    return np.vstack([model.trained_coef_[name] for name in ("coef", "intercept")])


def test_metadata_requests_of_the_estimator(optimizer):
    requests = optimizer(LogisticRegression()).get_metadata_routing()
    validation = {"X_val", "y_val", "sample_weight_val"}
    assert set(requests.fit.requests) == {"sample_weight", *validation, "classes", "resume_from"}
    assert set(requests.partial_fit.requests) == {"sample_weight", *validation, "classes", "total_weight"}
    assert set(requests.score.requests) == {"sample_weight"}
    assert not any(requests.fit.requests.values())


def test_requests_survive_a_clone(trainer, routing):
    trainer.set_fit_request(sample_weight="importance").set_score_request(sample_weight=False)
    requests = clone(trainer).get_metadata_routing()
    assert requests.fit.requests["sample_weight"] == "importance"
    assert requests.score.requests["sample_weight"] is False


def test_pipeline(optimizer, weighted_wine, routing):
    X, y, weights = weighted_wine
    trainer = optimizer(LogisticRegression(), max_iter=3, random_state=0, learning_rate=0.05)
    scaled = StandardScaler().fit_transform(3 * X + 1)
    direct = clone(trainer).fit(scaled, y, sample_weight=weights)
    trainer.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), trainer)
    pipeline.fit(3 * X + 1, y, sample_weight=weights)
    np.testing.assert_array_equal(coefficients(pipeline[-1]), coefficients(direct))
    score = pipeline.score(3 * X + 1, y, sample_weight=weights)
    assert score == direct.score(scaled, y, sample_weight=weights) != direct.score(scaled, y)


def test_pipeline_under_another_name(trainer, weighted_wine, routing):
    X, y, weights = weighted_wine
    direct = clone(trainer).fit(X, y, sample_weight=weights)
    pipeline = make_pipeline(trainer.set_fit_request(sample_weight="importance"))
    np.testing.assert_array_equal(
        coefficients(pipeline.fit(X, y, importance=weights)[-1]), coefficients(direct)
    )


def test_weights_without_a_metadata_request(trainer, weighted_wine, routing):
    X, y, weights = weighted_wine
    with pytest.raises(UnsetMetadataPassedError, match=r"\[sample_weight\] are passed.*set_fit_request"):
        make_pipeline(trainer).fit(X, y, sample_weight=weights)


def test_pipeline_without_routing(trainer, weighted_wine):
    X, y, weights = weighted_wine
    direct = clone(trainer).fit(X, y, sample_weight=weights)
    step = type(trainer).__name__.lower()
    pipeline = make_pipeline(StandardScaler(with_mean=False, with_std=False), trainer)
    pipeline.fit(X, y, **{f"{step}__sample_weight": weights})
    np.testing.assert_array_equal(coefficients(pipeline[-1]), coefficients(direct))


def test_validation_data_in_a_pipeline(trainer, weighted_wine, routing):
    X, y, weights = weighted_wine
    train, held_out = slice(0, 120), slice(120, None)
    given = {"X_val": X[held_out], "y_val": y[held_out], "sample_weight_val": weights[held_out]}
    scaler = StandardScaler().fit(X[train])
    direct = clone(trainer)
    direct.fit(scaler.transform(X[train]), y[train], **{**given, "X_val": scaler.transform(X[held_out])})
    trainer.set_fit_request(X_val=True, y_val=True, sample_weight_val=True)
    pipeline = Pipeline([("scale", StandardScaler()), ("train", trainer)], transform_input=["X_val"])
    pipeline.fit(X[train], y[train], **given)
    assert pipeline[-1].validation_losses_ == direct.validation_losses_
    assert len(direct.validation_losses_) == 3
    np.testing.assert_array_equal(coefficients(pipeline[-1]), coefficients(direct))


def test_grid_search(trainer, weighted_wine, routing):
    X, y, weights = weighted_wine
    trainer.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    folds = KFold(2, shuffle=True, random_state=0)
    search = GridSearchCV(trainer, {"max_iter": [1, 3]}, cv=folds).fit(X, y, sample_weight=weights)
    best = clone(trainer).set_params(**search.best_params_).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(coefficients(search.best_estimator_), coefficients(best))
    for number, (train, test) in enumerate(folds.split(X)):
        model = clone(trainer).set_params(max_iter=3).fit(X[train], y[train], sample_weight=weights[train])
        expected = accuracy_score(y[test], model.predict(X[test]), sample_weight=weights[test])
        assert search.cv_results_[f"split{number}_test_score"][1] == expected


def test_grid_search_over_a_pipeline(trainer, weighted_wine, routing):
    X, y, weights = weighted_wine
    trainer.set_fit_request(sample_weight=True)
    scoring = make_scorer(accuracy_score).set_score_request(sample_weight=True)
    pipeline = Pipeline([("scale", StandardScaler().set_fit_request(sample_weight=True)), ("train", trainer)])
    search = GridSearchCV(pipeline, {"train__batch_size": [10, 20]}, cv=2, scoring=scoring)
    search.fit(X, y, sample_weight=weights)
    size = search.best_params_["train__batch_size"]
    scaler = StandardScaler().fit(X, sample_weight=weights)
    direct = clone(trainer).set_params(batch_size=size)
    direct.fit(scaler.transform(X), y, sample_weight=weights)
    np.testing.assert_array_equal(coefficients(search.best_estimator_[-1]), coefficients(direct))


def test_cross_validation(trainer, weighted_wine, routing):
    X, y, weights = weighted_wine
    trainer.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    folds = KFold(2, shuffle=True, random_state=0)
    found = cross_validate(trainer, X, y, cv=folds, params={"sample_weight": weights}, return_estimator=True)
    for (train, test), model, score in zip(
        folds.split(X), found["estimator"], found["test_score"], strict=True
    ):
        direct = clone(trainer).fit(X[train], y[train], sample_weight=weights[train])
        np.testing.assert_array_equal(coefficients(model), coefficients(direct))
        assert score == direct.score(X[test], y[test], sample_weight=weights[test])


def test_cross_validation_without_routing(trainer, weighted_wine):
    X, y, weights = weighted_wine
    folds = KFold(2, shuffle=True, random_state=0)
    found = cross_validate(trainer, X, y, cv=folds, params={"sample_weight": weights}, return_estimator=True)
    train = next(folds.split(X))[0]
    direct = clone(trainer).fit(X[train], y[train], sample_weight=weights[train])
    np.testing.assert_array_equal(coefficients(found["estimator"][0]), coefficients(direct))


def test_inside_a_classifier_of_scikit_learn(trainer, weighted_wine, routing):
    X, y, weights = weighted_wine
    trainer.set_fit_request(sample_weight=True)
    calibrated = CalibratedClassifierCV(trainer, cv=2, ensemble=False).fit(X, y, sample_weight=weights)
    direct = clone(trainer).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(
        coefficients(calibrated.calibrated_classifiers_[0].estimator), coefficients(direct)
    )


@pytest.mark.parametrize("routed", [False, True])
def test_weights_are_passed_to_the_last_step_of_a_trained_pipeline(routed, diabetes):
    X, y = diabetes
    weights = np.random.RandomState(0).uniform(0, 3, len(y)) ** 2
    options = {"warm_start": True, "learning_rate": 1e-30, "max_iter": 1, "dtype": "float64"}
    with config_context(enable_metadata_routing=routed):
        last = Ridge().set_fit_request(sample_weight=True) if routed else Ridge()
        first = StandardScaler().set_fit_request(sample_weight=False) if routed else StandardScaler()
        model = OrtGradientOptimizer(make_pipeline(first, last), **options).fit(X, y, sample_weight=weights)
        source = make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=3))
        tree = OrtGradientOptimizer(source, **options)
        tree.fit(X, y, sample_weight=None if routed else weights)
    scaled = StandardScaler().fit_transform(X)
    expected = Ridge().fit(scaled, y, sample_weight=weights)
    np.testing.assert_allclose(model.trained_coef_["coef"].ravel(), expected.coef_, rtol=1e-9)
    if not routed:
        expected = DecisionTreeRegressor(max_depth=3).fit(scaled, y, sample_weight=weights)
        np.testing.assert_allclose(tree.predict(X), expected.predict(scaled), rtol=1e-6)


def test_pipeline_without_metadata_requests_is_fitted_without_weights(optimizer, weighted_wine, routing):
    X, y, weights = weighted_wine
    source = make_pipeline(StandardScaler(), MLPClassifier((4,)))
    model = optimizer(source, max_iter=3, random_state=0).fit(X, y, sample_weight=weights)
    plain = optimizer(source, max_iter=3, random_state=0).fit(X, y)
    assert model.train_losses_ != plain.train_losses_
