"""
Fine-tune an ONNX file from another source
==========================================

A network is available as an ONNX file, without the program and the data it was trained on. It
has other classes than yours, and you have fifteen labelled samples. This example gives it **a
new head for three new classes**, and compares three ways to train it: the head alone,
low-rank adapters in the preceding layers, and all weights.
"""

# %%
# The file
# --------
#
# A manufacturer of pumps ships a network that reads 64 sensors and recognises 30 states of a
# machine. Here its data is simulated: four variables of the machine determine the state, and
# every sensor measures a mixture of them. skl2onnx writes the network to a file.

import matplotlib.pyplot as plt
import numpy as np
from skl2onnx import to_onnx
from sklearn.neural_network import MLPClassifier

rng = np.random.default_rng(0)
waves, mixture = rng.normal(size=(4, 12)), rng.normal(size=(12, 64)) / 3
centres = rng.normal(scale=1.2, size=(33, 4))


def recordings(states, n_recordings, seed):
    """Return sensor values of some states, and the state of each recording."""
    draw = np.random.default_rng(seed)
    y = draw.integers(len(states), size=n_recordings)
    machine = centres[np.asarray(states)[y]] + draw.normal(scale=0.25, size=(n_recordings, 4))
    sensors = np.sin(machine @ waves) @ mixture
    return (sensors + draw.normal(scale=0.8, size=sensors.shape)).astype(np.float32), y


X_maker, y_maker = recordings(range(30), 6000, seed=1)
network = MLPClassifier((64, 16), max_iter=60, early_stopping=True, random_state=0)
network.fit(X_maker, y_maker)
file = to_onnx(network, X_maker[:1], options={"zipmap": False})

# %%
# Its contents
# ------------
#
# :func:`~ortlearn.conversion.explain` shows the layers of a file, their shapes, and which
# weights would be trained. The file can be cut at the outputs of its nodes:
# ``next_activations1`` is the input of the last layer, sixteen features that separate the 30
# states.

from ortlearn.trainable.explanation import explain

print(explain(file))
print([node.output[0] for node in file.graph.node])

# %%
# A new head
# ----------
#
# Your machines have three states that the network was not trained on.
# :func:`~ortlearn.onnx_files.replace_head` cuts the file and adds a linear layer with three
# outputs. By default only this layer is trained.

from ortlearn.onnx_files import LoRA, replace_head

states = ["idle", "worn", "blocked"]
new = replace_head(file, at="next_activations1", classes=states)
print(explain(new))

# %%
# Three ways to train
# -------------------
#
# Training the head alone uses the existing features. With ``lora=LoRA(rank=2)``, each preceding
# layer gets an adapter: its weight W is frozen, and ``A B`` is added to it, with two columns in
# A and two rows in B. ``weights_to_train="*"`` trains all weights, starting from those of the
# file.
#
# As results on a small number of samples vary, each variant is trained on twelve draws of
# fifteen samples.

from ortlearn import OrtGradientOptimizer

ways = {
    "the head": {},
    "head and adapters": {"lora": LoRA(rank=2)},
    "all weights": {"weights_to_train": "*", "warm_start": True},
}
X_test, test = recordings([30, 31, 32], 1000, seed=2)
y_test = np.array(states)[test]
options = {"learning_rate": "LBFGS", "max_iter": 50, "keep_better": False, "random_state": 0}
scores = {name: [] for name in ways}
numbers = {}
for seed in range(12):
    X, drawn = recordings([30, 31, 32], 15, seed=100 + seed)
    for name, parameters in ways.items():
        trainer = OrtGradientOptimizer(new, **parameters, **options)
        trainer.fit(X, np.array(states)[drawn], classes=states)
        scores[name].append(trainer.score(X_test, y_test))
        numbers[name] = sum(array.size for array in trainer.get_weights().values())
for name, values in scores.items():
    print(f"{name}: {numbers[name]} trained numbers, accuracy {np.mean(values):.1%}")

# %%
# Export
# ------
#
# The trained file contains the adapters merged into its weights: it has the nodes and names of
# the file with the new head, and other weights. The adapters can also be saved to a small file
# in ONNX Runtime's own format, to be used with a shared base file.

import tempfile
from pathlib import Path

trainer = OrtGradientOptimizer(new, lora=LoRA(rank=2), **options)
trainer.fit(X, np.array(states)[drawn], classes=states)
merged, base = trainer.get_trained_onnx(), trainer.get_trained_onnx(merged=False)
print([node.op_type for node in merged.graph.node])
print([value.name for value in base.graph.input])
with tempfile.TemporaryDirectory() as folder:
    path = trainer.save_adapter(Path(folder) / "pumps.onnx_adapter")
    print(f"{path.stat().st_size} bytes for adapters, {merged.ByteSize()} for the merged file")

# %%
# Accuracy
# --------
#
# Adapters are nearly as accurate as training all weights, with a tenth of the trained weights.
# Training the head alone is less accurate: features that separate the 30 states are not
# sufficient for the three new ones.

_, ax = plt.subplots(figsize=(7, 3))
for place, values in enumerate(scores.values()):
    ax.plot(values, [place] * len(values), "o", alpha=0.5)
    ax.plot(np.mean(values), place, "k|", markersize=20)
ax.set_ylim(2.5, -0.5)
ax.set_yticks(range(3), [f"{name}\n{numbers[name]} numbers" for name in scores])
ax.set(xlabel="accuracy", title="1,000 test recordings, twelve trainings each")
plt.tight_layout()
plt.show()
# sphinx_gallery_thumbnail_number = -1
