"""Samples and labels of several kinds."""

import numpy as np

RNG = np.random.RandomState(0)
X = RNG.normal(size=(80, 4)) + 0.3
Y = X @ [1.0, -2.0, 0.5, 0.0] + RNG.normal(size=80) + 1.0
TWO, THREE = (Y > 0).astype(int), np.digitize(Y, [-1, 1])
SEVERAL = np.column_stack([Y, X[:, 0] - Y / 2 + RNG.normal(size=80)])
LABELS = np.column_stack([TWO, SEVERAL[:, 1] > 0]).astype(int)
AMOUNTS = np.exp(Y / 3)
WEIGHTS = RNG.uniform(0.2, 3.0, size=80)
