"""
A scikit-learn surrogate inside a JAX simulation
================================================

A tank is heated; its heat loss was measured, and a scikit-learn model was fitted to it.
``to_jax`` makes the fitted model a function of JAX, so that a simulation in JAX can call
it, and ``jax.grad`` differentiates **through both**: the heater is optimised by gradient.

This example needs JAX, ``pip install 'ortlearn[jax]'``. The site is built without JAX; a test
runs the example.
"""

# %%
# The surrogate
# -------------

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.functions import differentiable, to_jax

jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)
measured = rng.uniform([20, -10], [95, 25], size=(400, 2))  # temperatures of tank and air
difference = measured[:, 0] - measured[:, 1]
loss = 0.004 * difference + 2e-5 * difference**2 + rng.normal(scale=0.005, size=400)
network = MLPRegressor(
    hidden_layer_sizes=(16,), activation="tanh", solver="lbfgs", max_iter=500, random_state=0
)
surrogate = make_pipeline(StandardScaler(), network).fit(measured, loss)
heat_loss = to_jax(differentiable(surrogate))

# %%
# The simulation
# --------------
#
# ``scan`` calls the surrogate in each of 48 steps; everything is compiled together.

air = 5 - 8 * jnp.cos(2 * jnp.pi * jnp.arange(48) / 48)


@jax.jit
def simulate(heating):
    def step(tank, inputs):
        power, outside = inputs
        tank = tank + power - heat_loss(jnp.array([tank, outside])) * 5
        return tank, tank

    return jax.lax.scan(step, 60.0, (heating, air))[1]


@jax.jit
def cost(heating):
    """Return the energy, and a penalty for temperatures below 60 in the second half."""
    cold = jnp.maximum(60 - simulate(heating)[24:], 0)
    return heating.sum() + 10 * (cold**2).sum() + 5 * (jnp.minimum(heating, 0) ** 2).sum()


# %%
# The schedule
# ------------

gradient = jax.jit(jax.grad(cost))
heating, velocity = jnp.full(48, 1.5), jnp.zeros(48)
print(f"cost before {cost(heating):.1f}")
for _ in range(300):
    velocity = 0.8 * velocity - 2e-4 * gradient(heating)
    heating = heating + velocity
print(f"cost after {cost(heating):.1f}, energy {heating.sum():.1f}")
