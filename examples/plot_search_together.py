"""
Search over learning rates in one graph
=======================================

A search trains many small copies of one model. ``OrtGridSearchCV`` is scikit-learn's
``GridSearchCV`` with all copies in one ONNX graph: **each batch is one step for all
candidates.** Parameters, attributes and scores are the same.
"""

# %%
# A grid
# ------
#
# Six rates and four penalties of a logistic regression, trained by SGD in batches of 32.

import time

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateSGD
from ortlearn.penalties import L2Penalty
from ortlearn.search import OrtGridSearchCV

X, y = load_breast_cancer(return_X_y=True)
trainer = OrtGradientOptimizer(
    make_pipeline(StandardScaler(), LogisticRegression()),
    learning_rate=LearningRateSGD(),
    learning_penalty=L2Penalty(),
    batch_size=32,
    max_iter=20,
    random_state=0,
)
grid = {
    "learning_rate__eta0": np.geomspace(0.001, 1.0, 6).tolist(),
    "learning_penalty__l2": [0.0001, 0.001, 0.01, 0.1],
}

# %%
# Both searches
# -------------
#
# They return the same scores: a candidate only depends on its own rate, penalty and seed.

searches = {}
for search_class in (GridSearchCV, OrtGridSearchCV):
    begun = time.perf_counter()
    searches[search_class] = search_class(trainer, grid, cv=3, scoring="neg_log_loss").fit(X, y)
    print(f"{search_class.__name__}: {time.perf_counter() - begun:.1f} seconds")

alone, together = (search.cv_results_["mean_test_score"] for search in searches.values())
print(f"largest difference of a score: {np.abs(alone - together).max():.1e}")
best = searches[OrtGridSearchCV]
print(best.best_params_)

# %%
# Candidates that are trained together
# ------------------------------------
#
# Candidates are trained together if their graphs differ only in constants: rates, momenta and
# strengths of penalties. Each update and each kind of penalty has its own graph, and each seed
# its own order of samples. Candidates that stop early leave the graph. Others, for example with
# the solver ``"LBFGS"``, are trained individually, as in ``GridSearchCV``, in the same search.

# sphinx_gallery_thumbnail_number = -1
import matplotlib.pyplot as plt

losses = -best.cv_results_["mean_test_score"].reshape(4, 6)
_, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
for strength, line in zip(grid["learning_penalty__l2"], losses, strict=True):
    ax.plot(grid["learning_rate__eta0"], line, "o-", label=f"{strength:g}")
ax.legend(title="learning_penalty__l2")
_ = ax.set(xscale="log", yscale="log", xlabel="learning_rate__eta0", ylabel="log loss")
_ = ax.set_title("24 candidates of one graph, mean of three folds")
plt.show()
