"""Selection of the step on other providers, compared with the CPU."""

from dataclasses import replace

import numpy as np
import pytest
from onnx import parser
from sklearn.datasets import make_regression
from sklearn.linear_model import Ridge, SGDRegressor
from sklearn.neural_network import MLPRegressor

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import ExecutionError, PluginError, ProviderWarning
from ortlearn.learning_rates import LearningRateLBFGS
from ortlearn.runtime.checked_sessions import CheckedSession, difference
from ortlearn.runtime.devices import Device
from ortlearn.training.chosen_step import STEPS, ChosenStep
from ortlearn.training.loop import run_training
from ortlearn.training.settings import LoopSettings
from ortlearn.training.solvers.gradient_step import GradientStep
from ortlearn.training.state import TrainingState
from ortlearn.training.steps.epoch_step import EpochStep

MODEL = parser.parse_model(
    '<ir_version: 8, opset_import: ["": 18]> g (float[N,2] x) => (float[N,2] y) { h = Exp (x) y = Neg (h) }'
)
START = {"coef": np.array([[0.5], [0.5]], np.float32)}


class Other(Device):
    """The CPU, treated as another provider."""

    is_native = False


class OnOther:
    """Part of an estimator that trains on the other provider."""

    def _configuration(self):
        found = super()._configuration()
        return replace(found, runtime=replace(found.runtime, device=Other("cpu")))


class Epochs(OnOther, OrtGradientOptimizer):
    """Its training step is a graph per epoch."""


class Calls(OnOther, OrtGradientForwardBackwardOptimizer):
    """Its training step is two calls."""


@pytest.fixture
def regression():
    X, y = make_regression(103, 5, noise=1.0, random_state=0)
    return X.astype(np.float32), y


@pytest.mark.parametrize("rate", ["Adam", "LBFGS"])
@pytest.mark.parametrize(
    "trainer, other", [(OrtGradientOptimizer, Epochs), (OrtGradientForwardBackwardOptimizer, Calls)]
)
def test_the_same_training(trainer, other, rate, regression):
    model = MLPRegressor(hidden_layer_sizes=(4,)) if rate == "Adam" else Ridge()
    iterations = {"Adam": 3, "LBFGS": 100}[rate]
    options = {"learning_rate": rate, "max_iter": iterations, "batch_size": 20, "random_state": 0}
    expected, found = (kind(model, **options).fit(*regression) for kind in (trainer, other))
    np.testing.assert_allclose(
        found.predict(regression[0]), expected.predict(regression[0]), rtol=1e-5, atol=1e-4
    )
    for name, array in expected.trained_coef_.items():
        np.testing.assert_array_equal(found.trained_coef_[name], array)
    found.partial_fit(*(part[:7] for part in regression)) if rate == "Adam" else None


def test_step_of_a_training(regression):
    options = {"learning_rate": "SGD", "max_iter": 2}
    for kind, expected in ((Epochs, "EpochStep"), (Calls, "ForwardBackwardStep")):
        fitted = kind(SGDRegressor(), **options).fit(*regression)
        assert type(fitted._fitted.step.chosen).__name__ == expected


def training(step, data):
    """Return the weights after two epochs."""
    return run_training(step, data, TrainingState(START), LoopSettings(max_iter=2, batch_size=5)).weights


def refused(kind):
    """Return a kind of step whose graph the other provider refuses."""

    def prepare(self, data, sizes):
        if not self.device.is_native:
            raise RuntimeError("Unsupported input type dynamic")
        kind.prepare(self, data, sizes)

    return type(kind.__name__, (kind,), {"prepare": prepare})


