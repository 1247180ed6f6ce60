"""A data frame of several column types, and a pipeline for it."""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    StandardScaler,
)

N_SAMPLES = 160


def people():
    """Return a data frame of six columns of four types with missing values, and labels."""
    random = np.random.RandomState(0)
    words = ["late", "early", "Window", "aisle", "Été"]
    X = pd.DataFrame(
        {
            "city": random.choice(["Oslo", "Lima", "Rome"], N_SAMPLES),
            "kind": pd.Categorical(random.choice(["a", "b"], N_SAMPLES)),
            "age": random.randint(18, 80, N_SAMPLES),
            "fare": random.uniform(0, 30, N_SAMPLES),
            "note": [" ".join(random.choice(words, 3)) for _ in range(N_SAMPLES)],
            "id": np.arange(N_SAMPLES).astype(str),
        }
    )
    X.loc[::7, "fare"] = np.nan
    X.loc[::11, "city"] = np.nan
    pays = (X["city"] == "Oslo") + X["age"] / 30 + X["note"].str.contains("late") + X["fare"].fillna(15) / 10
    return X, pays.to_numpy()


def columns():
    return make_column_transformer(
        (
            make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")),
            ["city", "kind"],
        ),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "fare"]),
        (TfidfVectorizer(), "note"),
    )


def small_step(optimizer, model, **options):
    """Return an estimator whose training changes the weights of the model very little."""
    options = {"learning_rate": 1e-12, "max_iter": 1, "warm_start": True, "random_state": 0, **options}
    return optimizer(model, **options)
