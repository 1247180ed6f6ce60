"""Operators without a kernel in onnxruntime raise an error that says what to do."""

import numpy as np
import pytest
from sklearn.neural_network import MLPRegressor

from ortlearn.estimators import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import GradientError

pytestmark = pytest.mark.needs_training

X = np.random.default_rng(0).normal(size=(30, 3))
RELU = MLPRegressor(hidden_layer_sizes=(2,), activation="relu", random_state=0)
OPTIONS = {"dtype": "float64", "max_iter": 1, "random_state": 0}


@pytest.mark.parametrize("optimizer", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
@pytest.mark.parametrize("rate", [0.01, "LBFGS"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_relu_in_float64(optimizer, rate):
    model = optimizer(RELU, gradient="ort", learning_rate=rate, **OPTIONS)
    with pytest.raises(GradientError, match=".* right in float32 only"):
        model.fit(X, X[:, 0])
    assert model.set_params(gradient="rules").fit(X, X[:, 0]).trained_coef_["coefs_0"].dtype == np.float64
