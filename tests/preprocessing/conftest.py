"""Samples of numbers and of people; trainings that do not depend on the defaults."""

import numpy as np
import pandas as pd
import pytest

from tests.plain_training import plain_training  # noqa: F401
from tests.preprocessing.pipeline_steps import CITIES, N_SAMPLES


@pytest.fixture(scope="module")
def numbers():
    X = np.random.RandomState(0).normal(size=(N_SAMPLES, 3))
    return X, X[:, 0] + X[:, 1] ** 2


@pytest.fixture(scope="module")
def people():
    random = np.random.RandomState(0)
    words = ["the", "quick", "Brown", "fox", "jumps", "don't", "x-ray", "a", "Été", "99", "o_o"]
    X = pd.DataFrame(
        {
            "city": random.choice(CITIES, N_SAMPLES),
            "kind": pd.Categorical(random.choice(["a", "b"], N_SAMPLES)),
            "age": random.randint(18, 80, N_SAMPLES),
            "fare": random.uniform(0, 30, N_SAMPLES),
            "note": [" ".join(random.choice(words, 5)) for _ in range(N_SAMPLES)],
        }
    )
    return X, (X["city"] == "Oslo") + X["age"] / 30 + X["note"].str.contains("fox")
