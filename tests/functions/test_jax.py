"""Functions of JAX; make test-bridges installs it."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor

from ortlearn import OrtGradientOptimizer
from ortlearn.functions import differentiable, to_jax

from .test_function import CLASSES, NETWORK, P, X, Y

jax = pytest.importorskip("jax", reason="needs JAX: make test-bridges")
jnp = jax.numpy
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(autouse=True, params=["in place", "pure_callback"])
def double(request, monkeypatch):
    if request.param == "pure_callback":  # on GPUs, and in JAX before 0.6.1
        monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.fixture(scope="module")
def network():
    return differentiable(MLPRegressor(**NETWORK).fit(X, Y))


@pytest.fixture(scope="module")
def classifier():
    return differentiable(MLPClassifier(**NETWORK).fit(X, CLASSES), "predict_proba")


def test_values_and_gradients(network):
    g, points = to_jax(network), jnp.array(P)
    np.testing.assert_allclose(g(points), network(P), rtol=1e-12)
    np.testing.assert_allclose(g(points[0]), network(P)[0], rtol=1e-12)
    np.testing.assert_allclose(jax.grad(g)(points[0]), network.gradient(P)[0], rtol=1e-12)
    composed = jax.jit(jax.value_and_grad(lambda x: jnp.sin(g(jnp.exp(x))).sum()))
    value, gradient = composed(points)
    inner = np.exp(P)
    np.testing.assert_allclose(value, np.sin(network(inner)).sum(), rtol=1e-10)
    expected = np.cos(network(inner))[:, None] * network.gradient(inner) * inner
    np.testing.assert_allclose(gradient, expected, rtol=1e-9)


def test_vmap(network, classifier):
    points, g = jnp.array(X), to_jax(classifier)
    np.testing.assert_allclose(jax.vmap(jax.jit(to_jax(network)))(points), network(X), rtol=1e-12)
    np.testing.assert_allclose(jax.vmap(jax.jacrev(g))(points), classifier.jacobian(X), rtol=1e-9, atol=1e-12)
    stack = points.reshape(4, 10, 4)
    np.testing.assert_allclose(jax.vmap(g)(stack), g(stack), rtol=1e-12)


def test_second_derivatives(classifier):
    g, x = to_jax(classifier), jnp.array(P[0])
    hessian = jax.jit(jax.jacrev(jax.grad(lambda x: g(x)[1])))(x)
    u = np.tile(np.eye(3)[1], (4, 1))
    expected = classifier.hessian_vector(np.tile(P[0], (4, 1)), np.eye(4), u)
    np.testing.assert_allclose(hessian, expected, rtol=1e-9, atol=1e-12)


def test_types(network):
    g = to_jax(network)
    assert g(jnp.array(P, dtype=jnp.float32)).dtype == jnp.float32
    assert g(jnp.array([1, 2, 3, 4])).dtype == jnp.float64
    with pytest.raises(Exception, match="(?s)4|dimension|Got"):
        g(jnp.ones((2, 7)))


def test_arrays_as_samples(network):
    x = jnp.array(X)
    np.testing.assert_array_equal(network.gradient(x), network.gradient(X))
    trained = [
        OrtGradientOptimizer(Ridge(), random_state=0, learning_rate="Adam").fit(samples, labels).coef_
        for samples, labels in ((x, jnp.array(Y)), (X, Y))
    ]
    np.testing.assert_array_equal(*trained)
    np.testing.assert_allclose(network(x.astype(jnp.bfloat16)), network(X), atol=0.05)
