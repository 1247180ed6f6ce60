"""Scores and losses that the candidates of a warm start are compared by."""

import numpy as np
import pytest
from scipy.sparse import random_array
from sklearn.impute import KNNImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from ortlearn import OrtGradientOptimizer
from ortlearn.data.samples import Data
from ortlearn.fitting.run import new_step
from ortlearn.fitting.start import new_start
from ortlearn.inference.score_runner import ScoreRunner
from ortlearn.problem.samples import Samples
from ortlearn.training.optimisations.hoisting import CHUNK_BYTES
from ortlearn.training.solvers.variables import Variables
from tests.calls import calls_of
from tests.estimators.array_graphs import FILES, loss_of, position_losses

rng = np.random.default_rng(0)
NOISE = rng.normal(size=400)


def prepared(model, X, y, weights=None, loss="auto"):
    """Return samples in the form used by training, their scores by a fitted model, and a runner."""
    trainer = OrtGradientOptimizer(model, learning_loss=loss, warm_start=True, random_state=0)
    configuration = trainer._configuration()
    start = new_start(configuration, Samples(X, y, weights), np.random.RandomState(0), 0)
    step, data, _ = new_step(configuration, start)
    runner = ScoreRunner(step.task, configuration.runtime)
    return data, lambda part: runner.scores(start.weights, part), runner


def test_frozen_steps_run_once():
    X, y = rng.normal(size=(60, 4)), rng.normal(size=60)
    X[rng.uniform(size=X.shape) < 0.2] = np.nan
    model = make_pipeline(KNNImputer(), Ridge()).fit(X, y)
    data, scores, runner = prepared(model, X, y)
    part = data.take(np.arange(20))
    blind = Data(np.zeros_like(part.X), part.y, None, part.features)
    expected = model.predict(X[:20])
    np.testing.assert_allclose(scores(blind).ravel(), expected, rtol=1e-4, atol=1e-5)
    expected = (expected - y[:20]) ** 2 / 2
    np.testing.assert_allclose(runner.losses(scores(part), part), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_sparse_samples_are_scored_in_chunks():
    X = random_array((400, 20_000), density=0.001, format="csr", random_state=0)
    y = np.arange(400) % 2
    model = LogisticRegression().fit(X, y)
    data, scores, _ = prepared(model, X, y)
    assert len(y) * 20_000 * 4 > CHUNK_BYTES
    np.testing.assert_allclose(scores(data).ravel(), model.decision_function(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_losses_of_samples_are_means_over_their_positions(file):
    X, y = file.samples(12, np.float32)
    weights = rng.random(y.shape if file.n_classes else 12)
    data, scores, runner = prepared(file.model(np.float32), X, y, weights, loss_of(file))
    arrays = file.draw(np.float32)
    losses = position_losses(file, file.scores(X.astype(np.float64), **arrays), y).reshape(12, -1)
    if file.n_classes:
        losses = np.average(losses, axis=1, weights=weights.reshape(12, -1))
    else:
        losses = losses.sum(axis=1)
    np.testing.assert_allclose(runner.losses(scores(data), data), losses, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_candidates_evaluate_only_the_rounded_objective_of_a_loss_with_kinks():
    X = rng.normal(size=(200, 3))
    model = LinearRegression().fit(X, X @ [1.0, -2.0, 0.5])
    with calls_of(Variables.evaluate) as calls:
        trainer = OrtGradientOptimizer(
            model, warm_start=True, learning_loss="absolute_error", max_iter=40, random_state=0
        ).fit(X, X @ [1.5, -2.0, 0.0] + 0.3 * NOISE[:200])
    widths = [call["width"] for call in calls]
    n_rounded = np.count_nonzero(widths)
    assert trainer.score(X, X @ [1.5, -2.0, 0.0]) > 0.9 and len(trainer.train_losses_) == trainer.n_iter_
    assert n_rounded > 500
    assert len(widths) - n_rounded < n_rounded / 3
