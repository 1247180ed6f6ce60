"""
Fine-tune a network from elsewhere
==================================

A network comes as an ONNX file, without the program and the data that it was made with. It
knows other classes than yours, and you have fifteen labelled recordings. This example gives it
**a new head for three classes of your own**, and compares three ways to train it: the head
alone, low-rank adapters in the layers before it, and all weights.
"""

# %%
# A file from elsewhere
# ---------------------
#
# A maker of pumps ships a network that reads 64 sensors and recognises 30 states of a machine.
# Here its recordings are drawn: four quantities of the machine decide the state, and every
# sensor shows a mixture of them. skl2onnx writes the network into a file.

import matplotlib.pyplot as plt
import numpy as np
from skl2onnx import to_onnx
from sklearn.neural_network import MLPClassifier

rng = np.random.default_rng(0)
waves, mixture = rng.normal(size=(4, 12)), rng.normal(size=(12, 64)) / 3
centres = rng.normal(scale=1.2, size=(33, 4))


def recordings(states, n_recordings, seed):
    """Return sensors of some states, and which of them each recording is."""
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
# What is in it
# -------------
#
# :func:`~ortlearn.conversion.explain` shows the layers of a file, their shapes, and what would
# be trained. It can be cut at the outputs of its nodes: ``next_activations1`` is what the last
# layer reads, sixteen numbers that tell the maker's states apart.

from ortlearn.conversion import explain

print(explain(file))
print([node.output[0] for node in file.graph.node])

# %%
# A new head
# ----------
#
# Your machines have three states that the network was never shown.
# :func:`~ortlearn.onnx_files.replace_head` cuts the file there and adds a linear layer with
# three outputs. Only this layer is trained by default.

from ortlearn.onnx_files import LoRA, replace_head

states = ["idle", "worn", "blocked"]
new = replace_head(file, at="next_activations1", classes=states)
print(explain(new))

# %%
# Three ways to train it
# ----------------------
#
# The head alone takes the maker's features as they are. With ``lora=LoRA(rank=2)``, each layer
# before gets an adapter: its weight W stays, and ``A B`` is added to it, with two columns in A
# and two rows in B. ``weights_to_train="*"`` trains all weights from the maker's values.
#
# Few recordings say little about a method, so that each one is trained on twelve draws of
# fifteen.

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
    print(f"{name}: {numbers[name]} numbers trained, {np.mean(values):.1%} right")

# %%
# What is given back
# ------------------
#
# The trained file has the adapters merged into its weights: the nodes and names of the one with
# the new head, and other numbers. Apart from that, the adapters can be kept in a small file of
# ONNX Runtime's own, for a base file that many of them share.

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
# How good they are
# -----------------
#
# Adapters come close to what all weights reach, with a tenth of the numbers. The head alone
# does not: what tells the maker's states apart is not all that tells these three.

_, ax = plt.subplots(figsize=(7, 3))
for place, values in enumerate(scores.values()):
    ax.plot(values, [place] * len(values), "o", alpha=0.5)
    ax.plot(np.mean(values), place, "k|", markersize=20)
ax.set_ylim(2.5, -0.5)
ax.set_yticks(range(3), [f"{name}\n{numbers[name]} numbers" for name in scores])
ax.set(xlabel="share that is recognised", title="1,000 test recordings, twelve trainings each")
plt.tight_layout()
plt.show()
# sphinx_gallery_thumbnail_number = -1
