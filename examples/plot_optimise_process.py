"""
Optimise a process over a fitted model
======================================

A model of a process was fitted on past batches: yield and purity as functions of temperature,
pressure, time and catalyst. Which settings give the highest yield at a purity of at least 95 %?
``differentiable`` makes the fitted pipelines functions with gradients, and SciPy searches the
settings with them: **constraints are other fitted models.**
"""

# %%
# Two fitted pipelines
# --------------------
#
# The samples are drawn from formulas that the models do not know.

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import NonlinearConstraint, minimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

names = ["temperature", "pressure", "time", "catalyst"]
low, high = np.array([60.0, 1.0, 10.0, 0.1]), np.array([120.0, 5.0, 60.0, 2.0])
rng = np.random.default_rng(0)
X = rng.uniform(low, high, size=(150, 4))
T, p, t, c = ((X - low) / (high - low)).T
harvest = 40 + 60 * np.exp(-3 * (T - 0.7) ** 2) * (1 - np.exp(-3 * t)) + 8 * c * p
purity = 99 - 6 * T**2 - 3 * c * t - 2 * (p - 0.4) ** 2
harvest += rng.normal(scale=0.5, size=150)
purity += rng.normal(scale=0.1, size=150)

kernel = RBF(2.0) + WhiteKernel(0.01)
of_yield = make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True))
of_purity = make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge(alpha=0.1))
of_yield.fit(X, harvest)
of_purity.fit(X, purity)

# %%
# Objective and constraint
# ------------------------
#
# ``to_scipy`` is a function of one vector that returns value and gradient; ``sign=-1``
# maximises.

from ortlearn.functions import differentiable, to_scipy

objective = to_scipy(differentiable(of_yield), sign=-1)
pure = to_scipy(differentiable(of_purity))
start = X.mean(axis=0)
steps = []
found = minimize(
    objective,
    start,
    jac=True,
    method="SLSQP",
    bounds=list(zip(low, high, strict=True)),
    constraints=NonlinearConstraint(pure.value, 95.0, np.inf, jac=pure.gradient),
    callback=lambda x: steps.append(x.copy()),
)
for name, value in zip(names, found.x, strict=True):
    print(f"{name:12} {value:7.2f}")
print(f"yield {-found.fun:.1f}, purity {pure.value(found.x):.2f}, {found.nfev} evaluations")

# %%
# The same search with differences of the pipelines needs more predictions:

plain = minimize(
    lambda x: -of_yield.predict([x])[0],
    start,
    method="SLSQP",
    bounds=list(zip(low, high, strict=True)),
    constraints=NonlinearConstraint(lambda x: of_purity.predict([x])[0], 95.0, np.inf),
)
print(f"without gradients: yield {-plain.fun:.1f}, {plain.nfev} evaluations of the yield alone")

# %%
# The path of the optimiser
# -------------------------

path = np.array([start, *steps])
figure, axes = plt.subplots(layout="constrained")
axes.plot([-objective.value(x) for x in path], marker="o", label="yield")
axes.set(xlabel="iteration", ylabel="yield", title="Yield at a purity of at least 95 %")
right = axes.twinx()
right.plot([pure.value(x) for x in path], color="tab:orange", marker="s", label="purity")
right.axhline(95, color="tab:orange", linestyle=":")
right.set_ylabel("purity")
figure.legend(loc="outside lower center", ncols=2)
plt.show()
# sphinx_gallery_thumbnail_number = -1
