"""The training loop: epochs, rates, losses, validation, states and non-finite losses."""

import numpy as np
import onnx
import pytest
from scipy.sparse import csr_matrix

from ortlearn.data.samples import Data
from ortlearn.exceptions import ConvergenceError
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD
from ortlearn.penalties import L2Penalty
from ortlearn.runtime.devices import Device
from ortlearn.training.loop import run_training
from ortlearn.training.settings import LoopSettings, Measured
from ortlearn.training.state import TrainingState
from ortlearn.training.steps.forward_backward_step import ForwardBackwardStep
from ortlearn.training.steps.single_graph_step import SingleGraphStep

START = {"coef": np.array([[0.5], [0.5]], np.float32)}


def recorded(step):
    """Record the calls of a step."""
    step.rates, step.seen = [], []
    set_rate, run = step.set_rate, step.run

    def note_rate(rate):
        step.rates.append(rate)
        set_rate(rate)

    def note_samples(samples, buffers):
        step.seen.append(samples.copy())
        return run(samples, buffers)

    step.set_rate, step.run = note_rate, note_samples
    return step


def settings(**changes):
    return LoopSettings(**{"max_iter": 3, "batch_size": 10, "shuffle": False, **changes})


def train(step, samples, seed=0, weights=START, **arguments):
    validate, state = (
        arguments.pop("validate", None),
        arguments.pop("state", TrainingState(weights, seed=seed)),
    )
    return run_training(step, samples, state, settings(**arguments), validate=validate)


def after(n_epochs):
    """Return the state after some epochs."""
    return TrainingState(START, history=[{"epoch": n + 1, "loss": 1.0} for n in range(n_epochs)])


def test_a_rate_per_epoch_and_every_sample_once(step_class, make_task, samples):
    step = recorded(step_class(make_task(), Device("cpu")))
    result = train(step, samples, state=after(2), max_iter=5, shuffle=True)
    np.testing.assert_allclose(step.rates, [0.1 / np.sqrt(3), 0.1 / 2, 0.1 / np.sqrt(5)])
    for epoch in range(3):
        batches = step.seen[3 * epoch : 3 * epoch + 3]
        assert [len(batch) for batch in batches] == [10, 10, 3]
        assert sorted(np.concatenate(batches)) == list(range(23))
    assert (result.n_iter, len(result.train_losses)) == (5, 5)


def test_losses_are_means_over_samples(step_class, make_task, samples):
    still = LearningRateSGD(eta0=1e-30)
    weighted = Data(samples.X, samples.y, np.linspace(0, 2, 23).astype(np.float32))
    per_sample = ((samples.X @ START["coef"] - samples.y) ** 2).ravel() / 2
    for data, expected in [
        (samples, per_sample.mean()),
        (weighted, np.average(per_sample, weights=weighted.sample_weight)),
    ]:
        task = make_task(learning_rate=still, weighted=data is weighted, penalty=L2Penalty(0.5))
        result = train(step_class(task, Device("cpu")), data)
        np.testing.assert_allclose(result.train_losses, expected + 0.25, rtol=1e-5)
        np.testing.assert_array_equal(result.weights["coef"], START["coef"])


def test_update(step_class, make_task, samples):
    step = step_class(make_task(), Device("cpu"))
    result = train(step, samples, max_iter=1, batch_size=23)
    gradient = samples.X.T @ (samples.X @ START["coef"] - samples.y) / 23
    np.testing.assert_allclose(result.weights["coef"], START["coef"] - 0.1 * gradient, rtol=1e-5)
    assert START["coef"].tolist() == [[0.5], [0.5]]  # not changed in place


def test_training_learns(step_class, make_task, samples):
    result = train(step_class(make_task(), Device("cpu")), samples, max_iter=60)
    np.testing.assert_allclose(result.weights["coef"], [[1], [-2]], atol=0.01)
    assert result.train_losses[-1] < 1e-3 < result.train_losses[0]


