"""Losses with rounded kinks: values, and the attribute ``kinks``."""

import numpy as np
import pytest
from onnx import helper

from ortlearn import plugins
from ortlearn.differentiation import gradient_of_loss
from ortlearn.graphs import GraphBuilder, TensorType
from ortlearn.learning_rates import LearningRateLBFGS
from ortlearn.losses import AbsoluteErrorLoss, HuberLoss, LogLoss, PerOutputLoss, QuantileLoss, QuantilesLoss
from ortlearn.runtime.devices import Device
from ortlearn.training.settings import LoopSettings
from ortlearn.training.solver_loop import run_solver
from ortlearn.training.solvers.gradient_step import GradientStep
from ortlearn.training.solvers.smoothing import WIDTH, SmoothedLoss, smoothed_objective
from ortlearn.training.solvers.variables import Variables
from ortlearn.training.state import TrainingState

CPU = Device("cpu")
START = {"coef": np.array([[0.5], [0.5]], np.float32)}


def built_in_losses():
    """Return the names of the built-in losses with labels."""
    names = {info.name for info in plugins.list_plugins(plugins.LOSSES) if info.distribution == "ortlearn"}
    return sorted(name for name in names if plugins.get(plugins.LOSSES, name).tasks != {"unsupervised"})


def slopes(loss, label, scores, run_onnx):
    """Return the derivative of the loss of one label at many scores."""
    double = TensorType(11, (len(scores), 1))
    op = GraphBuilder(dtype=np.float64, types={"y": double, "z": double})
    total = op.ReduceSum(loss.forward(op, "y", "z"), keepdims=0)
    inputs = [helper.make_tensor_value_info(name, 11, double.shape) for name in ("y", "z")]
    output = [helper.make_tensor_value_info(total, 11, [])]
    graph = helper.make_graph(op.nodes, "loss", inputs, output, op.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    model = gradient_of_loss(model, total, ["z"])
    return run_onnx(model, y=np.full((len(scores), 1), label), z=scores[:, None])[-1].ravel()


@pytest.mark.parametrize("name", built_in_losses())
def test_which_losses_have_kinks(name, run_onnx):
    # scores of one column have one level
    loss = QuantilesLoss((0.25,)) if name == "quantiles" else plugins.create(plugins.LOSSES, name, object)
    step = 1e-5
    centres = np.array([-1.0, -0.1, 0.0, 0.1, 0.25, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0])
    if name == "cross_entropy":  # takes probabilities
        centres = centres[(centres > 0) & (centres < 1)]
    scores = (centres[:, None] + step * np.array([-1.5, -0.5, 0.5, 1.5])).ravel()
    jumps = [
        np.abs(np.diff(slopes(loss, label, scores, run_onnx).reshape(-1, 4), axis=1)).max()
        for label in (0.0, 1.0)
    ]
    assert loss.kinks == (max(jumps) > 0.01), f"the slope jumps by {max(jumps)}"


def test_losses_of_several_outputs():
    assert PerOutputLoss(AbsoluteErrorLoss(), groups=(1,)).kinks
    assert not PerOutputLoss(LogLoss(), groups=(3, 1)).kinks


@pytest.mark.parametrize("gradient", ["rules", pytest.param("ort", marks=pytest.mark.needs_training)])
@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_rounded_objective(quantile, gradient, make_task, samples):
    task = make_task(
        loss=QuantileLoss(quantile=quantile), gradient=gradient, learning_rate=LearningRateLBFGS()
    )
    variables = Variables(GradientStep(task, CPU), START, samples)
    variables.start(START)
    vector = variables.pack(START)
    x, residual = (
        samples.X.astype(np.float64),
        (samples.y - samples.X @ START["coef"]).ravel().astype(np.float64),
    )
    for width in (0.0, 1e-3, 0.5, 1e-3):
        value, got = variables.evaluate(vector, width)
        root = np.sqrt(residual**2 + width**2)
        assert value == pytest.approx((root / 2 + (quantile - 0.5) * residual).mean(), rel=1e-5)
        slope = -(residual / root / 2 + quantile - 0.5)
        np.testing.assert_allclose(got, x.T @ slope / len(x), rtol=1e-4, atol=1e-6)
    assert variables.has_kinks
    assert [value.name for value in smoothed_objective(task).graph.input][-1] == WIDTH
    assert set(variables.step.graphs()) == {"objective"}


def test_relu_is_rounded_too():
    class Positive(AbsoluteErrorLoss):
        def forward(self, op, expected, predicted):
            return op.Relu(op.Sub(predicted, expected))

    op = GraphBuilder()
    SmoothedLoss(Positive()).forward(op, "y", "z")
    kinds = [node.op_type for node in op.nodes]
    assert "Relu" not in kinds and "Sqrt" in kinds and WIDTH in {n for node in op.nodes for n in node.input}


@pytest.mark.parametrize("loss", [AbsoluteErrorLoss(), HuberLoss(delta=0.1)])
def test_outliers_do_not_matter(loss, make_task, samples):
    samples.y[:4] += 100.0
    step = GradientStep(make_task(loss=loss, learning_rate=LearningRateLBFGS()), CPU)
    settings = LoopSettings(max_iter=300, batch_size=10)
    result = run_solver(Variables(step, START, samples), START, settings, TrainingState())
    np.testing.assert_allclose(result.weights["coef"], [[1], [-2]], atol=0.05)


def test_smoothing_at_the_optimum(make_task, samples):
    best = {"coef": np.array([[1.0], [-2.0]], np.float32)}
    samples.y[:] = samples.X @ best["coef"]
    step = GradientStep(make_task(loss=AbsoluteErrorLoss(), learning_rate=LearningRateLBFGS()), CPU)
    result = run_solver(Variables(step, best, samples), best, LoopSettings(50, 10), TrainingState())
    np.testing.assert_allclose(result.weights["coef"], best["coef"], atol=1e-6)
