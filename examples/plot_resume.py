"""
Resume a training that was killed
=================================

Long trainings are interrupted: by a restart, a time limit, or a lack of memory. With
``ModelCheckpoint`` the training writes its state to a folder. This example kills the process of
a training and resumes it in another one: **the result is bit-identical to that of a training
without interruption.**
"""

# %%
# The training
# ------------
#
# The same program runs twice, as the content of a file would. The first time it is killed.

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

program = """
import sys
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier
from ortlearn import OrtGradientOptimizer
from ortlearn.callbacks import ModelCheckpoint

X, y = load_digits(return_X_y=True)
trainer = OrtGradientOptimizer(
    MLPClassifier((32,), max_iter=1), learning_rate="Adam", batch_size=32, max_iter=60,
    random_state=0,
)
trainer.set_callbacks(ModelCheckpoint(sys.argv[1], every=10, resume=True))
trainer.fit(X / 16, y)
"""
folder = TemporaryDirectory()
command = [sys.executable, "-W", "ignore", "-c", program, folder.name]

# %%
# ``kill`` ends the process at once, without a chance to write anything.

process = subprocess.Popen(command)
while process.poll() is None and not list(Path(folder.name).glob("epoch-000020.zip")):
    time.sleep(0.01)
process.kill()
process.wait()
files = sorted(path.name for path in Path(folder.name).glob("epoch-*.zip"))
print("checkpoints of the killed process:", files)

# %%
# Start it again
# --------------
#
# ``resume=True`` finds the last complete checkpoint. Weights, the state of Adam, the order of
# the samples and the schedule continue from there.

subprocess.run(command, check=True)
print("all checkpoints:", len(list(Path(folder.name).glob("epoch-*.zip"))))

# %%
# Compare
# -------
#
# The same training without interruption has the same weights and the same history.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from ortlearn import OrtGradientOptimizer, saving

X, y = load_digits(return_X_y=True)
whole = OrtGradientOptimizer(
    MLPClassifier((32,), max_iter=1),
    learning_rate="Adam",
    batch_size=32,
    max_iter=60,
    random_state=0,
).fit(X / 16, y)
resumed = saving.load(Path(folder.name) / "epoch-000060.zip")
folder.cleanup()
same = all(
    np.array_equal(array, whole.trained_coef_[name])
    for name, array in resumed.trained_coef_.items()
)
print("bit-identical weights:", same)

_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(whole.train_losses_, linewidth=5, color="0.8", label="without interruption")
ax.plot(resumed.train_losses_, label="killed and resumed")
ax.axvline(20, color="k", linestyle=":", linewidth=1, label="killed after epoch 20")
ax.set(yscale="log", xlabel="epoch", ylabel="training loss", title="A killed training, resumed")
ax.legend()
plt.show()
# sphinx_gallery_thumbnail_number = -1
