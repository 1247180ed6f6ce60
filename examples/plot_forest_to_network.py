"""
From a forest of 300 trees to a small integer network
=====================================================

A forest of 300 trees takes megabytes, and the network that learns its answers a few kilobytes.
**Half of the units of the network are then removed, and the rest gets weights of 8 bits.** Each
step says what it costs on samples that none of the models has seen.
"""

# %%
# The forest recognises digits.

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
forest = RandomForestClassifier(300, random_state=0).fit(X, y)

# %%
# A student with 64 units learns its probabilities, for these samples and for some between them.

from ortlearn.compress import distill, prune, quantize

options = {"held_out": (X_test, y_test), "max_iter": 30}
student = distill(forest, "mlp:64", X, y, alpha=0.9, extra=1, **options)
print(student)

# %%
# Half of its units are enough.

small = prune(student.model, X, y, sparsity=0.5, **options)
print(small)

# %%
# Integer weights and activations: a file for onnxruntime, in Python or in a browser.

integers = quantize(small.model, X, y, held_out=(X_test, y_test))
print(integers)

# %%
# The steps in one picture.

import matplotlib.pyplot as plt

steps = {"forest": student.n_bytes["old"], "student": student.n_bytes["new"]}
steps |= {"pruned": small.n_bytes["new"], "int8": integers.n_bytes["new"]}
scores = [student.scores["accuracy"]["old"]["value"]]
scores += [found.scores["accuracy"]["new"]["value"] for found in (student, small, integers)]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
left.barh(list(steps), [size / 1000 for size in steps.values()])
left.set(xscale="log", xlabel="kB of the ONNX file")
right.barh(list(steps), scores)
right.set(xlim=(0.9, 1.0), xlabel="accuracy on new samples", yticks=[])
left.set_title("size and accuracy of each step")
for axes in (left, right):
    axes.invert_yaxis()
# sphinx_gallery_thumbnail_number = -1
plt.show()
