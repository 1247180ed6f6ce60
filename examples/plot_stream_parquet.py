"""
Train on a folder of parquet files
==================================

Data that does not fit in memory is read in parts. ``fit_stream`` trains on a folder of parquet
files while a thread reads them, and shuffles samples in a buffer. If the files are sorted, for
example by time, **the size of the buffer decides how well the model learns.**
"""

# %%
# The files
# ---------
#
# Twelve files of 5,000 samples, one per month. The months differ: the share of the first class
# grows over the year, so the samples are nearly sorted by label.

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

folder = TemporaryDirectory()
rng = np.random.default_rng(0)


def month(number, n_samples):
    """Return features and labels; the classes are shells around the origin."""
    label = (rng.uniform(size=n_samples) < number / 11).astype(int)
    X = rng.standard_normal((n_samples, 5)).astype(np.float32)
    radius = np.where(label, 2.5, 1.5) + 0.4 * rng.standard_normal(n_samples)
    return (X / np.linalg.norm(X, axis=1, keepdims=True) * radius[:, None]).astype(
        np.float32
    ), label


for kind, n_samples in {"training": 5000, "validation": 300}.items():
    (Path(folder.name) / kind).mkdir()
    for number in range(12):
        X, y = month(number, n_samples)
        columns = {f"x{place}": column for place, column in enumerate(X.T)}
        path = Path(folder.name) / kind / f"month-{number:02}.parquet"
        pq.write_table(pa.table({**columns, "label": y}), path)

# %%
# Train
# -----
#
# ``y`` is the name of a column. A pass over the files is an epoch. The buffer holds a tenth of
# a file, two files, or all samples; the last one equals ``fit`` on the same samples.

from sklearn.neural_network import MLPClassifier

from ortlearn import OrtGradientOptimizer

sizes = {"500 samples": 500, "10,000 samples": 10_000, "all samples": 60_000}
curves = {}
for name, size in sizes.items():
    trainer = OrtGradientOptimizer(
        MLPClassifier((32,)),
        learning_rate="Adam",
        batch_size=64,
        max_iter=6,
        validation_every=1,
        random_state=0,
    )
    trainer.fit_stream(
        Path(folder.name) / "training",
        "label",
        shuffle_buffer=size,
        source_val=Path(folder.name) / "validation",
    )
    curves[name] = trainer.validation_scores_
    print(
        f"{name}: accuracy {trainer.validation_scores_[-1]:.3f} after {trainer.n_iter_} passes"
    )
folder.cleanup()

# %%
# The effect of the buffer
# ------------------------
#
# Files are read in a new random order in every pass. With a small buffer the model still sees
# one month after the other, and its validation score depends on the month that came last.

_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, scores in curves.items():
    ax.plot(range(1, len(scores) + 1), scores, "o-", label=name)
ax.set(
    xlabel="pass", ylabel="accuracy", title="Validation accuracy by size of the shuffle buffer"
)
ax.legend()
plt.show()
# sphinx_gallery_thumbnail_number = -1
