"""Samples of numbers and of people; trainings that do not depend on the defaults."""

import numpy as np
import pandas as pd
import pytest

from tests.plain_training import plain_training  # noqa: F401
from tests.preprocessing.pipeline_steps import CITIES, N_ROWS


@pytest.fixture(scope="module")
def numbers():
    X = np.random.RandomState(0).normal(size=(N_ROWS, 3))
    return X, X[:, 0] + X[:, 1] ** 2


@pytest.fixture(scope="module")
def people():
    random = np.random.RandomState(0)
    words = ["the", "quick", "Brown", "fox", "jumps", "don't", "x-ray", "a", "Été", "99", "o_o"]
    X = pd.DataFrame(
        {
            "city": random.choice(CITIES, N_ROWS),
            "kind": pd.Categorical(random.choice(["a", "b"], N_ROWS)),
            "age": random.randint(18, 80, N_ROWS),
            "fare": random.uniform(0, 30, N_ROWS),
            "note": [" ".join(random.choice(words, 5)) for _ in range(N_ROWS)],
        }
    )
    return X, (X["city"] == "Oslo") + X["age"] / 30 + X["note"].str.contains("fox")
