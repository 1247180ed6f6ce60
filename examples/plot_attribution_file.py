"""
One file that predicts and explains
===================================

``save_attributions`` writes an ONNX file with two outputs: the prediction of a fitted model,
and its integrated gradients. **A server in any language that has ONNX Runtime returns both with
one call**, without Python and without a package for explanations.
"""

# %%
# A fitted model
# --------------

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

data = load_wine(as_frame=True)
X, y = data.data.iloc[:, [0, 6, 9, 12]].to_numpy(), data.target.to_numpy()
names = [data.feature_names[index] for index in (0, 6, 9, 12)]
model = make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression()).fit(X, y)

# %%
# The file
# --------
#
# The baseline is the mean wine, and the explained output the probability of the first class.

from ortlearn.inspection import integrated_gradients, save_attributions

folder = TemporaryDirectory()
path = Path(folder.name) / "wine.onnx"
save_attributions(model, path, baseline=X.mean(axis=0), output=0)
session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
probabilities, attributions = session.run(["predict_proba", "attributions"], {"X": X[:1]})
print(f"{path.stat().st_size / 1024:.0f} kB, probability {probabilities[0, 0]:.3f}")

# %%
# The attributions are those of Python:

expected = integrated_gradients(model, X[:1], X.mean(axis=0), output=0)
print(f"largest difference: {np.abs(attributions - expected.attributions).max():.1g}")

# %%
# In Node
# -------
#
# The same file with ``onnxruntime-node``:
#
# .. code-block:: javascript
#
#     import * as ort from "onnxruntime-node";
#
#     const session = await ort.InferenceSession.create("wine.onnx");
#     const X = new ort.Tensor("float64", Float64Array.from([14.2, 3.1, 5.6, 1065]), [1, 4]);
#     const { predict_proba, attributions } = await session.run({ X });
#     console.log(predict_proba.data, attributions.data);

# %%
# The explanation of one wine
# ---------------------------

from ortlearn.inspection import InputGradientDisplay

display = InputGradientDisplay(attributions, feature_names=names, label="attribution").plot()
change = probabilities[0, 0] - model.predict_proba(X.mean(axis=0, keepdims=True))[0, 0]
display.ax_.set_title(f"Why class 0: {change:+.2f} compared with the mean wine")
plt.show()
folder.cleanup()
# sphinx_gallery_thumbnail_number = -1
