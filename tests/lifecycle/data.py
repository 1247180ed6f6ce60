"""Generated months of a model's life."""

import numpy as np
import pandas as pd


def month(seed, n_samples=240, shift=0.0, sign=1.0, noise=0.2):
    """Return features with two numbers and a category, and labels; ``sign=-1`` is another concept."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.normal(size=n_samples) + shift,
            "income": rng.normal(size=n_samples),
            "town": rng.choice(["north", "south"], n_samples),
        }
    )
    score = X["age"] - shift + sign * X["income"] + (X["town"] == "north") - 0.5
    return X, np.where(score + noise * rng.normal(size=n_samples) > 0, "yes", "no")


def numbers(seed, n_samples=240, slope=1.0):
    """Return arrays for regression."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 3))
    return X, X @ [slope, 2.0, 0.0] + 0.1 * rng.normal(size=n_samples)
