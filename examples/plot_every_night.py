"""
Twelve months of a model
========================

The relation between features and labels changes every third month, and one month has wrong
labels. Each month, :func:`~ortlearn.lifecycle.adapt` retrains the model in use, and puts the
result into use if held-out samples show a gain: **the model follows the changes, and one month
of wrong labels does not replace it,** as half of the held-out samples are of the month before.
"""

from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.lifecycle import ModelFolder, adapt, promote

BAD = 8


def month(number, n_samples=400):
    """Return the samples of a month; the angle of the boundary between the classes changes."""
    rng = np.random.default_rng(number)
    X = rng.normal(size=(n_samples, 2))
    angle = 0.6 * (number // 3)
    return X, X @ [np.cos(angle), np.sin(angle)] + 0.2 * rng.normal(size=n_samples) > 0


# %%
# The adaptations
# ---------------
#
# A model is fitted on the first month; each later month is an adaptation.
first = make_pipeline(StandardScaler(), LogisticRegression()).fit(*month(0))
folder = ModelFolder(mkdtemp())
rows = []
for number in range(1, 13):
    X, y = month(number)
    labels = ~y if number == BAD else y
    before = month(number - 1)
    held_out = (
        np.concatenate([X[300:], before[0][-100:]]),
        np.concatenate([labels[300:], before[1][-100:]]),
    )
    used = folder if folder.current else first
    found = adapt(used, (X[:300], labels[:300]), candidates=["warm_start"], held_out=held_out)
    if found.outcome == "promoted":
        promote(found, folder)
    rows.append((number, found.outcome, first.score(X, y), found.estimator.score(X, y)))
    print(f"month {number:2d}: {found.outcome}")

# %%
# The result
# ----------
#
# The first model loses its accuracy, the adapted one follows a month later.

# sphinx_gallery_thumbnail_number = -1
numbers, outcomes, fixed, adapted = zip(*rows, strict=True)
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
axes.plot(numbers, fixed, color="0.6", label="first model")
axes.plot(numbers, adapted, color="C0", label="model in use after the month")
for outcome, marker in (("promoted", "^"), ("kept", "o"), ("refused", "x")):
    known = [
        (n, score)
        for n, found, score in zip(numbers, outcomes, adapted, strict=True)
        if found == outcome
    ]
    if known:
        axes.scatter(*zip(*known, strict=True), marker=marker, s=60, zorder=3, label=outcome)
axes.axvspan(BAD - 0.4, BAD + 0.4, color="C3", alpha=0.15, label="wrong labels")
axes.set(xlabel="month", ylabel="accuracy", xticks=numbers, title="A model in use for a year")
axes.legend(loc="lower left", ncols=2)
plt.show()
