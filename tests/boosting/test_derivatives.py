"""Gradients and Hessian diagonals of losses agree with finite differences."""

import numpy as np
import pytest

from ortlearn import losses
from ortlearn.boosting.derivatives import LossDerivatives
from ortlearn.boosting.stages import StageObjective
from ortlearn.exceptions import PluginError

STEP = 1e-5
RANDOM = np.random.default_rng(0)
POSITIVE, BINARY = RANDOM.gamma(2, size=(40, 1)), RANDOM.integers(2, size=(40, 1)).astype(float)
CLASSES = RANDOM.integers(3, size=40)


class LogCosh(losses.BaseLoss):
    """A smooth loss that is not built in."""

    def forward(self, op, expected, predicted):
        return self.sum_outputs(op, op.Log(op.Cosh(op.Sub(predicted, expected))))


def test_operators_of_float32_are_used_where_there_are_no_others():
    derivatives, scores = LossDerivatives(LogCosh()), np.array([[0.5]])
    gradient, hessian = derivatives.gradient_hessian(np.zeros((1, 1)), scores)
    np.testing.assert_allclose([gradient, hessian], [np.tanh(scores), 1 - np.tanh(scores) ** 2], rtol=1e-5)


class FiveTimes(losses.BaseLoss):
    """A cost of five for predicting too little, which does not declare its kink."""

    def forward(self, op, expected, predicted):
        short = op.Sub(expected, predicted)
        return self.sum_outputs(op, op.Max(op.Mul(short, 5.0), op.Neg(short)))


class OfReduction(losses.BaseLoss):
    """The absolute error, by an operator on several elements."""

    kinks = True

    def forward(self, op, expected, predicted):
        return op.ReduceL1(op.Sub(predicted, expected), [1], keepdims=0)


#: Expressions whose derivatives are simplified: constants, equal parts, conditions, kinks beside the scores.
EXPRESSIONS = (
    "(score * 1 + 0 - label) ** 2 / 2 - 0 * score",
    "where(abs(score - label) < 1, (score - label) ** 2 / 2, abs(score - label) - 0.5)",
    "where(label > score, 3, 1) * (label - score) ** 2 + where(not label > score, score, score) ** 4 / 8",
    "maximum(score - label, 0) ** 3 + 2 * minimum(score - label, 0) ** 2",
    "clip(score - label, -1, 2) * (2 * (score - label) - clip(score - label, -1, 2))",
    "softplus(-score) - softplus(score) + exp(-score) * label + 3 * score - label * 2 + score",
    "sin(score) * label / (2 + square(score)) - log(1 + score ** 2) * (1 - sigmoid(score))",
)
SMOOTH = [
    *((losses.ExpressionLoss(text), 1, POSITIVE) for text in EXPRESSIONS),
    *((loss, 1, POSITIVE) for loss in (losses.SquaredErrorLoss(), losses.HuberLoss(), losses.PoissonLoss())),
    *((loss, 1, POSITIVE) for loss in (losses.GammaLoss(), losses.TweedieLoss(1.5))),
    (losses.SquaredEpsilonInsensitiveLoss(0.3), 1, POSITIVE),
    *((loss, 1, BINARY) for loss in (losses.LogLoss(), losses.LogLoss(0.1), losses.FocalLoss())),
    *((loss, 1, BINARY) for loss in (losses.SquaredHingeLoss(), losses.ModifiedHuberLoss())),
    *((loss, 3, CLASSES) for loss in (losses.LogLoss(), losses.LogLoss(0.1), losses.FocalLoss())),
    (losses.SquaredHingeLoss(), 3, np.eye(3)[CLASSES]),
    (losses.SquaredErrorLoss(), 3, RANDOM.normal(size=(40, 3))),
]


@pytest.mark.parametrize("loss, n_scores, labels", SMOOTH)
def test_derivatives_are_those_of_finite_differences(loss, n_scores, labels):
    derivatives, scores = LossDerivatives(loss, n_scores), RANDOM.normal(size=(40, n_scores))
    gradient, hessian = derivatives.gradient_hessian(labels, scores)
    for column in range(n_scores):
        step = STEP * np.eye(n_scores)[column]
        high, low = derivatives.losses(labels, scores + step), derivatives.losses(labels, scores - step)
        np.testing.assert_allclose(gradient[:, column], (high - low) / (2 * STEP), atol=1e-7)
        high, low = (derivatives.gradient(labels, scores + sign * step) for sign in (1, -1))
        expected = (high - low)[:, column] / (2 * STEP)
        np.testing.assert_allclose(hessian[:, column], expected, atol=1e-7)


def test_large_scores_have_finite_derivatives():
    scores = np.array([[800.0], [-800.0]])
    gradient, hessian = LossDerivatives(losses.LogLoss()).gradient_hessian(np.array([[0.0], [1.0]]), scores)
    assert gradient.ravel().tolist() == [1.0, -1.0] and hessian.ravel().tolist() == [0.0, 0.0]


@pytest.mark.parametrize("loss, slopes", [(losses.QuantileLoss(0.9), 1.0), (FiveTimes(), 6.0)])
def test_curvature_at_kinks_is_that_of_the_touching_parabola(loss, slopes):
    labels, scores = POSITIVE, POSITIVE + np.linspace(-3, 3, 40)[:, None]
    gradient, curvature = LossDerivatives(loss).curvature(labels, scores)
    distances = np.abs(scores - labels)
    expected = slopes / (2 * distances.clip(0.1 * distances.mean()))
    np.testing.assert_allclose(curvature, expected, rtol=1e-6)
    assert set(np.round(gradient.ravel(), 6)) in ({-0.9, 0.1}, {-5.0, 1.0})


