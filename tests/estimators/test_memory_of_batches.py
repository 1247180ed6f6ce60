"""A batch whose activations exceed the memory of the machine is an error before the training."""

import numpy as np
import pytest
from onnx import parser

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import ExecutionError
from ortlearn.runtime.machine import memory_bytes

X = np.random.default_rng(0).normal(size=(40, 1)).astype(np.float32)


def network(share):
    """Return a network whose activations of a sample take a share of the memory."""
    width = int(memory_bytes() * share / 4)
    return parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[N,1] x) => (float[N,1] y)
        <float[1,1] w = {{1}}, int64[2] wide = {{1, {width}}}, int64[1] one = {{1}}>
        {{ h = MatMul (x, w) e = Expand (h, wide) y = ReduceMean (e, one) }}"""
    )


@pytest.mark.slow  # a sample takes some gigabytes
@pytest.mark.parametrize("estimator", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
def test_batch_that_fits_is_named(estimator):
    trainer = estimator(network(0.15), learning_rate="SGD", batch_size=10, max_iter=1, random_state=0)
    with pytest.raises(
        ExecutionError, match=r"A batch of 10 samples takes about .* GiB .*batch_size=6 or less"
    ):
        trainer.fit(X, X)
    assert not hasattr(trainer, "trained_coef_")


def test_small_batches_train():
    trainer = OrtGradientOptimizer(
        network(1e-6), learning_rate="SGD", batch_size=10, max_iter=1, random_state=0
    )
    assert trainer.fit(X, X).predict(X).shape == (40, 1)
