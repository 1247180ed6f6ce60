"""``batch_size="auto"``: the same training as with the number of samples that it stands for."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import Ridge

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.callbacks import ModelCheckpoint
from ortlearn.saving import export_training
from ortlearn.search import OrtGridSearchCV

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30_000, 3))
Y = X @ [1.0, -2.0, 0.5]


def trainer(size, kind=OrtGradientOptimizer, **options):
    return kind(Ridge(), batch_size=size, **{"max_iter": 2, "random_state": 0, **options})


def blocks(n_samples):
    return [(X[i : i + 500], Y[i : i + 500]) for i in range(0, n_samples, 500)]


@pytest.mark.parametrize(("n_samples", "size"), [(400, 10), (1_099, 10), (1_200, 12), (30_000, 200)])
@pytest.mark.parametrize("kind", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
def test_an_epoch_has_a_hundred_batches_of_ten_to_two_hundred_samples(kind, n_samples, size):
    auto, expected, other = (
        trainer(each, kind).fit_stream([(X[:n_samples], Y[:n_samples])]) for each in ("auto", size, size + 1)
    )
    assert_array_equal(auto.coef_, expected.coef_)
    assert np.any(auto.coef_ != other.coef_)


def test_batches_of_a_chosen_rate_are_small():
    found, expected = (trainer(size, learning_rate="SGD").fit(X, Y) for size in ("auto", 10))
    assert_array_equal(found.coef_, expected.coef_)


@pytest.mark.filterwarnings("ignore:The training reached")
def test_samples_held_out_are_not_counted():
    options = {"early_stopping": True, "validation_fraction": 0.5, "average": True}
    found, expected = (trainer(size, **options).fit(X[:3_000], Y[:3_000]) for size in ("auto", 15))
    assert_array_equal(found.coef_, expected.coef_)


def test_sources_say_how_many_samples_they_have():
    found, expected = (trainer(size).fit_stream(blocks(3_000), shuffle_buffer=600) for size in ("auto", 30))
    assert_array_equal(found.coef_, expected.coef_)


def test_partial_fit_keeps_the_size_of_its_first_call():
    found, expected = (trainer(size) for size in ("auto", 20))
    for model in (found, expected):
        model.partial_fit(X[:2_000], Y[:2_000]).partial_fit(X[:100], Y[:100])
    assert_array_equal(found.coef_, expected.coef_)


def test_resumption_continues_with_it(tmp_path):
    expected = trainer("auto", max_iter=4).fit_stream(blocks(2_000))
    trainer("auto", max_iter=4).set_callbacks(ModelCheckpoint(tmp_path, every=2)).fit_stream(blocks(2_000))
    for size in ("auto", 20):
        found = trainer(size, max_iter=4)
        found.fit_stream(blocks(2_000), resume_from=tmp_path / "epoch-000002.zip")
        assert_array_equal(found.coef_, expected.coef_)
    with pytest.raises(ValueError, match="batch_size=10 instead of 20"):
        trainer(10, max_iter=4).fit_stream(blocks(2_000), resume_from=tmp_path / "epoch-000002.zip")


@pytest.mark.slow
def test_candidates_of_a_joint_search_have_it():
    scores = []
    for size in ("auto", 10):
        search = OrtGridSearchCV(trainer(size), {"learning_rate": ["SGD", "Adam"]}, cv=2)
        scores.append(search.fit(X[:3_200], Y[:3_200]).cv_results_["mean_test_score"])
    assert_array_equal(*scores)


def test_packages_have_it(tmp_path):
    model = trainer("auto").fit_stream(blocks(2_000))
    export_training(model, tmp_path, learning_rate="Adam")
    assert json.loads((tmp_path / "training.json").read_text())["batch_size"] == 20


def test_other_values_are_rejected():
    with pytest.raises(ValueError, match="batch_size"):
        trainer("many").fit(X[:10], Y[:10])
