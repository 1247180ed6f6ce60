"""JAX: an epoch is one jitted lax.scan over batches."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.cases import Case, Weights, initial_weights
from benchmarks.contenders.base import Contender

__all__ = ["Jax"]


def objective(weights, X, y, case: Case):
    """Return the mean loss of a batch."""
    scores = X
    for i, (coefs, intercept) in enumerate(weights):
        scores = (jax.nn.relu(scores) if i else scores) @ coefs + intercept
    if case.task == "regression":
        return jnp.mean((scores - y) ** 2) / 2
    if case.layers[-1] == 1:
        return jnp.mean(jax.nn.softplus(scores) - scores * y)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(scores), y, axis=1))


def update(state, numbers, X, y, case: Case):
    """Update the weights on the samples of a batch."""
    weights, velocity = state
    value, gradient = jax.value_and_grad(objective)(weights, X[numbers], y[numbers], case)
    velocity = jax.tree.map(lambda v, g: case.momentum * v - case.rate * g, velocity, gradient)
    return (jax.tree.map(jnp.add, weights, velocity), velocity), value


@partial(jax.jit, static_argnames="case", donate_argnums=0)
def epoch(state, order, rest, X, y, case: Case):
    """Update on every full batch, then on the short one, if any."""
    state, values = jax.lax.scan(lambda s, numbers: update(s, numbers, X, y, case), state, order)
    if len(rest):
        state, _ = update(state, rest, X, y, case)
    return state, values


class Jax(Contender):
    """A compiled epoch."""

    def fit(self, epochs: int, shuffle: bool) -> Weights:
        """Train."""
        case = self.case
        X, y = jnp.asarray(self.X), jnp.asarray(self.y.reshape(len(self.y), -1))
        weights = [(jnp.asarray(coefs), jnp.asarray(intercept)) for coefs, intercept in initial_weights(case)]
        state = weights, jax.tree.map(jnp.zeros_like, weights)
        rng = np.random.RandomState(0)
        full = len(X) - len(X) % case.batch_size
        for _ in range(epochs):
            order = (rng.permutation(len(X)) if shuffle else np.arange(len(X))).astype(np.int32)
            batches = order[:full].reshape(-1, case.batch_size)
            state, _ = epoch(state, batches, order[full:], X, y, case)
        return [(np.asarray(coefs), np.asarray(intercept)) for coefs, intercept in state[0]]
