"""Losses of models with several outputs, and objectives computed by the model."""

import numpy as np
from scipy.special import log_softmax

from ortlearn.losses import LogLoss, PerOutputLoss, RowObjective, SquaredErrorLoss
from tests.losses.sample_losses import losses_of

RANDOM = np.random.RandomState(0)
SCORES = RANDOM.normal(size=(6, 4)).astype(np.float32)


def test_sum_of_log_losses_of_outputs(run_onnx):
    classes = np.stack([RANDOM.randint(3, size=6), RANDOM.randint(2, size=6)], axis=1)
    first = -log_softmax(SCORES[:, :3], axis=1)[np.arange(6), classes[:, 0]]
    second = np.log1p(np.exp(SCORES[:, 3])) - classes[:, 1] * SCORES[:, 3]
    result = losses_of(PerOutputLoss(LogLoss(), groups=(3, 1)), SCORES, classes, run_onnx)
    np.testing.assert_allclose(result, first + second, rtol=1e-5)


def test_sum_of_squared_errors_of_outputs(run_onnx):
    expected = RANDOM.normal(size=(6, 4)).astype(np.float32)
    result = losses_of(PerOutputLoss(SquaredErrorLoss(), groups=(1, 2, 1)), SCORES, expected, run_onnx)
    np.testing.assert_allclose(result, ((SCORES - expected) ** 2).sum(axis=1) / 2, rtol=1e-5)


def test_objective_of_the_model(run_onnx):
    scores = SCORES[:, :1]
    np.testing.assert_array_equal(
        losses_of(RowObjective(), scores, np.zeros_like(scores), run_onnx), scores[:, 0]
    )
    assert RowObjective.tasks == {"unsupervised"} and PerOutputLoss.tasks == {"multilabel"}
