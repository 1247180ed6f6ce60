"""
A loss of one's own
===================

A baker decides in the evening how many loaves to bake. A loaf too many costs its flour, a
loaf too few costs a customer, four times as much, and being wrong by one or two hardly
matters. No ready-made loss says that. This example writes one in ten lines and gives it a
name, as a plugin: **only its value is written, the gradient comes by itself.**
"""

# %%
# The loss
# --------
#
# A loss is a class with a method ``forward``. It computes no numbers, it writes operators of
# ONNX: ``op.Sub(predicted, expected)`` adds a node to the graph and returns the name of its
# result. What the constructor takes are parameters, which a grid search can reach.

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
# ``check_loss`` tests what every loss must fulfil: one number for each row, in every type,
# and a gradient that agrees with finite differences.

from ortlearn.testing import check_loss

check_loss(OrderLoss())

# %%
# What it looks like
# ------------------
#
# A graph that returns what it gets, with the loss at its end, shows loss and gradient over
# the error. The gradient was found by differentiation.

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
# A name for it
# -------------
#
# Registered under a name, it works wherever ortlearn takes one. In a package of one's own, a
# line of ``setup.cfg`` does that for everybody who installs it; a tutorial shows how.

from ortlearn import OrtGradientOptimizer, plugins

plugins.register(plugins.LOSSES, "order", OrderLoss)

# %%
# Train with it
# -------------
#
# Three years of a bakery: the warmer the day, the more loaves are sold, and the harder it is
# to tell how many. The model is a straight line, trained once by the squared error and once
# by our own loss.

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
    """Return what a day's mistake costs on average: one for a loaf too many, four too few."""
    return np.mean(np.where(bread < demand, 4 * (demand - bread), bread - demand))


for loss, trainer in trainers.items():
    bread = trainer.predict(temperature)
    print(f"{loss:>14}: enough in {(bread >= demand).mean():.0%}, costs {cost_of(bread):.1f}")

# %%
# The squared error bakes what is sold on average, which is too little every other day. Our
# loss bakes more, and more so on warm days, when demand is hard to tell: the two lines are
# not parallel.

_, ax = plt.subplots(figsize=(7, 4.5))
ax.scatter(temperature, demand, s=5, color="0.7", label="days")
warm = np.array([[0.0], [32.0]])
for loss, trainer in trainers.items():
    ax.plot(warm, trainer.predict(warm), linewidth=2, label=loss)
ax.set(
    xlabel="temperature, °C",
    ylabel="loaves",
    title="How much to bake by temperature, by each loss",
)
ax.legend()
plt.show()
# sphinx_gallery_thumbnail_number = -1