@pytest.mark.parametrize("delta", [0.7, 2.0])
def test_curvature_of_a_smooth_loss_is_a_mean_of_second_derivatives(delta):
    labels, scores = POSITIVE, POSITIVE + np.linspace(-3, 3, 40)[:, None]
    found = LossDerivatives(losses.HuberLoss(delta)).curvature(labels, scores)[1]
    np.testing.assert_allclose(found, np.minimum(1.0, delta / np.abs(scores - labels)), rtol=1e-12)


def test_losses_of_other_operators_have_the_same_derivatives():
    scores = POSITIVE + RANDOM.normal(size=(40, 1))
    pairs = zip(
        LossDerivatives(OfReduction()).curvature(POSITIVE, scores),
        LossDerivatives(losses.AbsoluteErrorLoss()).curvature(POSITIVE, scores),
        strict=True,
    )
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "loss, operators",
    [
        (losses.SquaredErrorLoss(), "Sub"),
        (losses.ExpressionLoss(EXPRESSIONS[0]), "Sub"),
        (losses.PoissonLoss(), "Exp Sub"),
        (losses.HuberLoss(), "Sub Clip Equal Cast"),
        (losses.LogLoss(), "Sigmoid Sub Sub Mul"),
        (losses.ExpressionLoss("(label - score) ** 4 + abs(label - score)"), "Sub Mul Mul Mul Sign Add Mul"),
    ],
)
def test_derivatives_are_written_with_few_nodes(loss, operators):
    samples = LossDerivatives(loss)._samples
    (first,), (second,) = samples._firsts, samples._seconds
    forms = {name: form for name, form in (("first", first), ("second", second)) if form.terms}
    found = sorted(node.op_type for node in samples._graph.model(forms).graph.node)
    assert found == sorted(operators.split())


def test_curvature_is_positive_where_a_loss_is_not_convex():
    labels, scores = np.ones((40, 1)), np.linspace(-6, 6, 40)[:, None]
    derivatives = LossDerivatives(losses.FocalLoss())
    assert (derivatives.gradient_hessian(labels, scores)[1] < 0).any()
    gradient, curvature = derivatives.curvature(labels, scores)
    assert np.isfinite(gradient).all() and (curvature > 0).all()


def test_python_functions_have_no_second_derivative():
    with pytest.raises(PluginError, match="subclass of BaseLoss"):
        LossDerivatives(losses.FunctionLoss(lambda y, f: ((f - y) ** 2, 2 * (f - y))))


@pytest.mark.sweep(2)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "loss", [losses.QuantileLoss(0.8), losses.EpsilonInsensitiveLoss(0.2), FiveTimes(), losses.ElasticLoss()]
)
def test_values_of_leaves_have_the_lowest_loss(loss, weighted):
    random = np.random.default_rng(0)  # the same samples in any order of tests
    y, scores = random.normal(size=60), random.normal(size=(60, 1))
    weights = random.uniform(0.5, 2, size=60) if weighted else np.ones(60)
    objective, leaves = StageObjective.of(loss, y, weights, False), np.arange(60) % 3
    values = objective.leaf_values(y, scores, weights, leaves)
    for leaf, value in enumerate(values):
        own = leaves == leaf
        grid = np.linspace(-5, 5, 2001)
        totals = [weights[own] @ objective.losses(y[own], scores[own] + step) for step in grid]
        found = weights[own] @ objective.losses(y[own], scores[own] + value)
        assert found <= 1.02 * min(totals)  # quantiles are interpolated between samples
        one = objective.leaf_value(y[own], scores[own], weights[own])
        assert weights[own] @ objective.losses(y[own], scores[own] + one) <= 1.02 * min(totals)


def test_initial_score_has_the_lowest_loss():
    y = RANDOM.gamma(2, size=200)
    assert StageObjective.of(losses.SquaredErrorLoss(), y, None, False).baseline == pytest.approx(y.mean())
    found = StageObjective.of(losses.PoissonLoss(), y, None, False).baseline
    np.testing.assert_allclose(found, np.log(y.mean()), atol=1e-4)
    level = StageObjective.of(FiveTimes(), y, None, False)
    assert level.level == pytest.approx(5 / 6) and (y <= level.baseline).mean() == pytest.approx(
        5 / 6, abs=0.01
    )


@pytest.mark.parametrize("unit", [1e-7, 1.0, 1e7])
@pytest.mark.parametrize("loss", [losses.SquaredErrorLoss(), losses.ElasticLoss(), losses.PoissonLoss()])
def test_initial_score_does_not_depend_on_the_unit_of_labels(loss, unit):
    y, weights = unit * RANDOM.gamma(2, size=50), RANDOM.uniform(0.5, 2, size=50)
    objective = StageObjective.of(loss, y, weights, False)
    (found,) = objective.baseline
    if isinstance(loss, losses.ElasticLoss):  # unlike the others, not minimised by the mean
        grid = np.linspace(y.min(), y.max(), 201)
        totals = [weights @ objective.losses(y, np.full(50, value)) for value in grid]
        assert abs(found - grid[np.argmin(totals)]) <= 1.01 * (grid[1] - grid[0])
        return
    mean = np.average(y, weights=weights)
    np.testing.assert_allclose(found, np.log(mean) if loss.link == "log" else mean, rtol=1e-12)
