"""
SGD on a simple function
========================

All steps from a graph to its trained weights, on a small function:

    z = -1 - 2 x + 3 y + x² / 2 - y² / 3

The graph is written by hand. This example shows its gradient and the loss that is added to it,
trains it step by step, and then with both estimators, **which approximate the five coefficients
of the function by SGD, and find them with momentum.**
"""

# %%
# The data
# --------
#
# A thousand points of the plane, and the values of the function there, with a little noise.

import matplotlib.pyplot as plt
import numpy as np

rng = np.random.RandomState(0)
X = rng.uniform(-2, 2, size=(1000, 2)).astype(np.float32)
x, y = X.T
z = -1 - 2 * x + 3 * y + x**2 / 2 - y**2 / 3 + 0.1 * rng.randn(1000)
z = z.reshape(-1, 1).astype(np.float32)

ax = plt.figure(figsize=(6, 4.5)).add_subplot(projection="3d")
ax.scatter(x, y, z[:, 0], c=z[:, 0], s=4)
_ = ax.set(xlabel="x", ylabel="y", title="Values of the function over x and y, with noise")

# %%
# A graph written by hand
# -----------------------
#
# onnx can parse a textual form of a graph. The graph takes samples of x and y, appends their
# squares, and computes a weighted sum of the four columns. Its weights ``coef`` and
# ``intercept`` are zero, and will be trained.

import onnx.parser

from ortlearn.inspection import plot_graph

model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["": 18]>
quadratic (float[N, 2] X) => (float[N, 1] z)
<float[4, 1] coef = {0, 0, 0, 0}, float[1] intercept = {0}>
{
    squares = Mul(X, X)
    columns = Concat<axis = 1>(X, squares)
    weighted = MatMul(columns, coef)
    z = Add(weighted, intercept)
}""")
_ = plot_graph(model).set_title("The graph: x, y and their squares, weighted")

# %%
# The gradient is a graph
# -----------------------
#
# ``onnx_derivative`` returns another ONNX graph. Its inputs include the weights and ``z_grad``,
# the gradient with respect to ``z``. Its outputs are the gradients with respect to the samples
# and both weights. It contains standard operators only, so any onnxruntime runs it.
# ``intercept`` is an unused input: it is only added, so no gradient depends on its value.

from ortlearn.differentiation import onnx_derivative

_ = plot_graph(onnx_derivative(model, ["coef", "intercept"])).set_title(
    "Its gradient: from z_grad to both weights"
)

# %%
# Add a loss
# ----------
#
# Training minimises a scalar. ``add_loss_output`` adds it: a second input, ``label``, and a
# second output, ``loss``, here the sum of squared errors of all samples.

from ortlearn.losses import add_loss_output

with_loss = add_loss_output(model, "squared_error")
_ = plot_graph(with_loss).set_title("The graph with the sum of squared errors at its end")

# %%
# The gradient of the loss starts from the loss, so ``z_grad`` is no input any more.

from ortlearn.differentiation import DerivativeOptions

gradient = onnx_derivative(
    with_loss, ["coef", "intercept"], options=DerivativeOptions.Loss, label="label", loss="loss"
)
_ = plot_graph(gradient).set_title(
    "The gradient of the loss, which starts from the loss itself"
)

# %%
# Gradient descent by hand
# ------------------------
#
# A step against the gradient decreases the loss. After thirty steps, each with the mean
# gradient of all samples, the weights are close to the coefficients of the function, -2, 3,
# 1/2, -1/3 and -1.

import onnxruntime

session = onnxruntime.InferenceSession(
    gradient.SerializeToString(), providers=["CPUExecutionProvider"]
)
names = [value.name for value in session.get_outputs()]
weights = {"coef": np.zeros((4, 1), np.float32), "intercept": np.zeros(1, np.float32)}
for step in range(30):
    found = dict(zip(names, session.run(None, {"X": X, "label": z, **weights}), strict=True))
    for name in weights:
        weights[name] -= 0.1 * found[f"{name}_grad"] / len(X)
    if step % 5 == 0:
        print(f"step {step:2}: mean loss {found['loss'].item() / len(X):.3f}")
print(*weights["coef"].ravel().round(2), *weights["intercept"].round(2))

# %%
# Two estimators
# --------------
#
# The estimators do the same with batches of shuffled samples, and much faster.
# ``OrtGradientOptimizer`` writes gradient and update of every batch into one graph and runs a
# whole epoch with one call. ``OrtGradientForwardBackwardOptimizer`` computes the loss and its
# gradient between a forward and a backward call, which permits inspection of each batch. Both
# visit the same samples in the same order, so they find the same weights.

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateSGD, LearningRateSGDNesterov

sgd = {
    "warm_start": True,
    "learning_rate": LearningRateSGD(0.005),
    "max_iter": 25,
    "random_state": 0,
}
trainers = {
    "one graph": OrtGradientOptimizer(model, **sgd).fit(X, z),
    "forward and backward": OrtGradientForwardBackwardOptimizer(model, **sgd).fit(X, z),
}

# %%
# Nesterov's momentum
# -------------------
#
# Plain SGD only uses the current gradient. With momentum, a step also continues in the
# direction of the previous steps, and Nesterov's variant evaluates where that leads. At the
# same rate it converges several times as fast.

nesterov = {**sgd, "learning_rate": LearningRateSGDNesterov(0.005)}
trainers["one graph, Nesterov"] = OrtGradientOptimizer(model, **nesterov).fit(X, z)

expected = [-2, 3, 1 / 2, -1 / 3, -1]
print(f"{'':>22}      x      y     x²     y²      1")
print(f"{'the function':>22}", *(f"{value:6.2f}" for value in expected))
for name, trainer in trainers.items():
    found = np.concatenate(
        [trainer.trained_coef_["coef"].ravel(), trainer.trained_coef_["intercept"]]
    )
    print(f"{name:>22}", *(f"{value:6.2f}" for value in found))

# %%
# Training losses
# ---------------
#
# The curves of the two estimators are identical. With momentum the loss decreases to that of
# the noise in a few epochs; without it, the loss is still decreasing.

from ortlearn.inspection import TrainingCurveDisplay

_, ax = plt.subplots(figsize=(7, 4.5))
styles = ["-", ":", "-"]
for (name, trainer), style in zip(trainers.items(), styles, strict=True):
    TrainingCurveDisplay.from_estimator(
        trainer, ax, name=name, log_scale=True, linewidth=3, linestyle=style
    )
ax.set_title("SGD, by two estimators, and Nesterov's momentum")
plt.show()
# sphinx_gallery_thumbnail_number = -1
