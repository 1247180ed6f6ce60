"""
Train in the browser
====================

``export_training`` writes a folder with all that a training needs: graphs, weights, settings.
A browser trains from it with ONNX Runtime Web, on data that never leaves the page; so do Node,
phones, and Python without ortlearn. This example exports a network, trains it with a runner
that needs only numpy and onnxruntime, and **loads the trained weights back.**
"""

# %%
# Export
# ------
#
# The network has two classes, and is fitted on a few points to get its shapes. The state of
# Adam is part of the package, like the weights.

import importlib.util
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neural_network import MLPClassifier

import ortlearn
from ortlearn import OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateAdam
from ortlearn.saving import export_training, load_training

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(400, 2)).astype(np.float32)
inside = np.hypot(X[:, 0], X[:, 1] - 0.2 * np.sin(6 * X[:, 0])) < 0.6
y = np.where(inside, "blue", "orange")

trainer = OrtGradientOptimizer(
    MLPClassifier((16, 16), activation="tanh"),
    learning_rate=LearningRateAdam(eta0=0.01, schedule="constant"),
    batch_size=16,
    max_iter=1,
    random_state=0,
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # one epoch is not enough for scikit-learn's network
    trainer.fit(X[:32], y[:32])
folder = TemporaryDirectory()
export_training(trainer, folder.name)
print(sorted(path.name for path in Path(folder.name).iterdir()))

# %%
# Train without ortlearn
# ----------------------
#
# The runners for browsers and Node have the same functions as this one. In a page the same
# steps are ``const trainer = await load("package")`` and
# ``await trainer.fit(X, y, {epochs: 60})``. The how-to guide on training in the browser has
# such a page.

source = Path(ortlearn.__file__).parents[1] / "runtimes" / "python_bare" / "ortlearn_trainer.py"
spec = importlib.util.spec_from_file_location("ortlearn_trainer", source)
runner = importlib.util.module_from_spec(spec)
spec.loader.exec_module(runner)

device = runner.Trainer(folder.name)
losses = []
device.fit(X, y, epochs=60, on_epoch=losses.append)
device.save()
print(f"loss {losses[0]:.2f} -> {losses[-1]:.2f}")

# %%
# Load the result
# ---------------
#
# ``load_training`` returns the estimator with the new weights and states. It predicts what the
# device predicts, and can be trained further.

later = load_training(folder.name)
folder.cleanup()
print(f"accuracy {later.score(X, y):.2f}")

grid = np.stack(np.meshgrid(*2 * [np.linspace(-1, 1, 150)]), axis=-1).astype(np.float32)
_, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained", sharey=True)
for ax, (title, model) in zip(
    axes, {"exported": trainer, "trained": later}.items(), strict=True
):
    blue = model.predict_proba(grid.reshape(-1, 2))[:, 0].reshape(150, 150)
    ax.contourf(grid[..., 0], grid[..., 1], blue, levels=20, cmap="PuOr", vmin=-0.5, vmax=1.5)
    for name, colour in {"blue": "tab:blue", "orange": "tab:orange"}.items():
        ax.scatter(*X[y == name].T, s=8, color=colour)
    ax.set(title=f"The network, {title}", aspect="equal")
plt.show()
# sphinx_gallery_thumbnail_number = -1