@pytest.mark.parametrize("n_refused", [0, 1, 2])
def test_next_step_after_a_refused_graph(n_refused, make_task, samples):
    kinds = [*map(refused, STEPS[:n_refused]), *STEPS[n_refused:]]
    step = ChosenStep(make_task(), Other("cpu"), kinds=kinds)
    found = training(step, samples)["coef"]
    assert type(step.chosen) is STEPS[n_refused]
    assert step.refusals == dict.fromkeys(
        [kind.__name__ for kind in STEPS[:n_refused]], "Unsupported input type dynamic"
    )
    np.testing.assert_allclose(
        found, training(EpochStep(make_task(), Device("cpu")), samples)["coef"], rtol=1e-4
    )


def test_no_supported_step(make_task, samples):
    step = ChosenStep(make_task(), Other("cpu"), kinds=[*map(refused, STEPS)])
    with pytest.raises(
        ExecutionError, match=r"cannot be used for this training\. EpochStep: Unsupported input.*'cpu'"
    ):
        training(step, samples)


class WrongUpdates(EpochStep):
    """EpochStep with wrong weights on the other provider."""

    def run_epoch(self, order, batch_size, buffers, pause=None):
        values = super().run_epoch(order, batch_size, buffers, pause)
        if not self.device.is_native:
            buffers.write({key: 2 * array + 1 for key, array in buffers.read().items()})
        return values


def test_wrong_updates_are_refused(make_task, samples):
    step = ChosenStep(make_task(), Other("cpu"), kinds=[WrongUpdates, *STEPS[1:]])
    training(step, samples)
    assert type(step.chosen) is STEPS[1]
    assert "its coef differs from that of the CPU" in step.refusals["WrongUpdates"]


class WrongGradient(GradientStep):
    """GradientStep with the wrong sign of the gradient on the other provider."""

    def evaluate(self, weights, width=0.0):
        value, gradient = super().evaluate(weights, width)
        return value, gradient if self.device.is_native else -gradient


def test_wrong_gradients_of_all_samples_are_refused(make_task, samples):
    task, arguments = make_task(learning_rate=LearningRateLBFGS()), (samples, [], START)
    chosen = ChosenStep(task, Other("cpu"), kinds=[GradientStep]).selected(*arguments)
    assert type(chosen) is GradientStep and not chosen.device.is_native
    with pytest.raises(ExecutionError, match="WrongGradient: its gradient differs from that of the CPU"):
        ChosenStep(task, Other("cpu"), kinds=[WrongGradient]).selected(*arguments)


@pytest.mark.parametrize("fault", ["wrong", "refused"])
def test_fallback_to_the_cpu(fault):
    x = np.ones((3, 2), np.float32)

    class Broken:
        def run(self, names, feeds, run_options=None):
            if fault == "refused":
                raise RuntimeError("no kernel")
            return [np.zeros((3, 2), np.float32)]

    session = CheckedSession(MODEL, Other("cpu"), None, make=lambda *arguments: Broken())
    with pytest.warns(
        ProviderWarning, match="no kernel" if fault == "refused" else "differ from those of the CPU by 100 %"
    ):
        found = session.run(None, {"x": x})
    np.testing.assert_allclose(found[0], -np.exp(x), rtol=1e-5)
    np.testing.assert_allclose(session.run(None, {"x": 2 * x})[0], -np.exp(2 * x), rtol=1e-5)


def test_differences():
    number, nan = np.ones((2, 2)), np.array([[np.nan, 1.0], [1.0, 1.0]])
    assert difference([number, nan], [number * 1.01, nan]) == ""
    assert "shape" in difference([number], [np.ones(4)])
    assert "non-finite" in difference([nan], [number])
    assert difference([np.array(["a", "b"])], [np.array(["a", "a"])]).endswith("by 50 %")


def test_gradients_of_python_losses_are_checked(regression):
    def wrong(expected, predicted):
        return (predicted - expected)[:, 0] ** 2 / 2, expected - predicted

    model = Calls(SGDRegressor(), learning_loss=wrong, learning_rate="SGD", max_iter=1, random_state=0)
    with pytest.raises(PluginError, match="gradient"):
        model.fit(*regression)
