"""The example of a surrogate in a JAX simulation, which the site does not run."""

import runpy
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="needs JAX: make test-bridges")


def test_schedule_costs_less_and_its_gradient_is_that_of_differences():
    try:
        found = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "jax_simulation.py"))
        cost, start, heating = found["cost"], np.full(48, 1.5), np.asarray(found["heating"])
        assert cost(heating) < 0.95 * cost(start)
        step = 1e-5 * np.random.default_rng(0).normal(size=48)
        change = cost(start + step) - cost(start - step)
        np.testing.assert_allclose(found["gradient"](start) @ step, change / 2, rtol=1e-4)
    finally:
        jax.config.update("jax_enable_x64", False)