def test_a_batch_whose_weights_are_zero(step_class, make_task, samples):
    weights = np.ones(23, np.float32)
    weights[:10] = 0
    data = Data(samples.X, samples.y, weights)
    step = step_class(make_task(weighted=True), Device("cpu"))
    rest = Data(samples.X[10:], samples.y[10:], weights[10:])
    got = train(step, data, max_iter=2)
    expected = train(step, rest, max_iter=2)
    np.testing.assert_allclose(got.weights["coef"], expected.weights["coef"], rtol=1e-5)
    np.testing.assert_allclose(got.train_losses, expected.train_losses, rtol=1e-5)


def test_states_of_an_earlier_training(step_class, make_task, samples):
    step = step_class(make_task(learning_rate=LearningRateAdam(eta0=0.1)), Device("cpu"))
    whole = train(step, samples, max_iter=4)
    first = train(step, samples, max_iter=2)
    assert {state for _, state in first.states} == {"mean", "square", "power_1", "power_2"}
    second = train(step, samples, max_iter=4, state=first)
    np.testing.assert_array_equal(second.weights["coef"], whole.weights["coef"])
    assert second.train_losses == whole.train_losses


def test_validation(step_class, make_task, samples):
    seen = []

    def validate(weights):
        seen.append(weights["coef"].copy())
        return Measured(float(len(seen)))

    step = step_class(make_task(), Device("cpu"))
    result = train(step, samples, max_iter=7, validation_every=3, validate=validate)
    assert result.validation_losses == [1.0, 2.0]
    assert (seen[0] != seen[1]).any()


def test_non_finite_loss(step_class, make_task, samples):
    task = make_task(learning_rate=LearningRateSGD(eta0=1e25, learning_rate="constant"))
    with pytest.raises(ConvergenceError, match=r"epoch 6, at learning rate 1e\+25") as caught:
        train(step_class(task, Device("cpu")), samples, state=after(5), max_iter=8)
    assert caught.value.rate == 1e25 and len(caught.value.losses) <= 10


def test_graphs_of_a_step(step_class, make_task, samples):
    two_calls = {"rate", "forward", "backward"}
    four_calls = {"training", "forward", "backward", "loss", "update"}
    known = {SingleGraphStep: {"step"}, ForwardBackwardStep: two_calls}
    expected = known.get(step_class, four_calls)
    step = step_class(make_task(), Device("cpu"))
    for model in step.graphs().values():
        onnx.checker.check_model(model, full_check=True)
    assert set(step.graphs()) == expected
    train(step, samples, max_iter=1)
    assert set(step.graphs()) == expected


def test_progress_bar(step_class, make_task, samples, capsys):
    step = step_class(make_task(), Device("cpu"))
    train(step, samples, max_iter=2, verbose=0)
    assert capsys.readouterr().out == ""
    train(step, samples, max_iter=2, verbose=1, description="my training")
    out = capsys.readouterr().out
    assert "my training" in out and "2/2" in out and "loss" in out


@pytest.mark.parametrize("sparse", [False, True])
def test_chunks_of_an_epoch(any_step_class, make_task, samples, sparse):
    """Other samples are bound with the same weights and learning rate."""
    step, order, found = any_step_class(make_task(), Device("cpu")), np.arange(len(samples)), []
    chunks = [Data(csr_matrix(X) if sparse else X, samples.y) for X in (samples.X, 2 * samples.X)]
    for n_samples in (None, 2 * len(samples)):
        buffers = step.start(chunks[0], [len(samples)], START, n_samples=n_samples)
        step.set_rate(0.05)
        losses = [step.run_epoch(order, len(samples), buffers)]
        if n_samples is None:  # the next chunk as a new training
            weights = {name: array for (name, _), array in buffers.read().items()}
            buffers = step.start(chunks[1], [len(samples)], weights)
            step.set_rate(0.05)
        else:
            step.load(chunks[1], buffers)
        losses.append(step.run_epoch(order, len(samples), buffers))
        found.append((losses, *buffers.read().values()))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])
    assert not np.array_equal(found[0][1], weights["coef"])
