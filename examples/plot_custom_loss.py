"""
Write a custom loss
===================

A baker decides in the evening how many loaves to bake. A loaf too many costs its flour, a
loaf too few costs a customer, four times as much, and errors of one or two hardly matter. No
built-in loss expresses this. This example writes one in ten lines and registers it as a
plugin: **you write the value of the loss, and its gradient is derived.**
"""

# %%
# The loss
# --------
#
# A loss is a class with a method ``forward``. It does not compute numbers but writes ONNX
# operators: ``op.Sub(predicted, expected)`` adds a node to the graph and returns the name of
# its result. The arguments of the constructor are parameters that a grid search can tune.

from ortlearn.losses import BaseLoss


class OrderLoss(BaseLoss):
    """With r = f - y: ``r ** 2 / (slack + |r|)``, times ``shortage`` where r < 0."""

    def __init__(self, shortage=4.0, slack=3.0):
        self.shortage = shortage
        self.slack = slack

    def forward(self, op, expected, predicted):
        error = op.Sub(predicted, expected)
        cost = op.Div(op.Mul(error, error), op.Add(op.Abs(error), self.slack))
        too_few = op.Less(error, 0.0)
        return self.sum_outputs(op, op.Where(too_few, op.Mul(cost, self.shortage), cost))


# %%
# ``check_loss`` verifies what every loss has to fulfil: one number per sample, in every type,
# and a gradient that agrees with finite differences.

from ortlearn.testing import check_loss

check_loss(OrderLoss())

# %%
# Value and gradient
# ------------------
#
# A graph that returns its input, with the loss at its end, shows loss and gradient as functions
# of the error. The gradient is derived by differentiation.

import matplotlib.pyplot as plt
import numpy as np
import onnx.parser
import onnxruntime

from ortlearn.differentiation import DerivativeOptions, onnx_derivative
from ortlearn.losses import add_loss_output

same = onnx.parser.parse_model(
    '<ir_version: 8, opset_import: ["": 18]>'
    "same (float[N, 1] X) => (float[N, 1] f) { f = Identity(X) }"
)
graph = onnx_derivative(
    add_loss_output(same, OrderLoss()),
    [],
    options=DerivativeOptions.Loss,
    label="label",
    loss="loss",
)
session = onnxruntime.InferenceSession(
    graph.SerializeToString(), providers=["CPUExecutionProvider"]
)
errors = np.linspace(-15, 15, 151, dtype=np.float32)
zero = np.zeros((1, 1), np.float32)
losses, slopes = zip(
    *(session.run(None, {"X": [[error]], "label": zero}) for error in errors), strict=True
)

_, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.plot(errors, np.ravel(losses), label="loss")
ax.plot(errors, np.ravel(slopes), "--", label="gradient")
ax.axhline(0, color="0.7", linewidth=0.8, zorder=0)
ax.set(xlabel="loaves too many", title="OrderLoss and its gradient, by loaves too many")
_ = ax.legend()

# %%
# Register the loss
# -----------------
#
# A registered name works wherever ortlearn accepts the name of a loss. In a package, one line
# of ``setup.cfg`` registers it for all users; the tutorial on losses shows how.

from ortlearn import OrtGradientOptimizer, plugins

plugins.register(plugins.LOSSES, "order", OrderLoss)

# %%
# Train with it
# -------------
#
# Three years of a bakery: on warm days more loaves are sold, and demand is harder to predict.
# The model is a straight line, trained once with the squared error and once with the custom
# loss.

from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

rng = np.random.RandomState(0)
temperature = rng.uniform(0, 32, size=(1000, 1))
demand = 60 + 2 * temperature[:, 0] + rng.randn(1000) * (4 + 0.5 * temperature[:, 0])
trainers = {
    loss: OrtGradientOptimizer(
        make_pipeline(StandardScaler(), LinearRegression()),
        learning_loss=loss,
        learning_rate=0.1,
        max_iter=30,
        random_state=0,
    ).fit(temperature, demand)
    for loss in ("squared_error", "order")
}


def cost_of(bread):
    """Return the mean cost of a day: one for a loaf too many, four for a loaf too few."""
    return np.mean(np.where(bread < demand, 4 * (demand - bread), bread - demand))


for loss, trainer in trainers.items():
    bread = trainer.predict(temperature)
    print(f"{loss:>14}: enough in {(bread >= demand).mean():.0%}, costs {cost_of(bread):.1f}")

# %%
# With the squared error, the mean demand is baked, which is too little on every other day. The
# custom loss bakes more, in particular on warm days, when demand is uncertain: the two lines
# are not parallel.

_, ax = plt.subplots(figsize=(7, 4.5))
ax.scatter(temperature, demand, s=5, color="0.7", label="days")
warm = np.array([[0.0], [32.0]])
for loss, trainer in trainers.items():
    ax.plot(warm, trainer.predict(warm), linewidth=2, label=loss)
ax.set(
    xlabel="temperature, °C",
    ylabel="loaves",
    title="Loaves to bake by temperature, for each loss",
)
ax.legend()
plt.show()
# sphinx_gallery_thumbnail_number = -1
