"""Functions of torch; make test-bridges installs it."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor

from ortlearn import OrtGradientOptimizer
from ortlearn.functions import differentiable, to_torch
from ortlearn.inspection import integrated_gradients

from .test_function import CLASSES, NETWORK, P, X, Y

torch = pytest.importorskip("torch", reason="needs torch: make test-bridges")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
MODELS = {
    "network": lambda: differentiable(MLPRegressor(**NETWORK).fit(X, Y)),
    "classifier": lambda: differentiable(MLPClassifier(**NETWORK).fit(X, CLASSES), "predict_proba"),
    "process": lambda: differentiable(GaussianProcessRegressor(alpha=0.1).fit(X, Y)),
}


@pytest.mark.parametrize("name", MODELS)
def test_checks_of_torch(name):
    g, x = to_torch(MODELS[name]()), torch.tensor(P[:2], requires_grad=True)
    assert torch.autograd.gradcheck(g, (x,))
    assert torch.autograd.gradgradcheck(g, (x,))


def test_composition_and_types():
    f = MODELS["network"]()
    g, x = to_torch(f), torch.tensor(P, dtype=torch.float32, requires_grad=True)
    found = g(torch.exp(x))
    assert found.dtype == torch.float32 and found.shape == (5,)
    found.sum().backward()
    inner = np.exp(P.astype(np.float32)).astype(float)
    np.testing.assert_allclose(x.grad, f.gradient(inner) * inner, rtol=1e-4)
    assert g(torch.tensor(P).reshape(5, 1, 4)).shape == (5, 1) and g(torch.tensor(P[0])).shape == ()


@pytest.mark.parametrize("activation", ["tanh", "relu", "logistic"])
def test_gradients_of_torch_networks(activation):
    model = MLPRegressor(**{**NETWORK, "activation": activation, "hidden_layer_sizes": (7, 5)}).fit(X, Y)
    functions = {"tanh": torch.tanh, "relu": torch.relu, "logistic": torch.sigmoid}
    x = torch.tensor(P, requires_grad=True)
    weights = [torch.tensor(w, requires_grad=True) for w in (*model.coefs_, *model.intercepts_)]
    value = x
    for number in range(3):
        value = value @ weights[number] + weights[3 + number]
        value = functions[activation](value) if number < 2 else value
    f, v = differentiable(model), np.ones_like(P)
    (gradient,) = torch.autograd.grad(value.sum(), x, create_graph=True)
    np.testing.assert_allclose(f.gradient(P), gradient.detach(), rtol=1e-10)
    (product,) = torch.autograd.grad(gradient.sum(), x, retain_graph=True, allow_unused=True)
    expected = np.zeros_like(P) if product is None else product
    np.testing.assert_allclose(f.hessian_vector(P, v), expected, rtol=1e-9, atol=1e-12)
    of_weights = torch.autograd.grad(value.sum(), weights)
    found = f.parameter_gradient(P)
    for number in range(3):
        np.testing.assert_allclose(found[f"coefs_{number}"], of_weights[number], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            found[f"intercepts_{number}"].ravel(), of_weights[3 + number], rtol=1e-9, atol=1e-12
        )


def test_tensors_as_samples():
    f, x = MODELS["network"](), torch.tensor(X, requires_grad=True)
    np.testing.assert_array_equal(f.gradient(x), f.gradient(X))
    trained = [
        OrtGradientOptimizer(Ridge(), random_state=0, learning_rate="Adam").fit(samples, labels).coef_
        for samples, labels in ((torch.tensor(X), torch.tensor(Y)), (X, Y))
    ]
    np.testing.assert_array_equal(*trained)
    half = f(torch.tensor(X, dtype=torch.bfloat16))
    np.testing.assert_allclose(half, f(X), atol=0.05)


def test_integrated_gradients_of_captum():
    attr = pytest.importorskip("captum.attr", reason="needs captum: make test-bridges")
    model = MLPClassifier(**NETWORK).fit(X, CLASSES)
    weights = [torch.tensor(w) for w in (*model.coefs_, *model.intercepts_)]

    def probabilities(x):
        return torch.softmax(torch.tanh(x @ weights[0] + weights[2]) @ weights[1] + weights[3], dim=1)

    baseline = X.mean(axis=0)
    expected = attr.IntegratedGradients(probabilities).attribute(
        torch.tensor(P), torch.tensor(baseline[None]), target=1, n_steps=400
    )
    found = integrated_gradients(model, P, baseline, output=1)
    np.testing.assert_allclose(found.attributions, expected, rtol=1e-5, atol=1e-7)
