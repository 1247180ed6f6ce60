"""Estimators fitted with several threads are used, trained and deleted in forked processes."""

import faulthandler
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neural_network import MLPRegressor

from ortlearn.models.weight_names import onnx_rename_weights
from ortlearn.runtime import cache
from ortlearn.runtime.forks import PerProcess
from ortlearn.runtime.sessions import session_options
from ortlearn.training.steps.forward_backward import OrtGradientForwardBackward
from ortlearn.training.steps.threads import LARGE

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork"),
    # Python 3.12 warns of forks of processes with threads
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
X = np.random.RandomState(0).normal(size=(2000, 40)).astype(np.float32)
Y = X[:, 0] - X[:, 1]
LIMIT = 60


def end_of(process, stacks):
    """Return the exit code of a child; kill it and fail with its stack if it hangs."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(process, signal.SIGUSR1)
    time.sleep(1)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    stack = (stacks / str(process)).read_text()
    pytest.fail(f"the child hangs: it was killed after {LIMIT} seconds, in\n{stack}")


def in_child(function):
    """Run a function in a forked process, and check that it succeeds."""
    with tempfile.TemporaryDirectory() as folder:
        stacks = Path(folder)
        process = os.fork()
        if process == 0:
            code = 1
            with open(stacks / str(os.getpid()), "w") as file:
                faulthandler.register(signal.SIGUSR1, file)
                try:
                    function()
                    code = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(code)
        assert end_of(process, stacks) == 0


@pytest.fixture
def fitted(optimizer):
    network = MLPRegressor(hidden_layer_sizes=(180, 180))
    assert 2 * 500 * 180**2 > LARGE  # which several threads compute
    model = optimizer(network, n_jobs=2, max_iter=2, batch_size=500, random_state=0).fit(X, Y)
    model.predict(X), model.score(X, Y), model.losses(X, Y)
    return model


def _drop(model):
    model.__dict__.clear()
    cache.clear_cache()
    gc.collect()


USES = {
    "fit": lambda model: model.fit(X, Y).trained_coef_,
    "fit a clone": lambda model: clone(model).fit(X, Y).trained_coef_,
    "partial_fit": lambda model: model.partial_fit(X, Y).trained_coef_,
    "solver": lambda model: model.set_params(learning_rate="LBFGS", tol=1.0).fit(X, Y).trained_coef_,
    "predict": lambda model: {"y": model.predict(X)},
    "losses": lambda model: {"losses": model.losses(X, Y)},
    "fit, then predict": lambda model: {"y": model.fit(X, Y).predict(X)},
}


@pytest.mark.slow
@pytest.mark.sweep(1)
@pytest.mark.parametrize("use", list(USES))
@pytest.mark.filterwarnings("ignore:LearningRateLBFGS stopped")
def test_child_predicts_like_its_parent(use, fitted):
    def check():
        for name, array in USES[use](fitted).items():
            np.testing.assert_array_equal(array, expected[name])

    parent = clone(fitted).fit(X, Y)  # the child uses the unchanged estimator
    expected = USES[use](parent)
    in_child(check)
    in_child(lambda: in_child(check))
    check()


@pytest.mark.slow
def test_sessions_of_the_parent_can_be_deleted(fitted):
    in_child(lambda: _drop(fitted))
    in_child(lambda: in_child(lambda: _drop(fitted)))


@pytest.mark.slow
def test_pool_of_forked_processes(fitted):
    expected = fitted.predict(X)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        results = [pool.apply_async(fitted.predict, (X,)) for _ in range(4)]
        trained = pool.apply_async(fitted.fit, (X, Y))
        for result in results:
            np.testing.assert_array_equal(result.get(LIMIT), expected)
        # the processes of a pool have one thread each, which sums in another order
        np.testing.assert_allclose(trained.get(LIMIT).predict(X), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
@pytest.mark.sweep(2)
@pytest.mark.parametrize("gradient", ["rules", pytest.param("ort", marks=pytest.mark.needs_training)])
def test_forward_and_backward(gradient, fitted):
    model, options = onnx_rename_weights(fitted.onnx_), session_options(n_jobs=2)
    owner = OrtGradientForwardBackward(model, gradient=gradient, sess_options=options)
    function = owner.new_instance()
    weights = [owner.get_initializer(name) for name in owner.weights_to_train]

    def gradients():
        output = function.forward([X, *weights], training=True)[0].numpy()
        return [value.numpy() for value in function.backward([np.ones_like(output)])]

    def check():
        with pytest.raises(RuntimeError, match="before backward"):
            function.backward([np.ones((len(X), 1), np.float32)])
        for got, wanted in zip(gradients(), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)

    expected = gradients()
    function.forward([X, *weights], training=True)  # its backward is called in the parent
    in_child(check)
    function.backward([np.ones((len(X), 1), np.float32)])


def test_sessions_are_kept_per_process():
    kept = PerProcess()
    kept.values["session"] = 1

    def check():
        assert kept.values == {}
        kept.values["session"] = 2
        assert kept.values == {"session": 2}

    in_child(check)
    assert kept.values == {"session": 1}


ENDS = """
import os, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from sklearn.neural_network import MLPRegressor
from ortlearn import {name}
X = np.random.RandomState(0).normal(size=(2000, 40)).astype(np.float32)
model = {name}(MLPRegressor(hidden_layer_sizes=(500,)), n_jobs=2, max_iter=1, batch_size=500).fit(X, X[:, 0])
model.predict(X)
process = os.fork()
if process:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
"""


# With newer versions of onnxruntime, forked processes that have imported it hang when they exit.
@pytest.mark.slow
@pytest.mark.needs_training
def test_exit_of_a_forked_process(optimizer):
    program = ENDS.format(name=optimizer.__name__)
    assert subprocess.run([sys.executable, "-c", program], timeout=LIMIT).returncode == 0
