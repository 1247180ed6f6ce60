"""
What would have to change: a counterfactual of a credit model
=============================================================

A model rejects an application. ``counterfactual`` finds the nearest application that it
accepts: age cannot change, the number of cards is an integer, and all values stay in the range
of past applications. **The distance of a feature counts in its standard deviations.**
"""

# %%
# A fitted model
# --------------
#
# The applications are drawn from a formula; none of a real person is among them.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

names = ["income", "debt", "age", "years employed", "cards"]
rng = np.random.default_rng(0)
income = rng.lognormal(10.4, 0.4, 800)
age = rng.uniform(20, 70, 800)
X = np.column_stack(
    [
        income,
        income * rng.uniform(0, 1.2, 800),
        age,
        np.minimum(rng.exponential(6, 800), age - 18),
        rng.poisson(3, 800),
    ]
)
score = income / 2e4 - 2.5 * X[:, 1] / income + X[:, 3] / 8 - 0.2 * X[:, 4]
y = np.where(score + rng.normal(scale=0.3, size=800) > 0.3, "accept", "reject")
network = MLPClassifier((16,), alpha=0.1, solver="lbfgs", max_iter=3000, random_state=0)
model = make_pipeline(StandardScaler(), network).fit(X, y)

# %%
# The nearest accepted application
# --------------------------------

from ortlearn.inspection import counterfactual

rejected = X[model.predict(X) == "reject"][[3, 8, 21]]
bounds = np.column_stack([X.min(axis=0), X.max(axis=0)])
options = {"bounds": bounds, "integer": [4], "weights": 1 / X.var(axis=0), "random_state": 0}
result = counterfactual(model, rejected, "accept", immutable=[2], **options)
for before, after in zip(rejected, result.samples, strict=True):
    changes = [
        f"{name} {old:,.0f} -> {new:,.0f}"
        for name, old, new in zip(names, before, after, strict=True)
        if abs(new - old) > 0.5
    ]
    print("; ".join(changes))
print(model.predict(result.samples))

# %%
# What was tried is part of the result, as a nearer application may exist:

print(result.tried[0])

# %%
# If only the cards may change, none is found, and the result says so:

impossible = counterfactual(model, rejected[:1], "accept", immutable=[0, 1, 2, 3], **options)
print(impossible.found, impossible.tried[0])

# %%
# Changes in standard deviations
# ------------------------------

change = (result.samples - rejected) / X.std(axis=0)
figure, axes = plt.subplots(layout="constrained")
positions = np.arange(len(names))
for number, row in enumerate(change):
    axes.barh(
        positions + 0.25 * (number - 1), row, height=0.22, label=f"application {number + 1}"
    )
axes.set(yticks=positions, yticklabels=names, xlabel="change in standard deviations")
axes.set_title("Nearest accepted applications")
axes.axvline(0, color="black", linewidth=0.8)
axes.legend()
plt.show()
# sphinx_gallery_thumbnail_number = -1
