"""
Tune rates and penalties by grid search
=======================================

Learning rates and penalties are objects with parameters that scikit-learn's ``GridSearchCV``
can tune: ``learning_rate__eta0`` is the initial rate of the learning rate. This example tunes
a rate and a penalty together, **because the best value of one depends on the other.**
"""

# %%
# The model
# ---------
#
# A logistic regression on thirty measurements of cells separates benign from malignant ones. It
# is trained by SGD; the scaler before it is fitted once and frozen.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateSGD
from ortlearn.penalties import L2Penalty

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
trainer = OrtGradientOptimizer(
    make_pipeline(StandardScaler(), LogisticRegression()),
    learning_rate=LearningRateSGD(),
    learning_penalty=L2Penalty(),
    max_iter=20,
    random_state=0,
)
trainer

# %%
# The search
# ----------
#
# Only objects have parameters: ``learning_rate="SGD"`` is a name without parameters, and
# searching them raises an error. ``get_params`` lists the parameters that can be searched.

print(
    [
        name
        for name in trainer.get_params()
        if name.startswith(("learning_rate__", "learning_penalty__"))
    ]
)

grid = {
    "learning_rate__eta0": [0.001, 0.01, 0.1, 1.0],
    "learning_penalty__l2": [0.0, 0.0001, 0.001, 0.01, 0.1],
}
search = GridSearchCV(trainer, grid, cv=3, scoring="neg_log_loss").fit(X_train, y_train)
print(search.best_params_)

# %%
# Interaction of both parameters
# ------------------------------
#
# Each square is the log loss on held-out samples, the mean of three folds; dark is better. With
# a small rate, twenty epochs are not enough for any penalty. With a rate of 0.1 no penalty is
# needed; with a rate of 1, which overfits, a small one helps.

losses = -search.cv_results_["mean_test_score"].reshape(
    5, 4
)  # sorted by the names of the parameters
_, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
ax.imshow(np.log(losses), cmap="viridis", aspect="auto")
for (row, column), loss in np.ndenumerate(losses):
    style = {
        "color": "black" if loss > 0.4 else "white",
        "weight": "bold" if loss == losses.min() else None,
    }
    ax.text(column, row, f"{loss:.3f}", ha="center", va="center", **style)
ax.set_xticks(range(4), grid["learning_rate__eta0"])
ax.set_yticks(range(5), grid["learning_penalty__l2"])
_ = ax.set(
    xlabel="learning_rate__eta0",
    ylabel="learning_penalty__l2",
    title="Log loss in cross-validation, by rate and penalty",
)

# %%
# The best estimator
# ------------------
#
# The search has trained the best estimator again, on all training samples. Its rate decreases
# from epoch to epoch, by the schedule of SGD.

from ortlearn.inspection import TrainingCurveDisplay

best = search.best_estimator_
print(f"{best.score(X_test, y_test):.1%} accuracy on {len(X_test)} test samples")
display = TrainingCurveDisplay.from_estimator(best, show_rate=True)
display.ax_.set_title("Training loss and rate of the best estimator")
plt.show()
# sphinx_gallery_thumbnail_number = -1
