"""Selection of the step on other providers, compared with the CPU."""

import numpy as np
import pytest
from onnx import parser
from sklearn.datasets import make_regression
from sklearn.linear_model import Ridge, SGDRegressor
from sklearn.neural_network import MLPRegressor

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import ExecutionError, PluginError, ProviderWarning
from ortlearn.problem import configuration
from ortlearn.runtime.checked_sessions import CheckedSession, difference
from ortlearn.runtime.devices import Device
from ortlearn.training import chosen_step
from ortlearn.training.solvers.full_batch import FullBatchStep
from ortlearn.training.steps.epoch_step import EpochStep
from ortlearn.training.steps.single_graph_step import SingleGraphStep

MODEL = parser.parse_model(
    '<ir_version: 8, opset_import: ["": 18]> g (float[N,2] x) => (float[N,2] y) { h = Exp (x) y = Neg (h) }'
)


class Other(Device):
    """The CPU, treated as another provider."""

    is_native = False


@pytest.fixture
def other(monkeypatch):
    monkeypatch.setattr(configuration, "parse_device", lambda name: Other("cpu"))


@pytest.fixture
def samples():
    X, y = make_regression(103, 5, noise=1.0, random_state=0)
    return X.astype(np.float32), y


@pytest.mark.parametrize("rate", ["Adam", "LBFGS"])
@pytest.mark.parametrize("trainer", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
def test_the_same_training(trainer, rate, samples, monkeypatch):
    def fitted():
        model = MLPRegressor(hidden_layer_sizes=(4,)) if rate == "Adam" else Ridge()
        iterations = {"Adam": 3, "LBFGS": 100}[rate]
        options = {"learning_rate": rate, "max_iter": iterations, "batch_size": 20, "random_state": 0}
        return trainer(model, **options).fit(*samples)

    expected = fitted()
    monkeypatch.setattr(configuration, "parse_device", lambda name: Other("cpu"))
    found = fitted()
    np.testing.assert_allclose(found.predict(samples[0]), expected.predict(samples[0]), rtol=1e-5, atol=1e-4)
    for name, array in expected.trained_coef_.items():
        np.testing.assert_array_equal(found.trained_coef_[name], array)
    found.partial_fit(*(part[:7] for part in samples)) if rate == "Adam" else None


def chosen(trainer):
    return type(trainer._fitted.step.chosen).__name__


def training(samples):
    return OrtGradientOptimizer(SGDRegressor(), learning_rate="SGD", max_iter=2, random_state=0).fit(*samples)


def test_step_of_a_training(other, samples):
    assert chosen(training(samples)) == "EpochStep"


def refuse(monkeypatch, *steps):
    for step in steps:
        prepare = step.prepare

        def fails(self, data, sizes, prepare=prepare):
            if not self.device.is_native:
                raise RuntimeError("Unsupported input type dynamic")
            prepare(self, data, sizes)

        monkeypatch.setattr(step, "prepare", fails)


def test_next_step_after_a_refused_graph(other, samples, monkeypatch):
    expected = training(samples)
    refuse(monkeypatch, EpochStep)
    found = training(samples)
    assert chosen(found) == "SingleGraphStep"
    assert found._fitted.step.refusals == {"EpochStep": "Unsupported input type dynamic"}
    np.testing.assert_allclose(found.predict(samples[0]), expected.predict(samples[0]), rtol=1e-3)
    refuse(monkeypatch, SingleGraphStep)
    assert chosen(training(samples)) == "ForwardBackwardStep"


def test_no_supported_step(other, samples, monkeypatch):
    refuse(monkeypatch, *chosen_step.STEPS)
    with pytest.raises(
        ExecutionError, match=r"cannot be used for this training\. EpochStep: Unsupported input.*'cpu'"
    ):
        training(samples)


def test_wrong_updates_are_refused(other, samples, monkeypatch):
    run = EpochStep.run_epoch

    def wrong(self, order, batch_size, buffers, pause=None):
        values = run(self, order, batch_size, buffers, pause)
        if not self.device.is_native:
            buffers.write({key: 2 * array + 1 for key, array in buffers.read().items()})
        return values

    monkeypatch.setattr(EpochStep, "run_epoch", wrong)
    found = training(samples)
    assert chosen(found) == "SingleGraphStep"
    assert "its updates of weight 'I0_coef' differ" in found._fitted.step.refusals["EpochStep"]


def test_wrong_gradients_of_all_samples_are_refused(other, samples, monkeypatch):
    evaluate = FullBatchStep.evaluate

    def wrong(self, vector, width=0.0):
        value, gradient = evaluate(self, vector, width)
        return value, gradient * (1 if self.device.is_native else -1)

    monkeypatch.setattr(FullBatchStep, "evaluate", wrong)
    with pytest.raises(ExecutionError, match="objective or gradient differ from the CPU by 200%"):
        OrtGradientOptimizer(Ridge(), learning_rate="LBFGS").fit(*samples)


@pytest.mark.parametrize("fault", ["wrong", "refused"])
def test_fallback_to_the_cpu(fault, monkeypatch):
    x = np.ones((3, 2), np.float32)
    session = CheckedSession(MODEL, Other("cpu"), None)

    class Broken:
        def run(self, names, feeds, run_options=None):
            if fault == "refused":
                raise RuntimeError("no kernel")
            return [np.zeros((3, 2), np.float32)]

    monkeypatch.setattr("ortlearn.runtime.checked_sessions.make_session", lambda *args: Broken())
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


def test_gradients_of_python_losses_are_checked(other, samples):
    def wrong(expected, predicted):
        return (predicted - expected)[:, 0] ** 2 / 2, expected - predicted

    model = OrtGradientForwardBackwardOptimizer(
        SGDRegressor(), learning_loss=wrong, learning_rate="SGD", max_iter=1, random_state=0
    )
    with pytest.raises(PluginError, match="gradient"):
        model.fit(*samples)
