"""
Train a model on text and categories
====================================

Adverts for flats contain text, categories and numbers with missing values. The steps that
encode them, such as the vocabulary, are fitted by scikit-learn once and frozen. Only the last
step is trained, here with another loss: **the frozen part is computed once, and the trained
ONNX model takes the original columns.**
"""

# %%
# The data
# --------
#
# A frame with a district, a size with missing values, and a line of text. One rent in twenty
# was typed with an extra zero.

import matplotlib.pyplot as plt
import numpy as np
import pandas

rng = np.random.RandomState(0)
n = 800
words = {
    "quiet": 0,
    "balcony": 90,
    "garden": 160,
    "renovated": 120,
    "noisy": -110,
    "cellar": 30,
    "lift": 60,
}
adverts = pandas.DataFrame(
    {
        "district": rng.choice(["harbour", "centre", "hill", "station"], size=n),
        "size": rng.uniform(25, 120, size=n).round(),
        "text": [
            " ".join(rng.choice(list(words), size=rng.randint(1, 5), replace=False))
            for _ in range(n)
        ],
    }
)
worth = adverts["district"].map({"harbour": 150, "centre": 300, "hill": 200, "station": 0})
worth += adverts["text"].map(lambda text: sum(words[word] for word in text.split()))
rent = (200 + 9 * adverts["size"] + worth + 40 * rng.randn(n)).to_numpy()
adverts.loc[rng.rand(n) < 0.1, "size"] = np.nan
typed = np.where(rng.rand(n) < 0.05, 10 * rent, rent)
adverts.assign(rent=typed.round()).head()

# %%
# The pipeline
# ------------
#
# A column transformer with one branch per type of column, followed by a linear model.

from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

columns = make_column_transformer(
    (OneHotEncoder(), ["district"]),
    (make_pipeline(SimpleImputer(), StandardScaler()), ["size"]),
    (CountVectorizer(), "text"),
)
ridge = make_pipeline(columns, Ridge(alpha=1.0)).fit(adverts, typed)

# %%
# Which weights are trained
# -------------------------
#
# ``explain`` shows, before any training, which weights are trained and why others are not.

from ortlearn.trainable.explanation import explain

for row in explain(ridge, adverts).rows:
    print(
        f"{row.attribute.rpartition('.')[2]:>11} {'trained' if row.trainable else row.reason}"
    )

# %%
# Train with another loss
# -----------------------
#
# Ridge minimises squared errors, which are dominated by the wrong rents. The Huber loss is
# robust against them. The training starts from the weights of Ridge; the encoding of columns
# and words does not change.

from ortlearn import OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateAdam
from ortlearn.losses import HuberLoss

trainer = OrtGradientOptimizer(
    ridge,
    warm_start=True,
    learning_loss=HuberLoss(delta=50.0),
    learning_rate=LearningRateAdam(5.0, schedule="cosine"),
    batch_size=32,
    max_iter=100,
    random_state=0,
).fit(adverts, typed)
for name, model in {"ridge": ridge, "trained with the Huber loss": trainer}.items():
    wrong = np.abs(model.predict(adverts).ravel() - rent)
    print(f"{name}: median error {np.median(wrong):.0f}")

# %%
# The trained ONNX model
# ----------------------
#
# The model takes the columns by name, text as text, and only needs onnxruntime.

import onnxruntime

session = onnxruntime.InferenceSession(
    trainer.get_trained_onnx().SerializeToString(), providers=["CPUExecutionProvider"]
)
for value in session.get_inputs():
    print(value.name, value.type, value.shape)
advert = {
    "district": np.array([["hill"]], dtype=object),
    "size": np.array([[60.0]], dtype=np.float32),
    "text": np.array([["quiet garden"]], dtype=object),
}
print(f"{session.run(None, advert)[0].item():.0f} a month")

# %%
# Coefficients of the words
# -------------------------
#
# The weights keep their positions, so the column names identify them. The black marks are the
# true values; the coefficients of Ridge are distorted by the wrong rents.

names = list(ridge[0].get_feature_names_out())
places = [names.index(f"countvectorizer__{word}") for word in words]
bars = {
    "ridge": ridge[-1].coef_[places],
    "trained with the Huber loss": trainer.trained_coef_["coef"].ravel()[places],
}
_, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for shift, (name, values) in zip((0.2, -0.2), bars.items(), strict=True):
    ax.barh(np.arange(len(words)) + shift, values, height=0.4, label=name)
ax.scatter(
    list(words.values()),
    range(len(words)),
    marker="|",
    s=900,
    color="black",
    zorder=3,
    label="true value",
)
ax.set_yticks(range(len(words)), words)
ax.axvline(0, color="0.6", linewidth=0.8)
ax.set(xlabel="rent per month", title="Coefficients of words: Ridge, Huber loss, true values")
ax.legend(markerscale=0.3)
plt.show()
# sphinx_gallery_thumbnail_number = -1
